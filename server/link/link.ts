/**
 * The interface between HTTP threads and the engine thread. HTTP threads own sockets, TLS, HTTP/1.1, HTTP/2, web sockets,
 * compression and flow control; they know nothing of routes, rights or documents. The engine thread answers requests,
 * and knows nothing of sockets.
 *
 * `HttpEvents` is what an HTTP thread reports, `HttpCommands` what it is told. Within one thread the two sides call
 * each other directly; between threads `thread-link.ts` transfers the calls in order.
 *
 * Invariants:
 * - Numbers of connections and exchanges are unsigned 32-bit integers that one HTTP thread does not reuse while they are open.
 * - A connection is reported before its requests, and its end after the end of its exchanges.
 * - After `reply`, the last `data` or `abort`, an exchange is unknown to the engine thread; events that arrive late are ignored.
 * - Buffers belong to the receiver of the call, which may retain them.
 */

export interface ConnectionInfo {
  /** IP address of the client. */
  readonly address: string;
  readonly isSecure: boolean;
  /** The certificate that the client presented, in DER; undefined: none. */
  readonly certificate: Buffer | undefined;
}

export interface RequestHead {
  /** As sent. */
  readonly method: string;
  /** Path and query as sent. */
  readonly target: string;
  /** Host and port as the client named them; "": it named none. */
  readonly authority: string;
  /**
   * The header fields: "\n", the name, ":" and the value for each, and a final "\n". Names are in lower case, repeated
   * fields are joined by ", ". Pseudo-headers are omitted, and so is the encoding of a body, which the HTTP thread decodes.
   */
  readonly fields: string;
  body: BodyState;
  /** Does the client request a web socket? */
  readonly isWebSocket: boolean;
}

/**
 * `none`: the request has no body. `whole`: it is passed with the head. `pending`: it is read after `pull`, decoded.
 */
type BodyState = "none" | "whole" | "pending";

/** Why the body of a request ended early. */
export type BodyFailure = "cut-off" | "unknown-encoding" | "wrong-encoding";

export interface HttpEvents {
  opened(connection: number, info: ConnectionInfo): void;
  closed(connection: number): void;
  /** A request has arrived. `body`: if the head says that it is whole. */
  request(connection: number, exchange: number, head: RequestHead, body: Buffer | undefined): void;
  /** Bytes of a pending body, at most as many as were pulled. */
  bodyData(exchange: number, chunk: Buffer, isLast: boolean): void;
  /** No more of a pending body arrives. `encoding`: of the body. */
  bodyFailed(exchange: number, failure: BodyFailure, encoding: string): void;
  /** The operating system has accepted `bytes` of a streamed reply; the last ones are reported as well. */
  sent(exchange: number, bytes: number): void;
  /** The client has ended the exchange, or its connection has closed. */
  aborted(exchange: number): void;
  /** A message on a web socket. */
  message(exchange: number, data: Buffer, isBinary: boolean): void;
  /** A web socket has closed. */
  socketClosed(exchange: number, code: number): void;
}

export interface HttpCommands {
  /**
   * Sends a whole reply. `fields`: in the format of `RequestHead.fields`. `body` undefined: none.
   * `isCompressible`: it may be compressed in an encoding that the client accepts.
   */
  reply(
    exchange: number,
    status: number,
    fields: string,
    body: Buffer | undefined,
    isCompressible: boolean,
  ): void;
  /** Sends the head of a reply whose body follows by `data`. `isCompressible`: as for `reply`. */
  open(exchange: number, status: number, fields: string, isCompressible: boolean): void;
  /** Sends a part of a streamed reply. The caller keeps the bytes that are not reported as sent within bounds. */
  data(exchange: number, chunk: Buffer, isLast: boolean): void;
  /** Permits `bytes` more of a pending body. */
  pull(exchange: number, bytes: number): void;
  /** Ends an exchange without a complete reply. */
  abort(exchange: number): void;
  /** Names the registered client of a connection, for its share of the connections; "": it has none. */
  identify(connection: number, client: string): void;
  /** Ends a connection and its exchanges. */
  disconnect(connection: number): void;
  /** Accepts the request for a web socket, whose messages are events from then on. */
  acceptSocket(exchange: number, fields: string): void;
  /**
   * Accepts the request for a web socket whose frames another node answers: the bytes of the client are the body of
   * the request from then on, those for it are sent by `data`.
   */
  acceptTunnel(exchange: number, fields: string): void;
  /** Sends a part of a text message, in UTF-8; it is reported as sent, like data. */
  send(exchange: number, chunk: Buffer, isLast: boolean): void;
  /** Closes a web socket. `code` 0: without a closing handshake. */
  closeSocket(exchange: number, code: number, reason: string): void;
}

/** Returns the value of the field `name`, or undefined if there is none. */
export function fieldOf(fields: string, name: string): string | undefined {
  const at = fields.indexOf(`\n${name}:`);
  if (at < 0) return undefined;
  const start = at + name.length + 2;
  return fields.slice(start, fields.indexOf("\n", start));
}

/** Lists the fields in order. */
export function* fieldsIn(fields: string): Generator<[name: string, value: string]> {
  for (let at = 0; at < fields.length - 1; ) {
    const colon = fields.indexOf(":", at + 1);
    const end = fields.indexOf("\n", colon);
    yield [fields.slice(at + 1, colon), fields.slice(colon + 1, end)];
    at = end;
  }
}
