/** The studio: a page for browsers, and what it is made of. It has no data: what it shows comes from the other routes. */
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Exchange } from "../http/exchange.ts";
import { RequestError } from "../http/request-error.ts";
import { StaticFiles } from "../http/static-files.ts";
import type { Route } from "../routing/route.ts";

export const studioPageRoutes: readonly Route[] = [
  { kind: "server", method: "GET", path: "/studio", access: "open", handle: getStart },
  { kind: "server", method: "GET", path: "/studio/*", access: "open", handle: getFile },
];

/** Nothing but its own files, nothing inline, no frame around it, and no text that becomes a script. */
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

const files = new StaticFiles(folder(), {
  "content-security-policy": policy,
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
});

/** Beside the bundle, or in the build output of the sources. */
function folder(): string {
  const places = ["./studio", "../../bundle/studio", "../../dist/bundle/studio"].map((path) =>
    fileURLToPath(new URL(path, import.meta.url)),
  );
  return places.find((place) => existsSync(place)) ?? (places[0] as string);
}

/** 302 to the first page. */
function getStart(exchange: Exchange): void {
  exchange.reply(302, { location: "/studio/databases" });
}

/** A file of the studio; every other address shows the page, which knows what to show for it. */
async function getFile(exchange: Exchange): Promise<void> {
  const name = exchange.path.slice("/studio/".length);
  if (files.has(name)) await files.reply(exchange, name);
  else if (/\.(?:js|css|map)$/.test(name)) {
    throw new RequestError(404, "FileNotFoundException", `The studio has no file ${name}.`);
  } else if (files.has("index.html")) await files.reply(exchange, "index.html");
  else {
    const message = "This server was built without the studio.";
    throw new RequestError(404, "FileNotFoundException", message);
  }
}
