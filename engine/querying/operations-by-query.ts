/**
 * Patching and deleting by query, in the background. The results of a collection query are walked in etag order up to
 * the etag at the start; those of an index are collected first. Both are changed in transactions of a few milliseconds
 * and at most `setBatchMax` documents.
 *
 * Invariants:
 * - A document of a collection that was written after the start is not changed: neither a new one, nor one just written
 *   by the operation itself or by another client.
 * - A transaction is durable as a whole; when one fails, the earlier ones remain.
 */

import { assert } from "../base/assert.ts";
import { EngineError } from "../base/errors.ts";
import { nextTurn } from "../base/turns.ts";
import { allCollections } from "../keyspaces/document-table.ts";
import { newPlace } from "../log/blocks.ts";
import { collectionIdNamed } from "../reading/query-rows.ts";
import { RecordReader, type RecordTable } from "../reading/record-reader.ts";
import type { AnalyzedQuery } from "../rql/analyzed-query.ts";
import { FetchedRecords } from "../store/fetched-records.ts";
import {
  bulkResult,
  type OperationFigures,
  type Operations,
  type OperationWork,
  type StartedOperation,
} from "../store/operations.ts";
import type { Store } from "../store/store.ts";
import type { Transaction } from "../store/transaction.ts";
import { type BytePatch, compileBytePatch } from "../writes/byte-patch.ts";
import { deleteDocument, storedIdOf } from "../writes/documents.ts";
import type { PatchRange } from "../writes/number-patch.ts";
import { ScriptPatch, type WatchedPatch } from "../writes/script-patch.ts";
import type { DatabaseQueries } from "./query-host.ts";
import type { RunningQuery } from "./running-queries.ts";

/** Options of an operation. */
/** A store with queries and a registry of long-running operations. */
export type QueriedStore = Store & {
  readonly queries: DatabaseQueries;
  readonly operations: Operations;
};

export interface SetOperationOptions {
  /** JSON text of the object of query parameters. */
  readonly parametersText: string | null;
  /** Use an index that has not processed all documents yet. */
  readonly allowsStale: boolean;
  /** Milliseconds to wait for the index; undefined: it must be up to date at once. */
  readonly staleTimeoutMs: number | undefined;
  /** Documents a second; undefined: no limit. */
  readonly operationsPerSecondMax: number | undefined;
  /** Report each document that an index found. */
  readonly hasDetails: boolean;
  /** Raises the time limit of scripts. */
  readonly liftsLimits: boolean;
  /** An id from `Operations.nextId`; undefined: the next one. */
  readonly operationId?: number | undefined;
}

/** UTF-16 units of the query text that an operation keeps for display. */
const shownQueryLengthMax = 4096;

/** Documents per transaction. */
const setBatchMax = 1024;
/** Milliseconds of work before yielding to the event loop. */
const setSliceMs = 1;
/** The slice while other requests are served: too short for them to notice. */
const sharedSliceMs = 0.1;
/** Milliseconds for which the database counts as shared after another request was served, and at the start. */
const sharedForMs = 50;
const sharedAtStartMs = 10;
/** Documents between two checks of the clock, for byte patches and for scripts. */
const byteStride = 64;
const scriptStride = 4;
/** Transactions in flight to the disk while the next is prepared; those that are ready are committed in one turn. */
const inFlightMax = 32;
const sharedInFlightMax = 4;
/** Batches a second when the rate is limited. */
const pacedBatchesPerSecond = 25;
const newIndexWaitMs = 15_000;
const detailType = "Raven.Client.Documents.Operations.BulkOperationResult";

/** The change made to a document. @returns a row of the details, or null when none were requested. */
interface DocumentChange {
  readonly isDeletion: boolean;
  /** Changes many documents at once, up to the first that requires `apply`; null: `apply` is the only way. */
  readonly bytes: BytePatch | null;
  /** Whether the last `apply` took so long that the clock must be checked. */
  readonly isLong: boolean;
  apply(transaction: Transaction, document: number, hasDetails: boolean): object | null;
}

/** Document numbers, a batch at a time. */
interface NumberSource {
  readonly total: number;
  /** Documents with a greater etag are skipped. */
  readonly etagMax: number;
  fill(batch: Uint32Array, limit: number): number;
}

/**
 * Starts patching the documents that a query finds. Errors in the text are thrown at once; the operation reports
 * missing parameters.
 * @throws query-syntax, query-invalid, not-supported, script-syntax, invalid-operation
 */
export async function startPatchByQuery(
  database: QueriedStore,
  text: string,
  options: SetOperationOptions,
): Promise<StartedOperation> {
  return await start(database, "patch", text, options);
}

/** Starts deleting the documents that a query finds. @throws as `startPatchByQuery` */
export async function startDeleteByQuery(
  database: QueriedStore,
  text: string,
  options: SetOperationOptions,
): Promise<StartedOperation> {
  return await start(database, "delete", text, options);
}

/** Dry run of a patch by query on one document; null when no document has this id. Nothing is written. */
export async function tryPatchByQuery(
  database: QueriedStore,
  text: string,
  parametersText: string | null,
  id: string,
): Promise<WatchedPatch | null> {
  const query = await database.queries.prepare(text, "patch", { parametersText });
  const patch = new ScriptPatch(query, false);
  return await database.write((transaction) => {
    const document = transaction.find(id);
    if (document < 0) return null;
    const watched = patch.applyWatched(transaction, document);
    transaction.discard();
    return watched;
  });
}

async function start(
  database: QueriedStore,
  kind: "patch" | "delete",
  text: string,
  options: SetOperationOptions,
): Promise<StartedOperation> {
  const { operationsPerSecondMax: rate, parametersText } = options;
  if (rate !== undefined && rate <= 0) {
    throw new EngineError("invalid-operation", "MaxOpsPerSecond must be greater than 0");
  }
  let query: AnalyzedQuery | null = null;
  let mistake: unknown;
  try {
    query = await database.queries.prepare(text, kind, { parametersText });
  } catch (error) {
    if (!isMissingParameter(error)) throw error;
    mistake = error;
  }
  const change = query === null ? null : changeOf(query, options);
  const word = kind === "patch" ? "UpdateByQuery" : "DeleteByQuery";
  const id = options.operationId ?? (await database.operations.nextId());
  const work: OperationWork = async (progress, signal) => {
    if (query === null || change === null) throw mistake;
    const run = new SetOperation(database, query, change, options, signal);
    const hold = database.state.documents.hold();
    const running = addRunning(database, query, signal, id);
    try {
      return await run.run(progress, running);
    } finally {
      if (running !== null) database.queries.running.remove(running);
      hold.release();
    }
  };
  const shown = parametersText === null ? text : `${text}\n${parametersText}`;
  return await database.operations.start(word, describe(query), work, {
    id,
    query: shown.slice(0, shownQueryLengthMax),
  });
}

/**
 * As RavenDB 7.2.7, lists what an index is asked for among the queries: killing that ends the operation. A walk of a collection
 * is listed only as an operation; null.
 */
function addRunning(
  { queries, operations, clock }: QueriedStore,
  query: AnalyzedQuery,
  signal: AbortSignal,
  id: number,
): RunningQuery | null {
  if (query.access.kind === "collection") return null;
  const taker = { queryKilled: () => operations.kill(id) };
  const running = queries.running.add(query, { signal, taker }, clock.monotonicMs());
  signal.addEventListener("abort", () => running.kill());
  return running;
}

/** Whether a parameter of the conditions has no value: the one error that RavenDB 7.2.7 finds only at run time. */
function isMissingParameter(error: unknown): boolean {
  if (!(error instanceof EngineError) || error.code !== "query-invalid") return false;
  return /^(The query is parametrized but|Value of parameter '.*' was not provided)/.test(
    error.message,
  );
}

function describe(query: AnalyzedQuery | null): string {
  if (query === null) return "query";
  const { access, source } = query;
  if (access.kind === "index") return access.name;
  return `${access.kind === "collection" ? "collection" : "dynamic"}/${source.name}`;
}

function changeOf(query: AnalyzedQuery, options: SetOperationOptions): DocumentChange {
  if (query.kind === "delete") return deletion;
  const patch = new ScriptPatch(query, options.liftsLimits);
  const bytes = query.load.length > 0 ? null : compileBytePatch(patch.script, patch.parametersText);
  return new PatchChange(patch, bytes);
}

const deletion: DocumentChange = {
  isDeletion: true,
  bytes: null,
  isLong: false,
  apply(transaction, document, hasDetails) {
    if (!transaction.exists(document)) return null;
    const id = storedIdOf(transaction, document);
    deleteDocument(transaction, id);
    if (!hasDetails) return null;
    const Etag = transaction.etagOf(document);
    return { $type: `${detailType}+DeleteDetails, Raven.Client`, Id: id, Etag };
  },
};

class PatchChange implements DocumentChange {
  readonly isDeletion = false;
  readonly bytes: BytePatch | null;
  readonly #patch: ScriptPatch;

  constructor(patch: ScriptPatch, bytes: BytePatch | null) {
    this.#patch = patch;
    this.bytes = bytes;
  }

  get isLong(): boolean {
    return this.#patch.isLong;
  }

  apply(transaction: Transaction, document: number, hasDetails: boolean): object | null {
    if (!hasDetails) {
      if (!transaction.exists(document)) return null;
      this.#patch.apply(transaction, document);
      return null;
    }
    const $type = `${detailType}+PatchDetails, Raven.Client`;
    if (!transaction.exists(document)) {
      const Id = transaction.state.documents.lowerIdOf(document);
      return { $type, Id, ChangeVector: null, Status: "DocumentDoesNotExist" };
    }
    const Id = storedIdOf(transaction, document);
    const outcome = this.bytes?.apply(transaction, document) ?? "unsure";
    const isPatched =
      outcome === "unsure" ? this.#patch.apply(transaction, document) : outcome === "patched";
    if (!isPatched) return { $type, Id, ChangeVector: null, Status: "NotModified" };
    const ChangeVector = transaction.changeVectorAt(transaction.etagOf(document));
    return { $type, Id, ChangeVector, Status: "Patched" };
  }
}

/** One run of an operation. */
class SetOperation {
  readonly #database: QueriedStore;
  readonly #query: AnalyzedQuery;
  readonly #change: DocumentChange;
  readonly #options: SetOperationOptions;
  readonly #signal: AbortSignal;
  readonly #details: object[] = [];
  readonly #inFlight: Promise<void>[] = [];
  readonly #reader: RecordReader;
  readonly #newest: RecordTable;
  readonly #place = newPlace();
  /** Documents that were changed durably or needed no change. */
  #durableCount = 0;
  #hasDetails = false;
  #servedCount = 0;
  /** Until when the database counts as shared with other requests; unknown at the start. */
  #sharedUntilMs: number;

  constructor(
    database: QueriedStore,
    query: AnalyzedQuery,
    change: DocumentChange,
    options: SetOperationOptions,
    signal: AbortSignal,
  ) {
    this.#database = database;
    this.#query = query;
    this.#change = change;
    this.#options = options;
    this.#signal = signal;
    this.#sharedUntilMs = database.clock.monotonicMs() + sharedAtStartMs;
    this.#reader = new RecordReader(database);
    const { documents } = database.state;
    this.#newest = {
      positionOf: (document) => documents.newestPosition(document),
      lengthOf: (document) => documents.newestLength(document),
    };
  }

  /** `running`: as it is listed among the queries; null: it is not. */
  async run(
    progress: (figures: OperationFigures) => void,
    running: RunningQuery | null,
  ): Promise<OperationFigures> {
    const source = running === null ? await this.#source() : await this.#indexSource(running);
    const { total } = source;
    progress({ Processed: 0, Total: total });
    const rate = this.#options.operationsPerSecondMax;
    const limit =
      rate === undefined
        ? setBatchMax
        : Math.min(setBatchMax, Math.max(1, Math.floor(rate / pacedBatchesPerSecond)));
    const batch = new Uint32Array(limit);
    const startMs = this.#database.clock.monotonicMs();
    let visited = 0;
    const hold = this.#database.holdCompaction();
    try {
      for (;;) {
        if (rate !== undefined) await this.#waitUntil(startMs + (visited * 1000) / rate);
        this.#checkAborted();
        const count = source.fill(batch, limit);
        if (count === 0) break;
        visited += count;
        await this.#changeAll(batch.subarray(0, count), source.etagMax, (processed) =>
          progress({ Processed: processed, Total: Math.max(total, processed) }),
        );
      }
    } finally {
      await Promise.allSettled(this.#inFlight);
      this.#reader.close();
      hold.release();
    }
    await Promise.all(this.#inFlight);
    return bulkResult({ total: this.#durableCount }, this.#details);
  }

  /** Changes a batch in as many transactions as the time slices require. */
  async #changeAll(
    batch: Uint32Array,
    etagMax: number,
    progress: (processed: number) => void,
  ): Promise<void> {
    const fetched = new FetchedRecords(this.#reader);
    const { isDeletion } = this.#change;
    for (let at = 0, ready = 0; at < batch.length; ) {
      if (at >= ready) ready = await this.#gather(batch, at);
      const options = ready === Number.POSITIVE_INFINITY ? { isDeletion } : { isDeletion, fetched };
      this.#checkAborted();
      const isShared = this.#isShared();
      const ms = isShared ? sharedSliceMs : setSliceMs;
      const part: SlicePart = { batch: batch.subarray(0, ready), at, etagMax, ms };
      const slice = new Slice(this.#database, this.#change, part, this.#hasDetails);
      const written = this.#database
        .write((transaction) => slice.run(transaction), options)
        .then(() => {
          this.#durableCount += slice.count;
          for (const row of slice.details) this.#details.push(row);
          progress(this.#durableCount);
        });
      written.catch(() => undefined); // awaited below, possibly after another write failed
      if (!slice.isDone) await written;
      at = slice.end;
      this.#inFlight.push(written);
      const most = isShared ? sharedInFlightMax : inFlightMax;
      while (this.#inFlight.length > most) await this.#inFlight.shift();
      await nextTurn();
    }
  }

  /** Whether another request was served since the last slice, or recently. A slice itself counts as one. */
  #isShared(): boolean {
    const { servedCount, clock } = this.#database;
    const others = servedCount - this.#servedCount - 1;
    this.#servedCount = servedCount;
    const now = clock.monotonicMs();
    if (others > 0) this.#sharedUntilMs = now + sharedForMs;
    return now < this.#sharedUntilMs;
  }

  async #source(): Promise<NumberSource> {
    const { access, source } = this.#query;
    const { state } = this.#database;
    assert(access.kind === "collection", "an operation by an index is listed as a query");
    const { skip, take } = this.#query.paging;
    const etagMax = state.committedEtag;
    if (access.ids !== null) {
      const found = await this.#database.queries.findNumbers(this.#query, this.#signal);
      return new ListSource(found, etagMax);
    }
    const collection = source.isAllDocuments
      ? allCollections
      : collectionIdNamed(state, source.name);
    return new CollectionSource(this.#database, collection, etagMax, skip, take);
  }

  /** @throws index-missing, invalid-operation when the index is map-reduce or stale */
  async #indexSource(running: RunningQuery): Promise<NumberSource> {
    const { access } = this.#query;
    const { queries } = this.#database;
    const { indexes } = queries;
    assert(access.kind !== "collection", "a collection has no index");
    if (this.#query.groupBy !== null) throw mapReduce();
    const index =
      access.kind === "index" ? indexes.byName(access.name) : indexes.automatic(access.definition);
    if (index === undefined) {
      const name = access.name;
      throw new EngineError("index-missing", `There is no index with '${name}' name.`);
    }
    if (index.outputs !== null) throw mapReduce();
    running.indexName = index.name;
    if (index.isStale && !this.#options.allowsStale) {
      const { staleTimeoutMs } = this.#options;
      const wait = index.isNew ? Math.max(newIndexWaitMs, staleTimeoutMs ?? 0) : staleTimeoutMs;
      if (wait !== undefined) {
        await running.orKilled(indexes.waitForNonStale(index.name, wait));
      }
      if (index.isStale) {
        const message = "Cannot perform bulk operation. Index is stale.";
        throw new EngineError("invalid-operation", message);
      }
    }
    this.#hasDetails = this.#options.hasDetails;
    const found = await queries.findNumbers(this.#query, running);
    return new ListSource(found, Number.MAX_SAFE_INTEGER);
  }

  /**
   * Reads the records of a batch that are not in memory.
   * @returns the end of the documents that are resident; infinite: all are
   */
  async #gather(batch: Uint32Array, from: number): Promise<number> {
    const { documents, log } = this.#database.state;
    if (log.isInMemory()) return Number.POSITIVE_INFINITY;
    await this.#reader.gather(this.#newest, batch, from, batch.length);
    let ready = from;
    for (; ready < batch.length; ready++) {
      const document = batch[ready] as number; // ready < length
      const length = documents.newestLength(document);
      if (length === 0) continue;
      if (!this.#reader.locate(documents.newestPosition(document), length, this.#place)) break;
    }
    return Math.max(ready, from + 1);
  }

  #checkAborted(): void {
    if (!this.#signal.aborted) return;
    throw new EngineError("operation-cancelled", "The operation was stopped.");
  }

  /** Returns early when the operation is aborted. */
  #waitUntil(ms: number): Promise<void> {
    const { clock } = this.#database;
    const left = ms - clock.monotonicMs();
    if (left <= 0 || this.#signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const done = () => {
        timer.cancel();
        this.#signal.removeEventListener("abort", done);
        resolve();
      };
      const timer = clock.setTimer(left, done, true);
      this.#signal.addEventListener("abort", done);
    });
  }
}

function mapReduce(): EngineError {
  return new EngineError(
    "invalid-operation",
    "Cannot execute bulk operation on Map-Reduce indexes.",
  );
}

/** The documents a slice starts with, and its time limit. */
interface SlicePart {
  readonly batch: Uint32Array;
  readonly at: number;
  readonly etagMax: number;
  readonly ms: number;
}

/** One transaction: documents of a batch from `at` on, until the time is up. May be rerun from its beginning. */
class Slice {
  readonly #database: QueriedStore;
  readonly #change: DocumentChange;
  readonly #part: SlicePart;
  readonly #hasDetails: boolean;
  details: object[] = [];
  /** The first document not processed. */
  end: number;
  /** Documents that existed and were processed. */
  count = 0;
  isDone = false;

  constructor(
    database: QueriedStore,
    change: DocumentChange,
    part: SlicePart,
    hasDetails: boolean,
  ) {
    this.#database = database;
    this.#change = change;
    this.#part = part;
    this.#hasDetails = hasDetails;
    this.end = part.at;
  }

  run(transaction: Transaction): void {
    const { clock } = this.#database;
    const { batch, at, etagMax, ms } = this.#part;
    const bytes = this.#hasDetails ? null : this.#change.bytes;
    const stride = bytes === null ? scriptStride : byteStride;
    const stopMs = clock.monotonicMs() + ms;
    this.details = [];
    const range = { batch, at, end: 0, etagMax, count: 0 };
    while (range.at < batch.length) {
      if (range.at > at && clock.monotonicMs() >= stopMs) break;
      range.end = Math.min(batch.length, range.at + stride);
      while (range.at < range.end) {
        bytes?.run(transaction, range);
        if (range.at < range.end) this.#apply(transaction, range);
        if (this.#change.isLong) break;
      }
    }
    this.count = range.count;
    this.end = range.at;
    this.isDone = true;
  }

  /** Changes the next document, however long it takes. */
  #apply(transaction: Transaction, range: PatchRange): void {
    const document = range.batch[range.at++] as number; // below its end
    if (transaction.etagOf(document) > range.etagMax) return;
    const row = this.#change.apply(transaction, document, this.#hasDetails);
    if (row !== null) this.details.push(row);
    range.count++;
  }
}

/** Documents found beforehand. */
class ListSource implements NumberSource {
  readonly total: number;
  readonly etagMax: number;
  readonly #numbers: Uint32Array;
  #at = 0;

  constructor(numbers: Uint32Array, etagMax: number) {
    this.#numbers = numbers;
    this.total = numbers.length;
    this.etagMax = etagMax;
  }

  fill(batch: Uint32Array, limit: number): number {
    const part = this.#numbers.subarray(this.#at, this.#at + limit);
    batch.set(part);
    this.#at += part.length;
    return part.length;
  }
}

/**
 * A collection in etag order as of the start: documents written later have a greater etag, and a rewritten document has
 * lost its old one. For all documents, the collection that holds clients' id ranges is left out.
 */
class CollectionSource implements NumberSource {
  readonly total: number;
  readonly etagMax: number;
  readonly #database: QueriedStore;
  readonly #cursor: { fill(batch: Uint32Array, limit: number): number };
  readonly #leftOut: number;
  #toSkip: number;
  #toTake: number;

  constructor(
    database: QueriedStore,
    collection: number,
    etagMax: number,
    skip: number,
    take: number,
  ) {
    const { documents, keyspaces } = database.state;
    this.#database = database;
    this.etagMax = etagMax;
    this.#cursor = documents.byEtag(collection, 0);
    this.#leftOut = collection === allCollections ? keyspaces.collections.find("@hilo") : -1;
    const count =
      collection === allCollections
        ? documents.documentCount - documents.countOfCollection(this.#leftOut)
        : documents.countOfCollection(collection);
    this.total = Math.max(0, Math.min(take, count - skip));
    this.#toSkip = skip;
    this.#toTake = take;
  }

  fill(batch: Uint32Array, limit: number): number {
    const { documents } = this.#database.state;
    for (;;) {
      const count = this.#cursor.fill(batch, limit);
      if (this.#takesAll(batch, count)) {
        this.#toTake -= count;
        return count;
      }
      let kept = 0;
      for (let i = 0; i < count && this.#toTake > 0; i++) {
        const document = batch[i] as number; // i < count
        if (documents.etagOf(document) > this.etagMax) return kept;
        if (this.#leftOut >= 0 && documents.collectionOf(document) === this.#leftOut) continue;
        if (this.#toSkip > 0) {
          this.#toSkip--;
          continue;
        }
        this.#toTake--;
        batch[kept++] = document;
      }
      if (kept > 0 || count < limit || this.#toTake === 0) return kept;
    }
  }

  /** Is nothing of the batch, which is in the order of etags, to be left out? */
  #takesAll(batch: Uint32Array, count: number): boolean {
    if (count === 0 || this.#leftOut >= 0 || this.#toSkip > 0 || this.#toTake < count) return false;
    const { documents } = this.#database.state;
    return documents.etagOf(batch[count - 1] as number) <= this.etagMax;
  }
}
