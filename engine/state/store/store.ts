/**
 * The committed state of one database and its single writer: the log, the keyspaces and the blobs wired together. The
 * semantics of writes are in writes/, those of records in record-owner.ts; the services on top of it (queries,
 * subscriptions, tasks) are in api/database/open-database.ts. commit-queue.ts has the transactions that are not durable.
 *
 * Invariants:
 * - `write` resolves after its transaction is visible.
 * - While a transaction runs in several time slices, no other begins.
 * - An error before a transaction is staged fails that transaction alone. After a failed sync, or an error once
 *   something is staged, the store stops writing, because memory may no longer agree with the log. Its owner is
 *   notified and reopens the database from disk (api/database/database-catalog.ts).
 */

import { assert } from "../../base/assert.ts";
import type { Clock, Report } from "../../base/environment.ts";
import { EngineError } from "../../base/errors.ts";
import type { JsonObject } from "../../base/json/json-object.ts";
import {
  scriptWorkPerMs,
  sliceMs,
  unsyncedBytesMax,
  unsyncedShareOfMemory,
} from "../../base/limits.ts";
import type { BorrowedBytes, OwnedBytes } from "../../base/memory/borrowed-bytes.ts";
import { processMemory } from "../../base/memory/memory-budget.ts";
import { nextSlice } from "../../base/scheduling/time-slices.ts";
import type { Work } from "../../base/scheduling/work-budget.ts";
import type { BlobStore } from "../../storage/log/blob-store.ts";
import type { CompactionReport } from "../../storage/log/compaction.ts";
import type { DiskWrite } from "../../storage/log/disk-writes.ts";
import type {
  CommitLog,
  LogMetrics,
  Pin,
  Position,
  SnapshotSection,
} from "../../storage/log/log.ts";
import type { PlacedMark } from "../../storage/log/log-carrier.ts";
import type { LogPoint } from "../../storage/log/log-follower.ts";
import { newPlace } from "../../storage/segments/blocks.ts";
import {
  type RetainedForShipping,
  Shipment,
  type ShippedDatabase,
} from "../../storage/shipping/shipment.ts";
import { bodyTextOf } from "../documents/document-record.ts";
import type { DocumentReader } from "../keyspaces/document-table.ts";
import { databaseRecordKey } from "../keyspaces/revision-rules.ts";
import { checkSeries } from "../keyspaces/time-series/time-series.ts";
import { adoptGroup } from "./adopted-group.ts";
import type { ChangeFeed, FieldChange } from "./changes.ts";
import { CommitQueue } from "./commit-queue.ts";
import { type Damaged, DamageList } from "./damage-list.ts";
import { type DatabaseParts, snapshotSections } from "./database-opening.ts";
import type { DatabaseState } from "./database-state.ts";
import { FetchedRecords, nothingFetched } from "./fetched-records.ts";
import { stoppedError } from "./stopped-error.ts";
import { logShapes, RecordNotResident, Scratch, Transaction } from "./transaction.ts";

/** How a transaction is written. */
interface WriteOptions {
  /** The transaction deletes: it is accepted even when the disk is nearly full. */
  readonly isDeletion?: boolean;
  /** Records that the transaction will read and that are not in memory, by position. */
  readonly fetched?: FetchedRecords;
  /** Called when the transaction is in the log, and will not be run again. For transactions in slices only. */
  readonly whenAppended?: () => void;
}

/** Monitored figures of a log. */
export interface LogFigures {
  readonly log: LogMetrics;
  readonly lastSnapshotBytes: number;
  /** Transactions that became durable since it was opened. */
  readonly transactions: number;
  readonly isDiskFull: boolean;
}

/** A record that a reader holds. */
export interface HeldRecord {
  /** Valid until `release`. */
  readonly bytes: Buffer;
  release(): void;
}

/** A record that is only on disk. */
type MissingRecord = Pick<RecordNotResident, "document" | "position" | "length">;

/** A consistent view of all documents; it pins their records in the log. Release it. */
export interface DatabaseView {
  readonly documents: DocumentReader;
  /** The newest etag in it. */
  readonly lastEtag: number;
  release(): void;
}

const skippedEtagsKey = "etags/skipped";
const maximumReruns = 10_000;
/** Bytes of records, and reads in progress, of one `fetchAhead`. */
const bytesAheadMax = 32 * 1024 * 1024;
const readAheadMax = 8;
/** Units of script work in one slice of a transaction. */
const scriptWorkOfSlice = sliceMs * scriptWorkPerMs;

export abstract class Store {
  readonly name: string;
  readonly state: DatabaseState;
  readonly blobs: BlobStore;
  readonly feed: ChangeFeed;
  readonly isInMemory: boolean;
  readonly clock: Clock;
  readonly report: Report;
  protected readonly damages = new DamageList(({ kind, id, file, offset }) => {
    const place = file === "" ? "" : ` (${file}, offset ${offset})`;
    const told = `Database '${this.name}': the stored bytes of ${kind} '${id}' are damaged${place}`;
    this.report(told, undefined, "damage");
  });
  /**
   * Incremented by each get, query and write, so that background work can detect foreground traffic. Reads by indexes
   * that are catching up are not counted.
   */
  servedCount = 0;
  /** Only groups of another node are written: this one does not lead. */
  #isFollowing = false;
  /** Called once, when the store stops for a reason other than being closed. Set by its owner. */
  whenStopped: ((error: Error) => void) | null = null;
  readonly #log: CommitLog;
  readonly #scratch = new Scratch();
  protected readonly commits: CommitQueue;
  /** Why requests are refused: the store has stopped, or is closing. */
  #failure: Error | null = null;
  /** Why it has stopped; null while it runs and after an ordinary close. */
  #stopCause: Error | null = null;
  #isEnding = false;
  /** Resolves when the transaction that runs in slices has been appended or has failed; null: none is running. */
  #long: Promise<void> | null = null;
  /** Log and contents from which a continuous backup may resume. */
  #kept: RetainedForShipping | null;
  /** One snapshot at a time. */
  #snapshot: Promise<void> = Promise.resolve();

  protected constructor(parts: DatabaseParts) {
    this.name = parts.name;
    this.#log = parts.log;
    this.state = parts.state;
    this.feed = parts.state.feed;
    this.blobs = parts.blobs;
    this.isInMemory = parts.isInMemory;
    this.commits = new CommitQueue(parts.state, {
      committed: (bytes, hasDocuments) => this.committed(bytes, hasDocuments),
      fieldsChanged: (change) => this.fieldsChanged(change),
      failed: (error) => this.#stop(error),
      report: parts.report,
    });
    this.clock = parts.environment.clock;
    this.report = parts.report;
    this.#kept = parts.kept;
    this.blobs.host = {
      isDiskFull: () => this.isDiskFull,
      hasStopped: () => this.#failure !== null,
      failed: (error) => this.#stop(error),
    };
  }

  /**
   * Appends the writes that follow from a transaction's changes, after its last change. @throws RecordNotResident,
   * EngineError
   */
  protected abstract complete(transaction: Transaction): void;

  /** As `complete`, in slices. */
  protected abstract completeInSlices(transaction: Transaction): Work<void>;

  /** Transactions of `bytes` bytes in the log became visible. `hasDocuments`: one of them changed documents. */
  protected abstract committed(bytes: number, hasDocuments: boolean): void;

  /** The settings record was replaced. */
  protected abstract settingsChanged(): void;

  /** Another node has changed the index definitions with these keys. */
  protected abstract definitionsChanged(keys: readonly string[]): void;

  /** Called when a transaction that did nothing else to documents was committed, before its rows are read. */
  protected fieldsChanged(_change: FieldChange): void {}

  // Writing

  /**
   * Runs `change` over the newest state and commits its writes atomically. `change` is called synchronously, and again
   * from its beginning if it needs a record that is not in memory: it must have no effect except on its transaction.
   *
   * @returns the result of `change`, once its writes are durable and visible.
   * @throws the errors of `change` (then nothing was written), when the state that it has read is durable; EngineError
   * disk-full, database-stopped
   */
  write<Result>(
    change: (transaction: Transaction) => Result,
    options?: WriteOptions,
  ): Promise<Result> {
    if (this.#isEnding) return Promise.reject(this.#refusal());
    this.servedCount++;
    return this.writeWhileEnding(change, options);
  }

  /**
   * As `write`, for long transactions: `work` runs in time slices and may pause wherever it yields. No other
   * transaction of this database begins during it, and readers see none of its changes until it is durable.
   */
  async writeInSlices<Result>(
    work: (transaction: Transaction) => Work<Result>,
    options?: WriteOptions,
  ): Promise<Result> {
    if (this.#isEnding) throw this.#refusal();
    this.servedCount++;
    const isDeletion = options?.isDeletion === true;
    const fetched = new FetchedRecords(options?.fetched ?? nothingFetched);
    for (let run = 0; run < maximumReruns; run++) {
      // Not in a function of its own: without an `await` between this check and the attempt, each waiter sees a
      // transaction that an earlier waiter began.
      while (this.#mustWait) await this.#mayWriteSoon();
      let attempt: { readonly written: Promise<Result> };
      try {
        attempt = await this.#attemptInSlices(work, isDeletion, fetched);
      } catch (error) {
        if (!(error instanceof RecordNotResident)) return await this.#refused(error);
        const { document, position, length } = error;
        fetched.set(position, await this.#readRecord(document, position, length));
        continue;
      }
      options?.whenAppended?.();
      return await attempt.written;
    }
    throw new EngineError("timeout", "A write could not gather the records that it needs.");
  }

  /** Whether another node writes this database, or none at the moment. */
  get isFollowing(): boolean {
    return this.#isFollowing;
  }

  /** From now on all writes but groups of another node are refused. */
  follow(): void {
    this.#setFollowing(true);
  }

  /** From now on this node writes. All groups of others must have been added. */
  lead(): void {
    this.#setFollowing(false);
  }

  #setFollowing(isFollowing: boolean): void {
    this.#isFollowing = isFollowing;
    this.state.shapes.isFollowing = isFollowing;
  }

  /**
   * Adds a group of transactions of the leader, verbatim. Resolves when it is durable and visible. `whenAppended` is
   * called when it is in the log.
   * @throws EngineError record-damaged, disk-full, database-stopped
   */
  async addGroup(group: Buffer, whenAppended: () => void): Promise<void> {
    while (this.#mustWait) await this.#mayWriteSoon();
    const adopt = (transaction: Transaction) => adoptGroup(transaction, group);
    const { written } = await this.#attemptInSlices(adopt, true, nothingFetched, true);
    whenAppended();
    const { hasSettings, definitions } = await written;
    if (hasSettings) this.settingsChanged();
    if (definitions.length > 0) this.definitionsChanged(definitions);
  }

  /** Stops the store on request of its replication, as after a failed sync; its owner opens it again. */
  stopFor(reason: unknown): void {
    this.#stop(reason);
  }

  /** From the log: transactions after the first `count` are lost. If the disk was full, the store continues. */
  lost(count: number, error: Error): void {
    if (!isDiskFull(error)) this.#failure ??= error;
    this.commits.lost(count, error, this.#failure === null);
  }

  /** From the log: it has stopped writing. */
  stopped(error: Error): void {
    this.#stop(error);
  }

  /** From the log: its carrier has added a mark to the frame that became durable. */
  marked({ record, position }: PlacedMark): void {
    const { replication } = this.state.keyspaces;
    replication.replay(record, 0, record.length, position);
  }

  /** Whether a new transaction must wait for a transaction that runs in slices, or for memory of unsynced bytes. */
  get #mustWait(): boolean {
    return this.#long !== null || this.#log.unsyncedBytes > unsyncedBytesWithin();
  }

  /** Resolves when `#mustWait` should be checked again. */
  #mayWriteSoon(): Promise<void> {
    return this.#long ?? this.#log.whenUnsyncedBelow(unsyncedBytesWithin());
  }

  /**
   * Reads those records of `documents` that are not in memory, to be passed to `write`: each record that a transaction
   * misses makes it run again from its beginning, and a transaction in slices blocks other writers in the meantime.
   * Best effort: records that cannot be read, or would use too much memory, are left to the transaction.
   */
  async fetchAhead(documents: Iterable<number>): Promise<FetchedRecords> {
    const fetched = new FetchedRecords(null);
    const missing = this.#missingOf(documents);
    const readOn = async () => {
      for (const one of missing) {
        try {
          fetched.set(one.position, await this.#readRecord(one.document, one.position, one.length));
        } catch (error) {
          if (!(error instanceof EngineError)) throw error;
        }
      }
    };
    await Promise.all(Array.from({ length: readAheadMax }, readOn));
    return fetched;
  }

  /** Yields the records of `documents` that are not in memory, up to a number of bytes in total. */
  *#missingOf(numbers: Iterable<number>): Generator<MissingRecord> {
    const { documents } = this.state;
    const place = newPlace();
    let bytes = 0;
    for (const document of numbers) {
      const length = documents.newestLength(document);
      const position = documents.newestPosition(document);
      if (length === 0 || this.#log.place(position, length, place, true)) continue;
      bytes += length;
      if (bytes > bytesAheadMax) return;
      yield { document, position, length };
    }
  }

  /** As `write`, but also accepted while the database is closing. */
  protected writeWhileEnding<Result>(
    change: (transaction: Transaction) => Result,
    options?: WriteOptions,
  ): Promise<Result> {
    // Not async: a write that only waits for the disk allocates one promise and no async frame.
    const isDeletion = options?.isDeletion === true;
    const fetched = options?.fetched ?? nothingFetched;
    if (this.#mustWait) {
      return this.#writeSlowly(change, isDeletion, fetched, null);
    }
    try {
      return this.#attempt(change, isDeletion, fetched);
    } catch (error) {
      return error instanceof RecordNotResident
        ? this.#writeSlowly(change, isDeletion, fetched, error)
        : this.#refused(error);
    }
  }

  /**
   * The state that caused the refusal of a transaction may be only staged, and a crash can still undo it: the refusal
   * is reported when that state is durable.
   */
  #refused(error: unknown): Promise<never> {
    if (!(error instanceof EngineError) || this.commits.isEmpty) return Promise.reject(error);
    return this.#log.flush().then(() => Promise.reject(error));
  }

  /** `write` that must first wait for another transaction, for memory, or for the `missing` record to be read. */
  async #writeSlowly<Result>(
    change: (transaction: Transaction) => Result,
    isDeletion: boolean,
    known: FetchedRecords,
    missing: RecordNotResident | null,
  ): Promise<Result> {
    const fetched = new FetchedRecords(known);
    let needed = missing;
    for (let run = 0; run < maximumReruns; run++) {
      if (needed !== null) {
        const { document, position, length } = needed;
        fetched.set(position, await this.#readRecord(document, position, length));
      }
      this.assertServing();
      while (this.#mustWait) await this.#mayWriteSoon();
      let written: Promise<Result>;
      try {
        written = this.#attempt(change, isDeletion, fetched);
      } catch (error) {
        if (!(error instanceof RecordNotResident)) return await this.#refused(error);
        needed = error;
        continue;
      }
      return await written;
    }
    throw new EngineError("timeout", "A write could not gather the records that it needs.");
  }

  /** @throws RecordNotResident, and the errors of `change`; nothing was written then */
  #attempt<Result>(
    change: (transaction: Transaction) => Result,
    isDeletion: boolean,
    fetched: FetchedRecords,
  ): Promise<Result> {
    // An error in here fails only this transaction: its changes are only in its scratch buffer.
    const transaction = this.#begin(fetched);
    let isKept = false;
    try {
      const result = change(transaction);
      this.complete(transaction);
      const written = this.#appendAny(transaction, isDeletion, result);
      isKept = !transaction.isEmpty;
      return written;
    } finally {
      this.#endTransaction(isKept);
    }
  }

  /**
   * As `#attempt`, in slices. @returns a promise that resolves when the transaction is visible, wrapped so that it is
   * not awaited here
   * @throws EngineError disk-full also if staged transactions that it may have read are lost in the meantime
   */
  async #attemptInSlices<Result>(
    work: (transaction: Transaction) => Work<Result>,
    isDeletion: boolean,
    fetched: FetchedRecords,
    isGroup = false,
  ): Promise<{ readonly written: Promise<Result> }> {
    const transaction = this.#begin(fetched, isGroup);
    const numbers = this.state.documents.hold();
    let end: () => void = () => undefined;
    this.#long = new Promise((resolve) => {
      end = resolve;
    });
    const { lastLoss } = this.commits;
    let isKept = false;
    const steps = this.#wholeTransaction(work, transaction);
    try {
      let result = slice(steps, transaction);
      while (result.done !== true) {
        await nextSlice();
        this.assertServing();
        // Staged transactions that it has read may have been rolled back.
        const loss = this.commits.lastLoss;
        if (loss !== null && loss !== lastLoss) throw loss.error;
        transaction.beginSlice();
        result = slice(steps, transaction);
      }
      const written = this.#appendAny(transaction, isDeletion, result.value);
      isKept = !transaction.isEmpty;
      return { written };
    } finally {
      this.#abandon(steps);
      this.commits.dropStagedAhead();
      this.#endTransaction(isKept);
      numbers.release();
      this.#long = null;
      end();
    }
  }

  /** Lets work that will not be continued run its `finally` blocks. No effect on work that has ended. */
  #abandon(steps: Work<unknown>): void {
    try {
      steps.return(undefined);
    } catch (error) {
      // The error to report is the reason of the abort.
      this.report(`Database '${this.name}' could not clean up after a transaction`, error);
    }
  }

  /**
   * Returns all steps of a transaction in slices: its work, `completeInSlices`, checksum, and staging of many entries.
   */
  *#wholeTransaction<Result>(
    begin: (transaction: Transaction) => Work<Result>,
    transaction: Transaction,
  ): Work<Result> {
    const { scratch } = transaction;
    const work = begin(transaction);
    let step: IteratorResult<undefined, Result>;
    try {
      step = work.next();
      while (step.done !== true) {
        if (scratch.isTight) yield* scratch.grow();
        yield;
        step = work.next();
      }
    } finally {
      (work as Work<unknown>).return(undefined);
    }
    if (!transaction.isAdopted) yield* this.completeInSlices(transaction);
    if (transaction.isEmpty) return step.value;
    yield* scratch.sum();
    yield* this.commits.stageAhead(transaction.entries);
    return step.value;
  }

  #begin(fetched: FetchedRecords, isGroup = false): Transaction {
    this.assertServing();
    if (this.#isFollowing && !isGroup) throw this.notLeading();
    assert(this.#long === null, "one transaction is made at a time");
    const transaction = new Transaction(this.state, this.#scratch, fetched);
    this.state.documents.beginInterning();
    return transaction;
  }

  /** `isKept`: it was appended. */
  #endTransaction(isKept: boolean): void {
    this.state.documents.endInterning(isKept);
    if (!isKept) this.state.forgetCollections();
    this.#scratch.trim();
  }

  /** Appends the transaction's writes, if any. @returns a promise of `result` that resolves when they are visible. */
  #appendAny<Result>(
    transaction: Transaction,
    isDeletion: boolean,
    result: Result,
  ): Promise<Result> {
    if (transaction.isEmpty) {
      // Its result may depend on staged transactions, which a crash can still undo: wait until they are durable.
      if (this.commits.isEmpty) return Promise.resolve(result);
      return this.#log.flush().then(() => result);
    }
    const { shapes } = this.state;
    if (transaction.isAdopted) shapes.setLoggedCount(shapes.count);
    if (shapes.loggedCount < shapes.count) logShapes(shapes, transaction.scratch);
    return this.#appendOrStop(transaction, isDeletion, result);
  }

  /**
   * On an EngineError nothing was appended. Any other error stops the log before it writes bytes that may have been
   * appended.
   */
  #appendOrStop<Result>(
    transaction: Transaction,
    isDeletion: boolean,
    result: Result,
  ): Promise<Result> {
    try {
      return this.commits.append(transaction, isDeletion, result);
    } catch (error) {
      if (!(error instanceof EngineError)) this.#stop(error);
      throw error;
    }
  }

  /** Scratch value of `bodyText`. */
  readonly #place = newPlace();

  // Reading

  /** @throws EngineError database-stopped with the reason, when it does not serve */
  assertServing(): void {
    if (this.#failure !== null) throw this.#refusal();
  }

  /** Returns the error for a refused request. */
  #refusal(): EngineError {
    if (this.#stopCause === null) return this.closedError();
    return stoppedError(this.name, this.#stopCause, this.isInMemory ? null : undefined);
  }

  /** Returns the number of the document with this id, or -1. */
  find(id: string): number {
    this.servedCount++;
    this.assertServing();
    return this.state.documents.find(id);
  }

  /**
   * Returns the record of an existing document, beginning at byte 0 of the result; a promise of a copy if it must be
   * read from disk. Otherwise it is valid until the next tick of the event loop. @throws EngineError record-damaged,
   * naming the document
   */
  record(document: number): BorrowedBytes | Promise<OwnedBytes> {
    const { documents } = this.state;
    return this.recordAt(document, documents.positionOf(document), documents.lengthOf(document));
  }

  /** As `record`, for a row of a view. */
  recordAt(
    document: number,
    position: Position,
    length: number,
  ): BorrowedBytes | Promise<OwnedBytes> {
    return this.#log.peek(position, length) ?? this.#readRecord(document, position, length);
  }

  /**
   * As `recordAt`, for readers over many ticks of the event loop: the memory is not modified until `release`. A view
   * alone does not ensure that: the cache may evict the memory of a segment that is still in the log.
   */
  async holdRecord(document: number, position: Position, length: number): Promise<HeldRecord> {
    const place = newPlace();
    if (!this.#log.place(position, length, place)) {
      return {
        bytes: await this.#readRecord(document, position, length),
        release: () => undefined,
      };
    }
    const { bytes, start, block } = place;
    // Memory of a log without files belongs to no block, and stays while it is pinned.
    const pin = this.#log.pin();
    block?.hold();
    let isHeld = true;
    const release = () => {
      if (!isHeld) return;
      isHeld = false;
      block?.release();
      pin.release();
    };
    return { bytes: bytes.subarray(start, start + length), release };
  }

  /** Returns a copy of the record that a script missed. @throws EngineError record-damaged */
  fetchRecord({ document, position, length }: RecordNotResident): Promise<OwnedBytes> {
    return this.#readRecord(document, position, length);
  }

  /**
   * Returns a view of all current documents. Cost: microseconds. Release it soon: it excludes old records from
   * compaction.
   */
  view(): DatabaseView {
    this.assertServing();
    const documents = this.state.documents.view();
    const pin: Pin = this.#log.pin();
    return {
      documents,
      lastEtag: this.state.committedEtag,
      release: () => {
        documents.release();
        pin.release();
      },
    };
  }
  /**
   * Returns the stored text of a document, without `@metadata`: synchronously if its record is in memory. Null if the
   * document does not exist.
   */
  bodyText(id: string): string | null | Promise<string> {
    const document = this.find(id);
    if (document < 0) return null;
    const { documents } = this.state;
    const position = documents.positionOf(document);
    const length = documents.lengthOf(document);
    // In place: a view of the record would cost as much as the lookup.
    const place = this.#place;
    if (this.#log.place(position, length, place)) return bodyTextOf(place.bytes, place.start);
    return this.#readRecord(document, position, length).then((bytes) => bodyTextOf(bytes, 0));
  }

  /** For a copy of the database elsewhere. */
  get shipped(): ShippedDatabase {
    const { clock, state } = this;
    return {
      log: this.#log,
      blobs: this.blobs,
      nowMicros: () => clock.nowMicros(),
      counts: () => ({ etag: state.committedEtag, documents: state.documents.documentCount }),
    };
  }

  /** Continues with a copy after frame `point`; see `Shipment.resume`. */
  async resumeShipment(point: LogPoint, known: ReadonlySet<string>): Promise<Shipment | null> {
    return this.#kept === null
      ? null
      : await Shipment.resume(this.shipped, this.#kept, point, known);
  }

  /** Releases the log and contents from which shipments could have resumed since the opening. */
  releaseKept(): void {
    this.#kept?.frames.close();
    this.#kept?.contents.close();
    this.#kept = null;
  }

  /**
   * Skips `count` etags, for a database restored to an earlier state: etags that were assigned after that state are not
   * assigned again. Resolves when that is durable.
   */
  async skipEtags(count: number): Promise<void> {
    await this.write((transaction) => {
      const skipped = this.state.takeEtags(count);
      transaction.putEntry(transaction.keyspaces.values, skippedEtagsKey, { after: skipped - 1 });
    });
  }

  /** The change vector of the database: "" before the first write. */
  get changeVector(): string {
    const { committedEtag } = this.state;
    if (committedEtag === 0) return "";
    return this.state.keyspaces.clusterCount === 0
      ? this.state.changeVectorAt(committedEtag)
      : this.state.mergedChangeVector("", committedEtag);
  }

  /** 16 bytes, constant for the life of the database. */
  get databaseId(): Buffer {
    return this.#log.databaseId;
  }

  /** 22 characters: identifies the cluster transactions of this database. */
  get clusterTransactionId(): string {
    return this.state.clusterHash;
  }

  /** Bytes of its log, on disk or in memory. */
  get sizeBytes(): number {
    return this.#log.metrics().segmentBytes;
  }

  /** For monitoring. */
  logFigures(): LogFigures {
    const log = this.#log;
    return {
      log: log.metrics(),
      lastSnapshotBytes: log.lastSnapshotBytes,
      transactions: log.durableCount,
      isDiskFull: this.isDiskFull,
    };
  }

  /** Returns the newest writes to its files after number `after`, oldest first; none of a database in memory. */
  diskWrites(after: number): DiskWrite[] {
    return this.#log.diskWrites(after);
  }

  /** Sizes of its log. */
  get logMetrics(): LogMetrics {
    return this.#log.metrics();
  }

  /** Whether it is configured to refuse requests. */
  get isDisabled(): boolean {
    const { Disabled, DatabaseState } = this.settings;
    return Disabled === true || DatabaseState === "RestoreInProgress";
  }

  /** The database's settings record, as last put. */
  get settings(): JsonObject {
    return (this.state.keyspaces.values.get(databaseRecordKey) as JsonObject | undefined) ?? {};
  }

  /**
   * Replaces the settings record with the result of `change` for the newest record; `change` must have no side effect.
   * Resolves when the new record is durable. @returns the new record
   */
  async changeSettings(change: (record: JsonObject) => JsonObject): Promise<JsonObject> {
    const changed = await this.write((transaction) => {
      const { values } = transaction.keyspaces;
      const newest = transaction.entry(values, databaseRecordKey) as JsonObject | undefined;
      const record = change(newest ?? {});
      transaction.putEntry(values, databaseRecordKey, record);
      return record;
    });
    this.settingsChanged();
    return changed;
  }

  /** Replaces the settings record. Resolves when it is durable. */
  async putSettings(record: JsonObject): Promise<void> {
    await this.write((transaction) => {
      transaction.putEntry(transaction.keyspaces.values, databaseRecordKey, record);
    });
    this.settingsChanged();
  }
  // Ending

  /** From now on all writes except those of `writeWhileEnding` are refused. */
  protected startEnding(): void {
    this.#isEnding = true;
  }

  /** Whether it has begun to close, or was abandoned. */
  get hasEnded(): boolean {
    return this.#isEnding;
  }

  /** Whether it has stopped serving, for any reason. */
  protected get hasFailed(): boolean {
    return this.#failure !== null;
  }

  /** From now on `assertServing` throws. */
  protected refuseAll(): void {
    this.#failure ??= this.closedError();
  }

  /** Returns the error of a write that another node must make. */
  protected notLeading(): EngineError {
    return new EngineError(
      "not-leader",
      `Database '${this.name}' is written by another node of the cluster, or by none at the moment.`,
    );
  }

  protected closedError(): EngineError {
    return new EngineError("database-stopped", `Database '${this.name}' is closed.`);
  }

  /**
   * Closes the log and the blobs, after all work on them has ended; writes a final snapshot if all writes could be
   * settled.
   */
  protected async closeFiles(withSnapshot: boolean, isWhole: boolean): Promise<void> {
    await this.#snapshot;
    const isSettled = isWhole && (await this.#settleWrites());
    let view: ReturnType<DatabaseState["documents"]["view"]> | undefined;
    const sections = () => {
      view = this.state.documents.view();
      return this.#sections(view);
    };
    try {
      await this.#log.close(withSnapshot && isSettled ? sections : undefined);
    } finally {
      view?.release();
      await this.blobs.close();
    }
  }

  /** @returns whether everything that was appended is durable or, when the disk was full, rolled back. */
  async #settleWrites(): Promise<boolean> {
    try {
      await this.#log.flush();
      return true;
    } catch (error) {
      return isDiskFull(error);
    }
  }

  #sections(view: ReturnType<DatabaseState["documents"]["view"]>): SnapshotSection[] {
    return snapshotSections(this.state, view, this.commits.durableShapeCount);
  }

  /** Writes an index snapshot concurrently with traffic, so that the next opening replays little. One at a time. */
  async writeSnapshot(bytesPerSecond = Number.POSITIVE_INFINITY): Promise<void> {
    const before = this.#snapshot;
    const snapshot = before.then(async () => {
      this.assertServing();
      const view = this.state.documents.view();
      try {
        await this.#log.writeSnapshot(this.#sections(view), bytesPerSecond);
      } finally {
        view.release();
      }
    });
    this.#snapshot = snapshot.catch(() => undefined);
    await snapshot;
  }

  /** Resolves when everything written so far is durable. */
  async flush(): Promise<void> {
    await this.#log.flush();
  }

  /** Whether a transaction is appended but not yet durable. */
  protected get isWriting(): boolean {
    return !this.commits.isEmpty;
  }

  // Maintenance

  /** Reclaims the space of records that are no longer needed. @throws EngineError disk-full, database-stopped */
  async compact(): Promise<CompactionReport> {
    this.assertServing();
    return await this.#log.compact();
  }

  /** Resolves when no compaction is running: from then on record positions agree with the files. */
  compactionEnded(): Promise<void> {
    return this.#log.compactionEnded();
  }

  /** Postpones compaction while most of the documents are about to be replaced. Release it. */
  holdCompaction(): Pin {
    return this.#log.holdCompaction();
  }

  /** Whether all writes except deletions are refused because the disk is full. */
  get isDiskFull(): boolean {
    return this.#log.isDiskFull;
  }

  /** Damage found by reads and scrubs. */
  get damaged(): readonly Damaged[] {
    return this.damages.all;
  }

  /** @throws InvariantError when the parts do not agree. For tests and offline checks. */
  checkInvariants(): void {
    const { documents, keyspaces } = this.state;
    documents.checkInvariants();
    for (const keyspace of keyspaces.all) keyspace.checkInvariants();
    checkSeries(keyspaces.timeSeries, keyspaces.timeSeriesSegments);
    assert(documents.stagedCount === 0 || this.isWriting, "staged rows have a transaction");
    let hashes = 0;
    const seen = new Set<string>();
    for (const [, { hash }] of keyspaces.attachments.withPrefix("")) {
      if (!seen.has(hash)) hashes++;
      seen.add(hash);
    }
    assert(this.blobs.count >= hashes, "each attachment has its content");
  }

  /** The pin keeps compaction from removing the segment before its file is open. */
  async #readRecord(document: number, position: Position, length: number): Promise<OwnedBytes> {
    const pin = this.#log.pin();
    try {
      return await this.#log.read(position, length);
    } catch (error) {
      this.assertServing();
      if (!(error instanceof EngineError) || error.code !== "record-damaged") throw error;
      const id = this.state.documents.lowerIdOf(document);
      const { file, offset } = this.#log.placeOf(position);
      this.damages.addDocument(id, file, offset);
      throw new EngineError(
        "record-damaged",
        `The stored record of document '${id}' is damaged: ${error.message}`,
        { cause: error },
      );
    } finally {
      pin.release();
    }
  }

  /** Stops all reads and writes, because memory may no longer agree with the log. The first cause is kept. */
  #stop(error: unknown): void {
    if (this.#stopCause !== null || this.#isEnding) return;
    this.#stopCause = error instanceof Error ? error : new Error(String(error));
    this.#failure ??= this.#stopCause;
    this.#log.stop(error);
    this.whenStopped?.(this.#stopCause);
  }
}

/** Unsynced bytes are held in segment images, which reduce the record cache accordingly. */
function unsyncedBytesWithin(): number {
  return Math.min(unsyncedBytesMax, processMemory.bytesMax * unsyncedShareOfMemory);
}

/** Runs `work` until its time slice or script work is used up, or to its end. */
function slice<Result>(
  work: Work<Result>,
  transaction: Transaction,
): IteratorResult<undefined, Result> {
  const stopMs = performance.now() + sliceMs;
  for (;;) {
    const step = work.next();
    if (step.done === true) return step;
    if (transaction.scriptWork >= scriptWorkOfSlice || performance.now() >= stopMs) return step;
  }
}

function isDiskFull(error: unknown): boolean {
  return error instanceof EngineError && error.code === "disk-full";
}
