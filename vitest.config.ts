/**
 * `vitest run` tests the TypeScript;
 * `vitest run --mode built` tests what tsc built, which loads in half the time: `npm test`;
 * `vitest run --mode cold` is the same over databases that keep no record in memory, and opens them again before every read
 * over the wire (test/support/cold.ts);
 * `vitest run --mode long` runs those that `npm test` leaves out, because they take long or wait for processes;
 * `vitest run --mode studio` runs those that need a browser, from what was built, and `--mode walks` those of them that
 * go through all pages;
 * `vitest run --mode followed` compares each database of the engine's tests with one that follows it;
 * `vitest run --mode cluster` runs those that need a nats-server (packaging/nats-server.js);
 * `vitest run --mode nodes` runs three whole servers under faults, from what was built;
 * `vitest run --mode faults` runs the tests of faults without leaving any out, which takes long;
 * `vitest run --mode dist` runs all that was built but those that need a browser or a nats-server, which is what c8 measures.
 * With VITEST_JSON_REPORT=FILE the counts are written there too, for .ci/run.
 */
import { readdirSync } from "node:fs";
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

/** What takes seconds a file: `npm test` leaves it to `--mode long`. */
const slow = [
  "test/cli/commands/cluster-recover.test.ts",
  "test/cli/operate.test.ts",
  "test/client/certificates.test.ts",
  "test/client/subscription-kill.test.ts",
  "test/client/subscriptions.test.ts",
  "test/engine/api/replication.test.ts",
  "test/engine/base/held-pieces.test.ts",
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

/** In both: `npm test` takes samples of what `--mode long` does more of. */
const sampled = ["test/simulation/operations-faults.test.ts"];

/** The studio in a browser, which not every machine has: they are run by `--mode studio`. */
const flows = ["test/studio/flows/**/*.test.ts"];

/** Those that go through all pages one by one, or need a cluster: `npm test` leaves them to `--mode walks`. */
const walks = ["checks", "rights", "cluster"].map((name) => `test/studio/flows/${name}.test.ts`);

/** Several nodes, and the servers of NATS that they need: they are run by `--mode cluster`. */
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

/** Servers of several nodes, each a process, under faults: they are run by `--mode nodes`. */
const nodes = ["test/cluster/cluster-faults.test.ts", "test/cluster/cluster-one.test.ts"];

/**
 * What looks at the memory of its whole process. All other files share a few processes and their modules, whose loading
 * takes as long as the tests; what a test changes in the state of a module it puts back.
 */
const alone = [
  "test/engine/base/garbage.test.ts",
  "test/server/monitoring/resident-bytes.test.ts",
  "test/server/startup/memory-return.test.ts",
];

/** Rooms whose tests open databases that another can follow. */
const followed = ["api", "background", "querying", "smuggler", "store", "subscriptions", "writes"];

/** Files of tests that are there: what was built of others before stays under dist/. */
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
      // One less than there are processors would be one of two.
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
      // A browser on a busy machine may not come in time.
      retry: isOfStudio ? 1 : 0,
      testTimeout: 60_000,
      hookTimeout: 120_000,
      // A busy machine makes what is waited for late; it does not make it wrong.
      expect: { poll: { timeout: 15_000 } },
      reporters: report === undefined ? ["default"] : ["default", "json"],
      ...(report === undefined ? {} : { outputFile: { json: report } }),
    },
  };
});

/** A part of the tests that runs with options of its own beside those of all. */
function project(name: string, options: object) {
  return { extends: true as const, test: { name, ...options } };
}
