/**
 * One connection of the TCP protocol: negotiates a version, authorizes the client, and sends the batches of a
 * subscription until either side ends it. Messages are concatenated JSON objects.
 *
 *   client: header              server: status            (repeated with another version if need be)
 *   client: options             server: Accepted
 *                               server: Data… Includes… EndOfBatch
 *   client: Acknowledge         server: Confirm           (and the next batch)
 *
 * Invariants:
 * - Nothing of a database is revealed or done before the certificate's right to it is verified.
 * - A batch is sent after the previous one was acknowledged; `Confirm` is sent when that is durable.
 * - Invalid input of a client closes at most its own connection.
 */
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import type { Socket } from "node:net";
import { EngineError, invalidArgument } from "../../engine/base/errors.ts";
import { JsonText } from "../../engine/base/json/json-text.ts";
import { subscriptionBatchDocumentsMax } from "../../engine/base/limits.ts";
import {
  type Database,
  type IncludeKind,
  type OpeningStrategy,
  openingStrategies,
  type SubscriptionBatch,
  type SubscriptionWorker,
  subscriptionClosed,
} from "../../engine/engine.ts";
import type { Connection } from "../http/connection.ts";
import type { JsonObject } from "../http/json-body.ts";
import { parseTimeSpanMs } from "../http/request.ts";
import { databaseDisabled, databaseMissing, RequestError, tooDeep } from "../http/request-error.ts";
import type { ServerServices } from "../routing/services.ts";
import { isAllowed, refusalMessage as refusalOfAccess, requirements } from "../security/access.ts";
import { MessageReader } from "./message-reader.ts";
import {
  acceptedMessage,
  addDataMessage,
  confirmMessage,
  endMessage,
  endOfBatchMessage,
  includeMessages,
  redirectMessage,
  refusalMessage,
} from "./subscription-messages.ts";

/** Protocol versions, newest first: older ones have fewer kinds of messages. */
const versions: readonly number[] = [53_000, 51_000, 50_000, 41_400, 40];
/** The first version with messages for included documents, counters and time series. */
const firstVersions: Readonly<Record<IncludeKind, number>> = {
  documents: 41_400,
  counters: 50_000,
  series: 51_000,
};
const includeKinds = Object.keys(firstVersions) as IncludeKind[];
/** Maximum number of headers on one connection before a version is agreed. */
const headersMax = 8;
/** Interval of heartbeats, in milliseconds. */
const heartbeatMs = 3_000;
const heartbeat = "\r\n";
/** Time for the client to read the last message, in milliseconds. */
const lingerMs = 2_000;
const defaultBatchDocuments = 4096;
/** Number of bytes collected before a write. */
const pieceBytes = 64 * 1024;

export class TcpConnection {
  readonly connection: Connection;
  readonly #services: ServerServices;
  readonly #socket: Socket;
  readonly #reader: MessageReader;
  readonly #logError: (reference: string, error: unknown) => void;
  readonly #closing = new AbortController();
  #databaseName: string | null = null;
  #worker: SubscriptionWorker | null = null;
  #incoming: Promise<JsonObject | null> | null = null;

  constructor(
    services: ServerServices,
    connection: Connection,
    socket: Socket,
    logError: (reference: string, error: unknown) => void,
  ) {
    this.#services = services;
    this.connection = connection;
    this.#socket = socket;
    this.#logError = logError;
    this.#reader = new MessageReader(socket);
    socket.once("close", () => {
      this.#closing.abort();
      this.#worker?.close();
    });
  }

  /** Serves until the connection ends. Never rejects. */
  async run(): Promise<void> {
    const timer = setTimeout(() => this.#socket.destroy(), this.#services.config.limits.headersMs);
    let beating: NodeJS.Timeout | null = null;
    let refuse = refusalMessage;
    try {
      const agreed = await this.#agree();
      if (agreed === null) return;
      const leader = this.#leaderElsewhere(agreed.databaseName);
      const database = leader === undefined ? await this.#databaseOf(agreed.databaseName) : null;
      refuse = endMessage;
      const options = await this.#reader.next();
      if (options === null) return;
      clearTimeout(timer);
      if (database === null) {
        this.end(redirectMessage(this.#services.config.nodeTag, leader ?? null));
        return;
      }
      beating = setInterval(() => this.#beat(), heartbeatMs).unref();
      await this.#serve(database, options, agreed.version);
    } catch (error) {
      const known = tooDeep(error) ?? error;
      this.#report(known);
      this.end(refuse(known));
    } finally {
      clearTimeout(timer);
      if (beating !== null) clearInterval(beating);
      this.#worker?.close();
      this.end("");
    }
  }

  /** Called when the certificate's rights have changed. */
  reconsider(): void {
    const name = this.#databaseName;
    if (name === null) return;
    const { identity } = this.connection;
    if (isAllowed(identity, requirements.write, name)) return;
    const message = refusalOfAccess(identity, "write", name);
    this.end(endMessage(new RequestError(403, authorizationType, message)));
  }

  /** Sends a last message, and releases the socket. */
  end(message: string): void {
    this.#worker?.close();
    if (this.#socket.destroyed || this.#socket.writableEnded) return;
    this.#socket.end(message);
    // Further input is discarded, so that the client can read the message first.
    this.#socket.resume();
    setTimeout(() => this.#socket.destroy(), lingerMs).unref();
  }

  /** Negotiates the version. @returns null if the client disconnects or is refused @throws EngineError, RequestError */
  async #agree(): Promise<{ readonly databaseName: string; readonly version: number } | null> {
    for (let headers = 0; headers < headersMax; headers++) {
      const header = await this.#reader.next();
      if (header === null) return null;
      const { Operation: operation, OperationVersion: version, DatabaseName: name } = header;
      if (operation === "Drop") return null;
      if (operation !== "Subscription") {
        throw invalidArgument(
          `The operation '${String(operation)}' is not supported; only 'Subscription' is.`,
        );
      }
      if (typeof version !== "number" || version < (versions.at(-1) as number)) {
        throw invalidArgument(`Protocol '${String(version)}' for 'Subscription' was not found.`);
      }
      if (typeof name !== "string" || name === "")
        throw invalidArgument("DatabaseName is missing.");
      if (!versions.includes(version)) {
        const nearest = versions.find((known) => known < version) as number; // above the last
        this.#status(
          "TcpVersionMismatch",
          nearest,
          `Not supporting version ${version} for Subscription`,
        );
        continue;
      }
      if (!this.#mayUse(name, version)) return null;
      // RavenDB 7.2.7 lists features only to clients that list theirs.
      const features = header["LicensedFeatures"] ? '{"DataCompression":false}' : "null";
      this.#write(`{"Status":"Ok","Version":${version},"LicensedFeatures":${features}}`);
      return { databaseName: name, version };
    }
    throw invalidArgument("Too many headers.");
  }

  #mayUse(name: string, version: number): boolean {
    const { identity } = this.connection;
    this.#databaseName = name;
    if (isAllowed(identity, requirements.write, name)) return true;
    const maySee = isAllowed(identity, requirements.read, name);
    this.#status(
      "AuthorizationFailed",
      version,
      refusalOfAccess(identity, maySee ? "write" : undefined, name),
    );
    return false;
  }

  #status(Status: string, Version: number, Message: string): void {
    this.#write(JSON.stringify({ Status, Version, LicensedFeatures: null, Message }));
  }

  /** Returns the tag of the leading node, null if none is known, or undefined if this node leads. */
  #leaderElsewhere(name: string): string | null | undefined {
    const { cluster } = this.#services;
    const state = cluster?.find(name);
    if (state === undefined || state.role === "leader") return undefined;
    return state.leaderTag === cluster?.tag ? null : state.leaderTag;
  }

  /** @throws RequestError, EngineError */
  async #databaseOf(name: string): Promise<Database> {
    const database = await this.#services.databases.find(name);
    if (database === undefined) throw databaseMissing(name);
    if (database.isDisabled) throw databaseDisabled(database.name);
    return database;
  }

  /** @throws EngineError */
  async #serve(database: Database, options: JsonObject, version: number): Promise<void> {
    const connecting = this.#connect(database, options, version);
    const worker = await this.#unlessGone(connecting);
    if (worker === null) return;
    this.#worker = worker;
    if (this.#socket.destroyed) return;
    this.#write(acceptedMessage);
    for (;;) {
      const batch = await this.#unlessGone(worker.nextBatch());
      if (batch === null) {
        if (worker.isEnded || this.#closing.signal.aborted) return;
        throw noneLeft(worker);
      }
      await this.#send(database, batch, version);
      if ((await this.#acknowledged()) === false) return;
      await worker.acknowledge();
      this.#write(confirmMessage);
    }
  }

  async #connect(
    database: Database,
    options: JsonObject,
    version: number,
  ): Promise<SubscriptionWorker> {
    const worker = await database.subscriptions.connect(
      {
        ...workerOptions(options),
        unreadable: includeKinds.filter((kind) => version < firstVersions[kind]),
        client: `${this.connection.remoteAddress}:${this.#socket.remotePort ?? 0}`,
        onEnd: (reason) => this.end(endMessage(reason)),
      },
      this.#closing.signal,
    );
    // If the client has disconnected, the worker has no user.
    if (this.#closing.signal.aborted) worker.close();
    return worker;
  }

  /**
   * Resolves to the result of `working`, or null if the client disconnects, or announces it, first.
   * @throws errors of `working`; EngineError if the client sends anything else
   */
  async #unlessGone<Result>(working: Promise<Result>): Promise<Result | null> {
    this.#incoming ??= this.#reader.next();
    const message = this.#incoming.then((received) => ({ received }));
    // The loser of the race is ignored, and may fail.
    message.catch(() => undefined);
    working.catch(() => undefined);
    const first = await Promise.race([working.then((result) => ({ result })), message]);
    if ("result" in first) return first.result;
    this.#incoming = null;
    this.#closing.abort();
    const { received } = first;
    if (received === null) return null;
    if (received["Type"] === "DisposedNotification") return null;
    throw unexpected(received);
  }

  /** @returns false if the client disconnects instead @throws EngineError if it sends anything else */
  async #acknowledged(): Promise<boolean> {
    const message = await (this.#incoming ?? this.#reader.next());
    this.#incoming = null;
    if (message === null || message["Type"] === "DisposedNotification") return false;
    if (message["Type"] !== "Acknowledge") throw unexpected(message);
    return true;
  }

  async #send(
    database: Database,
    { items, includes }: SubscriptionBatch,
    version: number,
  ): Promise<void> {
    const text = new JsonText(pieceBytes);
    for (const item of items) {
      addDataMessage(text, item);
      if (text.length < pieceBytes) continue;
      if (!this.#write(text.take())) await this.#drained();
      if (this.#socket.destroyed) return;
    }
    // Included documents are not sent to clients whose version cannot read them.
    if (version >= firstVersions.documents) {
      for (const message of includeMessages(database, includes)) text.addText(message);
    }
    text.addText(endOfBatchMessage);
    if (!this.#write(text.take())) await this.#drained();
  }

  /** Waits for back-pressure to end. A client that reads nothing for `stallMs` is disconnected. */
  async #drained(): Promise<void> {
    if (!this.#socket.writableNeedDrain || this.#socket.destroyed) return;
    const timer = setTimeout(() => this.#socket.destroy(), this.#services.config.limits.stallMs);
    try {
      await once(this.#socket, "drain", { signal: this.#closing.signal });
    } catch {
      // It closed: reading the next message reports that.
    } finally {
      clearTimeout(timer);
    }
  }

  #write(text: string | Buffer): boolean {
    if (this.#socket.destroyed || this.#socket.writableEnded) return false;
    return this.#socket.write(text);
  }

  /** Sends a heartbeat, and closes the connection when its certificate has expired. */
  #beat(): void {
    const { identity } = this.connection;
    if (Date.now() > identity.validUntilMs) this.#socket.destroy();
    else if (!this.#socket.writableNeedDrain) this.#write(heartbeat);
  }

  #report(error: unknown): void {
    if (error instanceof EngineError || error instanceof RequestError) return;
    this.#logError(randomUUID(), error);
  }
}

const authorizationType = "Raven.Client.Exceptions.Security.AuthorizationException";

/** @throws EngineError invalid-format for a malformed value */
function workerOptions(options: JsonObject): {
  readonly name: string;
  readonly strategy: OpeningStrategy;
  readonly documentsPerBatchMax: number;
  readonly closesWhenNoneLeft: boolean;
  readonly workerId: string;
} {
  const { SubscriptionName: name, WorkerId: workerId, Strategy: strategy = "OpenIfFree" } = options;
  const { MaxDocsPerBatch: count = defaultBatchDocuments } = options;
  const known = openingStrategies.find((one) => one === strategy);
  if (known === undefined) throw misformed("Strategy", strategy);
  if (typeof count !== "number" || !Number.isInteger(count)) {
    throw misformed("MaxDocsPerBatch", count);
  }
  for (const span of ["TimeToWaitBeforeConnectionRetry", "MaxErroneousPeriod"]) {
    const value = options[span];
    if (typeof value === "string" && parseTimeSpanMs(value) === undefined) {
      throw misformed(span, value);
    }
  }
  return {
    name: typeof name === "string" ? name : "",
    strategy: known,
    documentsPerBatchMax: Math.min(Math.max(1, count), subscriptionBatchDocumentsMax),
    closesWhenNoneLeft: options["CloseWhenNoDocsLeft"] === true,
    workerId: typeof workerId === "string" && workerId !== "" ? workerId : randomUUID(),
  };
}

function misformed(name: string, value: unknown): EngineError {
  const shown = String(value).slice(0, 100);
  return new EngineError("invalid-format", `Could not convert '${shown}' to a value of ${name}`);
}

function unexpected(message: JsonObject): EngineError {
  const type = String(message["Type"]).slice(0, 100);
  return type === "Acknowledge"
    ? new EngineError("operation-cancelled", "There is no batch to acknowledge.")
    : new EngineError("invalid-format", `A message of type '${type}' is not expected here`);
}

function noneLeft({ options }: SubscriptionWorker): EngineError {
  return subscriptionClosed(
    `Closing subscription ${options.name} because there were no documents left and client connected in 'CloseWhenNoDocsLeft' mode`,
    false,
    true,
  );
}
