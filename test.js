/**
 * `npm test`: checks and builds at the same time, runs the tests, and says at the end what it ran, how long each part took,
 * and what it left out. After a part that fails there are no tests.
 *
 * With VITEST_JSON_REPORT=FILE the report of the tests is written there.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** What is run by `.ci/run` or by hand: a script, and what it adds. */
const leftOut = [
  ["test:studio", "the studio in Chromium (CHROMIUM names another than the system's)"],
  ["test:cluster", "several nodes, with the nats-server that node packaging/nats-server.js makes"],
  [
    "test:long",
    "processes, the package, benches in small, crashes and faults at many places, what takes seconds a file",
  ],
  [
    "test:walks",
    "every page of the studio by the rules of axe and with each right, and a cluster's",
  ],
  ["test:cold", "all tests without a record in memory"],
  ["test:nodes, test:nightly", "three whole nodes under 10 and under 200 faults"],
  ["test:fuzz, test:abuse", "changed requests, and attacks on a real process"],
  ["test:faults, test:crash", "every fault of the disk, and killed processes"],
];

const folder = mkdtempSync(join(tmpdir(), "jackdaw-report-"));
const report = process.env.VITEST_JSON_REPORT ?? join(folder, "report.json");
const lines = [];
let status = 0;

await Promise.all([
  part("check", ["exec", "--", "biome", "check", "--error-on-warnings", "."], "format, lint"),
  part("build", ["run", "--silent", "build"], "types, modules, bundle, declarations"),
]);
const filters = process.argv.slice(2);
await part("tests", ["exec", "--", "vitest", "run", "--mode", "built", ...filters], counts);
rmSync(folder, { recursive: true, force: true });

console.log(`\n${lines.join("\n")}`);
for (const [script, adds] of leftOut) console.log(`left out  npm run ${script}: ${adds}`);
process.exitCode = status;

/** Runs a part, unless one has failed. `told`: what it did, or what says so afterwards. */
async function part(name, args, told) {
  if (status !== 0) {
    lines.push(`${name.padEnd(8)}  not run`);
    return;
  }
  const beganMs = performance.now();
  const env = { ...process.env, VITEST_JSON_REPORT: report };
  const [code] = await once(spawn("npm", args, { stdio: "inherit", env }), "exit");
  const own = code ?? 1;
  if (status === 0) status = own;
  const seconds = ((performance.now() - beganMs) / 1000).toFixed(0);
  const text = typeof told === "function" ? told() : told;
  lines.push(
    `${name.padEnd(8)}  ${own === 0 ? "passed" : "FAILED"}  ${seconds.padStart(4)} s  ${text}`,
  );
}

function counts() {
  try {
    const { numTotalTests, numFailedTests, numPendingTests, testResults } = JSON.parse(
      readFileSync(report, "utf8"),
    );
    return `${numTotalTests} tests in ${testResults.length} files, ${numFailedTests} failed, ${numPendingTests} skipped`;
  } catch {
    return "no report";
  }
}
