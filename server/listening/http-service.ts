/**
 * Serves HTTP: manages the HTTP threads, and passes their requests to the dispatcher.
 *
 * All HTTP threads accept connections on the same descriptor, which the first of them has opened. A descriptor is only
 * a number, and a thread that ends closes it: so the number is occupied again immediately, before anything else gets it.
 *
 * Invariants:
 * - A thread that dies is replaced; only its connections are lost.
 */
import { randomBytes, type X509Certificate } from "node:crypto";
import { closeSync, existsSync, openSync } from "node:fs";
import type { SecureContextOptions } from "node:tls";
import { fileURLToPath } from "node:url";
import { assert } from "../../engine/base/assert.ts";
import { processMemory } from "../../engine/base/memory/memory-budget.ts";
import type { BodyLimits } from "../http/body.ts";
import { Connection } from "../http/connection.ts";
import type { FrontLimits } from "../http-threads/front-host.ts";
import type { ConnectionInfo } from "../link/link.ts";
import type { HttpThreadFigures } from "../monitoring/metrics.ts";
import type { Dispatcher } from "../routing/dispatcher.ts";
import type { CertificateUse, ServerServices } from "../routing/services.ts";
import { unsecured } from "../security/access.ts";
import { Clients } from "./clients.ts";
import { type HttpThread, OwnThread, WorkerThread } from "./http-thread.ts";
import type { LinkExchange } from "./link-exchange.ts";
import { SocketAcceptor } from "./socket-acceptor.ts";
import type { RequestHost } from "./thread-requests.ts";

/** Header fields of one request. */
const headerCountMax = 128;
/** Length of the keys for TLS session tickets, as Node defines it. */
const ticketKeyBytes = 48;
/** The share of `Http.MaxHeldRepliesInMb` for replies that are sent to HTTP threads whole; larger ones have the rest. */
const sentShare = 1 / 2;

/** An address on which the threads listen. */
interface Place {
  readonly host: string;
  readonly port: number;
  fd: number;
}

export class HttpService implements RequestHost {
  readonly bodyLimits: BodyLimits;
  readonly #services: ServerServices;
  readonly #dispatcher: Dispatcher;
  readonly #sockets: SocketAcceptor;
  readonly #clients: Clients;
  readonly #limits: FrontLimits;
  readonly #threads: HttpThread[] = [];
  #places: Place[] = [];
  #secure: SecureContextOptions | undefined = undefined;
  #isStopping = false;
  #restartCount = 0;
  #isUnreferenced = false;

  constructor(services: ServerServices, dispatcher: Dispatcher) {
    this.#services = services;
    this.#dispatcher = dispatcher;
    this.#sockets = new SocketAcceptor(services, dispatcher);
    const { limits, httpThreads } = services.config;
    this.bodyLimits = {
      bodyBytesMax: limits.bodyBytesMax,
      jsonBytesMax: limits.jsonBytesMax,
      idleMs: limits.bodyIdleMs,
      bytesPerSecondMin: limits.bodyBytesPerSecondMin,
      rateGraceMs: limits.bodyRateGraceMs,
      stallMs: limits.stallMs,
      compressReplies: limits.compressReplies,
    };
    processMemory.limitUse("replies", limits.heldReplyBytesMax);
    processMemory.limitUse("bodies", limits.heldBodyBytesMax);
    this.#clients = new Clients(
      services.certificates,
      dispatcher.forwardedRequests,
      (connection) => {
        for (const { requests } of this.#threads) requests.identify(connection);
      },
    );
    const count = Math.max(1, httpThreads);
    this.#limits = {
      headerBytesMax: limits.headerBytesMax,
      headerCountMax,
      targetLengthMax: limits.targetLengthMax,
      streamCountMax: limits.streamsPerConnectionMax,
      connectionCountMax: Math.ceil(limits.connectionCountMax / count),
      handshakeMs: limits.handshakeMs,
      headersMs: limits.headersMs,
      keepAliveMs: limits.keepAliveMs,
      stallMs: limits.stallMs,
      heldReplyBytesMax: Math.ceil((limits.heldReplyBytesMax * sentShare) / count),
      compressReplies: limits.compressReplies,
      ticketKeys: randomBytes(ticketKeyBytes),
    };
    if (httpThreads === 0) this.#threads.push(new OwnThread(this.#limits, this));
    else while (this.#threads.length < count) this.#threads.push(this.#makeThread());
  }

  /**
   * Listens on each of `hosts` with the same port (0: any free one). `secure` undefined: without TLS.
   * @returns the port. @throws Node's listen errors (of the first host; the others are optional)
   */
  async listen(
    hosts: readonly string[],
    port: number,
    secure: SecureContextOptions | undefined,
  ): Promise<number> {
    this.#secure = secure;
    let chosen = port;
    for (const [position, host] of hosts.entries()) {
      try {
        chosen = await this.#listenAt(host, chosen);
      } catch (error) {
        if (position === 0) throw error;
      }
    }
    return chosen;
  }

  /** Open connections by what is spoken on them; web sockets within HTTP/2 are counted besides their connection. */
  connectionCounts(): { http1: number; http2: number; websocket: number } {
    let http1 = 0;
    let http2 = 0;
    for (const { counts } of this.#threads) {
      http2 += counts.http2;
      http1 += counts.connections - counts.http2;
    }
    return { http1, http2, websocket: this.#sockets.openCount };
  }

  /** The HTTP threads, as of the last second; empty if HTTP runs on this thread. */
  get threadFigures(): readonly HttpThreadFigures[] {
    if (this.#services.config.httpThreads === 0) return [];
    return this.#threads.map(({ busyShare, counts }) => ({
      busyShare,
      connections: counts.connections,
      queuedBytes: counts.heldBytes,
    }));
  }

  /** Number of threads that died and were replaced. */
  get restartCount(): number {
    return this.#restartCount;
  }

  /** Presents this certificate on new connections. */
  setCertificate(secure: SecureContextOptions): void {
    this.#secure = secure;
    for (const thread of this.#threads) thread.setCertificate(secure);
  }

  certificateUse(thumbprint: string): CertificateUse {
    return this.#clients.use(thumbprint);
  }

  /** From now on it does not keep the process alive. Call it once it listens. */
  unref(): void {
    this.#isUnreferenced = true;
    for (const thread of this.#threads) thread.unref();
  }

  /** Stops accepting, finishes requests in progress, and resolves; what is open after `timeoutMs` is closed. */
  async close(timeoutMs: number): Promise<void> {
    this.#isStopping = true;
    this.#sockets.closeAll();
    const isShared = this.#threads.length > 1;
    await Promise.all(this.#threads.map((thread) => thread.close(timeoutMs, !isShared)));
    for (const thread of this.#threads) {
      await thread.terminate();
      if (isShared) this.#occupy();
    }
    for (const { fd } of this.#places) if (isShared) closeSync(fd);
    this.#places = [];
    this.#clients.close();
  }

  // --- For the threads.

  connect(certificate: X509Certificate | undefined, info: ConnectionInfo): Connection {
    const identity = info.isSecure
      ? this.#services.certificates.identityOf(certificate)
      : unsecured;
    const connection = new Connection(identity, certificate, info.isSecure, info.address);
    this.#clients.add(connection);
    return connection;
  }

  disconnected(connection: Connection): void {
    this.#dispatcher.scheduler.forget(connection);
    this.#clients.remove(connection);
  }

  accept(exchange: LinkExchange): void {
    this.#dispatcher.accept(exchange);
  }

  acceptSocket(exchange: LinkExchange): void {
    this.#sockets.accept(exchange).catch((error: unknown) => {
      this.#dispatcher.report(error);
      exchange.abort();
    });
  }

  #makeThread(): WorkerThread {
    return new WorkerThread(
      threadScript(),
      this.#limits,
      this,
      (error) => this.#dispatcher.report(error),
      (thread, error) => void this.#replace(thread, error),
    );
  }

  /** Listens at an address: the first thread opens the socket, the others share it. @returns the port */
  async #listenAt(host: string, port: number): Promise<number> {
    const [first, ...others] = this.#threads;
    if (first === undefined) return port;
    const { port: chosen, fd } = await first.listen({ host, port }, this.#secure);
    this.#places.push({ host, port: chosen, fd });
    await Promise.all(others.map((other) => other.listen({ fd }, this.#secure)));
    return chosen;
  }

  /** Replaces a thread that has died, and with it the socket on which all listened. */
  async #replace(dead: HttpThread, error: Error): Promise<void> {
    if (this.#isStopping) return;
    this.#restartCount++;
    this.#services.log.warn("An HTTP thread died and is replaced; its connections are closed", {
      event: "http-thread-died",
      error: error.message,
    });
    this.#occupy();
    const places = this.#places.splice(0);
    const position = this.#threads.indexOf(dead);
    this.#threads.splice(position, 1);
    const next = this.#makeThread();
    this.#threads.unshift(next);
    if (this.#isUnreferenced) next.unref();
    for (const { host, port } of places) await this.#listenAt(host, port);
  }

  /**
   * Occupies the numbers of the descriptors that an ended thread has closed: the others still have them, and would
   * close what got the number in between.
   */
  #occupy(): void {
    for (const { fd } of this.#places) {
      if (fd < 0) continue;
      const opened: number[] = [];
      for (let next = openSync("/dev/null", "r"); next !== fd; next = openSync("/dev/null", "r")) {
        opened.push(next);
        if (next > fd) break;
      }
      for (const one of opened) closeSync(one);
    }
  }
}

/** The code of an HTTP thread: in the package, among the built modules, or of tests that run from the sources. */
function threadScript(): string {
  const paths = [
    "./http-thread.cjs",
    "../http-threads/main.js",
    "../../dist/bundle/http-thread.cjs",
  ];
  const places = paths.map((path) => fileURLToPath(new URL(path, import.meta.url)));
  const script = places.find((place) => existsSync(place));
  assert(script !== undefined, "the code of HTTP threads is built");
  return script;
}
