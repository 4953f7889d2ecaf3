/**
 * One open database: its store and the services on top of it: queries, subscriptions, operations and background tasks.
 */

import type { Environment } from "../../base/environment.ts";
import { EngineError } from "../../base/errors.ts";
import type { JsonObject } from "../../base/json/json-object.ts";
import { backgroundBytesPerSecond, endingWaitMs } from "../../base/limits.ts";
import { countDropped } from "../../base/memory/gc-hints.ts";
import { finish, type Work } from "../../base/scheduling/work-budget.ts";
import type { QueryOutcome, RowSink } from "../../queries/execution/results.ts";
import { CompareExchangeExpiry } from "../../services/background/compare-exchange-expiry.ts";
import { DueDocuments, type DueDocumentsOptions } from "../../services/background/due-documents.ts";
import { Maintenance, type MaintenanceOptions } from "../../services/background/maintenance.ts";
import { RevisionBin } from "../../services/background/revision-bin.ts";
import { SeriesRollups } from "../../services/background/series-rollups.ts";
import { UndoRetention } from "../../services/background/undo-retention.ts";
import type { IndexSnapshotsOptions } from "../../services/index-hosting/index-snapshots.ts";
import { DatabaseQueries, type QueryOptions } from "../../services/querying/query-host.ts";
import { deletionsBackedUp } from "../../services/smuggler/backup-marks.ts";
import { SubscriptionSet } from "../../services/subscriptions/subscription-set.ts";
import { documentText } from "../../state/documents/document-composing.ts";
import type { FieldChange } from "../../state/store/changes.ts";
import {
  type DatabaseParts,
  openParts,
  type StoreOptions,
} from "../../state/store/database-opening.ts";
import { Operations } from "../../state/store/operations.ts";
import { Store } from "../../state/store/store.ts";
import type { Transaction } from "../../state/store/transaction.ts";
import type { Pin } from "../../storage/log/log.ts";
import { isShipped } from "../../storage/shipping/shipment.ts";
import {
  deleteDocument,
  putParsed,
  putText,
  refreshDocument,
  rewriteTouched,
  type StoredDocument,
} from "../../writes/documents.ts";
import { isPrepared, parsedOf, prepareDocument } from "../../writes/prepared-document.ts";
import { hasOldKeys, refoldKeys } from "../../writes/refolded-keys.ts";
import type { DatabaseReplication } from "./database-replication.ts";

/** Settings of a database that are not stored in its files. */
export interface DatabaseOptions extends StoreOptions {
  /** When the background tasks run. */
  readonly maintenance?: MaintenanceOptions;
  readonly indexSnapshots?: IndexSnapshotsOptions;
  /**
   * Returns the replication of the database of this name; called at each opening. Null or omitted: the database is not
   * replicated.
   */
  readonly replicate?: (name: string) => DatabaseReplication | null;
}

function replicatedOptions(
  options: DatabaseOptions,
  replication: DatabaseReplication,
): DatabaseOptions {
  const { databaseId, originTag } = replication.identity;
  const log = {
    ...options.log,
    carrier: replication,
    databaseId: Buffer.from(databaseId, "hex"),
  };
  return { ...options, nodeTag: originTag, log };
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

export class OpenDatabase extends Store {
  readonly queries: DatabaseQueries;
  readonly subscriptions: SubscriptionSet;
  readonly operations: Operations;
  readonly maintenance: Maintenance;
  /** Deletes documents at the time in their `@expires`. */
  readonly expiration: DueDocuments;
  /** Rewrites documents at the time in their `@refresh`. */
  readonly refresh: DueDocuments;
  /** Deletes compare-exchange values at the time in their `@expires`. */
  readonly compareExchangeExpiry: CompareExchangeExpiry;
  /** Rolls up time series, and deletes entries whose retention time has passed. */
  readonly seriesRollups: SeriesRollups;
  /** Removes revisions of documents that were deleted long ago. */
  readonly revisionBin: RevisionBin;
  /** Removes stored undo data of operations. */
  readonly undoRetention: UndoRetention;
  /** Replication of this copy; null if the database is not replicated. */
  readonly replication: DatabaseReplication | null;
  /** Requests in progress. */
  #guestCount = 0;
  #ending: Promise<void> | null = null;

  private constructor(
    parts: DatabaseParts,
    options: DatabaseOptions,
    replication: DatabaseReplication | null,
  ) {
    super(parts);
    this.replication = replication;
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
        isFollowing: () => this.isFollowing,
        write: (change, options) => this.write(change, options),
        writeSnapshot: () => this.writeSnapshot(backgroundBytesPerSecond),
        failed: taskFailed,
      },
      parts.hasChanges,
      options.maintenance,
    );
    this.expiration = new DueDocuments(this, clock, expirationOptions, taskFailed);
    this.refresh = new DueDocuments(this, clock, refreshOptions, taskFailed);
    this.compareExchangeExpiry = new CompareExchangeExpiry(this, clock, taskFailed);
    this.seriesRollups = new SeriesRollups(this, clock, taskFailed);
    this.revisionBin = new RevisionBin(this, clock, taskFailed);
    this.undoRetention = new UndoRetention(this, clock, taskFailed);
    this.undoRetention.configure();
    this.settingsChanged();
    this.maintenance.follow(() => this.queries.administration.lastDeletionEtagNeeded);
    this.maintenance.follow(() => deletionsBackedUp(this));
  }

  /**
   * Opens the database in `folder` (null: a new one in memory), or creates one in a folder that is empty or absent.
   * @throws EngineError database-damaged, database-locked
   */
  static async open(
    environment: Environment,
    name: string,
    folder: string | null,
    options: DatabaseOptions = {},
  ): Promise<OpenDatabase> {
    // The log notifies its listener only after the first write, and by then the database exists.
    let database: OpenDatabase | null = null;
    const replication = options.replicate?.(name) ?? null;
    const all = replication === null ? options : replicatedOptions(options, replication);
    const parts = await openParts(environment, name, folder, all, {
      durable: (count) => database?.commits.durable(count),
      lost: (count, error) => database?.lost(count, error),
      marked: (mark) => database?.marked(mark),
      stopped: (error) => database?.stopped(error),
    });
    database = new OpenDatabase(parts, options, replication);
    const found = database.databaseId.toString("hex");
    if (replication !== null && replication.identity.databaseId !== found) {
      await database.abandon();
      throw new EngineError(
        "database-damaged",
        `The files of database '${name}' on this node are of the database ${found}, not of ${replication.identity.databaseId}, of which they should be a copy.`,
      );
    }
    if (replication === null && parts.mayHaveOldKeys) await database.#refoldKeys();
    replication?.attach(database);
    return database;
  }

  /** Replaces keys of an older version, if there are any. */
  async #refoldKeys(): Promise<void> {
    if (!hasOldKeys(this.state.keyspaces)) return;
    try {
      await this.write(refoldKeys);
    } catch (error) {
      await this.abandon();
      throw error;
    }
  }

  // Reading

  /** Returns the text of a document with its `@metadata`, as sent to clients; null if the document does not exist. */
  async getText(id: string): Promise<Buffer | null> {
    const document = this.find(id);
    if (document < 0) return null;
    const record = this.record(document);
    const bytes = record instanceof Promise ? await record : record;
    return documentText(this.state, bytes, 0);
  }

  /**
   * Returns a document as an object; null if the document does not exist. For numbers beyond a double's precision see
   * `getText`.
   */
  async get(id: string): Promise<JsonObject | null> {
    const text = await this.getText(id);
    return text === null ? null : (JSON.parse(text.toString()) as JsonObject);
  }

  /**
   * Runs an RQL query; each row is passed to `sink` as the JSON text of an object, when it is found.
   * @returns the result's facts other than its rows; null when `options.unlessEtag` still holds.
   * @throws EngineError query-syntax, query-invalid, index-missing, not-supported, script-failed
   */
  async query(text: string, options: QueryOptions, sink: RowSink): Promise<QueryOutcome | null> {
    return await this.startQuery(text, options, sink);
  }

  /** As `query`; the result itself where nothing waits. */
  startQuery(
    text: string,
    options: QueryOptions,
    sink: RowSink,
  ): QueryOutcome | null | Promise<QueryOutcome | null> {
    this.servedCount++;
    this.assertServing();
    return this.queries.query(text, options, sink);
  }

  /**
   * Stores a document: an object, or its JSON text. `expected` is undefined for no check, "" when the document must not
   * exist, else its current change vector.
   * @throws EngineError concurrency, collection-mismatch, json-…, invalid-argument
   */
  put(id: string, document: object | string | Buffer, expected?: string): Promise<StoredDocument> {
    if (typeof document === "string") return this.#putText(id, document, expected);
    if (!Buffer.isBuffer(document)) return this.#putObject(id, document, expected);
    return this.putBytes(id, Buffer.from(document), expected);
  }

  /** As `put`, for JSON text that must not change until the promise resolves. */
  putBytes(id: string, bytes: Buffer, expected?: string): Promise<StoredDocument> {
    if (isPrepared(bytes.length)) return this.#putLarge(id, bytes, expected);
    const text = { bytes, from: 0, to: bytes.length };
    return this.write((transaction) =>
      putParsed(transaction, id, parsedOf(this.state, text, null), expected),
    );
  }

  /** Drops the reference to `bytes` once they are parsed, and to the parsed document once it is stored. */
  #putLarge(id: string, bytes: Buffer, expected: string | undefined): Promise<StoredDocument> {
    const { length } = bytes;
    const preparing = prepareDocument(this.state, { bytes, from: 0, to: length }, id);
    return preparing
      .then((parsed) => {
        countDropped(length);
        return this.write((transaction) => putParsed(transaction, id, parsed, expected));
      })
      .finally(() => countDropped(length));
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

  /** Deletes a document. @returns false when it did not exist. @throws EngineError concurrency */
  delete(id: string, expected?: string): Promise<boolean> {
    return this.write((transaction) => deleteDocument(transaction, id, expected), {
      isDeletion: true,
    });
  }

  override lead(): void {
    super.lead();
    this.operations.recallAll();
  }

  protected override complete(transaction: Transaction): void {
    finish(rewriteTouched(transaction));
  }

  protected override completeInSlices(transaction: Transaction): Work<void> {
    return rewriteTouched(transaction);
  }

  protected override committed(bytes: number, hasDocuments: boolean): void {
    this.maintenance.committed(bytes, hasDocuments);
  }

  protected override settingsChanged(): void {
    if (this.isDisabled) this.feed.notifyClosed(`Database '${this.name}' is disabled.`);
    this.expiration.configure();
    this.refresh.configure();
    this.seriesRollups.configure();
    this.revisionBin.configure();
    if (!isShipped(this.settings)) this.releaseKept();
    if (this.isDisabled) {
      const message = `The database '${this.name}' has been disabled`;
      this.subscriptions.endAll(new EngineError("database-disabled", message));
    }
  }

  protected override fieldsChanged(change: FieldChange): void {
    this.queries.indexes.fieldsChanged(change);
  }

  protected override definitionsChanged(keys: readonly string[]): void {
    this.queries.administration.follow(keys);
  }

  // Ending

  /**
   * Completes the writes in progress, writes a fresh index snapshot and releases the folder. From the call on,
   * everything else is refused.
   */
  close(): Promise<void> {
    return this.#endOnce(true);
  }

  /** Releases the folder soon, without a snapshot. For a database that is about to be deleted. */
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
    this.feed.notifyClosed(`Database '${this.name}' is being ${ending}.`);
    const stopping = this.operations.stop();
    // A stopped database does not wait for operations that may never notice.
    await (hadFailed ? Promise.race([stopping, this.#afterMs(endingWaitMs)]) : stopping);
    this.refuseAll();
    try {
      await this.#endTasks(withSnapshot && !hadFailed);
    } catch (error) {
      // The folder must be released all the same.
      this.report(`Database '${this.name}' did not end well`, error);
    }
    if (hadFailed || !withSnapshot) this.replication?.close();
    else await this.replication?.finish();
    await this.closeFiles(withSnapshot, !hadFailed);
  }

  async #endTasks(withSnapshots: boolean): Promise<void> {
    await this.queries.close(withSnapshots);
    await this.maintenance.close();
    await this.expiration.close();
    await this.refresh.close();
    await this.compareExchangeExpiry.close();
    await this.seriesRollups.close();
    await this.revisionBin.close();
    await this.undoRetention.close();
  }

  #afterMs(ms: number): Promise<void> {
    return new Promise((resolve) => this.clock.setTimer(ms, resolve));
  }

  /** Marks a request as in progress: the database is not considered idle until it is released. Release it once. */
  enter(): Pin {
    this.#guestCount++;
    return {
      release: () => {
        this.#guestCount--;
      },
    };
  }

  /**
   * True when nothing is in progress, no client is connected and no timed task is configured: then it may be closed,
   * and is reopened on next use. Always false in memory, where closing would lose the data.
   */
  get mayBeUnloaded(): boolean {
    const { RevisionsBin } = this.settings;
    return (
      !this.isInMemory &&
      this.replication === null &&
      this.#guestCount === 0 &&
      !this.isWriting &&
      !this.feed.isFollowed &&
      !this.operations.isRunning &&
      !this.subscriptions.hasWorkers &&
      !this.expiration.isConfigured &&
      !this.refresh.isConfigured &&
      !this.compareExchangeExpiry.isWaiting &&
      !this.seriesRollups.isConfigured &&
      (RevisionsBin === undefined || RevisionsBin === null) &&
      !this.queries.indexes.all().some((index) => index.isRunning && index.isStale)
    );
  }

  // Maintenance

  /** Reads all of its files and lists the damage found in `damaged`. */
  async scrub(): Promise<void> {
    this.assertServing();
    await this.maintenance.scrub();
  }
}
