/**
 * The engine thread's side of one HTTP thread: its connections and exchanges.
 *
 * Invariants:
 * - An exchange is in `#exchanges` until it is closed; events of others arrived too late, and are ignored.
 */
import { X509Certificate } from "node:crypto";
import type { BodyLimits } from "../http/body.ts";
import type { Connection } from "../http/connection.ts";
import type {
  BodyFailure,
  ConnectionInfo,
  HttpCommands,
  HttpEvents,
  RequestHead,
} from "../link/link.ts";
import { registeredClient } from "../security/access.ts";
import { LinkExchange, type LinkThread } from "./link-exchange.ts";

/** What it needs of the server. */
export interface RequestHost {
  readonly bodyLimits: BodyLimits;
  /** Identifies a client. */
  connect(certificate: X509Certificate | undefined, info: ConnectionInfo): Connection;
  disconnected(connection: Connection): void;
  accept(exchange: LinkExchange): void;
  acceptSocket(exchange: LinkExchange): void;
}

export class ThreadRequests implements HttpEvents, LinkThread {
  readonly commands: HttpCommands;
  readonly copiesReplies: boolean;
  readonly #host: RequestHost;
  readonly #connections = new Map<number, Connection>();
  readonly #ids = new Map<Connection, number>();
  readonly #exchanges = new Map<number, LinkExchange>();

  constructor(host: RequestHost, commands: HttpCommands, copiesReplies: boolean) {
    this.#host = host;
    this.commands = commands;
    this.copiesReplies = copiesReplies;
  }

  get connectionCount(): number {
    return this.#connections.size;
  }

  forget(exchange: LinkExchange): void {
    this.#exchanges.delete(exchange.id);
  }

  /** The HTTP thread has ended, and its connections with it. */
  end(): void {
    for (const exchange of [...this.#exchanges.values()]) exchange.end();
    for (const connection of this.#connections.values()) this.#host.disconnected(connection);
    this.#connections.clear();
    this.#ids.clear();
  }

  opened(connection: number, info: ConnectionInfo): void {
    const certificate =
      info.certificate === undefined ? undefined : new X509Certificate(info.certificate);
    const opened = this.#host.connect(certificate, info);
    this.#connections.set(connection, opened);
    this.#ids.set(opened, connection);
    if (registeredClient(opened.identity) !== "") this.identify(opened);
  }

  /** Reports the client of a connection to the HTTP thread, if the connection is one of that. */
  identify(connection: Connection): void {
    const id = this.#ids.get(connection);
    if (id !== undefined) this.commands.identify(id, registeredClient(connection.identity));
  }

  closed(connection: number): void {
    const known = this.#connections.get(connection);
    if (known === undefined) return;
    this.#connections.delete(connection);
    this.#ids.delete(known);
    this.#host.disconnected(known);
  }

  /** Hot. */
  request(connection: number, exchange: number, head: RequestHead, body: Buffer | undefined): void {
    const known = this.#connections.get(connection);
    if (known === undefined) {
      this.commands.abort(exchange);
      return;
    }
    const host = this.#host;
    const request = new LinkExchange(this, known, exchange, head, body, host.bodyLimits);
    this.#exchanges.set(exchange, request);
    if (head.isWebSocket) host.acceptSocket(request);
    else host.accept(request);
  }

  bodyData(exchange: number, chunk: Buffer, isLast: boolean): void {
    this.#exchanges.get(exchange)?.bodyData(chunk, isLast);
  }

  bodyFailed(exchange: number, failure: BodyFailure, encoding: string): void {
    this.#exchanges.get(exchange)?.bodyFailed(failure, encoding);
  }

  sent(exchange: number, bytes: number): void {
    this.#exchanges.get(exchange)?.sent(bytes);
  }

  aborted(exchange: number): void {
    this.#exchanges.get(exchange)?.end();
  }

  message(exchange: number, data: Buffer): void {
    this.#exchanges.get(exchange)?.message(data);
  }

  socketClosed(exchange: number): void {
    this.#exchanges.get(exchange)?.end();
  }
}
