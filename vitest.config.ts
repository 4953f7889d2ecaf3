/**
 * `vitest run` tests the TypeScript; `vitest run --mode dist` tests what tsc built, which is what c8 measures;
 * `vitest run --mode cold` runs them over databases that keep no record in memory, and opens them again before every read over
 * the wire (test/support/cold.ts);
 * `vitest run --mode long` runs those that `npm test` leaves out, because they take long or wait for processes;
 * `vitest run --mode studio` runs those that need a browser;
 * `vitest run --mode faults` runs the tests of faults without leaving any out, which takes long.
 * With VITEST_JSON_REPORT=FILE the counts are written there too, for .ci/run.
 */
import { defineConfig } from "vitest/config";

const report = process.env["VITEST_JSON_REPORT"];

/** Whole processes, and faults at many places: they are run by `--mode long`, and by .ci/run. */
const long = [
  "test/benches.test.ts",
  "test/docs.test.ts",
  "test/package.test.ts",
  "test/packaging/image.test.ts",
  "test/packaging/openapi-text.test.ts",
  "test/packaging/sbom.test.ts",
  "test/server/start.test.ts",
  "test/engine/platform/lock/folder-lock.test.ts",
  "test/engine/log/crash.test.ts",
  "test/engine/log/damage.test.ts",
  "test/engine/log/faults.test.ts",
  "test/engine/log/rival.test.ts",
  "test/fuzz/**/*.test.ts",
  "test/simulation/continuous-kill.test.ts",
  "test/simulation/database-faults.test.ts",
  "test/simulation/index-snapshots-crash.test.ts",
  "test/simulation/kill-loop.test.ts",
];

/** The studio in a browser, which not every machine has: they are run by `--mode studio`. */
const flows = ["test/studio/flows/**/*.test.ts"];

/**
 * Rooms whose tests open no database. Their files share a process and its modules, whose loading takes longer than the
 * tests; what a test changes in the state of a module it puts back.
 */
const sharing = ["documents", "indexing", "json", "keyspaces", "rql", "scripting", "tree"].map(
  (room) => `test/engine/${room}/**/*.test.ts`,
);

export default defineConfig(({ mode }) => {
  const built = mode === "dist";
  const cold = mode === "cold";
  const faults = ["test/engine/log/**/*.test.ts", "test/simulation/**/*.test.ts"];
  return {
    test: {
      pool: "forks",
      // One less than there are processors would be one of two.
      maxWorkers: "100%",
      ...(mode === "test" || cold
        ? {
            projects: [
              project("shared modules", { include: sharing, isolate: false }),
              project("own modules", {
                include: ["test/**/*.test.ts"],
                exclude: [...long, ...flows, ...sharing],
              }),
            ],
          }
        : {
            include: built
              ? ["dist/test/**/*.test.js"]
              : mode === "faults"
                ? faults
                : mode === "long"
                  ? long
                  : mode === "studio"
                    ? flows
                    : ["test/**/*.test.ts"],
          }),
      env: { ...(mode === "faults" ? { EVERY_FAULT: "1" } : {}), ...(cold ? { COLD: "1" } : {}) },
      exclude: ["node_modules/**", "dist/test/studio/flows/**"],
      setupFiles: built
        ? ["dist/test/support/flush-coverage.js", "dist/test/support/poisoned-databases.js"]
        : [cold ? "test/support/cold-databases.ts" : "test/support/poisoned-databases.ts"],
      server: { deps: { external: [/\/dist\//] } },
      testTimeout: 60_000,
      reporters: report === undefined ? ["default"] : ["default", "json"],
      ...(report === undefined ? {} : { outputFile: { json: report } }),
    },
  };
});

/** A part of the tests that runs with options of its own beside those of all. */
function project(name: string, options: object) {
  return { extends: true as const, test: { name, ...options } };
}
