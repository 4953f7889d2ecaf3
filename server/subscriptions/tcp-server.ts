/**
 * The listener of the TCP protocol for subscriptions, with or without TLS, with the certificates and access rules of the
 * HTTP port.
 *
 * Invariants:
 * - Every accepted socket is in `sockets` until it is closed.
 * - A change of a certificate's rights applies to its connections in the same event-loop tick.
 */
import * as net from "node:net";
import * as tls from "node:tls";
import { Connection } from "../http/connection.ts";
import { ConnectionShares } from "../http-threads/connection-shares.ts";
import { listenOn, prepareSocket, setCertificate, unrefAll } from "../http-threads/listening.ts";
import type { ServerServices } from "../routing/services.ts";
import { registeredClient, unsecured } from "../security/access.ts";
import { tlsPolicy } from "../security/tls-policy.ts";
import { TcpConnection } from "./tcp-connection.ts";

export class TcpServer {
  readonly #services: ServerServices;
  readonly #logError: (reference: string, error: unknown) => void;
  readonly #listeners: net.Server[] = [];
  readonly #sockets = new Set<net.Socket>();
  readonly #connections = new Set<TcpConnection>();
  readonly #forgetChanges: () => void;

  constructor(services: ServerServices, logError: (reference: string, error: unknown) => void) {
    this.#services = services;
    this.#logError = logError;
    this.#forgetChanges = services.certificates.onChange((thumbprint) =>
      this.#reconsider(thumbprint),
    );
  }

  /**
   * Listens on each of `hosts` with the same port (0 for any free one). `secure` is undefined without TLS.
   * @returns the port @throws Node's listen errors (of the first host; the others are optional)
   */
  async listen(
    hosts: readonly string[],
    port: number,
    secure: tls.SecureContextOptions | undefined,
  ): Promise<number> {
    const { connectionCountMax } = this.#services.config.limits;
    const shares = new ConnectionShares(connectionCountMax, secure !== undefined);
    const listening = await listenOn(hosts, port, () => {
      if (secure !== undefined) {
        const listener = this.#makeSecure(secure, shares);
        return listener.on("connection", (socket: net.Socket) => this.#track(socket, shares));
      }
      return net.createServer((socket) => {
        if (!this.#track(socket, shares)) return;
        const address = socket.remoteAddress ?? "";
        this.#serve(new Connection(unsecured, undefined, false, address), socket, shares);
      });
    });
    this.#listeners.push(...listening.listeners);
    return listening.port;
  }

  get connectionCount(): number {
    return this.#connections.size;
  }

  /** Presents this certificate on new connections. */
  setCertificate(secure: tls.SecureContextOptions): void {
    setCertificate(this.#listeners, secure);
  }

  /** Lets the process exit while the server listens. Must be called after `listen`. */
  unref(): void {
    unrefAll(this.#listeners);
  }

  /** Stops listening and ends all connections; clients reconnect after a restart. */
  close(): void {
    for (const listener of this.#listeners) listener.close();
    for (const socket of this.#sockets) socket.destroy();
    this.#forgetChanges();
  }

  /** @returns false if the socket was closed because of a limit */
  #track(socket: net.Socket, shares: ConnectionShares): boolean {
    if (!shares.enter(socket)) return false;
    this.#sockets.add(socket);
    prepareSocket(socket);
    socket.once("close", () => this.#sockets.delete(socket));
    return true;
  }

  #makeSecure(secure: tls.SecureContextOptions, shares: ConnectionShares): tls.Server {
    const server = tls.createServer({
      ...secure,
      ...tlsPolicy,
      handshakeTimeout: this.#services.config.limits.handshakeMs,
    });
    server.on("secureConnection", (socket) => {
      socket.on("error", () => socket.destroy());
      const certificate = socket.getPeerX509Certificate();
      const identity = this.#services.certificates.identityOf(certificate);
      const address = socket.remoteAddress ?? "";
      this.#serve(new Connection(identity, certificate, true, address), socket, shares);
    });
    // A failed handshake is the client's problem.
    server.on("tlsClientError", (_error, socket) => socket.destroy());
    return server;
  }

  #serve(connection: Connection, socket: net.Socket, shares: ConnectionShares): void {
    shares.identify(socket, {
      client: registeredClient(connection.identity),
      usedMs: connection.usedMs,
      isIdle: false, // a subscription waits for documents
    });
    const served = new TcpConnection(this.#services, connection, socket, this.#logError);
    this.#connections.add(served);
    socket.once("close", () => this.#connections.delete(served));
    served.run().catch((error: unknown) => {
      this.#logError("of a TCP connection", error);
      socket.destroy();
    });
  }

  /** Applies changed rights; `thumbprint` undefined for all connections. */
  #reconsider(thumbprint: string | undefined): void {
    for (const served of this.#connections) {
      const { connection } = served;
      if (!connection.isSecure) continue;
      if (thumbprint !== undefined && connection.identity.thumbprint !== thumbprint) continue;
      connection.identity = this.#services.certificates.identityOf(connection.certificate);
      served.reconsider();
    }
  }
}
