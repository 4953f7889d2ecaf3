/**
 * Compiles the folders of tsconfig.json, and the modules of the studio that tests import, to JavaScript in dist/, with source
 * maps, in seconds: types are removed and not checked. `npm run check` checks them. Part of `npm run build`.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { transformSync } from "rolldown/utils";

const { compilerOptions, include } = JSON.parse(readFileSync("tsconfig.json", "utf8"));
const options = {
  target: compilerOptions.target,
  sourcemap: true,
  typescript: { onlyRemoveTypeImports: true, rewriteImportExtensions: true },
};

// The image is built without tests and benches.
for (const path of [...include, "studio"].filter(existsSync).flatMap(sources)) {
  const { code, map, errors } = transformSync(path, readFileSync(path, "utf8"), options);
  if (errors.length > 0) throw new Error(`${path}: ${errors[0].message}`);
  const target = `dist/${path.replace(/\.ts$/, ".js")}`;
  const up = "../".repeat(path.split("/").length);
  mkdirSync(dirname(target), { recursive: true });
  writeFileSync(target, `${code}//# sourceMappingURL=${target.split("/").at(-1)}.map\n`);
  writeFileSync(`${target}.map`, JSON.stringify({ ...map, sources: [`${up}${path}`] }));
}

/** Returns the sources at a path of tsconfig.json: a folder or a file. */
function sources(path) {
  if (path.endsWith(".ts")) return [path];
  const names = readdirSync(path, { recursive: true, encoding: "utf8" });
  return names
    .filter((name) => name.endsWith(".ts"))
    .map((name) => `${path}/${name.replaceAll("\\", "/")}`);
}
