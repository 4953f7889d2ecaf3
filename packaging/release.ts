/**
 * Makes what a release consists of, in dist/release (`npm run release`): the package, the description of the interface,
 * the list of what the package contains (CycloneDX), and checksums. Publishes nothing.
 *
 * Invariants:
 * - Everything is made of a commit: with changes that are not committed it stops, unless `--dirty` is given.
 * - The package is built twice, and stops the release when it is not the same bytes both times.
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { bundledPackages, type Sbom, sbomOf } from "./sbom.ts";

const target = "dist/release";

/** Runs a program in the top folder, shows what it says, and returns what it prints. @throws when it fails */
function run(program: string, ...args: string[]): string {
  const stdio = ["ignore", "pipe", "inherit"] as const;
  return execFileSync(program, args, { encoding: "utf8", stdio: [...stdio], maxBuffer: 2 ** 28 });
}

/** Packs what is built. @returns the name of the file */
function pack(): string {
  const args = ["--ignore-scripts", "--json", "--pack-destination", target];
  const [packed] = JSON.parse(run("npm", "pack", ...args)) as { filename: string }[];
  if (packed === undefined) throw new Error("npm pack says nothing");
  return packed.filename;
}

/** `HASH  name` for each file, as `sha256sum --check` reads it. */
function checksums(names: readonly string[], algorithm: string): string {
  const rows = names.map((name) => {
    const hash = createHash(algorithm).update(readFileSync(`${target}/${name}`));
    return `${hash.digest("hex")}  ${name}\n`;
  });
  return rows.join("");
}

function release(isDirtyAllowed: boolean): void {
  const changed = run("git", "status", "--porcelain").trim();
  if (changed !== "" && !isDirtyAllowed) {
    throw new Error(`commit or remove these first, or give --dirty:\n${changed}`);
  }
  const identity = JSON.parse(
    readFileSync("package.json", "utf8"),
  ) as Sbom["metadata"]["component"];
  const { name, version } = identity;
  rmSync(target, { recursive: true, force: true });
  mkdirSync(target, { recursive: true });

  console.log("check");
  run("npm", "run", "--silent", "check");
  console.log("build, twice");
  run("npm", "run", "--silent", "build");
  const file = pack();
  const first = readFileSync(`${target}/${file}`);
  run("npm", "run", "--silent", "build");
  pack();
  if (!first.equals(readFileSync(`${target}/${file}`))) {
    throw new Error(`${file} is not the same when it is built again`);
  }

  copyFileSync("docs/openapi.json", `${target}/openapi.json`);
  const time = new Date(run("git", "log", "-1", "--format=%cI").trim()).toISOString();
  const all = JSON.parse(run("npm", "sbom", "--sbom-format", "cyclonedx")) as Sbom;
  const bundled = bundledPackages(readFileSync("dist/bundle/LICENSES.txt", "utf8"));
  const sbom = sbomOf(all, bundled, { name, version }, time);
  writeFileSync(`${target}/${name}-${version}.cdx.json`, `${JSON.stringify(sbom, null, 2)}\n`);
  const names = readdirSync(target).sort();
  for (const algorithm of ["sha256", "sha512"]) {
    writeFileSync(`${target}/${algorithm.toUpperCase()}SUMS`, checksums(names, algorithm));
  }
  console.log(`${target}: ${readdirSync(target).sort().join(", ")}`);
  console.log(`${bundled.length} packages are in the bundle; the package is the same bytes twice`);
}

try {
  release(process.argv.includes("--dirty"));
} catch (error) {
  console.error(`No release: ${(error as Error).message}`);
  process.exitCode = 1;
}
