/**
 * Builds if a source has changed since the last build, so that `npm start` and tests of the build start without
 * delay. Prints each step of the build and its duration. npm must run it, because the steps are commands of node_modules.
 */
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";

const sources = [
  "engine",
  "server",
  "certs",
  "cli",
  "library",
  "studio",
  "test",
  "bench",
  "packaging",
  "scripts",
  "package-lock.json",
  "tsconfig.json",
];

/**
 * Returns the newest modification time at `path`, in milliseconds; folders change when entries are added or removed.
 */
function changedMs(path) {
  const { mtimeMs, isFolder } = facts(path);
  if (!isFolder) return mtimeMs;
  return Math.max(mtimeMs, ...readdirSync(path).map((name) => changedMs(join(path, name))));
}

function facts(path) {
  const found = statSync(path);
  return { mtimeMs: found.mtimeMs, isFolder: found.isDirectory() };
}

/** Returns the time of the last build, in milliseconds. LICENSES.txt is its last output. */
function builtMs() {
  try {
    return statSync("dist/bundle/LICENSES.txt").mtimeMs;
  } catch {
    return 0;
  }
}

if (Math.max(...sources.map(changedMs)) > builtMs()) {
  const { scripts } = JSON.parse(readFileSync("package.json", "utf8"));
  const commands = scripts.build.split(" && ");
  console.error("Building, because a source has changed since the last build:");
  for (const [at, command] of commands.entries()) {
    process.stderr.write(`  ${at + 1} of ${commands.length}: ${command} …`);
    const beganMs = performance.now();
    const { status } = spawnSync(command, { shell: true, stdio: "inherit" });
    process.stderr.write(` ${Math.round((performance.now() - beganMs) / 1000)} s\n`);
    if (status !== 0) process.exit(status ?? 1);
  }
}
