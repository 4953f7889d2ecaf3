/**
 * Serves the studio on a local port, for a server that requires a client certificate (`jackdaw studio`). Serves the
 * studio's files, opens the session, and forwards all other authorized requests (gate.ts, forwarding.ts).
 */

import * as http from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { collectBytes } from "../../engine/base/memory/collect-bytes.ts";
import {
  builtStudio,
  replyStudioFile,
  studioStart,
} from "../../server/endpoints/studio/studio-page.ts";
import { RequestError } from "../../server/http/request-error.ts";
import type { ReplyHeaders } from "../../server/http/response.ts";
import type { Connection } from "../connection.ts";
import { Failure } from "../failure.ts";
import { Forwarding, idleMsMax, refuseSocket, replyError } from "./forwarding.ts";
import { Gate } from "./gate.ts";

export const sessionMsMax = 8 * 3_600_000;
export const unusedMsMax = 30 * 60_000;
const headersMsMax = 10_000;
/** Maximum number of connections. A browser opens six for each page, besides web sockets. */
const connectionsMax = 256;
/** Maximum size of a body that the proxy reads itself, in bytes: a code, or the address for a ticket. */
const bodyBytesMax = 16 * 1024;

export interface ProxyOptions {
  readonly connection: Connection;
  /** Local port; 0: any free port. */
  readonly port: number;
  readonly nowMs?: () => number;
  readonly idleMs?: number;
}

export class StudioProxy {
  readonly port: number;
  readonly #server: http.Server;
  readonly #gate: Gate;
  readonly #forwarding: Forwarding;
  readonly #nowMs: () => number;
  readonly #startedMs: number;
  #usedMs: number;
  #underWay = 0;

  private constructor(server: http.Server, options: Required<ProxyOptions>) {
    const { connection, nowMs, idleMs } = options;
    this.#server = server;
    this.port = (server.address() as AddressInfo).port;
    this.#gate = new Gate(this.port, nowMs);
    this.#forwarding = new Forwarding(connection, idleMs);
    this.#nowMs = nowMs;
    this.#startedMs = nowMs();
    this.#usedMs = nowMs();
    server.on("request", (request, response) => {
      response.on("error", () => undefined);
      this.#answer(request, response).catch((error: unknown) => failed(request, response, error));
    });
    server.on("upgrade", (request, socket, head) => this.#upgrade(request, socket, head));
  }

  /** Starts the proxy. @throws Failure when the port is in use */
  static async start(given: ProxyOptions): Promise<StudioProxy> {
    const options = { nowMs: Date.now, idleMs: idleMsMax, ...given };
    const { port } = options;
    // Bodies have no total time limit, only an idle limit (forwarding.ts).
    const server = http.createServer({ headersTimeout: headersMsMax, requestTimeout: 0 });
    server.maxConnections = connectionsMax;
    await new Promise<void>((resolve, reject) => {
      server.once("error", (error) => {
        const message = `Port ${port} is not available (${error.message}); choose another with --port`;
        reject(new Failure("failed", message, { cause: error }));
      });
      server.listen(port, "127.0.0.1", resolve);
    });
    return new StudioProxy(server, options);
  }

  /** Returns an address that opens the page signed in, once, within a minute. */
  newAddress(): string {
    return `http://127.0.0.1:${this.port}/studio/#code=${this.#gate.newCode()}`;
  }

  /** Returns the reason why the session has expired, or undefined. */
  endReason(): string | undefined {
    const nowMs = this.#nowMs();
    if (nowMs - this.#startedMs >= sessionMsMax) return "a session lasts 8 hours";
    const isUnused = this.#underWay === 0 && nowMs - this.#usedMs >= unusedMsMax;
    return isUnused ? "unused for 30 minutes" : undefined;
  }

  async close(): Promise<void> {
    this.#forwarding.close();
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    await closed;
  }

  async #answer(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const { method = "", url = "", headers } = request;
    if (this.#gate.isForeign(method, headers) || !url.startsWith("/")) {
      response.writeHead(403, { connection: "close" }).end();
      return;
    }
    const path = url.split("?")[0] as string;
    if (method === "POST" && path === "/studio/session") await this.#enter(request, response);
    else if (method === "POST" && path === "/studio/ticket")
      await this.#giveTicket(request, response);
    else if (path === "/" || path === "/studio") {
      response.writeHead(302, { location: studioStart }).end();
    } else if (path.startsWith("/studio/")) await this.#replyFile(request, response, path);
    else this.#forward(request, response);
  }

  async #enter(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const { code } = await readBody(request);
    const session = this.#gate.enter(String(code));
    if (session === undefined) {
      const message = "This address has already been used, or has expired.";
      replyError(response, 401, "Jackdaw.CodeRefused", message, "/studio/session");
      return;
    }
    this.#usedMs = this.#nowMs();
    const headers = { "set-cookie": session.setCookie, "cache-control": "no-store" };
    response.writeHead(200, headers).end(JSON.stringify({ Session: session.half }));
  }

  async #giveTicket(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    if (!this.#gate.isSignedIn(request.headers)) {
      signedOut(request, response);
      return;
    }
    const { path } = await readBody(request);
    this.#usedMs = this.#nowMs();
    const ticket = this.#gate.ticketFor(String(path));
    response
      .writeHead(200, { "cache-control": "no-store" })
      .end(JSON.stringify({ Ticket: ticket }));
  }

  async #replyFile(
    request: http.IncomingMessage,
    response: http.ServerResponse,
    path: string,
  ): Promise<void> {
    if (request.method !== "GET" && request.method !== "HEAD") {
      response.writeHead(405, { allow: "GET, HEAD" }).end();
      return;
    }
    const asked = {
      path,
      header: (name: string) => {
        const value = request.headers[name];
        return typeof value === "string" ? value : undefined;
      },
      reply: (status: number, headers: ReplyHeaders, body?: Buffer) => {
        response.writeHead(status, { ...(headers as http.OutgoingHttpHeaders) }).end(body);
      },
    };
    await replyStudioFile(asked, builtStudio);
  }

  #forward(request: http.IncomingMessage, response: http.ServerResponse): void {
    const { method = "", url = "", headers } = request;
    const isSignedIn = this.#gate.isSignedIn(headers);
    const downloaded =
      !isSignedIn && method === "GET" ? this.#gate.takeTicket(url, headers) : undefined;
    if (!isSignedIn && downloaded === undefined) {
      signedOut(request, response);
      return;
    }
    this.#underWay++;
    response.once("close", () => {
      this.#underWay--;
      this.#usedMs = this.#nowMs();
    });
    this.#forwarding.forward(request, response, downloaded ?? url, downloaded !== undefined);
  }

  #upgrade(request: http.IncomingMessage, socket: Duplex, head: Buffer): void {
    socket.on("error", () => undefined);
    const { method = "", url = "", headers } = request;
    // Browsers send the origin with every web socket request.
    const isForeign = headers.origin === undefined || this.#gate.isForeign(method, headers);
    const isWebSocket = headers.upgrade?.toLowerCase() === "websocket";
    const target =
      isForeign || !isWebSocket || !url.startsWith("/")
        ? undefined
        : this.#gate.takeTicket(url, headers);
    if (target === undefined) {
      refuseSocket(socket, isForeign ? 403 : isWebSocket ? 401 : 400);
      return;
    }
    // Messages from the page count as activity; messages to the page do not.
    socket.on("data", () => {
      this.#usedMs = this.#nowMs();
    });
    socket.pause();
    this.#forwarding.join(request, socket, head, target);
  }
}

function signedOut({ url = "" }: http.IncomingMessage, response: http.ServerResponse): void {
  const message = "This page is not signed in. Open the address printed by 'jackdaw studio'.";
  replyError(response, 401, "Jackdaw.NotSignedIn", message, url);
}

function failed(
  { url = "" }: http.IncomingMessage,
  response: http.ServerResponse,
  error: unknown,
): void {
  if (response.headersSent) response.destroy();
  else if (error instanceof RequestError) {
    replyError(response, error.status, error.type, error.message, url);
  } else replyError(response, 400, "Jackdaw.BadRequest", (error as Error).message, url);
}

/** Reads a small JSON object. @throws when it is not an object, or too large */
async function readBody(request: http.IncomingMessage): Promise<Record<string, unknown>> {
  request.setTimeout(headersMsMax, () => request.destroy());
  const tooLarge = () => new Error("The body is too large.");
  const body = await collectBytes(request, bodyBytesMax, tooLarge);
  const value: unknown = JSON.parse(body.toString("utf8"));
  if (typeof value === "object" && value !== null) return value as Record<string, unknown>;
  throw new Error("The body is not a JSON object.");
}
