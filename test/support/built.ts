/** Test programs as JavaScript, to run in separate processes: Node 20 does not run TypeScript. */
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";

const root = fileURLToPath(new URL("../../", import.meta.url));

/**
 * The path of `test/support/<name>.js`, with the whole engine and the folders in `rooms`. Under
 * dist/ it is the output of tsc; otherwise it is built for this test, in a folder from which
 * packages resolve.
 */
export async function builtProgram(name: string, rooms: readonly string[] = []): Promise<string> {
  const { path, remove } = await buildProgram(name, rooms);
  onTestFinished(remove);
  return path;
}

/**
 * Like `builtProgram`, shared by several tests, because it takes seconds. Call `remove` after the
 * last.
 */
export async function buildProgram(
  name: string,
  rooms: readonly string[] = [],
): Promise<{ readonly path: string; remove(): Promise<void> }> {
  if (import.meta.url.endsWith(".js")) {
    return { path: join(root, `test/support/${name}.js`), remove: async () => undefined };
  }
  const folder = join(root, `node_modules/.cache/jackdaw-${process.pid}-${name}`);
  const { transpileModule, ModuleKind, ScriptTarget } = (await import("typescript")).default;
  const compilerOptions = {
    module: ModuleKind.ESNext,
    target: ScriptTarget.ES2022,
    rewriteRelativeImportExtensions: true,
    verbatimModuleSyntax: true,
  };
  const folders = ["engine", "test/support", ...rooms];
  const sources = (await Promise.all(folders.map(sourcesIn))).flat();
  for (const source of sources) {
    const text = await readFile(join(root, source), "utf8");
    const target = join(folder, source.replace(/\.ts$/, ".js"));
    await mkdir(dirname(target), { recursive: true });
    await writeFile(target, transpileModule(text, { compilerOptions }).outputText);
  }
  await writeFile(join(folder, "package.json"), '{"type":"module"}\n');
  return {
    path: join(folder, `test/support/${name}.js`),
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}

async function sourcesIn(folder: string): Promise<string[]> {
  const entries = await readdir(join(root, folder), { recursive: true });
  return entries.filter((name) => name.endsWith(".ts")).map((name) => join(folder, name));
}
