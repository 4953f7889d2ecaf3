/**
 * Forwards requests and web sockets of the studio to the server with the client certificate, and streams the replies
 * back with back-pressure.
 *
 * - Hop-by-hop headers, session headers and headers about the browser's origin are not forwarded.
 * - No reply can run code in the studio's origin, be cached by the browser, or set state in it.
 */
import * as http from "node:http";
import * as https from "node:https";
import type { Duplex } from "node:stream";
import { hopByHopHeaders } from "../../server/http/response.ts";
import { addConnectTimeout, agentFor, unreachable } from "../client.ts";
import type { Connection } from "../connection.ts";
import { sessionHeader } from "./gate.ts";

/** Maximum time without progress while a request body is sent, in milliseconds. */
export const idleMsMax = 120_000;

const keptFromServer = new Set([
  ...hopByHopHeaders,
  ...["host", "expect", "cookie", "authorization", "origin", "referer", sessionHeader],
  ...["x-jackdaw-studio", "upgrade-insecure-requests"],
]);
const keptFromPage = new Set([
  ...hopByHopHeaders,
  ...["set-cookie", "strict-transport-security", "alt-svc", "clear-site-data", "refresh"],
  ...["link", "service-worker-allowed", "sourcemap", "nel", "report-to", "cache-control"],
]);
/** Headers of every forwarded reply: the browser must treat it as data. */
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
  readonly #idleMs: number;
  /** Both ends of each web socket. */
  readonly #sockets = new Set<Duplex>();

  constructor(connection: Connection, idleMs: number) {
    this.#connection = connection;
    this.#idleMs = idleMs;
    this.#agent = agentFor(connection);
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#agent.destroy();
  }

  /** Forwards a request. With `isDownload`, the browser stores the reply and never renders it. */
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
        // The request body is discarded: close the connection with the reply.
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
    // Applies only to an incomplete request; the reply of the server has no time limit.
    request.setTimeout(this.#idleMs, () => request.destroy());
    response.on("timeout", () => undefined);
    request.on("error", () => upstream.destroy());
    request.pipe(upstream);
  }

  /** Connects the browser's socket to a socket of the server. `head` contains bytes already received. */
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
    // The following "close" event is handled.
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
      headers: { ...forwardedHeaders(request.headers, keptFromServer), ...chunked, ...more },
    });
    addConnectTimeout(upstream, isSecure);
    return upstream;
  }

  #replyHeaders(given: http.IncomingHttpHeaders): http.OutgoingHttpHeaders {
    const headers = { ...forwardedHeaders(given, keptFromPage), ...dataHeaders };
    const { location } = given;
    // Redirects to the server become redirects to the proxy.
    return location?.startsWith(`${this.#connection.url.origin}/`)
      ? { ...headers, location: location.slice(this.#connection.url.origin.length) }
      : headers;
  }

  #replyUnreachable(response: http.ServerResponse, target: string, error: Error): void {
    const { message } = unreachable(this.#connection, error);
    replyError(response, 502, "Jackdaw.ServerUnreachable", message, target);
  }
}

/** Sends an error in the format of the server. */
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

/** Rejects a web socket request with a status. */
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

/** Removes the listed headers, those named by `Connection`, and headers about the page and cross-origin requests. */
function forwardedHeaders(
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

/** Returns a `content-disposition` of type attachment, with the server's file name, if any. */
function attachment({ "content-disposition": given = "" }: http.IncomingHttpHeaders): string {
  const name = /;\s*filename.*$/i.exec(given)?.[0] ?? "";
  return `attachment${name}`;
}
