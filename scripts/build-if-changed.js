/**
 * Builds if a source has changed since the last build, so that `npm start` and tests of the build start without
 * delay.
 */
import { spawnSync } from "node:child_process";
import { readdirSync, statSync } from "node:fs";
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
  const { status } = spawnSync("npm", ["run", "--silent", "build"], { stdio: "inherit" });
  process.exitCode = status ?? 1;
}
