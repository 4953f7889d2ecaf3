/**
 * Runs benches: `npm run bench -- [--smoke] [NAME…]`; all benches without names. Each runs in a separate process, so
 * that the heap of one does not affect another.
 */
import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { type Bench, machineLine } from "./harness.ts";

const folder = fileURLToPath(new URL(".", import.meta.url));
const args = process.argv.slice(2);
const size = args.includes("--smoke") ? "smoke" : "full";
const wanted = args.filter((arg) => !arg.startsWith("--"));
const subjects = readdirSync(folder)
  .filter((name) => /\.bench\.js$/.test(name))
  .map((name) => name.replace(/\.bench\.js$/, ""))
  .filter((subject) => wanted.length === 0 || wanted.includes(subject));

if (wanted.length === 1 && subjects.length === 1) {
  console.log(`${subjects[0]} on ${machineLine()}`);
  const bench = (await import(`./${subjects[0]}.bench.js`)) as Bench;
  await bench.run(size);
} else {
  for (const subject of subjects) {
    const flags = size === "smoke" ? ["--smoke"] : [];
    const run = spawnSync(
      process.execPath,
      ["--expose-gc", fileURLToPath(import.meta.url), subject, ...flags],
      { stdio: "inherit" },
    );
    if (run.status !== 0) process.exitCode = 1;
  }
}
