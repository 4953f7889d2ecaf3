/**
 * `npm test`: checks, builds, runs the tests, and says at the end what it ran, how long each part took, and what it left
 * out. A part that fails ends it.
 *
 * The studio is tested where there is a Chromium: the one of the system, or the one that CHROMIUM names; several nodes
 * where there is a nats-server: the one that `node packaging/nats-server.js` makes, one on the path, or the one that
 * NATS_SERVER names. With VITEST_JSON_REPORT=FILE the counts of all parts are written there.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";

/** What is run by `.ci/run` or by hand: a script, and what it adds. */
const leftOut = [
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
const report = join(folder, "report.json");
const lines = [];
/** Of all parts; undefined: one of them wrote none. */
let counts = { numPassedTests: 0, numFailedTests: 0, numFailedTestSuites: 0 };
let status = 0;

part("check", ["exec", "--", "biome", "check", "--error-on-warnings", "."], "format, lint");
part("build", ["run", "--silent", "build"], "types, modules, bundle, declarations");
const filters = process.argv.slice(2);
part("tests", ["exec", "--", "vitest", "run", "--mode", "built", ...filters], addCounts);
if (filters.length > 0) leftOut.push(["test:studio", "the studio in a browser"]);
else if (existsSync(process.env.CHROMIUM ?? "/usr/bin/chromium"))
  part("studio", ["exec", "--", "vitest", "run", "--mode", "studio"], addCounts);
else leftOut.push(["test:studio", "the studio in a browser: there is no Chromium here"]);
if (filters.length > 0) leftOut.push(["test:cluster", "several nodes"]);
else if (hasNatsServer())
  part("cluster", ["exec", "--", "vitest", "run", "--mode", "cluster"], addCounts);
else
  leftOut.push([
    "test:cluster",
    "several nodes: there is no nats-server here (node packaging/nats-server.js makes one)",
  ]);
if (process.env.VITEST_JSON_REPORT !== undefined && counts !== undefined)
  writeFileSync(process.env.VITEST_JSON_REPORT, JSON.stringify(counts));
rmSync(folder, { recursive: true, force: true });

console.log(`\n${lines.join("\n")}`);
for (const [script, adds] of leftOut) console.log(`left out  npm run ${script}: ${adds}`);
process.exitCode = status;

/** Runs a part, unless one before it has failed. `told`: what it did, or what says so afterwards. */
function part(name, args, told) {
  if (status !== 0) {
    lines.push(`${name.padEnd(8)}  not run`);
    return;
  }
  const beganMs = performance.now();
  const env = { ...process.env, VITEST_JSON_REPORT: report };
  status = spawnSync("npm", args, { stdio: "inherit", env }).status ?? 1;
  const seconds = ((performance.now() - beganMs) / 1000).toFixed(0);
  const text = typeof told === "function" ? told() : told;
  lines.push(
    `${name.padEnd(8)}  ${status === 0 ? "passed" : "FAILED"}  ${seconds.padStart(4)} s  ${text}`,
  );
}

function hasNatsServer() {
  const made = "node_modules/.cache/nats-server-2.15.1/nats-server";
  const folders = (process.env.PATH ?? "").split(delimiter);
  const paths = folders.map((one) => join(one, "nats-server"));
  return [process.env.NATS_SERVER ?? made, ...paths].some((path) => existsSync(path));
}

function addCounts() {
  try {
    const part = JSON.parse(readFileSync(report, "utf8"));
    rmSync(report);
    for (const name of Object.keys(counts)) counts[name] += part[name];
    const { numTotalTests, numFailedTests, numPendingTests, testResults } = part;
    return `${numTotalTests} tests in ${testResults.length} files, ${numFailedTests} failed, ${numPendingTests} skipped`;
  } catch {
    counts = undefined;
    return "no report";
  }
}
