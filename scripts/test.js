/**
 * `npm test`: builds, then checks and tests in parallel, and prints what ran, how long each step took, and which tests
 * were omitted. If the build fails, the tests are not run.
 *
 * If VITEST_JSON_REPORT=FILE is set, the test report is written to that file.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { constants, setPriority, tmpdir } from "node:os";
import { join } from "node:path";
import { stressLines } from "./stress.js";

const folder = mkdtempSync(join(tmpdir(), "jackdaw-report-"));
const report = process.env.VITEST_JSON_REPORT ?? join(folder, "report.json");
const lines = [];
let status = 0;

await step("build", ["run", "--silent", "build"], "modules, bundle, declarations");
const filters = process.argv.slice(2);
await Promise.all([
  step("check", ["run", "--silent", "check"], "format, lint, types"),
  step("tests", ["exec", "--", "vitest", "run", "--mode", "built", ...filters], counts),
]);
rmSync(folder, { recursive: true, force: true });

console.log(`\n${lines.join("\n")}`);
console.log("omitted:");
for (const line of stressLines()) console.log(`  ${line}`);
process.exitCode = status;

/** Runs a step, unless an earlier step failed. `summary` is the text of the report, or a function that returns it. */
async function step(name, args, summary) {
  if (status !== 0) {
    lines.push(`${name.padEnd(8)}  not run`);
    return;
  }
  const startMs = performance.now();
  const env = { ...process.env, VITEST_JSON_REPORT: report };
  const child = spawn("npm", args, { stdio: "inherit", env });
  // The check uses the time in which tests wait, and does not delay the others.
  if (name === "check" && child.pid !== undefined) {
    setPriority(child.pid, constants.priority.PRIORITY_BELOW_NORMAL);
  }
  const [code] = await once(child, "exit");
  const own = code ?? 1;
  if (status === 0) status = own;
  const seconds = ((performance.now() - startMs) / 1000).toFixed(0);
  const text = typeof summary === "function" ? summary() : summary;
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
