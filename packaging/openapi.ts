/**
 * Writes docs/openapi.json (`npm run openapi`): the OpenAPI 3.1 description of every route, from the route table and
 * the code of the handlers. Run it after changing a route; a test compares the file with the generated text.
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";
import type { Route } from "../server/routing/route.ts";
import { describeApi, type Resource } from "./api-description.ts";
import { HandlerReader } from "./handler-reading.ts";

const isBuilt = import.meta.url.endsWith(".js");
const root = fileURLToPath(new URL(isBuilt ? "../../" : "../", import.meta.url));

/** Returns the text of docs/openapi.json for the current source. */
export async function openApiText(): Promise<string> {
  const { version } = JSON.parse(readFileSync(`${root}package.json`, "utf8")) as {
    version: string;
  };
  return describeApi(await resources(), new HandlerReader(root), version);
}

/** Returns the routes of each file in server/endpoints/. */
async function resources(): Promise<Resource[]> {
  const folder = `${root}server/endpoints`;
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter(
    (path) => path.endsWith(".ts") && path !== "route-table.ts",
  );
  files.sort((one, other) => (basename(one) < basename(other) ? -1 : 1));
  return Promise.all(
    files.map(async (file) => {
      const path = `../server/endpoints/${isBuilt ? file.replace(/ts$/, "js") : file}`;
      const exported = (await import(new URL(path, import.meta.url).href)) as object;
      const lists = Object.entries(exported).filter(([name]) => name.endsWith("Routes"));
      return { file, routes: lists.flatMap(([, list]) => list as readonly Route[]) };
    }),
  );
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  writeFileSync(`${root}docs/openapi.json`, await openApiText());
}
