/**
 * One open database: its store, and what runs over it.
 */
import { type DatabaseParts, openParts, type StoreOptions } from "./database-opening.ts";
import type { PreparedDocument } from "./database-state.ts";
import { DueDocuments, type DueDocumentsOptions } from "./due-documents.ts";
import type { Environment } from "./environment.ts";
import { EngineError } from "./errors.ts";
import type { IndexSnapshotsOptions } from "./index-snapshots.ts";
import type { JsonObject } from "./json/json-object.ts";
import { backgroundBytesPerSecond, endingWaitMs } from "./limits.ts";
import type { Pin } from "./log/log.ts";
import { Maintenance, type MaintenanceOptions } from "./maintenance.ts";
import { Operations } from "./operations.ts";
import { DatabaseQueries, type QueryOptions } from "./query-host.ts";
import { ReplyText } from "./reply-text.ts";
import { RevisionBin } from "./revision-bin.ts";
import type { QueryOutcome, RowSink } from "./rql/results.ts";
import { Store } from "./store.ts";
import { SubscriptionSet } from "./subscriptions/subscription-set.ts";
import type { Transaction } from "./transaction.ts";
import type { Work } from "./work-budget.ts";
import {
  deleteDocument,
  putParsed,
  putText,
  refreshDocument,
  rewriteTouched,
  rewriteTouchedInTurns,
  type StoredDocument,
} from "./writes/documents.ts";
import { isPrepared, prepareDocument, withParsed } from "./writes/prepared-document.ts";

/** Settings of a database that its files do not say. */
export interface DatabaseOptions extends StoreOptions {
  /** When the tasks in the background run. */
  readonly maintenance?: MaintenanceOptions;
  readonly indexSnapshots?: IndexSnapshotsOptions;
}

const expirationOptions: DueDocumentsOptions = {
  key: "@expires",
  settingsKey: "Expiration",
  secondsKey: "DeleteFrequencyInSec",
  act: (transaction, document) => {
    deleteDocument(transaction, transaction.state.documents.lowerIdOf(document));
  },
};
const refreshOptions: DueDocumentsOptions = {
  key: "@refresh",
  settingsKey: "Refresh",
  secondsKey: "RefreshFrequencyInSec",
  act: refreshDocument,
};

/** One open database: its store, and what runs over it: queries, subscriptions, operations and tasks. */
export class Database extends Store {
  readonly queries: DatabaseQueries;
  readonly subscriptions: SubscriptionSet;
  readonly operations: Operations;
  readonly maintenance: Maintenance;
  /** Deletes documents at the time in their `@expires`. */
  readonly expiration: DueDocuments;
  /** Writes documents again at the time in their `@refresh`. */
  readonly refresh: DueDocuments;
  /** Drops revisions of documents that were deleted long ago. */
  readonly revisionBin: RevisionBin;
  /** Requests that are being served. */
  #guestCount = 0;
  #ending: Promise<void> | null = null;

  private constructor(parts: DatabaseParts, options: DatabaseOptions) {
    super(parts);
    const { clock } = this;
    this.queries = new DatabaseQueries(this, clock, parts.place, options.indexSnapshots);
    this.subscriptions = new SubscriptionSet(this);
    this.operations = new Operations({
      values: parts.state.keyspaces.values,
      nowMicros: () => parts.state.nowMicros(),
      write: (change) => this.writeWhileEnding(change),
      report: this.report,
    });
    const taskFailed = (error: unknown): void =>
      this.report(`A task in the background of database '${this.name}' failed`, error);
    this.maintenance = new Maintenance(
      {
        ...parts,
        clock,
        damages: this.damages,
        write: (change, options) => this.write(change, options),
        writeSnapshot: () => this.writeSnapshot(backgroundBytesPerSecond),
        failed: taskFailed,
      },
      parts.hasChanges,
      options.maintenance,
    );
    this.expiration = new DueDocuments(this, clock, expirationOptions, taskFailed);
    this.refresh = new DueDocuments(this, clock, refreshOptions, taskFailed);
    this.revisionBin = new RevisionBin(this, clock, taskFailed);
    this.settingsChanged();
    this.maintenance.follow(() => this.queries.administration.lastDeletionEtagNeeded);
  }

  /**
   * Opens the database in `folder` (null: a new one in memory), or makes one in a folder that is empty or absent.
   * @throws EngineError database-damaged, database-locked
   */
  static async open(
    environment: Environment,
    name: string,
    folder: string | null,
    options: DatabaseOptions = {},
  ): Promise<Database> {
    // The log tells nothing before the first write, and by then the database is there.
    let database: Database | null = null;
    const parts = await openParts(environment, name, folder, options, {
      durable: (count) => database?.durable(count),
      lost: (count, error) => database?.lost(count, error),
      stopped: (error) => database?.stopped(error),
    });
    database = new Database(parts, options);
    return database;
  }

  // Reading

  /** The text of a document with its `@metadata`, as it goes over the wire; null when there is none. */
  async getText(id: string): Promise<Buffer | null> {
    const document = this.find(id);
    if (document < 0) return null;
    const record = this.record(document);
    const bytes = record instanceof Promise ? await record : record;
    return new ReplyText(bytes.length + 256).addDocument(this.state, bytes, 0).bytes;
  }

  /** A document as an object; null when there is none. Numbers beyond a double's precision: see `getText`. */
  async get(id: string): Promise<JsonObject | null> {
    const text = await this.getText(id);
    return text === null ? null : (JSON.parse(text.toString()) as JsonObject);
  }

  /**
   * Runs a query in RQL; rows go to `sink`, each the JSON text of an object, as they are found.
   * @returns what is told beside the rows; null when `options.unlessEtag` still holds.
   * @throws EngineError query-syntax, query-invalid, index-missing, not-supported, script-failed
   */
  async query(text: string, options: QueryOptions, sink: RowSink): Promise<QueryOutcome | null> {
    this.servedCount++;
    this.assertServing();
    return await this.queries.query(text, options, sink);
  }

  /**
   * Stores a document: an object, or its JSON text. `expected` is undefined for no check, "" when it must not
   * exist, else the current change vector.
   * @throws EngineError concurrency, collection-mismatch, json-…, invalid-argument
   */
  put(id: string, document: object | string | Buffer, expected?: string): Promise<StoredDocument> {
    if (typeof document === "string") return this.#putText(id, document, expected);
    if (!Buffer.isBuffer(document)) return this.#putObject(id, document, expected);
    return this.putBytes(id, Buffer.from(document), expected);
  }

  /** As `put`, of JSON text that does not change until it has resolved. */
  putBytes(id: string, bytes: Buffer, expected?: string): Promise<StoredDocument> {
    const text = { bytes, from: 0, to: bytes.length };
    const put = (prepared: PreparedDocument | null) =>
      this.write((transaction) =>
        withParsed(this.state, text, prepared, () => putParsed(transaction, id, expected)),
      );
    return isPrepared(bytes.length) ? prepareDocument(this.state, text, id).then(put) : put(null);
  }

  #putText(id: string, text: string, expected: string | undefined): Promise<StoredDocument> {
    return this.write((transaction) => putText(transaction, id, text, expected));
  }

  async #putObject(
    id: string,
    document: object,
    expected: string | undefined,
  ): Promise<StoredDocument> {
    return await this.#putText(id, JSON.stringify(document), expected);
  }

  /** Deletes a document. @returns false when there was none. @throws EngineError concurrency */
  delete(id: string, expected?: string): Promise<boolean> {
    return this.write((transaction) => deleteDocument(transaction, id, expected), {
      isDeletion: true,
    });
  }

  protected override complete(transaction: Transaction): void {
    rewriteTouched(transaction);
  }

  protected override completeInTurns(transaction: Transaction): Work<void> {
    return rewriteTouchedInTurns(transaction);
  }

  protected override committed(bytes: number, hasDocuments: boolean): void {
    this.maintenance.committed(bytes, hasDocuments);
  }

  protected override settingsChanged(): void {
    if (this.isDisabled) this.feed.tellEnd(`Database '${this.name}' is disabled.`);
    this.expiration.configure();
    this.refresh.configure();
    this.revisionBin.configure();
    if (this.isDisabled) {
      const message = `The database '${this.name}' has been disabled`;
      this.subscriptions.endAll(new EngineError("database-disabled", message));
    }
  }

  // Ending

  /**
   * Writes what is under way and a fresh index snapshot, then lets go of the folder. From its call on everything else
   * is refused; writes that were begun before end as they would have.
   */
  close(): Promise<void> {
    return this.#endOnce(true);
  }

  /** Lets go of the folder soon, without a snapshot. For a database that is to be deleted. */
  abandon(): Promise<void> {
    return this.#endOnce(false);
  }

  #endOnce(withSnapshot: boolean): Promise<void> {
    if (this.#ending === null) {
      this.#ending = this.#end(withSnapshot);
      this.startEnding();
    }
    return this.#ending;
  }

  async #end(withSnapshot: boolean): Promise<void> {
    const hadFailed = this.hasFailed;
    this.subscriptions.close(this.closedError());
    const ending = hadFailed ? "opened again" : withSnapshot ? "closed" : "deleted";
    this.feed.tellEnd(`Database '${this.name}' is being ${ending}.`);
    const stopping = this.operations.stop();
    // What has stopped does not wait for those who may never notice.
    await (hadFailed ? Promise.race([stopping, this.#afterMs(endingWaitMs)]) : stopping);
    this.refuseAll();
    try {
      await this.#endTasks(withSnapshot && !hadFailed);
    } catch (error) {
      // The folder is to be let go of all the same.
      this.report(`Database '${this.name}' did not end well`, error);
    }
    await this.closeFiles(withSnapshot, !hadFailed);
  }

  async #endTasks(withSnapshots: boolean): Promise<void> {
    await this.queries.close(withSnapshots);
    await this.maintenance.close();
    await this.expiration.close();
    await this.refresh.close();
    await this.revisionBin.close();
  }

  #afterMs(ms: number): Promise<void> {
    return new Promise((resolve) => this.clock.setTimer(ms, resolve));
  }

  /** A request is served; until it is released nobody takes the database for idle. Release it once. */
  enter(): Pin {
    this.#guestCount++;
    return {
      release: () => {
        this.#guestCount--;
      },
    };
  }

  /**
   * Is nothing under way in it, nobody connected to it, and nothing waiting for its time? Then it may be closed, and be
   * opened by who needs it next. Never in memory, where closing would lose it.
   */
  get mayBeUnloaded(): boolean {
    const { RevisionsBin } = this.settings;
    return (
      !this.isInMemory &&
      this.#guestCount === 0 &&
      !this.isWriting &&
      !this.feed.isFollowed &&
      !this.operations.isRunning &&
      !this.subscriptions.hasWorkers &&
      !this.expiration.isConfigured &&
      !this.refresh.isConfigured &&
      (RevisionsBin === undefined || RevisionsBin === null) &&
      !this.queries.indexes.all().some((index) => index.isRunning && index.isStale)
    );
  }

  // Care

  /** Reads all of its files, and lists in `damaged` what is wrong. */
  async scrub(): Promise<void> {
    this.assertServing();
    await this.maintenance.scrub();
  }
}
