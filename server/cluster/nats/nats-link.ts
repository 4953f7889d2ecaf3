/**
 * A connection to NATS: requests, messages, and the state of the connection. It reconnects by itself until it is closed,
 * and knows nothing of streams. The client is loaded with the first connection, so a single node never loads it.
 *
 * Invariants:
 * - Nothing is sent while the connection is down, because the client would send it later, when it is no longer expected.
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

/** Interval of connection attempts, and of pings of a silent connection, in milliseconds. */
const reconnectMs = 250;
const pingMs = 2000;
const pingsUnansweredMax = 2;

export interface LinkOptions {
  /** Servers of the NATS cluster, as `host:port`. */
  readonly servers: readonly string[];
  /** Name of this connection in the server's list. */
  readonly name: string;
  readonly user: string | undefined;
  readonly password: string | undefined;
  readonly tls: NatsTls | undefined;
  /** Timeout of the first connection, over all attempts, in milliseconds. */
  readonly connectMs: number;
  /** Called for each event of the connection. */
  readonly report: (message: string, cause?: unknown) => void;
}

interface LinkWatcher {
  /** The connection was lost. Pending requests get no reply. */
  lost(reason: string): void;
}

interface LinkedServer {
  readonly name: string;
  readonly version: string;
  readonly payloadBytesMax: number;
  readonly hasStreams: boolean;
  /** Whether the server belongs to a cluster of several. */
  readonly isClustered: boolean;
}

/** The reason why a request has no reply. */
type SilenceReason = "time-out" | "no-responders" | "disconnected";

class NoReply extends Error {
  override readonly name = "NoReply";
  readonly reason: SilenceReason;

  constructor(reason: SilenceReason, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.reason = reason;
  }
}

interface RequestOptions {
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

  /** @throws Error of the client if no server can be reached in time */
  static async connect(options: LinkOptions): Promise<NatsLink> {
    const client = await import("@nats-io/transport-node");
    const { connectNats } = await import("./nats-transport.ts");
    const untilMs = performance.now() + options.connectMs;
    for (;;) {
      try {
        const connection = await connectNats(connectionOptions(options));
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

  /** The connected server, or undefined while disconnected. */
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

  /** Returns the first reply. @throws NoReply */
  async request(
    subject: string,
    payload: Uint8Array | string,
    { timeoutMs, headers }: RequestOptions,
  ): Promise<Buffer> {
    if (!this.#isConnected) throw new NoReply("disconnected", "NATS is not connected");
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
   * Collects all replies received within `waitMs`, or the first `countMax` if that is given.
   * @throws NoReply
   */
  async gather(
    subject: string,
    payload: string,
    { waitMs, countMax }: { readonly waitMs: number; readonly countMax: number | undefined },
  ): Promise<Buffer[]> {
    if (!this.#isConnected) throw new NoReply("disconnected", "NATS is not connected");
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

  /** Sends a message if connected, and drops it otherwise. */
  publish(subject: string, payload: Uint8Array | string, reply?: string): void {
    if (!this.#isConnected || this.#connection.isClosed()) return;
    this.#connection.publish(subject, payload, reply === undefined ? {} : { reply });
  }

  /** Returns a unique subject for replies. */
  inbox(): string {
    return this.#client.createInbox();
  }

  /** Subscribes to a subject. The subscription survives reconnections. */
  subscribe(subject: string, received: (message: Msg) => void): { stop(): void } {
    const subscription = this.#connection.subscribe(subject, {
      callback: (error, message) => {
        try {
          if (error === null) received(message);
          else this.#report(`NATS refuses the subject ${subject}`, error);
        } catch (thrown) {
          this.#report(`A message of the subject ${subject} could not be processed`, thrown);
        }
      },
    });
    return {
      stop: () => {
        if (!this.#connection.isClosed()) subscription.unsubscribe();
      },
    };
  }

  /** @returns a function that removes the watcher */
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
        this.#report(`Reconnected to NATS at ${status.server}`);
      }
      if (status.type === "error") this.#report("NATS reported an error", status.error);
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
      return new NoReply("time-out", `NATS did not reply to ${subject} in time`, { cause });
    }
    if (inner instanceof NoRespondersError || cause instanceof NoRespondersError) {
      return new NoReply("no-responders", `${subject} has no responder at the moment`, { cause });
    }
    return new NoReply("disconnected", `${subject} received no reply: ${String(cause)}`, {
      cause,
    });
  }
}

/** Wraps any error for callers of streams, which expect one error code. */
export function streamUnavailable(stream: string, cause: unknown): EngineError {
  const text = cause instanceof Error ? cause.message : String(cause);
  return new EngineError("stream-unavailable", `The stream ${stream} is not available: ${text}`, {
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
