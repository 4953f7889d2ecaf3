/**
 * Runs every bench with tiny sizes, so that none becomes outdated. Its results are ignored here.
 */
import { execFile, execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";

// For both the source and dist/.
const project = existsSync(resolve("package.json")) ? resolve(".") : resolve("..");
const built = join(project, "dist", "bench");
const folder = mkdtempSync(join(tmpdir(), "jackdaw-benches-"));
const subjects = readdirSync(join(project, "bench"))
  .filter((name) => name.endsWith(".bench.ts"))
  .map((name) => name.replace(/\.bench\.ts$/, ""));

beforeAll(() => {
  // `npm test` builds first; run alone, this file runs the last build.
  const isBuilt = subjects.every((subject) => existsSync(join(built, `${subject}.bench.js`)));
  if (!isBuilt) execFileSync("npm", ["run", "build"], { cwd: project, stdio: "ignore" });
}, 120_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test.each(subjects)("the bench of %s runs", { timeout: 120_000 }, async (subject) => {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ["--expose-gc", join(built, "run.js"), "--smoke", subject],
    { cwd: project, env: { ...process.env, JACKDAW_BENCH_DIR: folder } },
  );
  const [machine, ...lines] = stdout.trim().split("\n");
  expect(machine).toMatch(new RegExp(`^${subject} on .*, Node v`));
  expect(lines.length).toBeGreaterThan(0);
  expect(stdout).not.toMatch(/\b(undefined|Infinity)\b/);
  expect(readdirSync(folder)).toEqual([]);
});
