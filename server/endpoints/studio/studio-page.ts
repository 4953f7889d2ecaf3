/** The studio: a page for browsers and its files. The page contains no data, and loads it through the other routes. */
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Exchange } from "../../http/exchange.ts";
import { folderFiles } from "../../http/file-source.ts";
import { RequestError } from "../../http/request-error.ts";
import { type FileRequest, pageHeaders, StaticFiles } from "../../http/static-files.ts";
import { isBrowser, replyRefusal } from "../../routing/refusal-page.ts";
import type { Context, Route } from "../../routing/route.ts";
import type { ServerServices } from "../../routing/services.ts";
import { isAllowed, requirements } from "../../security/access.ts";

export const studioStart = "/studio/databases";

/** Only its own files, nothing inline, no frame around it, and no text that becomes a script. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' blob:",
  "connect-src 'self'",
  "worker-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
].join("; ");

const foreignStart = "/studio/index.html";

export const builtStudio = studioFilesIn(builtFolder());

export const studioPageRoutes: readonly Route[] = [
  { kind: "server", method: "GET", path: "/studio", access: "open", handle: getStart },
  { kind: "server", method: "GET", path: "/studio/*", access: "open", handle: getFile },
];

/** Returns the start page of the studio, or undefined if this server has none. */
export function studioStartOf({ ravenStudio }: ServerServices): string | undefined {
  if (ravenStudio !== undefined) return foreignStart;
  return builtStudio.has("index.html") ? studioStart : undefined;
}

/** Returns the files of a studio that was built into `folder`. */
export function studioFilesIn(folder: string): StaticFiles {
  return new StaticFiles(folderFiles(folder), pageHeaders(policy));
}

/** Returns the folder of the built studio: beside the bundle, or in the build output. */
function builtFolder(): string {
  const places = ["./studio", "../../../bundle/studio", "../../../dist/bundle/studio"].map((path) =>
    fileURLToPath(new URL(path, import.meta.url)),
  );
  return places.find((place) => existsSync(`${place}/index.html`)) ?? (places[0] as string);
}

/** GET /studio: 302 to the first page; instructions to a browser without access */
function getStart(exchange: Exchange, { server }: Context): void {
  if (isRefused(exchange)) replyRefusal(exchange, 403);
  else exchange.reply(302, { location: studioStartOf(server) ?? studioStart });
}

/** GET /studio/*: a file of the studio, or the page; instructions to a browser without access */
async function getFile(exchange: Exchange, { server }: Context): Promise<void> {
  const { ravenStudio } = server;
  if (isRefused(exchange)) replyRefusal(exchange, 403);
  else if (ravenStudio === undefined) await replyStudioFile(exchange, builtStudio);
  else await replyRavenStudioFile(exchange, ravenStudio);
}

/** Whether a browser without access requests a page; other clients receive the files, which contain no data. */
function isRefused(exchange: Exchange): boolean {
  const isKnown = isAllowed(exchange.identity, requirements["valid-user"], undefined);
  return !isKnown && isBrowser(exchange);
}

/** Serves RavenDB's Studio, a single page whose locations are in the fragment of the URL. */
async function replyRavenStudioFile(exchange: Exchange, files: StaticFiles): Promise<void> {
  const name = exchange.path.slice("/studio/".length) || "index.html";
  if (!files.has(name)) throw notFound(`The studio has no file ${name}.`);
  await files.reply(exchange, name);
}

/** Serves a file; every other address returns the page, which displays the address. */
export async function replyStudioFile(exchange: FileRequest, files: StaticFiles): Promise<void> {
  const name = exchange.path.slice("/studio/".length);
  if (files.has(name)) await files.reply(exchange, name);
  // A missing file of an older version must not return the page.
  else if (/^[^/]+\.(?:js|css|map)$/.test(name)) {
    throw notFound(`The studio has no file ${name}.`);
  } else if (files.has("index.html")) await files.reply(exchange, "index.html");
  else throw notFound("This server was built without the studio.");
}

function notFound(message: string): RequestError {
  return new RequestError(404, "System.IO.FileNotFoundException", message);
}
