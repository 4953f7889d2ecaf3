/**
 * Upgrades requests to web sockets, over HTTP/1.1 and over HTTP/2 (RFC 8441), with the checks of any route. `ws` is
 * loaded for the first one.
 *
 * Invariants:
 * - A socket's exchange is in its connection's `open` while the socket is open, so it is closed when the caller loses
 *   its rights.
 */
import type { IncomingMessage } from "node:http";
import type { ServerHttp2Stream } from "node:http2";
import type { Duplex } from "node:stream";
import type { WebSocket } from "ws";
import type { Exchange } from "../http/exchange.ts";
import { RequestError } from "../http/request-error.ts";
import { interfaceVersion } from "../http/response.ts";
import type { Admitted, Dispatcher } from "../routing/dispatcher.ts";
import type { WebSocketRoute } from "../routing/route.ts";
import type { ServerServices } from "../routing/services.ts";

/** Bytes of one message from a client. */
const messageBytesMax = 64 * 1024;
/** Milliseconds between pings; a client that has not answered the last one is considered dead. */
const pingIntervalMs = 30_000;
/** Milliseconds that clients have to answer the close frame of a stopping server. */
const farewellMs = 500;

/** The method of `ws` for a stream that is already open; its types omit it. */
interface Attachable {
  setSocket(
    stream: Duplex,
    head: Buffer,
    options: {
      readonly allowSynchronousEvents: boolean;
      readonly maxPayload: number;
      readonly skipUTF8Validation: boolean;
    },
  ): void;
}

export class WebSocketAcceptor {
  private readonly services: ServerServices;
  private readonly dispatcher: Dispatcher;
  private readonly live = new Set<WebSocket>();
  /** Those that have a connection of their own. */
  private readonly upgraded = new Set<WebSocket>();

  constructor(services: ServerServices, dispatcher: Dispatcher) {
    this.services = services;
    this.dispatcher = dispatcher;
  }

  /** Open web sockets. */
  get openCount(): number {
    return this.live.size;
  }

  /** Those of them that have a connection of their own. */
  get upgradedCount(): number {
    return this.upgraded.size;
  }

  /** Handles an HTTP/1.1 upgrade. `release` detaches the socket from the exchange that would have answered it. */
  async acceptHttp1(
    exchange: Exchange,
    request: IncomingMessage,
    socket: Duplex,
    head: Buffer,
    release: () => void,
  ): Promise<void> {
    const admitted = await this.admit(exchange);
    if (admitted === undefined) return;
    const { WebSocketServer } = await import("ws");
    if (socket.destroyed) {
      exchange.connection.open.delete(exchange);
      return;
    }
    const server = new WebSocketServer({
      noServer: true,
      maxPayload: messageBytesMax,
      perMessageDeflate: false,
    });
    server.on("headers", (headers) => {
      headers.push(`Raven-Server-Version: ${interfaceVersion}`);
      headers.push(`Service-Server-Version: ${interfaceVersion}`);
    });
    release();
    server.handleUpgrade(request, socket, head, (webSocket) => {
      this.upgraded.add(webSocket);
      this.run(webSocket, exchange, admitted);
    });
  }

  /** Handles an extended CONNECT. */
  async acceptHttp2(exchange: Exchange, stream: ServerHttp2Stream): Promise<void> {
    const admitted = await this.admit(exchange);
    if (admitted === undefined) return;
    const { WebSocket } = await import("ws");
    if (stream.destroyed || stream.closed) {
      exchange.connection.open.delete(exchange);
      return;
    }
    stream.respond({
      ":status": 200,
      "raven-server-version": interfaceVersion,
      "service-server-version": interfaceVersion,
    });
    // Without an address it is the server side of an existing connection.
    const webSocket = new (
      WebSocket as unknown as new (
        address: null,
        protocols: undefined,
        options: { readonly autoPong: boolean },
      ) => WebSocket
    )(null, undefined, { autoPong: true });
    (webSocket as unknown as Attachable).setSocket(stream, Buffer.alloc(0), {
      allowSynchronousEvents: true,
      maxPayload: messageBytesMax,
      skipUTF8Validation: false,
    });
    this.run(webSocket, exchange, admitted);
  }

  /** Closes all sockets: the server stops. */
  closeAll(): void {
    for (const webSocket of this.live) webSocket.close(1001, "The server stops.");
    setTimeout(() => {
      for (const webSocket of this.live) webSocket.terminate();
    }, farewellMs).unref();
  }

  private async admit(
    exchange: Exchange,
  ): Promise<(Admitted & { readonly route: WebSocketRoute }) | undefined> {
    const { open } = exchange.connection;
    open.add(exchange);
    try {
      const { route, database } = await this.dispatcher.admit(exchange, "GET");
      if (route.kind === "websocket") return { route, database };
      throw new RequestError(
        400,
        "Raven.Client.Exceptions.BadRequestException",
        `${exchange.path} is not a web socket.`,
      );
    } catch (error) {
      this.dispatcher.fail(exchange, error);
      open.delete(exchange);
      return undefined;
    }
  }

  private run(
    webSocket: WebSocket,
    exchange: Exchange,
    { route, database }: Admitted & { readonly route: WebSocketRoute },
  ): void {
    this.live.add(webSocket);
    let hasAnswered = true;
    const pinging = setInterval(() => {
      if (!hasAnswered) webSocket.terminate();
      else if (webSocket.readyState === webSocket.OPEN) webSocket.ping();
      hasAnswered = false;
    }, pingIntervalMs).unref();
    webSocket.on("pong", () => {
      hasAnswered = true;
    });
    webSocket.on("error", () => webSocket.terminate());
    webSocket.on("close", () => {
      clearInterval(pinging);
      this.live.delete(webSocket);
      this.upgraded.delete(webSocket);
      exchange.connection.open.delete(exchange);
    });
    void this.connect(webSocket, exchange, { route, database });
  }

  private async connect(
    webSocket: WebSocket,
    exchange: Exchange,
    { route, database }: Admitted & { readonly route: WebSocketRoute },
  ): Promise<void> {
    try {
      await route.connect(webSocket, exchange, { server: this.services, route, database });
    } catch (error) {
      this.dispatcher.report(error);
      webSocket.close(1011, "An unexpected error, see the server's log.");
    }
  }
}
