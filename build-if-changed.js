/**
 * Builds where something has changed since the last build: `npm start` starts at once where nothing has, and tests that run
 * what was built begin at once.
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
  "bundle.js",
  "bundle-studio.js",
  "package-lock.json",
  "tsconfig.json",
];

/** When the newest file or folder at `path` was changed; folders change with what is added and removed. */
function changedMs(path) {
  const { mtimeMs, isFolder } = facts(path);
  if (!isFolder) return mtimeMs;
  return Math.max(mtimeMs, ...readdirSync(path).map((name) => changedMs(join(path, name))));
}

function facts(path) {
  const found = statSync(path);
  return { mtimeMs: found.mtimeMs, isFolder: found.isDirectory() };
}

/** The licences are what a build makes last. */
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
