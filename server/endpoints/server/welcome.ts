/** Routes open to everybody, and the start page for browsers. */

import type { Exchange } from "../../http/exchange.ts";
import { interfaceVersion } from "../../http/response.ts";
import { replyRefusal } from "../../routing/refusal-page.ts";
import type { Context, Route } from "../../routing/route.ts";
import { studioStartOf } from "../studio/studio-page.ts";

export const welcomeRoutes: readonly Route[] = [
  { kind: "server", method: "GET", path: "/setup/alive", access: "open", handle: getAlive },
  { kind: "server", method: "GET", path: "/auth-error.html", access: "open", handle: getAuthError },
  { kind: "server", method: "GET", path: "/", access: "valid-user", handle: getRoot },
];

const html = { "content-type": "text/html; charset=utf-8" };

/** 204: the server is up. */
function getAlive(exchange: Exchange): void {
  exchange.reply(204);
}

/** Instructions for clients without a certificate. */
function getAuthError(exchange: Exchange): void {
  replyRefusal(exchange, 200);
}

/** Redirects to the studio where there is one, else shows a page that names this server. */
function getRoot(exchange: Exchange, { server }: Context): void {
  const location = studioStartOf(server);
  if (location !== undefined) {
    exchange.reply(302, { location });
    return;
  }
  exchange.reply(
    200,
    html,
    `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Jackdaw</title></head>
<body><h1>Jackdaw</h1><p>A document database, interface version ${interfaceVersion}. You are let in.</p>
<p><a href="/databases">Databases</a> <a href="/debug/routes">Routes</a></p></body></html>
`,
  );
}
