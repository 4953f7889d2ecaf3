/**
 * Passes requests and sockets of the page on to the server, with the caller's certificate, and what comes back to the
 * page: piece by piece, no faster than it is read.
 *
 * - What belongs to one connection only, to the page's session, or to the browser's origin is not passed on.
 * - Nothing that comes back runs in the page's origin, is kept by the browser, or sets anything in it.
 */
import * as http from "node:http";
import * as https from "node:https";
import type { Duplex } from "node:stream";
import { agentFor, failWhenUnanswered, unreachable } from "../client.ts";
import type { Connection } from "../connection.ts";
import { sessionHeader } from "./gate.ts";

/** How long a body may stand still while it is sent. */
export const stillMsMax = 120_000;

const ofConnection = [
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
];
const keptFromServer = new Set([
  ...ofConnection,
  ...["host", "expect", "cookie", "authorization", "origin", "referer", sessionHeader],
  ...["x-jackdaw-studio", "upgrade-insecure-requests"],
]);
const keptFromPage = new Set([
  ...ofConnection,
  ...["set-cookie", "strict-transport-security", "alt-svc", "clear-site-data", "refresh"],
  ...["link", "service-worker-allowed", "sourcemap", "nel", "report-to", "cache-control"],
]);
/** Of every reply of the server: it is data, not a page. */
const dataHeaders = {
  "content-security-policy": "default-src 'none'; sandbox; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-resource-policy": "same-origin",
  "cache-control": "no-store",
};

export class Forwarding {
  readonly #connection: Connection;
  readonly #agent: http.Agent;
  readonly #stillMs: number;
  /** Both ends of the web sockets. */
  readonly #sockets = new Set<Duplex>();

  constructor(connection: Connection, stillMs: number) {
    this.#connection = connection;
    this.#stillMs = stillMs;
    this.#agent = agentFor(connection);
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#agent.destroy();
  }

  /** `isDownload`: the browser stores the reply and never shows it. */
  forward(
    request: http.IncomingMessage,
    response: http.ServerResponse,
    target: string,
    isDownload: boolean,
  ): void {
    const upstream = this.#open(request, target);
    upstream.on("response", (reply) => {
      response.writeHead(reply.statusCode ?? 502, {
        ...this.#replyHeaders(reply.headers),
        ...(isDownload ? { "content-disposition": attachment(reply.headers) } : {}),
        // The rest of a body that nobody wants: the connection ends with the reply.
        ...(request.complete ? {} : { connection: "close" }),
      });
      reply.pipe(response);
      reply.on("error", () => response.destroy());
    });
    upstream.on("error", (error) => {
      request.unpipe(upstream);
      request.resume();
      if (response.headersSent) response.destroy();
      else this.#replyUnreachable(response, target, error);
    });
    response.on("close", () => upstream.destroy());
    // Only of a request that is not complete; the server may take its time for the answer.
    request.setTimeout(this.#stillMs, () => request.destroy());
    response.on("timeout", () => undefined);
    request.on("error", () => upstream.destroy());
    request.pipe(upstream);
  }

  /** Joins the browser's socket with one of the server. `head`: what it has sent already. */
  join(request: http.IncomingMessage, socket: Duplex, head: Buffer, target: string): void {
    const headers: Record<string, string> = { connection: "Upgrade", upgrade: "websocket" };
    const upstream = this.#open(request, target, headers);
    this.#keep(socket);
    socket.once("close", () => upstream.destroy());
    upstream.on("upgrade", (reply, serverSocket, serverHead) => {
      this.#keep(serverSocket);
      serverSocket.once("close", () => socket.destroy());
      socket.once("close", () => serverSocket.destroy());
      const answered = { ...this.#replyHeaders(reply.headers), ...headers };
      socket.write(headText(101, "Switching Protocols", answered));
      if (serverHead.length > 0) socket.write(serverHead);
      if (head.length > 0) serverSocket.write(head);
      serverSocket.pipe(socket).pipe(serverSocket);
    });
    const refuse = (status: number) => refuseSocket(socket, status);
    upstream.on("response", (reply) => {
      reply.resume();
      refuse(reply.statusCode ?? 502);
    });
    upstream.on("error", () => refuse(502));
    upstream.end();
  }

  #keep(socket: Duplex): void {
    this.#sockets.add(socket);
    socket.once("close", () => this.#sockets.delete(socket));
    // The "close" that follows is what counts.
    socket.on("error", () => undefined);
  }

  #open(
    request: http.IncomingMessage,
    target: string,
    more: Readonly<Record<string, string>> = {},
  ): http.ClientRequest {
    const { url } = this.#connection;
    const isSecure = url.protocol === "https:";
    const chunked =
      request.headers["transfer-encoding"] === undefined ? {} : { "transfer-encoding": "chunked" };
    const upstream = (isSecure ? https : http).request({
      host: url.hostname.replace(/^\[|\]$/g, ""),
      port: url.port,
      method: request.method,
      path: target,
      agent: this.#agent,
      headers: { ...passedOn(request.headers, keptFromServer), ...chunked, ...more },
    });
    failWhenUnanswered(upstream, isSecure);
    return upstream;
  }

  #replyHeaders(given: http.IncomingHttpHeaders): http.OutgoingHttpHeaders {
    const headers = { ...passedOn(given, keptFromPage), ...dataHeaders };
    const { location } = given;
    // The server's own addresses lead to here.
    return location?.startsWith(`${this.#connection.url.origin}/`)
      ? { ...headers, location: location.slice(this.#connection.url.origin.length) }
      : headers;
  }

  #replyUnreachable(response: http.ServerResponse, target: string, error: Error): void {
    const { message } = unreachable(this.#connection, error);
    replyError(response, 502, "Jackdaw.ServerUnreachable", message, target);
  }
}

/** An error in the form that the server's have. */
export function replyError(
  response: http.ServerResponse,
  status: number,
  type: string,
  message: string,
  target: string,
): void {
  const body = JSON.stringify({ Url: target, Type: type, Message: message, Error: message });
  response
    .writeHead(status, { ...dataHeaders, "content-type": "application/json; charset=utf-8" })
    .end(body);
}

/** Answers a request for a socket with a status alone. */
export function refuseSocket(socket: Duplex, status: number): void {
  const reason = http.STATUS_CODES[status] ?? "";
  if (socket.writable) {
    socket.end(headText(status, reason, { connection: "close", "content-length": "0" }));
  }
}

function headText(status: number, reason: string, headers: http.OutgoingHttpHeaders): string {
  const lines = Object.entries(headers).flatMap(([name, value]) =>
    value === undefined ? [] : [value].flat().map((one) => `${name}: ${one}\r\n`),
  );
  return `HTTP/1.1 ${status} ${reason}\r\n${lines.join("")}\r\n`;
}

/** Without those of the list, those that `Connection` names, and what browsers say of a page and of other origins. */
function passedOn(
  given: http.IncomingHttpHeaders,
  kept: ReadonlySet<string>,
): http.OutgoingHttpHeaders {
  const named = (given.connection ?? "").toLowerCase().split(/\s*,\s*/);
  return Object.fromEntries(
    Object.entries(given).filter(
      ([name]) =>
        !kept.has(name) && !named.includes(name) && !/^(?:sec-fetch-|access-control-)/.test(name),
    ),
  );
}

/** With the name that the server gave it, if it gave one. */
function attachment({ "content-disposition": given = "" }: http.IncomingHttpHeaders): string {
  const name = /;\s*filename.*$/i.exec(given)?.[0] ?? "";
  return `attachment${name}`;
}
