/**
 * The transactions of a store that are in the log and not yet durable. Their changes are staged; they become visible when
 * the log reports that they are durable, and are rolled back when it reports that they are lost.
 *
 * Invariants:
 * - A transaction is visible exactly from the moment it is durable.
 * - Transactions are committed in the order of the log, and rolled back in the opposite order.
 * - Listeners are notified, and promises resolve, after all durable transactions are visible.
 */

import type { Report } from "../../base/environment.ts";
import type { Work } from "../../base/scheduling/work-budget.ts";
import type { CommitLog, Position } from "../../storage/log/log.ts";
import type { Attachment } from "../keyspaces/attachments.ts";
import type { EntryKeyspace } from "../keyspaces/entry-keyspace.ts";
import type { FieldChange } from "./changes.ts";
import type { DatabaseState } from "./database-state.ts";
import type { Transaction } from "./transaction.ts";

/** How many entries of a keyspace a transaction has. */
interface EntryCount {
  readonly keyspace: EntryKeyspace<unknown>;
  count: number;
  /** How many of them are not deletions, and their bytes: see `WriteMeters`. */
  puts: number;
  bytes: number;
}

/** The changes that one transaction staged, and the promise that is settled when it is durable or lost. */
interface PendingTransaction {
  readonly documents: number;
  readonly documentPuts: number;
  readonly documentBytes: number;
  readonly seriesEntries: number;
  /** Revisions added or removed. */
  readonly revisions: number;
  /** Number of staged entries, by keyspace. */
  readonly entries: readonly EntryCount[];
  /** Records of deletions: position and length, alternating. */
  readonly deletions: readonly number[];
  readonly changes: Transaction["changes"];
  readonly deletedRanges: Transaction["deletedRanges"];
  /** All that it has done to documents, if that is known. */
  readonly fieldChange: FieldChange | null;
  readonly lastEtag: number;
  readonly shapeCount: number;
  /** Bytes in the log. */
  readonly length: number;
  readonly result: unknown;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** The store. */
interface CommitHost {
  /** Transactions of `bytes` bytes in the log became visible. `hasDocuments`: one of them changed documents. */
  committed(bytes: number, hasDocuments: boolean): void;
  /** A transaction that did nothing else to documents was committed; its rows are not read yet. */
  fieldsChanged(change: FieldChange): void;
  /** Memory may no longer agree with the log. */
  failed(error: unknown): void;
  readonly report: Report;
}

/** The loss of staged transactions; a new object each time. */
interface Loss {
  readonly error: Error;
}

/** A transaction with at least this many entries stages them in slices. */
const entriesAheadMin = 256;
const none: readonly never[] = [];

export class CommitQueue {
  readonly #state: DatabaseState;
  readonly #log: CommitLog;
  readonly #host: CommitHost;
  #pending: PendingTransaction[] = [];
  /** Number of transactions removed from `#pending` so far: the sequence number of the first one left. */
  #settled = 0;
  /** Number of shapes whose records are durable. */
  durableShapeCount: number;
  /** The entries of a large transaction, which are staged in slices before it is appended, and how many are staged. */
  #ahead: Transaction["entries"] = none;
  #stagedAhead = 0;
  /** The last loss of staged transactions. */
  lastLoss: Loss | null = null;

  constructor(state: DatabaseState, host: CommitHost) {
    this.#state = state;
    this.#log = state.log;
    this.#host = host;
    this.durableShapeCount = state.shapes.count;
  }

  /** Whether everything that was appended is durable or lost. */
  get isEmpty(): boolean {
    return this.#pending.length === 0;
  }

  /** Stages many entries of a transaction in slices. They are dropped unless the transaction is appended next. */
  *stageAhead(entries: Transaction["entries"]): Work<void> {
    if (entries.length < entriesAheadMin) return;
    this.#ahead = entries;
    for (const { keyspace, key, entry } of entries) {
      keyspace.stage(key, entry ?? undefined);
      this.#stagedAhead++;
      yield;
    }
  }

  /** Rolls back the staged entries of a transaction that is not appended. */
  dropStagedAhead(): void {
    while (this.#stagedAhead > 0) this.#ahead[--this.#stagedAhead]?.keyspace.discardStaged(1);
    this.#ahead = none;
  }

  /** @returns a promise of `result` that resolves when the transaction is visible. */
  append<Result>(transaction: Transaction, isDeletion: boolean, result: Result): Promise<Result> {
    const { shapes, keyspaces } = this.#state;
    const { scratch } = transaction;
    const { bytes, length, isLarge, summed } = scratch;
    const base = this.#log.append(bytes, length, isDeletion, isLarge, summed);
    this.#state.documents.stageAll(transaction.documents, base);
    for (const { facts, at, length } of transaction.revisions) {
      const { revisions } = keyspaces;
      if (length === 0) revisions.stageRemove(facts.document, facts.etag);
      else revisions.stageAdd(facts, base + at, length);
    }
    let entries: EntryCount[] | undefined;
    let deletions: number[] | undefined;
    if (transaction.entries.length > 0) {
      entries = [];
      deletions = [];
      let left = this.#stagedAhead;
      for (const { keyspace, key, entry, at, length } of transaction.entries) {
        if (entry === null) deletions.push(base + at, length);
        else entry.position = base + at;
        if (left > 0) left--;
        else keyspace.stage(key, entry ?? undefined);
        let known = entries.find((count) => count.keyspace === keyspace);
        if (known === undefined) {
          known = { keyspace, count: 0, puts: 0, bytes: 0 };
          entries.push(known);
        }
        known.count++;
        if (entry === null) continue;
        known.puts++;
        const isAttachment = keyspace === keyspaces.attachments;
        known.bytes += isAttachment ? (entry.value as Attachment).size : length;
      }
      this.#stagedAhead = 0;
    }
    shapes.setLoggedCount(shapes.count);
    return new Promise((resolve, reject) =>
      this.#pending.push({
        documents: transaction.documents.count,
        documentPuts: transaction.documents.puts,
        documentBytes: transaction.documents.putBytes,
        seriesEntries: transaction.seriesEntries,
        revisions: transaction.revisions.length,
        entries: entries ?? none,
        deletions: deletions ?? none,
        changes: transaction.changes,
        deletedRanges: transaction.deletedRanges,
        fieldChange: fieldChangeOf(transaction, this.#state.lastEtag),
        lastEtag: this.#state.lastEtag,
        shapeCount: shapes.count,
        length: scratch.length,
        result,
        resolve: resolve as (result: unknown) => void,
        reject,
      }),
    );
  }

  /** From the log: the first `count` transactions are durable. */
  durable(count: number): void {
    const due = this.#pending.splice(0, count - this.#settled);
    this.#settled = count;
    let done = 0;
    let bytes = 0;
    let hasDocuments = false;
    const nowMicros = this.#state.nowMicros();
    try {
      for (; done < due.length; done++) {
        const transaction = due[done] as PendingTransaction; // done < due.length
        this.#commit(transaction);
        this.#count(transaction, nowMicros);
        bytes += transaction.length;
        hasDocuments ||= transaction.documents > 0;
      }
    } catch (error) {
      this.#host.failed(error);
      for (const { resolve, result } of due.slice(0, done)) resolve(result);
      // They are durable and will be replayed at the next opening; until then their outcome is unknown.
      for (const transaction of due.slice(done)) transaction.reject(error);
      return;
    }
    // Listeners are notified last, so that a failing listener cannot keep durable changes from becoming visible.
    const { feed } = this.#state;
    try {
      this.#host.committed(bytes, hasDocuments);
      for (const { changes } of due) if (changes.length > 0) feed.notify(changes);
      feed.notifyCommit();
    } catch (error) {
      this.#host.report(
        `Database '${this.#state.name}' could not notify its listeners of a commit`,
        error,
      );
    }
    for (const { resolve, result } of due) resolve(result);
  }

  #commit(transaction: PendingTransaction): void {
    const { documents, keyspaces } = this.#state;
    for (const { keyspace, count } of transaction.entries) keyspace.commitStaged(count);
    if (transaction.revisions > 0) keyspaces.revisions.commitStaged(transaction.revisions);
    this.#born.length = 0;
    documents.commitStaged(transaction.documents, this.#rowCommitted);
    this.#dropTombstonesOfBorn();
    const { deletions, deletedRanges } = transaction;
    const { deletedSeriesRanges: ranges } = this.#state;
    for (const id of deletedRanges) ranges.set(id, (ranges.get(id) ?? 0) + 1);
    for (let i = 0; i < deletions.length; i += 2) {
      this.#log.markDead(deletions[i] as number, deletions[i + 1] as number); // pairs
    }
    this.#state.committedEtag = transaction.lastEtag;
    this.#state.commitStamp += 1;
    this.durableShapeCount = transaction.shapeCount;
    if (transaction.fieldChange !== null) this.#host.fieldsChanged(transaction.fieldChange);
  }

  #count(transaction: PendingTransaction, nowMicros: number): void {
    const { writes, keyspaces } = this.#state;
    const { documentPuts, documentBytes, entries, seriesEntries } = transaction;
    writes.documents.add(documentPuts, documentBytes, nowMicros);
    for (const { keyspace, puts, bytes } of entries) {
      const meters = writes.of(keyspace, keyspaces);
      // A transaction of another node has segments of unknown changes.
      const isKnown = meters === writes.timeSeries && seriesEntries > 0;
      meters?.add(isKnown ? seriesEntries : puts, bytes, nowMicros);
    }
  }

  /** Transactions after the first `count` are lost. `isUsable`: the store continues, so its state is rolled back. */
  lost(count: number, error: Error, isUsable: boolean): void {
    this.dropStagedAhead(); // staged last, so rolled back first
    const dropped = this.#pending.splice(count - this.#settled);
    this.lastLoss = { error };
    try {
      // A stopped store does not need to roll back, and may have staged only in part.
      if (isUsable) this.#takeBack(dropped);
    } catch (mistake) {
      this.#host.failed(mistake);
    } finally {
      for (const transaction of dropped) transaction.reject(error);
    }
  }

  #takeBack(dropped: readonly PendingTransaction[]): void {
    const { documents, shapes, keyspaces } = this.#state;
    for (const { documents: rows, revisions, entries } of [...dropped].reverse()) {
      documents.discardStaged(rows);
      keyspaces.revisions.discardStaged(revisions);
      for (const { keyspace, count } of entries) keyspace.discardStaged(count);
    }
    shapes.setLoggedCount(this.#pending.at(-1)?.shapeCount ?? this.durableShapeCount);
  }

  /** Called for each row when it is committed. A field, so that no closure is allocated per transaction. */
  readonly #rowCommitted = (
    document: number,
    _etag: number,
    position: Position,
    length: number,
  ): void => {
    if (length > 0) this.#log.markReplaced(position, length);
    else if (!this.#state.keyspaces.tombstones.isEmpty) this.#born.push(document);
  };

  /** Documents that did not exist before the transaction that is being committed. */
  readonly #born: number[] = [];

  #dropTombstonesOfBorn(): void {
    const { documents, keyspaces } = this.#state;
    for (const document of this.#born) {
      if (documents.etagOf(document) === 0) continue;
      const collection = keyspaces.collections.nameOf(documents.collectionOf(document));
      keyspaces.tombstones.dropDocument(documents.lowerIdOf(document), collection);
    }
  }
}

/** `to`: the last etag of the transaction. */
function fieldChangeOf({ fieldChange, documents }: Transaction, to: number): FieldChange | null {
  if (fieldChange === null || fieldChange.count !== documents.count) return null;
  const { fields, from, previousMax } = fieldChange;
  return { fields, from, to, previousMax };
}
