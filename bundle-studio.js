/**
 * Makes of studio/ what the server shows under /studio, in dist/bundle/studio. Part of bundle.js.
 *
 * Every file but index.html has a hash of its content in its name, so that browsers may keep it for ever. The pages that
 * a first visit needs are in `main` and what it imports; all others are loaded when they are opened.
 */
import { createHash } from "node:crypto";
import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { build } from "rolldown";

const folder = "dist/bundle/studio";
/** In the order in which they apply. */
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
  "narrow",
];

/** @returns the chunks, with the modules in them */
export async function bundleStudio() {
  const { output } = await build({
    input: { main: "studio/main.tsx" },
    platform: "browser",
    logLevel: "warn",
    tsconfig: "studio/tsconfig.json",
    // Children as arguments of h are 2 % shorter than as a member of the properties.
    transform: {
      jsx: { runtime: "classic", pragma: "h", pragmaFrag: "Fragment" },
      inject: { h: ["preact", "h"], Fragment: ["preact", "Fragment"] },
    },
    // Of @lezer/highlight: one that it makes of it is used by nobody.
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
  const sheet = compacted(css);
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

/** Without comments and the white space that has no meaning; there is no text in the sheets that has either. */
function compacted(text) {
  return text
    .replace(/\/\*[\s\S]*?\*\//g, "")
    .replace(/\s+/g, " ")
    .replace(/ ?([{};,>]) ?/g, "$1")
    .replace(/;}/g, "}")
    .replace(/: /g, ":")
    .trim();
}
