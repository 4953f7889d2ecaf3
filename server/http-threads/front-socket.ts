/** A web socket on an HTTP thread, over any stream of bytes. Answers pings, and detects dead clients. */
import type { Duplex } from "node:stream";
import { WebSocket } from "ws";
import type { HttpEvents } from "../link/link.ts";

/** Bytes of one message from a client. */
const messageBytesMax = 64 * 1024;
/** Milliseconds between pings; a client that has not answered the last one is considered dead. */
const pingIntervalMs = 30_000;
/** Milliseconds that a client has to read pending messages and to answer the close frame. */
const closeTimeoutMs = 30_000;
/** The code for a connection that ended without a closing handshake (RFC 6455, 7.1.5). */
const abnormal = 1006;

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

export class FrontSocket {
  readonly #socket: WebSocket;

  constructor(exchange: number, stream: Duplex, events: HttpEvents) {
    // Without an address it is the server side of an existing connection.
    const socket = new (
      WebSocket as unknown as new (
        address: null,
        protocols: undefined,
        options: { readonly autoPong: boolean; readonly closeTimeout: number },
      ) => WebSocket
    )(null, undefined, { autoPong: true, closeTimeout: closeTimeoutMs });
    (socket as unknown as Attachable).setSocket(stream, Buffer.alloc(0), {
      // One message, ping or pong of a socket per tick: 64 KB of pings took tens of milliseconds.
      allowSynchronousEvents: false,
      maxPayload: messageBytesMax,
      skipUTF8Validation: false,
    });
    this.#socket = socket;
    let hasAnswered = true;
    const pinging = setInterval(() => {
      if (!hasAnswered) socket.terminate();
      else if (socket.readyState === socket.OPEN) socket.ping();
      hasAnswered = false;
    }, pingIntervalMs).unref();
    socket.on("pong", () => {
      hasAnswered = true;
    });
    socket.on("message", (data: Buffer, isBinary) => events.message(exchange, data, isBinary));
    socket.on("error", () => socket.terminate());
    socket.on("close", (code) => {
      clearInterval(pinging);
      events.socketClosed(exchange, code || abnormal);
    });
  }

  /** Sends a part of a text message. `done`: called when the system has accepted it. */
  send(chunk: Buffer, isLast: boolean, done: () => void): void {
    if (this.#socket.readyState === this.#socket.OPEN) {
      this.#socket.send(chunk, { binary: false, fin: isLast }, done);
    } else done();
  }

  /** `code` 0: without a closing handshake. */
  close(code: number, reason: string): void {
    if (code === 0) this.#socket.terminate();
    else this.#socket.close(code, reason);
  }
}
