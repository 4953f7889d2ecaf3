/**
 * Bundles the compiled modules into dist/bundle, which the package ships. Part of `npm run build`.
 *
 * - The server, the command line, the library and its test server, with their dependencies, in a few files with
 *   shared chunks. They load in a third of the time of separate modules. CommonJS, which `import`, `require` and jest
 *   can load.
 * - The types of each library entry in one declaration file without imports.
 * - The studio (bundle-studio.js).
 * - The licences of the bundled packages.
 *
 * Comments are removed from the code. Lines and names are kept for stack traces, except in chunks that contain only
 * other packages.
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { build } from "rolldown";
import { minify } from "rolldown/utils";
import ts from "typescript";
import { bundleStudio } from "./bundle-studio.js";

const folder = "dist/bundle";
const libraries = ["library", "testing"];
/** Declares `Symbol.asyncDispose`, whichever `lib` a program selects. */
const lib = '/// <reference lib="esnext.disposable" />';

const { output } = await build({
  input: {
    main: "dist/server/main.js",
    "http-thread": "dist/server/http-threads/main.js",
    command: "dist/cli/main.js",
    ...Object.fromEntries(libraries.map((name) => [name, `dist/library/${name}.js`])),
  },
  platform: "node",
  logLevel: "warn",
  output: {
    dir: folder,
    format: "cjs",
    comments: false,
    cleanDir: true,
    entryFileNames: "[name].cjs",
    chunkFileNames: "[name].cjs",
  },
});
for (const { fileName, moduleIds = [], code } of output) {
  if (moduleIds.length === 0 || !moduleIds.every(isForeign)) continue;
  const small = await minify(fileName, code, {
    compress: { keepNames: { function: true, class: true } },
    mangle: { toplevel: false, keepNames: true },
    module: false,
  });
  if (small.errors.length > 0) throw new Error(`${fileName}: ${small.errors[0].message}`);
  writeFileSync(`${folder}/${fileName}`, small.code);
}
for (const name of libraries) {
  writeFileSync(`${folder}/${name}.d.cts`, declarationsOf(`library/${name}.ts`));
}
writeFileSync(`${folder}/LICENSES.txt`, licencesOf([...output, ...(await bundleStudio())]));

function isForeign(id) {
  return id.includes("/node_modules/") || id.startsWith("\0");
}

/** Returns the declarations of `entry` and of the files that it imports, as one file. */
function declarationsOf(entry) {
  const files = new Map();
  const read = (path) => {
    if (!files.has(path)) files.set(path, declarationFile(path, read));
    return files.get(path);
  };
  const exported = new Map(read(entry).exported);
  const bodies = [...files.values()].flatMap(({ statements }) => {
    const shown = statements.filter(({ isType, name }) => isType || exported.has(name));
    return shown.map(({ text }) => text);
  });
  const names = [...exported].map(([name, isType]) => (isType ? `type ${name}` : name));
  const text = [lib, ...bodies, `export { ${names.join(", ")} };\n`].join("\n\n");
  const foreign = /\bfrom "|\bimport\(|\bNodeJS\b|\bBuffer\b/.exec(text);
  if (foreign !== null)
    throw new Error(`${entry}: the types depend on another package (${foreign[0]})`);
  return text;
}

/**
 * Returns the declarations of a file and its exports, each with whether it is a type. `read` reads an imported file.
 */
function declarationFile(path, read) {
  const { outputText } = ts.transpileDeclaration(readFileSync(path, "utf8"), { fileName: path });
  const source = ts.createSourceFile(path, outputText, ts.ScriptTarget.Latest);
  const statements = [];
  const exported = new Map();
  for (const statement of source.statements) {
    const { moduleSpecifier, exportClause, name } = statement;
    if (moduleSpecifier !== undefined) {
      const other = read(join(dirname(path), moduleSpecifier.text));
      if (!ts.isExportDeclaration(statement)) continue;
      const all = [...other.exported.keys()];
      const wanted = exportClause?.elements.map((element) => element.name.text) ?? all;
      for (const one of wanted) exported.set(one, other.exported.get(one));
      continue;
    }
    if (name === undefined) continue; // export {}
    const isType = ts.isInterfaceDeclaration(statement) || ts.isTypeAliasDeclaration(statement);
    const text = statement.getText(source).replace(/^export /, "");
    // The last comment belongs to the statement; the first statement is also preceded by the header of the file.
    const comment = ts.getLeadingCommentRanges(source.text, statement.pos)?.at(-1);
    const docs = comment === undefined ? "" : `${source.text.slice(comment.pos, comment.end)}\n`;
    statements.push({ name: name.text, isType, text: docs + text });
    if (ts.canHaveModifiers(statement) && ts.getModifiers(statement)?.some(isExport)) {
      exported.set(name.text, isType);
    }
  }
  return { statements, exported };
}

function isExport({ kind }) {
  return kind === ts.SyntaxKind.ExportKeyword;
}

/** Returns the licences of the bundled packages. */
function licencesOf(chunks) {
  const packages = new Set();
  for (const { moduleIds = [] } of chunks) {
    for (const id of moduleIds) {
      const found = /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(id)?.[0];
      if (found !== undefined) packages.add(found);
    }
  }
  const texts = [...packages].sort().map((path) => {
    const { name, version, license } = JSON.parse(readFileSync(`${path}/package.json`, "utf8"));
    const file = readdirSync(path).find((entry) => /^licen[cs]e/i.test(entry));
    const text = file === undefined ? "" : readFileSync(`${path}/${file}`, "utf8").trim();
    return `${name} ${version} (${license})\n\n${text}\n`;
  });
  return `The files in this folder contain parts of these packages.\n\n${texts.join("\n----\n\n")}`;
}
