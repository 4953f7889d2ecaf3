/**
 * Upgrades requests to web sockets, over HTTP/1.1 and over HTTP/2 (RFC 8441), with the checks of any route. `ws` is
 * loaded for the first one.
 *
 * Invariants:
 * - Sockets that are opened at once, and messages that arrive at once, share turns of the event loop: a thousand sockets
 *   took 200 ms of one, and Node reads up to 2 MB of messages in one.
 * - A socket's exchange is in its connection's `open` while the socket is open, so it is closed when the caller loses
 *   its rights.
 */
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import type { WebSocket } from "ws";
import { TurnQueue } from "../../engine/base/turn-queue.ts";
import type { PeerSocket } from "../cluster/peer-link.ts";
import type { Exchange } from "../http/exchange.ts";
import { RequestError } from "../http/request-error.ts";
import { interfaceVersion } from "../http/response.ts";
import type { Admitted, Dispatcher } from "../routing/dispatcher.ts";
import type { WebSocketRoute } from "../routing/route.ts";
import type { ServerServices } from "../routing/services.ts";
import type { Http2Stream } from "./http2/http2-stream.ts";

/** Bytes of one message from a client. */
const messageBytesMax = 64 * 1024;
/**
 * One message, ping or pong of a socket is processed per event-loop tick: 64 KB of pings took tens of milliseconds.
 */
const allowSynchronousEvents = false;
/** Milliseconds between pings; a client that has not answered the last one is considered dead. */
const pingIntervalMs = 30_000;
/** Milliseconds that clients have to answer the close frame of a stopping server. */
const farewellMs = 500;

const openFields = [
  "raven-server-version",
  interfaceVersion,
  "service-server-version",
  interfaceVersion,
];

/** The head by which another node has opened a web socket. */
function switchingHead({ rawHeaders }: PeerSocket): string {
  let text = "HTTP/1.1 101 Switching Protocols\r\n";
  for (let at = 0; at < rawHeaders.length; at += 2) {
    text += `${rawHeaders[at]}: ${rawHeaders[at + 1]}\r\n`;
  }
  return `${text}\r\n`;
}

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
  private readonly turns = new TurnQueue();
  private readonly live = new Set<WebSocket>();
  /** Ends those that another node answers. */
  private readonly joined = new Set<() => void>();
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
    if (admitted.elsewhere !== undefined) {
      release();
      if (head.length > 0) admitted.elsewhere.socket.write(head);
      this.join(socket, admitted.elsewhere, exchange, (peer) => socket.write(switchingHead(peer)));
      return;
    }
    const { WebSocketServer } = await import("ws");
    if (this.turns.isOver()) await this.turns.next();
    if (socket.destroyed) {
      exchange.connection.open.delete(exchange);
      return;
    }
    const server = new WebSocketServer({
      noServer: true,
      maxPayload: messageBytesMax,
      perMessageDeflate: false,
      allowSynchronousEvents,
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
  async acceptHttp2(exchange: Exchange, stream: Http2Stream): Promise<void> {
    const admitted = await this.admit(exchange);
    if (admitted === undefined) return;
    if (admitted.elsewhere !== undefined) {
      const open = () => stream.sendHead(200, openFields);
      this.join(stream.tunnel(), admitted.elsewhere, exchange, open);
      return;
    }
    const { WebSocket } = await import("ws");
    if (this.turns.isOver()) await this.turns.next();
    if (stream.isClosed) {
      exchange.connection.open.delete(exchange);
      return;
    }
    const tunnel = stream.tunnel();
    stream.sendHead(200, openFields);
    // Without an address it is the server side of an existing connection.
    const webSocket = new (
      WebSocket as unknown as new (
        address: null,
        protocols: undefined,
        options: { readonly autoPong: boolean },
      ) => WebSocket
    )(null, undefined, { autoPong: true });
    (webSocket as unknown as Attachable).setSocket(tunnel, Buffer.alloc(0), {
      allowSynchronousEvents,
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
    for (const end of [...this.joined]) end();
  }

  private async admit(
    exchange: Exchange,
  ): Promise<(Admitted & { readonly route: WebSocketRoute }) | undefined> {
    const { open } = exchange.connection;
    open.add(exchange);
    try {
      const admitted = await this.dispatcher.admit(exchange, "GET");
      if (admitted === undefined) {
        open.delete(exchange);
        return undefined;
      }
      const { route } = admitted;
      if (route.kind === "websocket") return { ...admitted, route };
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

  /** Passes on what is sent between a client and another node, until either ends. */
  private join(
    client: Duplex,
    peer: PeerSocket,
    exchange: Exchange,
    open: (peer: PeerSocket) => void,
  ): void {
    const { socket } = peer;
    const end = () => {
      client.destroy();
      socket.destroy();
      this.joined.delete(end);
      exchange.connection.open.delete(exchange);
    };
    this.joined.add(end);
    if (client.destroyed || socket.destroyed) {
      end();
      return;
    }
    for (const one of [client, socket]) {
      one.on("error", end);
      one.once("close", end);
    }
    open(peer);
    client.pipe(socket);
    socket.pipe(client);
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
    webSocket.on("message", () => {
      if (webSocket.isPaused || !this.turns.isOver()) return;
      webSocket.pause();
      void this.turns.next().then(() => webSocket.resume());
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
