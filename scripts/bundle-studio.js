/**
 * Bundles studio/ into dist/bundle/studio, which the server serves under /studio. Part of bundle.js.
 *
 * The name of every file but index.html contains a hash of the content, so that browsers can cache it indefinitely.
 * Pages that a first visit needs are in `main` and its imports; other pages are loaded when they are opened.
 */
import { createHash } from "node:crypto";
import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { build } from "rolldown";

const folder = "dist/bundle/studio";
/** Style sheets, in the order in which they apply. */
const styles = [
  "tokens",
  "base",
  "shell",
  "controls",
  "table",
  "code",
  "layers",
  "pages",
  "plots",
  "pictures",
  "narrow",
];

/** Builds the studio. @returns the chunks, with the modules in them */
export async function bundleStudio() {
  const { output } = await build({
    input: { main: "studio/main.tsx" },
    platform: "browser",
    logLevel: "warn",
    tsconfig: "studio/tsconfig.json",
    // Passing children as arguments of h makes the output 2 % smaller than passing them as a property.
    transform: {
      jsx: { runtime: "classic", pragma: "h", pragmaFrag: "Fragment" },
      inject: { h: ["preact", "h"], Fragment: ["preact", "Fragment"] },
    },
    // @lezer/highlight calls this function for an export that is unused.
    treeshake: { manualPureFunctions: ["tagHighlighter"] },
    output: {
      dir: folder,
      format: "esm",
      minify: true,
      comments: false,
      cleanDir: true,
      entryFileNames: "[name]-[hash].js",
      chunkFileNames: "[name]-[hash].js",
    },
  });
  mkdirSync(folder, { recursive: true });
  const listed = new Set(readdirSync("studio/styles").map((name) => name.replace(/\.css$/, "")));
  for (const name of styles) listed.delete(name);
  if (listed.size > 0)
    throw new Error(`bundle-studio.js does not list ${[...listed].join(", ")}.css`);
  const css = styles.map((name) => readFileSync(`studio/styles/${name}.css`, "utf8")).join("\n");
  const sheet = minifyCss(css);
  const sheetName = `style-${createHash("sha256").update(sheet).digest("base64url").slice(0, 8)}.css`;
  writeFileSync(`${folder}/${sheetName}`, sheet);

  const main = output.find((chunk) => chunk.isEntry);
  const assets = [
    `<link rel="stylesheet" href="/studio/${sheetName}">`,
    ...main.imports.map((name) => `<link rel="modulepreload" href="/studio/${name}">`),
    `<script type="module" src="/studio/${main.fileName}"></script>`,
  ];
  copyFileSync("studio/favicon.svg", `${folder}/favicon.svg`);
  const page = readFileSync("studio/index.html", "utf8").replace(
    /<!--(?!assets)[\s\S]*?-->\n?/g,
    "",
  );
  writeFileSync(`${folder}/index.html`, page.replace("<!--assets-->", assets.join("\n")));
  return output;
}

/** Removes comments and insignificant white space; the style sheets contain no strings with either. */
function minifyCss(text) {
  return text
    .replace(/\/\*[\s\S]*?\*\//g, "")
    .replace(/\s+/g, " ")
    .replace(/ ?([{};,>]) ?/g, "$1")
    .replace(/;}/g, "}")
    .replace(/: /g, ":")
    .trim();
}
