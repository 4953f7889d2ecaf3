/**
 * A connection to NATS: requests, messages, and whether it is up. It connects again by itself until it is closed; what
 * the streams hold it does not know. The client is loaded when the first connection is made, so a single node never does.
 *
 * Invariants:
 * - Nothing is sent while the connection is down: the client would send it later, when nobody expects it any more.
 * - A callback never throws into the client, which would stop reading.
 */
import type {
  ConnectionOptions,
  Msg,
  NatsConnection,
  RequestManyOptions,
} from "@nats-io/transport-node";
import { EngineError } from "../../../engine/base/errors.ts";
import type { NatsTls } from "../../settings/cluster-settings.ts";

/** Milliseconds between two tries to connect, and between two pings of a silent connection. */
const reconnectMs = 250;
const pingMs = 2000;
const pingsUnansweredMax = 2;

export interface LinkOptions {
  /** `host:port`, each a server of the cluster. */
  readonly servers: readonly string[];
  /** For the list of connections of the server. */
  readonly name: string;
  readonly user: string | undefined;
  readonly password: string | undefined;
  readonly tls: NatsTls | undefined;
  /** Milliseconds for the first connection, over all tries. */
  readonly connectMs: number;
  /** Told of what happens to the connection. */
  readonly report: (message: string, cause?: unknown) => void;
}

export interface LinkWatcher {
  /** The connection is gone; what was under way has no answer. */
  lost(reason: string): void;
}

export interface LinkedServer {
  readonly name: string;
  readonly version: string;
  readonly payloadBytesMax: number;
  readonly hasStreams: boolean;
  /** Is it one of several? */
  readonly isClustered: boolean;
}

/** Why a request has no answer. */
export type SilenceReason = "time-out" | "no-responders" | "disconnected";

export class NoReply extends Error {
  override readonly name = "NoReply";
  readonly reason: SilenceReason;

  constructor(reason: SilenceReason, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.reason = reason;
  }
}

export interface RequestOptions {
  readonly timeoutMs: number;
  readonly headers?: Readonly<Record<string, string>>;
}

export class NatsLink {
  readonly #client: typeof import("@nats-io/transport-node");
  readonly #connection: NatsConnection;
  readonly #report: LinkOptions["report"];
  readonly #watchers = new Set<LinkWatcher>();
  #isConnected = true;

  private constructor(
    client: typeof import("@nats-io/transport-node"),
    connection: NatsConnection,
    report: LinkOptions["report"],
  ) {
    this.#client = client;
    this.#connection = connection;
    this.#report = report;
    void this.#followStatus();
    void connection.closed().then((error) => {
      this.#lose(error instanceof Error ? error.message : "closed");
    });
  }

  /** @throws Error of the client when no server can be reached in time */
  static async connect(options: LinkOptions): Promise<NatsLink> {
    const client = await import("@nats-io/transport-node");
    const { connectByWholeMessages } = await import("./nats-transport.ts");
    const untilMs = performance.now() + options.connectMs;
    for (;;) {
      try {
        const connection = await connectByWholeMessages(connectionOptions(options));
        return new NatsLink(client, connection, options.report);
      } catch (error) {
        if (performance.now() + reconnectMs > untilMs) throw error;
        await new Promise((resolve) => setTimeout(resolve, reconnectMs));
      }
    }
  }

  get isConnected(): boolean {
    return this.#isConnected;
  }

  /** Facts of the server that this is connected to; undefined: to none at the moment. */
  get server(): LinkedServer | undefined {
    const info = this.#connection.info;
    if (info === undefined || !this.#isConnected) return undefined;
    return {
      name: info.server_name,
      version: info.version,
      payloadBytesMax: info.max_payload,
      hasStreams: info.jetstream === true,
      isClustered: info.cluster !== undefined,
    };
  }

  /** The first answer. @throws NoReply */
  async request(
    subject: string,
    payload: Uint8Array | string,
    { timeoutMs, headers }: RequestOptions,
  ): Promise<Buffer> {
    if (!this.#isConnected) throw new NoReply("disconnected", "there is no connection to NATS");
    try {
      const options =
        headers === undefined
          ? { timeout: timeoutMs }
          : { timeout: timeoutMs, headers: this.#headersOf(headers) };
      return bytesOf(await this.#connection.request(subject, payload, options));
    } catch (error) {
      throw this.#unanswered(subject, error);
    }
  }

  /**
   * All answers that come within `waitMs`; it ends earlier when there are `countMax`, if that is given.
   * @throws NoReply
   */
  async gather(
    subject: string,
    payload: string,
    { waitMs, countMax }: { readonly waitMs: number; readonly countMax: number | undefined },
  ): Promise<Buffer[]> {
    if (!this.#isConnected) throw new NoReply("disconnected", "there is no connection to NATS");
    const found: Buffer[] = [];
    try {
      const limits: RequestManyOptions =
        countMax === undefined
          ? { strategy: "timer", maxWait: waitMs }
          : { strategy: "count", maxWait: waitMs, maxMessages: countMax };
      const options = { ...limits, noMux: true };
      for await (const message of await this.#connection.requestMany(subject, payload, options)) {
        found.push(bytesOf(message));
      }
    } catch (error) {
      throw this.#unanswered(subject, error);
    }
    return found;
  }

  /** Sent if there is a connection, and dropped otherwise. */
  publish(subject: string, payload: Uint8Array | string, reply?: string): void {
    if (!this.#isConnected || this.#connection.isClosed()) return;
    this.#connection.publish(subject, payload, reply === undefined ? {} : { reply });
  }

  /** Subject for answers that nobody else has. */
  inbox(): string {
    return this.#client.createInbox();
  }

  /** Messages as they come, also after the connection was lost and found. */
  subscribe(subject: string, received: (message: Msg) => void): { stop(): void } {
    const subscription = this.#connection.subscribe(subject, {
      callback: (error, message) => {
        try {
          if (error === null) received(message);
          else this.#report(`NATS refuses the subject ${subject}`, error);
        } catch (thrown) {
          this.#report(`A message of the subject ${subject} was not understood`, thrown);
        }
      },
    });
    return {
      stop: () => {
        if (!this.#connection.isClosed()) subscription.unsubscribe();
      },
    };
  }

  /** @returns what ends it */
  watch(watcher: LinkWatcher): () => void {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  async close(): Promise<void> {
    this.#isConnected = false;
    await this.#connection.close();
  }

  async #followStatus(): Promise<void> {
    for await (const status of this.#connection.status()) {
      if (status.type === "disconnect") this.#lose(`the connection to ${status.server} was lost`);
      if (status.type === "reconnect") {
        this.#isConnected = true;
        this.#report(`Connected to NATS at ${status.server} again`);
      }
      if (status.type === "error") this.#report("NATS answers with an error", status.error);
    }
  }

  #lose(reason: string): void {
    const wasConnected = this.#isConnected;
    this.#isConnected = false;
    if (wasConnected) this.#report(`NATS cannot be reached: ${reason}`);
    for (const watcher of [...this.#watchers]) watcher.lost(reason);
  }

  #headersOf(values: Readonly<Record<string, string>>) {
    const headers = this.#client.headers();
    for (const [name, value] of Object.entries(values)) headers.set(name, value);
    return headers;
  }

  #unanswered(subject: string, cause: unknown): NoReply {
    const { TimeoutError, NoRespondersError } = this.#client.errors;
    const inner = cause instanceof Error && cause.cause instanceof Error ? cause.cause : cause;
    if (cause instanceof TimeoutError) {
      return new NoReply("time-out", `NATS has not answered ${subject} in time`, { cause });
    }
    if (inner instanceof NoRespondersError || cause instanceof NoRespondersError) {
      return new NoReply("no-responders", `nobody answers ${subject} at the moment`, { cause });
    }
    return new NoReply("disconnected", `${subject} was not answered: ${String(cause)}`, {
      cause,
    });
  }
}

/** For callers of streams, who know one error only. */
export function streamUnavailable(stream: string, cause: unknown): EngineError {
  const text = cause instanceof Error ? cause.message : String(cause);
  return new EngineError("stream-unavailable", `The stream ${stream} does not answer: ${text}`, {
    cause,
  });
}

export function bytesOf({ data }: Msg): Buffer {
  return Buffer.from(data.buffer, data.byteOffset, data.byteLength);
}

function connectionOptions(options: LinkOptions): ConnectionOptions {
  const { servers, name, user, password, tls } = options;
  return {
    servers: [...servers],
    name,
    ...(user === undefined ? {} : { user }),
    ...(password === undefined ? {} : { pass: password }),
    ...(tls === undefined ? {} : { tls: tlsOptions(tls) }),
    timeout: Math.min(options.connectMs, 5000),
    maxReconnectAttempts: -1,
    reconnectTimeWait: reconnectMs,
    reconnectJitter: reconnectMs / 2,
    reconnectJitterTLS: reconnectMs / 2,
    ignoreAuthErrorAbort: true,
    pingInterval: pingMs,
    maxPingOut: pingsUnansweredMax,
    noAsyncTraces: true,
  };
}

function tlsOptions({ certificatePath, keyPath, authorityPath }: NatsTls) {
  return {
    ...(certificatePath === undefined ? {} : { certFile: certificatePath }),
    ...(keyPath === undefined ? {} : { keyFile: keyPath }),
    ...(authorityPath === undefined ? {} : { caFile: authorityPath }),
  };
}
