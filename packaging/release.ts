/**
 * Builds a release in dist/release (`npm run release`): the package, the OpenAPI description, the SBOM of the package
 * (CycloneDX), and checksums. Publishes nothing.
 *
 * Invariants:
 * - A release is built from a commit: uncommitted changes stop it, unless `--dirty` is given.
 * - The package is built twice; the release stops if the two builds are not identical.
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { bundledPackages, type Sbom, sbomOf } from "./sbom.ts";

const target = "dist/release";

/**
 * Runs a program in the root folder, forwards its standard error, and returns its standard output. @throws when it
 * fails
 */
function run(program: string, ...args: string[]): string {
  const stdio = ["ignore", "pipe", "inherit"] as const;
  return execFileSync(program, args, { encoding: "utf8", stdio: [...stdio], maxBuffer: 2 ** 28 });
}

/** Packs the build. @returns the file name of the package */
function pack(): string {
  const args = ["--ignore-scripts", "--json", "--pack-destination", target];
  const [packed] = JSON.parse(run("npm", "pack", ...args)) as { filename: string }[];
  if (packed === undefined) throw new Error("npm pack printed no result");
  return packed.filename;
}

/** Returns a line `HASH  name` for each file, in the format of `sha256sum --check`. */
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
    throw new Error(`commit or remove these changes first, or use --dirty:\n${changed}`);
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
    throw new Error(`${file} differs between two builds`);
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
  console.log(`${bundled.length} packages are bundled; both builds are identical`);
}

try {
  release(process.argv.includes("--dirty"));
} catch (error) {
  console.error(`No release: ${(error as Error).message}`);
  process.exitCode = 1;
}
