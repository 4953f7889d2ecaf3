/**
 * Patching and deleting by query, in the background. The results of a collection query are walked in etag order up to
 * the etag at the start; the results of an index are collected first. Both are changed in transactions of a few
 * milliseconds and at most `setBatchMax` documents.
 *
 * Invariants:
 * - A document of a collection that was written after the start is not changed: neither a new one, nor one just written
 *   by the operation itself or by another client.
 * - A transaction is durable as a whole; when one fails, the earlier ones remain.
 * - Each transaction stores the progress of the operation; after a failed transaction no other transaction begins. An
 *   interrupted operation resumes from its stored progress, with documents that were not written since it began, so
 *   that no document is changed twice: a collection continues after the last visited document; the results of an index
 *   start over, which only repeats the documents that were left unchanged.
 */

import { assert } from "../../base/assert.ts";
import { EngineError } from "../../base/errors.ts";
import { newIndexWaitMs } from "../../base/limits.ts";
import { nextSlice } from "../../base/scheduling/time-slices.ts";
import { finish } from "../../base/scheduling/work-budget.ts";
import { ScriptPatch, type WatchedPatch } from "../../patching/script-patch.ts";
import { wholeFieldsOf } from "../../queries/analysis/analyze-index.ts";
import type { AnalyzedQuery } from "../../queries/analysis/analyzed-query.ts";
import { collectionIdNamed } from "../../queries/rows/query-rows.ts";
import { RecordReader, type RecordTable } from "../../queries/rows/record-reader.ts";
import { allCollections, type DocumentTable } from "../../state/keyspaces/document-table.ts";
import { FetchedRecords } from "../../state/store/fetched-records.ts";
import { OperationControl, Pace } from "../../state/store/operation-control.ts";
import {
  bulkResult,
  markKey,
  type OperationFigures,
  type Operations,
  type OperationWork,
  type StartedOperation,
} from "../../state/store/operations.ts";
import type { Store } from "../../state/store/store.ts";
import type { Transaction } from "../../state/store/transaction.ts";
import { UndoRanges } from "../../state/store/undo-ranges.ts";
import { newPlace } from "../../storage/segments/blocks.ts";
import { rewriteTouched } from "../../writes/documents.ts";
import { changeOf, type DocumentChange } from "./document-changes.ts";
import { type DryRunMistake, type DryRunSample, Slice } from "./operation-slice.ts";
import { CollectionSource, ListSource, type NumberSource } from "./operation-sources.ts";
import type { DatabaseQueries } from "./query-host.ts";
import type { RunningQuery } from "./running-queries.ts";

/** A store with queries and a registry of long-running operations. */
type QueriedStore = Store & {
  readonly queries: DatabaseQueries;
  readonly operations: Operations;
};

/** Options of an operation. */
export interface SetOperationOptions {
  /** JSON text of the object of query parameters. */
  readonly parametersText: string | null;
  /** Use an index that has not processed all documents yet. */
  readonly allowsStale: boolean;
  /** Milliseconds to wait for the index; undefined if it must be up to date already. */
  readonly staleTimeoutMs: number | undefined;
  /** Documents a second; undefined: no limit. */
  readonly operationsPerSecondMax: number | undefined;
  /** Report each document that an index found. */
  readonly hasDetails: boolean;
  /** Raises the time limit of scripts. */
  readonly liftsLimits: boolean;
  /** An id from `Operations.nextId`; undefined: the next one. */
  readonly operationId?: number | undefined;
  /** Name of the client that started the operation. */
  readonly startedBy?: string | undefined;
  /** Stores a revision of each document before the change, from which the operation can be undone. */
  readonly keepsUndo?: boolean;
}

/** Options of a dry run. */
export interface DryRunOptions extends Omit<SetOperationOptions, "keepsUndo" | "hasDetails"> {
  /** How many of the documents that would change are shown. */
  readonly samples: number;
  /** Documents that are tried at most; undefined: all. */
  readonly most: number | undefined;
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
/**
 * Maximum number of transactions being synced while the next is prepared; transactions that are ready commit in one
 * tick of the event loop.
 */
const inFlightMax = 32;
const sharedInFlightMax = 4;
/** Maximum number of failing documents that a dry run reports. */
const shownMistakesMax = 100;
/**
 * Starts patching the documents that a query finds. Errors in the text are thrown immediately; missing parameters are
 * reported by the operation.
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

/**
 * Runs a patch over the documents that a query finds, as an operation, and stores nothing.
 * @throws as `startPatchByQuery`
 */
export async function startDryRun(
  database: QueriedStore,
  text: string,
  options: DryRunOptions,
): Promise<StartedOperation> {
  const { samples, most, ...common } = options;
  const trial: Trial = { samples, most: most ?? Number.POSITIVE_INFINITY };
  return await start(database, "patch", text, { ...common, hasDetails: false }, trial);
}

/**
 * Resumes an interrupted operation by query.
 * @throws operation-missing, invalid-operation, and the errors of its query, for example if its index was deleted
 */
export async function resumeByQuery(database: QueriedStore, id: number): Promise<StartedOperation> {
  const info = database.operations.get(id);
  const request = info?.request as SetOperationRequest | undefined;
  const control = new OperationControl(info?.rateMax ?? null);
  let work: OperationWork = () => Promise.reject(new Error("nothing to go on with"));
  if (request !== undefined) {
    const { kind, text, etagMax, options } = request;
    const query = await database.queries.prepare(text, kind, options);
    const mark = database.state.keyspaces.values.get(markKey(id)) as Mark | undefined;
    work = workOf(database, query, { id, options, etagMax, control, mark, trial: null });
  }
  return await database.operations.resumeInterrupted(id, control, work);
}

/** The stored request of an operation, from which it resumes. */
interface SetOperationRequest {
  readonly kind: "patch" | "delete";
  readonly text: string;
  /** Documents with a greater etag were written after it began. */
  readonly etagMax: number;
  readonly options: SetOperationOptions;
}

/** How far an operation is, written by each of its transactions. */
interface Mark {
  readonly Processed: number;
  readonly Total: number;
  readonly Changed: number;
  readonly Unchanged: number;
  /** Etag at which a collection resumes; 0 if the results of an index are visited again. */
  readonly Etag: number;
  /** Number of visited documents of the collection, between offset and limit. */
  readonly Taken: number;
}

/** Of a dry run: how many changed documents are shown, and how many are tried. */
interface Trial {
  readonly samples: number;
  readonly most: number;
}

/** Parameters of one run of an operation besides its query. */
interface RunOptions {
  readonly id: number;
  readonly options: SetOperationOptions;
  readonly etagMax: number;
  readonly control: OperationControl;
  /** Stored progress to resume from; undefined if the operation starts. */
  readonly mark: Mark | undefined;
  readonly trial: Trial | null;
}

async function start(
  database: QueriedStore,
  kind: "patch" | "delete",
  text: string,
  options: SetOperationOptions,
  trial: Trial | null = null,
): Promise<StartedOperation> {
  const { operationsPerSecondMax: rate, parametersText, operationId, startedBy, ...kept } = options;
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
  const id = operationId ?? (await database.operations.nextId());
  const control = new OperationControl(rate ?? null);
  const etagMax = database.state.committedEtag;
  const run = { id, options, etagMax, control, mark: undefined, trial };
  const work: OperationWork =
    query === null ? () => Promise.reject(mistake) : workOf(database, query, run);
  const shown = parametersText === null ? text : `${text}\n${parametersText}`;
  const request: SetOperationRequest = {
    kind,
    text,
    etagMax,
    options: { parametersText, ...kept, operationsPerSecondMax: undefined },
  };
  const word =
    trial !== null ? "DryRunByQuery" : kind === "patch" ? "UpdateByQuery" : "DeleteByQuery";
  return await database.operations.start(word, describe(query), work, {
    id,
    query: shown.slice(0, shownQueryLengthMax),
    startedBy,
    control,
    ...(trial === null ? { request } : {}),
    ...(options.keepsUndo === true ? { facts: { canUndo: true } } : {}),
  });
}

function workOf(database: QueriedStore, query: AnalyzedQuery, options: RunOptions): OperationWork {
  const { id, options: asked } = options;
  const change = changeOf(query, asked.liftsLimits, asked.keepsUndo === true);
  return async (progress, signal) => {
    const run = new SetOperation(database, query, change, options, signal, progress);
    const hold = database.state.documents.hold();
    const running = addRunning(database, query, signal, id);
    try {
      return await run.run(running);
    } finally {
      if (running !== null) database.queries.running.remove(running);
      hold.release();
    }
  };
}

/**
 * As RavenDB 7.2.7 does, lists the index query of an operation among the running queries: killing the query stops the
 * operation. Returns null for the walk of a collection, which is listed only as an operation.
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

/**
 * Returns whether a parameter of the conditions has no value: the only error that RavenDB 7.2.7 reports at run time.
 */
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

/** One run of an operation. */
class SetOperation {
  readonly #database: QueriedStore;
  readonly #query: AnalyzedQuery;
  readonly #change: DocumentChange;
  readonly #run: RunOptions;
  readonly #options: SetOperationOptions;
  readonly #signal: AbortSignal;
  readonly #progress: (figures: OperationFigures) => void;
  readonly #pace: Pace;
  readonly #details: object[] = [];
  readonly #samples: DryRunSample[] = [];
  readonly #mistakes: DryRunMistake[] = [];
  #mistakeCount = 0;
  readonly #inFlight: Promise<void>[] = [];
  /** Why the first transaction that failed did. */
  #failure: { readonly error: unknown } | null = null;
  readonly #reader: RecordReader;
  readonly #newest: RecordTable;
  readonly #place = newPlace();
  readonly #undo: UndoRanges | null;
  readonly #markKey: string;
  #total = 0;
  /** Documents that were changed or needed no change, and the former: durable, and staged. */
  #durableCount: number;
  #durableChanged: number;
  #stagedCount: number;
  #stagedChanged: number;
  #hasDetails = false;
  #servedCount = 0;
  /** Until when the database counts as shared with other requests; unknown at the start. */
  #sharedUntilMs: number;

  constructor(
    database: QueriedStore,
    query: AnalyzedQuery,
    change: DocumentChange,
    run: RunOptions,
    signal: AbortSignal,
    progress: (figures: OperationFigures) => void,
  ) {
    this.#database = database;
    this.#query = query;
    this.#change = change;
    this.#run = run;
    this.#options = run.options;
    this.#signal = signal;
    this.#progress = progress;
    this.#pace = new Pace(run.control, database.clock, signal);
    this.#sharedUntilMs = database.clock.monotonicMs() + sharedAtStartMs;
    this.#reader = new RecordReader(database);
    this.#undo = run.options.keepsUndo === true ? new UndoRanges(run.id) : null;
    this.#markKey = markKey(run.id);
    const { mark } = run;
    this.#durableChanged = mark?.Changed ?? 0;
    // Results of an index that were left unchanged are visited again.
    this.#durableCount = mark === undefined ? 0 : mark.Etag > 0 ? mark.Processed : mark.Changed;
    this.#stagedCount = this.#durableCount;
    this.#stagedChanged = this.#durableChanged;
    const { documents } = database.state;
    this.#newest = {
      positionOf: (document) => documents.newestPosition(document),
      lengthOf: (document) => documents.newestLength(document),
    };
  }

  /** `running`: its entry among the running queries; null if it is not listed. */
  async run(running: RunningQuery | null): Promise<OperationFigures> {
    const source = running === null ? await this.#source() : await this.#indexSource(running);
    this.#total = this.#run.mark?.Total ?? source.total;
    this.#reportProgress();
    const batch = new Uint32Array(setBatchMax);
    let visited = 0;
    let hold = this.#database.holdCompaction();
    try {
      for (;;) {
        if (this.#run.control.isPaused && !this.#signal.aborted) {
          await Promise.allSettled(this.#inFlight);
          this.#checkAborted();
          hold.release();
          await this.#pace.next(visited);
          hold = this.#database.holdCompaction();
        } else await this.#pace.next(visited);
        this.#checkAborted();
        const count = source.fill(batch, this.#pace.batchOf(setBatchMax));
        if (count === 0) break;
        await this.#changeAll(batch.subarray(0, count), source, visited);
        visited += count;
      }
    } finally {
      await Promise.allSettled(this.#inFlight);
      this.#reader.close();
      hold.release();
    }
    await Promise.all(this.#inFlight);
    return this.#run.trial === null
      ? bulkResult({ total: this.#durableCount }, this.#details)
      : this.#outcome();
  }

  /** Returns the result of a dry run. */
  #outcome(): OperationFigures {
    const changed = this.#durableChanged;
    const failed = this.#mistakeCount;
    const total = this.#durableCount;
    return {
      Total: total,
      Message: `${changed.toLocaleString("en-US")} of ${total.toLocaleString("en-US")} documents would change. Nothing was stored.`,
      WouldChange: changed,
      Unchanged: total - changed - failed,
      WouldFail: failed,
      Errors: this.#mistakes,
      Samples: this.#samples,
    };
  }

  #reportProgress(): void {
    const Processed = this.#durableCount;
    const Changed = this.#durableChanged;
    this.#progress({
      Processed,
      Total: Math.max(this.#total, Processed),
      Changed,
      Unchanged: Processed - Changed - this.#mistakeCount,
    });
  }

  /** Changes a batch in as many transactions as the time slices require. `visited`: documents before it. */
  async #changeAll(batch: Uint32Array, source: NumberSource, visited: number): Promise<void> {
    const fetched = new FetchedRecords(this.#reader);
    const isDeletion = this.#change.isDeletion;
    for (let at = 0, ready = 0; at < batch.length; ) {
      if (at >= ready) ready = await this.#gather(batch, at);
      const options = ready === Number.POSITIVE_INFINITY ? { isDeletion } : { isDeletion, fetched };
      this.#checkAborted();
      const isShared = this.#isShared();
      const slice = new Slice(this.#database, this.#change, {
        batch: batch.subarray(0, ready),
        at,
        etagMax: source.etagMax,
        ms: isShared ? sharedSliceMs : setSliceMs,
        hasDetails: this.#hasDetails,
        samplesLeft: this.#samplesLeft(),
      });
      const written = this.#database
        .write((transaction) => {
          if (this.#undo !== null) transaction.keepsBefore = true;
          slice.run(transaction, (etag) =>
            this.#finish(transaction, slice, batch, source, visited, etag),
          );
        }, options)
        .then(() => this.#settled(slice));
      // Awaited below, possibly after another write failed.
      written.catch((error: unknown) => {
        this.#failure ??= { error };
      });
      if (!slice.isDone) await written;
      this.#stagedCount += slice.count;
      this.#stagedChanged += slice.changed;
      at = slice.end;
      this.#inFlight.push(written);
      const most = isShared ? sharedInFlightMax : inFlightMax;
      while (this.#inFlight.length > most) await this.#inFlight.shift();
      await nextSlice();
    }
  }

  /** Returns the number of changed documents that a dry run still samples; null if this is not a dry run. */
  #samplesLeft(): number | null {
    const { trial } = this.#run;
    return trial === null ? null : trial.samples - this.#samples.length;
  }

  /** Stores the progress of the operation together with the changes of a slice. `etag`: the last one before it. */
  #finish(
    transaction: Transaction,
    slice: Slice,
    batch: Uint32Array,
    source: NumberSource,
    visited: number,
    etag: number,
  ): void {
    if (this.#undo !== null) {
      finish(rewriteTouched(transaction));
      this.#undo.add(transaction, etag);
    }
    const Processed = this.#stagedCount + slice.count;
    const Changed = this.#stagedChanged + slice.changed;
    const mark: Mark = {
      Processed,
      Total: Math.max(this.#total, Processed),
      Changed,
      Unchanged: Processed - Changed,
      Etag: nextEtagOf(transaction.state.documents, source, batch, slice.end),
      Taken: (this.#run.mark?.Taken ?? 0) + visited + slice.end,
    };
    transaction.putEntry(transaction.keyspaces.values, this.#markKey, mark);
  }

  /** A slice is durable. */
  #settled(slice: Slice): void {
    this.#durableCount += slice.count;
    this.#durableChanged += slice.changed;
    for (const row of slice.details) this.#details.push(row);
    for (const sample of slice.samples) this.#samples.push(sample);
    if (slice.mistake !== null) {
      this.#mistakeCount++;
      if (this.#mistakes.length < shownMistakesMax) this.#mistakes.push(slice.mistake);
    }
    this.#reportProgress();
  }

  /** Returns whether another request was served since the last slice, or recently. A slice itself counts as one. */
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
    const { etagMax, mark, trial } = this.#run;
    if (access.ids !== null) {
      const found = await this.#database.queries.findNumbers(this.#query, this.#signal);
      return this.#list(found, etagMax);
    }
    const collection = source.isAllDocuments
      ? allCollections
      : collectionIdNamed(state, source.name);
    const taken = mark?.Taken ?? 0;
    const most = Math.min(take, trial?.most ?? take) - taken;
    const from = taken > 0 ? 0 : skip;
    return new CollectionSource(this.#database, collection, etagMax, from, most, mark?.Etag);
  }

  /** Returns the results of an index that are still to be changed. */
  #list(found: Uint32Array, etagMax: number): NumberSource {
    const { mark, trial } = this.#run;
    if (trial !== null) return new ListSource(found.subarray(0, trial.most), etagMax);
    if (mark === undefined) return new ListSource(found, etagMax);
    const { documents } = this.#database.state;
    const left = found.filter((document) => documents.etagOf(document) <= this.#run.etagMax);
    return new ListSource(
      left.subarray(0, Math.max(0, mark.Total - mark.Changed)),
      this.#run.etagMax,
    );
  }

  /** @throws index-missing, invalid-operation when the index is map-reduce or stale */
  async #indexSource(running: RunningQuery): Promise<NumberSource> {
    const { access } = this.#query;
    const { queries } = this.#database;
    const { indexes } = queries;
    assert(access.kind !== "collection", "a collection has no index");
    if (this.#query.groupBy !== null) throw mapReduce();
    const index =
      access.kind === "index"
        ? indexes.withWholeFields(access.name, () => wholeFieldsOf(this.#query))
        : indexes.automatic(access.definition);
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
    return this.#list(found, Number.MAX_SAFE_INTEGER);
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

  /**
   * Throws if a transaction failed or the operation was stopped. After a failed transaction nothing may be written: the
   * stored progress would cover lost changes.
   */
  #checkAborted(): void {
    if (this.#failure !== null) throw this.#failure.error;
    if (!this.#signal.aborted) return;
    throw new EngineError("operation-cancelled", "The operation was stopped.");
  }
}

/**
 * Returns the smallest etag that a document from position `end` of a batch can have; 0 if the source is not in etag
 * order. Staged versions of these documents have greater etags.
 */
function nextEtagOf(
  documents: DocumentTable,
  { nextEtag, etagMax }: NumberSource,
  batch: Uint32Array,
  end: number,
): number {
  if (nextEtag === 0) return 0;
  for (let at = end; at < batch.length; at++) {
    const etag = documents.etagOf(batch[at] as number); // at < length
    if (etag > 0 && etag <= etagMax) return etag;
  }
  return nextEtag;
}

function mapReduce(): EngineError {
  return new EngineError(
    "invalid-operation",
    "Cannot execute bulk operation on Map-Reduce indexes.",
  );
}
