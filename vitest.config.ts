/**
 * `vitest run` tests the TypeScript sources.
 * `vitest run --mode built` tests the compiled code, which loads in half the time: `npm test`.
 * `vitest run --mode cold` does the same with databases that cache no records and are reopened before every read over
 * the wire (test/support/cold.ts).
 * `vitest run --mode long` runs tests, compiled, that `npm test` omits because they are slow or wait for processes.
 * `vitest run --mode studio` runs tests that need a browser, compiled; `--mode walks` runs those that visit all
 * pages.
 * `vitest run --mode followed` compares each database of the engine's tests with a follower.
 * `vitest run --mode cluster` runs tests, compiled, that need a nats-server (packaging/nats-server.js).
 * `vitest run --mode nodes` runs three servers under faults, compiled.
 * `vitest run --mode faults` runs the fault tests at every fault point, which is slow.
 * If VITEST_JSON_REPORT=FILE is set, the counts are also written to that file, for .ci/run.
 */
import { readdirSync } from "node:fs";
import { defineConfig } from "vitest/config";

const report = process.env["VITEST_JSON_REPORT"];

/**
 * The kinds of tests, by the last part of a file's name (`x.slow.test.ts`), and the modes that run them. scripts/stress.js
 * has their durations.
 *
 * | kind | what | modes |
 * | --- | --- | --- |
 * | none | most tests | `built` (`npm test`), `cold`, none |
 * | `slow` | seconds per file | `long`, `cold`, none |
 * | `long` | processes, the package, faults at many points | `long` |
 * | `browser` | the studio in Chromium | `studio` |
 * | `walk` | all pages of the studio, or that of a cluster | `walks` |
 * | `cluster` | several nodes in one process | `cluster` |
 * | `bench` | every bench at a small size | `benches` |
 * | `nodes` | several processes under faults | `nodes` |
 * | `alone` | the memory of the whole process: modules are not shared with other files | as none |
 *
 * All files of the other kinds share a few processes and their modules, because loading modules takes as long as the tests;
 * tests restore any module state that they change.
 */
const kindPattern = /\.([a-z]+)\.test\.ts$/;

/** Rooms whose tests open databases that can be followed. */
const followed = ["api", "services", "state/store", "writes", "patching", "batches"];

/** Existing test files; dist/ may also contain compiled tests that were removed. */
const names = readdirSync("test", { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".test.ts"))
  .map((name) => `test/${name.replaceAll("\\", "/")}`);

const kindOf = (name: string) => kindPattern.exec(name)?.[1] ?? "";

/** Test files of these kinds. */
const of = (...kinds: readonly string[]) => names.filter((name) => kinds.includes(kindOf(name)));

const builtOf = (paths: readonly string[]) =>
  paths.map((path) => `dist/${path.replace(/\.ts$/, ".js")}`);

export default defineConfig(({ mode }) => {
  const isCold = mode === "cold";
  const isOfStudio = mode === "studio" || mode === "walks";
  const isBuilt = isCold || isOfStudio || ["built", "long", "cluster"].includes(mode);
  const files = (paths: readonly string[]) => (isBuilt ? builtOf(paths) : [...paths]);
  const only: Readonly<Record<string, readonly string[]>> = {
    studio: of("browser"),
    walks: of("walk"),
    cluster: of("cluster"),
    nodes: of("nodes"),
    benches: of("bench"),
    faults: ["test/engine/storage/log/**/*.test.ts", "test/simulation/**/*.test.ts"],
    followed: followed.map((room) => `test/engine/${room}/**/*.test.ts`),
  };
  const shared = mode === "long" ? of("slow") : mode === "built" ? of("") : of("", "slow");
  const own = of(mode === "long" ? "long" : "alone");
  const setup = isCold ? "cold-databases" : "poisoned-databases";
  return {
    test: {
      pool: "forks",
      // One worker less than the number of processors would be a single worker on two processors.
      maxWorkers: "100%",
      ...(only[mode] === undefined
        ? {
            projects: [
              project("shared modules", { include: files(shared), isolate: false }),
              project("own modules", { include: files(own) }),
            ],
          }
        : {
            include: files(only[mode]),
            ...(isOfStudio ? { isolate: false } : {}),
            exclude: files(mode === "cluster" ? [] : of("cluster")),
          }),
      env: {
        ...(mode === "faults" ? { EVERY_FAULT: "1" } : {}),
        ...(isCold ? { COLD: "1" } : {}),
        ...(mode === "followed" ? { FOLLOWED: "1" } : {}),
      },
      setupFiles: files([
        // c8 sets the variable.
        ...(process.env["NODE_V8_COVERAGE"] === undefined
          ? []
          : ["test/support/flush-coverage.ts"]),
        `test/support/${setup}.ts`,
        "test/support/equal-bytes.ts",
      ]),
      server: { deps: { external: [/\/dist\//] } },
      // A browser on a busy machine may exceed its timeouts.
      retry: isOfStudio ? 1 : 0,
      testTimeout: 60_000,
      hookTimeout: 120_000,
      // On a busy machine, expected results may be late without being wrong.
      expect: { poll: { timeout: 15_000 } },
      reporters: report === undefined ? ["default"] : ["default", "json"],
      ...(report === undefined ? {} : { outputFile: { json: report } }),
    },
  };
});

/** Tests that run with their own options in addition to the common options. */
function project(name: string, options: object) {
  return { extends: true as const, test: { name, ...options } };
}
