/** The project folder and its build, for tests in TypeScript and for their output under dist/. */
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** Ends with a slash. */
export const projectRoot = fileURLToPath(
  new URL(import.meta.url.endsWith(".js") ? "../../../" : "../../", import.meta.url),
);

/** Returns the path of a file of the build. @throws if there is none */
export function builtPath(name: string): string {
  const path = `${projectRoot}dist/${name}`;
  if (!existsSync(path)) throw new Error(`${path} is missing: run npm run build first`);
  return path;
}
