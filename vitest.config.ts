/**
 * `vitest run` tests the TypeScript sources.
 * `vitest run --mode built` tests the compiled code, which loads in half the time: `npm test`.
 * `vitest run --mode cold` does the same with databases that cache no records and are reopened before every read over
 * the wire (test/support/cold.ts).
 * `vitest run --mode long` runs tests that `npm test` omits because they are slow or wait for processes.
 * `vitest run --mode studio` runs tests that need a browser, compiled; `--mode walks` runs those that visit all
 * pages.
 * `vitest run --mode followed` compares each database of the engine's tests with a follower.
 * `vitest run --mode cluster` runs tests that need a nats-server (packaging/nats-server.js).
 * `vitest run --mode nodes` runs three servers under faults, compiled.
 * `vitest run --mode faults` runs the fault tests at every fault point, which is slow.
 * `vitest run --mode dist` runs all compiled tests except those that need a browser or a nats-server; c8 measures
 * this run.
 * If VITEST_JSON_REPORT=FILE is set, the counts are also written to that file, for .ci/run.
 */
import { readdirSync } from "node:fs";
import { defineConfig } from "vitest/config";

const report = process.env["VITEST_JSON_REPORT"];

/** Tests with processes, and with faults at many points; run by `--mode long` and by .ci/run. */
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

/** Tests that take seconds per file; `npm test` leaves them to `--mode long`. */
const slow = [
  "test/cli/commands/cluster-recover.test.ts",
  "test/cli/operate.test.ts",
  "test/client/certificates.test.ts",
  "test/client/subscription-kill.test.ts",
  "test/client/subscriptions.test.ts",
  "test/engine/api/replication.test.ts",
  "test/engine/base/buffered-chunks.test.ts",
  "test/engine/database/database-replication.test.ts",
  "test/engine/querying/index-hosting/index-snapshots.test.ts",
  "test/engine/querying/steered-operations.test.ts",
  "test/engine/shipping/shipment.test.ts",
  "test/engine/writes/prepared-document.test.ts",
  "test/server/backups/backup-destination.test.ts",
  "test/server/backups/continuous-backup.test.ts",
  "test/server/backups/restores.test.ts",
  "test/server/backups/verification.test.ts",
  "test/server/certificates.test.ts",
  "test/server/cluster/copy-fetch.test.ts",
  "test/server/cluster/stream-trim.test.ts",
  "test/server/endpoints/cluster-dashboard.test.ts",
  "test/server/endpoints/cluster-databases.test.ts",
  "test/server/endpoints/large-replies.test.ts",
  "test/server/endpoints/live-figures.test.ts",
  "test/server/endpoints/sample-data.test.ts",
  "test/server/limits.test.ts",
  "test/server/routing/request-forwarding.test.ts",
  "test/server/security/presented-certificate.test.ts",
  "test/simulation/catalog-crash.test.ts",
  "test/simulation/database-crash.test.ts",
  "test/simulation/database-damage.test.ts",
  "test/simulation/database-model.test.ts",
  "test/simulation/replication-schedules.test.ts",
];

/** Tests in both modes: `npm test` runs a sample of the cases of `--mode long`. */
const sampled = ["test/simulation/operations-faults.test.ts"];

/** Tests of the studio in a browser, run by `--mode studio`. */
const flows = ["test/studio/flows/**/*.test.ts"];

/** Browser tests that visit all pages, or need a cluster; run by `--mode walks`. */
const walks = ["checks", "rights", "cluster"].map((name) => `test/studio/flows/${name}.test.ts`);

/** Tests with several nodes and their NATS servers; run by `--mode cluster`. */
const cluster = [
  "test/server/cluster/adoption.test.ts",
  "test/server/cluster/cluster-directory.test.ts",
  "test/server/cluster/cluster.test.ts",
  "test/server/cluster/damaged-replicas.test.ts",
  "test/server/routing/cluster-requests.test.ts",
  "test/server/cluster/nats/jetstream-stream.test.ts",
  "test/server/cluster/nats/nats.test.ts",
  "test/simulation/replicated-kill.test.ts",
];

/** Tests with several server processes under faults; run by `--mode nodes`. */
const nodes = ["test/cluster/cluster-faults.test.ts", "test/cluster/cluster-one.test.ts"];

/**
 * Tests that measure the memory of the whole process. All other files share a few processes and their modules,
 * because loading
 * modules takes as long as the tests; tests restore any module state that they change.
 */
const alone = [
  "test/engine/base/gc-hints.test.ts",
  "test/engine/base/resident-bytes.test.ts",
  "test/engine/base/memory-return.test.ts",
];

/** Rooms whose tests open databases that can be followed. */
const followed = ["api", "background", "querying", "smuggler", "store", "subscriptions", "writes"];

/** Existing test files; dist/ may also contain compiled tests that were removed. */
const names = readdirSync("test", { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".test.ts"))
  .map((name) => `test/${name.replaceAll("\\", "/")}`);

const builtOf = (paths: readonly string[]) =>
  paths.map((path) => `dist/${path.replace(/\.ts$/, ".js")}`);

export default defineConfig(({ mode }) => {
  const isCold = mode === "cold";
  const isOfStudio = mode === "studio" || mode === "walks";
  const isBuilt = isCold || mode === "built" || mode === "dist" || isOfStudio;
  const files = (paths: readonly string[]) => (isBuilt ? builtOf(paths) : [...paths]);
  const only: Readonly<Record<string, readonly string[]>> = {
    long: [...long, ...slow, ...sampled],
    studio: flows,
    walks,
    cluster,
    nodes,
    faults: ["test/engine/log/**/*.test.ts", "test/simulation/**/*.test.ts"],
    followed: followed.map((room) => `test/engine/${room}/**/*.test.ts`),
    dist: names,
  };
  const setup = isCold ? "cold-databases" : "poisoned-databases";
  return {
    test: {
      pool: "forks",
      // One worker less than the number of processors would be a single worker on two processors.
      maxWorkers: "100%",
      ...(only[mode] === undefined
        ? {
            projects: [
              project("shared modules", {
                include: files(names),
                exclude: files([
                  ...long,
                  ...(mode === "built" ? slow : []),
                  ...flows,
                  ...cluster,
                  ...nodes,
                  ...alone,
                ]),
                isolate: false,
              }),
              project("own modules", { include: files(alone) }),
            ],
          }
        : {
            include: files(only[mode]),
            ...(isOfStudio ? { isolate: false } : {}),
            exclude: files([
              ...(mode === "dist" ? flows : mode === "studio" ? walks : []),
              ...(mode === "cluster" ? [] : cluster),
              ...(mode === "nodes" ? [] : nodes),
            ]),
          }),
      env: {
        ...(mode === "faults" ? { EVERY_FAULT: "1" } : {}),
        ...(mode === "long" ? { MORE_FAULTS: "1" } : {}),
        ...(isCold ? { COLD: "1" } : {}),
        ...(mode === "followed" ? { FOLLOWED: "1" } : {}),
      },
      setupFiles: [
        ...(mode === "dist" ? ["dist/test/support/flush-coverage.js"] : []),
        ...files([`test/support/${setup}.ts`, "test/support/equal-bytes.ts"]),
      ],
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
