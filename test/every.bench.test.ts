/**
 * Runs every bench with tiny sizes, so that none becomes outdated. Its results are ignored here.
 */
import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";
import { builtPath, projectRoot } from "./support/project-root.ts";

const folder = mkdtempSync(join(tmpdir(), "jackdaw-benches-"));
const subjects = readdirSync(join(projectRoot, "bench"))
  .filter((name) => name.endsWith(".bench.ts"))
  .map((name) => name.replace(/\.bench\.ts$/, ""));

afterAll(() => rmSync(folder, { recursive: true, force: true }));

test.each(subjects)("the bench of %s runs", { timeout: 120_000 }, async (subject) => {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ["--expose-gc", builtPath("bench/run.js"), "--smoke", subject],
    { cwd: projectRoot, env: { ...process.env, JACKDAW_BENCH_DIR: folder } },
  );
  const [machine, ...lines] = stdout.trim().split("\n");
  expect(machine).toMatch(new RegExp(`^${subject} on .*, Node v`));
  expect(lines.length).toBeGreaterThan(0);
  expect(stdout).not.toMatch(/\b(undefined|Infinity)\b/);
  expect(readdirSync(folder)).toEqual([]);
});
