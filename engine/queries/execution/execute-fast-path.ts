/**
 * Fast path: runs a query that is known to do little work synchronously. It supports a few documents by id, or by
 * equality on a field of an index, with further conditions on the matches. Most queries of programs are of this type.
 * For most of these, the preparation in `execute.ts` for other queries (pauses, waits, filters, scores, includes) costs
 * several times as much as the work itself.
 *
 * Invariants:
 * - Rows and outcome equal the result of `executeQuery` for the same query. If the fast path cannot guarantee this, it
 *   does nothing and returns null.
 * - Nothing waits except a sink, which then receives copies of rows.
 *
 * Hot: bench/query.bench.ts. In process, `Name = $a` takes 10.2 µs instead of 18.6, and a constant condition 21 instead of 35
 * (docs/measured.md).
 */

import { acquireText, releaseText } from "../../base/json/json-text.ts";
import type { Work, WorkBudget } from "../../base/scheduling/work-budget.ts";
import type { EntrySet } from "../../indexing/columns/entry-set.ts";
import { firstInPlaces } from "../../indexing/columns/place-order.ts";
import type { IndexReader } from "../../indexing/index-reader.ts";
import { isLargeDocument } from "../../state/documents/document-chunks.ts";
import type { AnalyzedQuery } from "../analysis/analyzed-query.ts";
import { refuseUnfit } from "../analysis/known-fields.ts";
import { hasScores } from "../conditions/compile-score.ts";
import { findNow } from "../conditions/compile-where.ts";
import type { WhereContext } from "../functions/rql-function.ts";
import { hasIncludes } from "./execute-include.ts";
import { noLoaded } from "./execute-load.ts";
import { orderEntries, pageEndOf } from "./execute-order.ts";
import { newOutcome } from "./query-outcome.ts";
import type { QueryOutcome, RowSink } from "./results.ts";
import { FieldProjector, projectionMetadata, withMetadata } from "./results-projection.ts";
import type { QueryIndex, RowSource, StoredRow } from "./row-source.ts";

/** Maximum number of rows of a page, and bytes of their records, for the fast path. */
const rowsMax = 128;
const recordBytesMax = 128 * 1024;
/** Maximum number of entries that are sorted synchronously. */
const sortedMax = 512;

/** The documents as a plain query reads them. */
export interface FastPathSource extends RowSource {
  /** As `read`, but fetches nothing: false where the record is not in memory, too. */
  readNow(docNum: number, row: StoredRow): boolean;
  /** Returns the bytes of the record of a document. */
  lengthOf(docNum: number): number;
}

/** The host of a query on the fast path. */
interface FastPathHost {
  readonly source: FastPathSource;
  /** Up to date; null: none is needed. */
  readonly index: QueryIndex | null;
  readonly resultEtag: number;
  readonly startMs: number;
}

/** Returns whether the fast path may support a query, for some parameter values: computed once per text. */
export function mayUseFastPath(query: AnalyzedQuery): boolean {
  const { access, source, projection, include, orderBy, load, functions, series } = query;
  const isFound = access.kind === "collection" ? access.ids?.kind === "ids" : query.where !== null;
  const isWhole = projection.kind === "document" && projection.key === null;
  const hasOwnFields =
    projection.kind === "fields" &&
    projection.isSeries !== true &&
    projection.fields.every(({ value }) => {
      if (value.kind !== "path") return value.kind === "id" || value.kind === "constant";
      return value.root === null || value.root === source.alias;
    });
  const { highlights, hasTimings, explanations } = include;
  const isBare = highlights.length === 0 && !hasTimings && explanations === null;
  return (
    query.kind === "read" &&
    isFound &&
    (isWhole || hasOwnFields) &&
    isBare &&
    !hasIncludes(include) &&
    orderBy.every(({ kind }) => kind === "field") &&
    load.length + functions.length + series.size === 0 &&
    query.groupBy === null &&
    query.filter === null &&
    !query.isDistinct
  );
}

/** @returns null: it is not plain, and nothing was done. @throws as `executeQuery` */
export function executeFastPath(
  query: AnalyzedQuery,
  host: FastPathHost,
  budget: WorkBudget,
  sink: RowSink,
): QueryOutcome | Promise<QueryOutcome> | null {
  const { source, index } = host;
  if (query.paging.filterTake !== null) return null;
  const isWhole = query.projection.kind === "document";
  if (!isWhole && index !== null && index.stored !== null) return null;
  const total =
    index === null ? pageById(query, source) : pageByIndex(query, index, source, budget);
  if (total === null) return null;
  const count = pageCount;
  try {
    if (!placeRows(count, source)) return null;
    const waiting = isWhole
      ? addDocuments(count, source, sink)
      : addObjects(count, query, host, sink);
    const durationMs = source.monotonicMs() - host.startMs;
    const outcome = newOutcome(query, source, index, false, host.resultEtag, total, durationMs);
    return waiting === null ? outcome : waiting.then(() => outcome);
  } finally {
    leaveRows(count);
  }
}

/** The documents of a page, which is used again as `rows` are. */
const page = new Uint32Array(rowsMax);
let pageCount = 0;

/**
 * Sets `page` to the document with the requested id. @returns the total number of results; null if the fast path does
 * not support the query
 */
function pageById(query: AnalyzedQuery, source: FastPathSource): number | null {
  const { access, paging } = query;
  if (access.kind !== "collection" || access.ids?.kind !== "ids") return null;
  const [id, ...others] = access.ids.ids;
  if (id === undefined || others.length > 0) return null;
  const document = source.findDocument(id);
  const collection = query.source.isAllDocuments ? null : query.source.name;
  pageCount = 0;
  if (document < 0 || !source.isIn(document, collection)) return 0;
  if (paging.skip === 0 && paging.take > 0) page[pageCount++] = document;
  return 1;
}

/** As `pageById`, for the entries that an index finds. */
function pageByIndex(
  query: AnalyzedQuery,
  index: QueryIndex,
  source: FastPathSource,
  budget: WorkBudget,
): number | null {
  const { where, orderBy, paging, access } = query;
  const reader = index.reader(budget);
  if (where === null || reader.store.hasSeveral || hasScores(query, reader)) return null;
  // An automatic index was chosen by the fields of the query.
  if (access.kind === "index") refuseUnfit(query, index);
  const set = findNow(where, contextOf(reader));
  if (set === null) return null;
  const end = Math.min(set.count, pageEndOf(query) ?? Number.MAX_SAFE_INTEGER);
  if (end - paging.skip > rowsMax) return null;
  if (orderBy.length > 0 && set.count > sortedMax) return null;
  const ordering = orderedPage(set, orderBy, end, reader, source).next();
  if (ordering.done !== true) return null;
  const entries = ordering.value;
  // Of a document that is gone, and that the index has not heard of yet, the place is another's.
  const { documents } = reader.view;
  for (let i = 0; i < paging.skip && i < end; i++) {
    if (!source.exists(documents[entries[i] as number] as number)) return null;
  }
  pageCount = Math.max(0, end - paging.skip);
  for (let i = 0; i < pageCount; i++) {
    page[i] = documents[entries[paging.skip + i] as number] as number; // below `end`
  }
  return set.count;
}

/** Returns the entries up to the end of the page. */
function* orderedPage(
  set: EntrySet,
  orderBy: AnalyzedQuery["orderBy"],
  end: number,
  reader: IndexReader,
  source: FastPathSource,
): Work<Uint32Array> {
  if (orderBy.length === 0) return yield* firstInPlaces(set, end, reader);
  const order = { reader, source, scores: null, newSeed: noSeed };
  return yield* orderEntries(set.toList(), orderBy, order, false, end);
}

/** No key of a plain query is random. */
const noSeed = () => "";

/** For conditions that need nothing but terms. */
function contextOf(reader: IndexReader): WhereContext {
  return {
    reader,
    findDocument: unused,
    compareExchangeOf: unused,
    textTest: unused,
    stopWordsOf: unused,
  };
}

function unused(): never {
  throw new Error("a condition on the fast path reads only terms");
}

/** The rows of a page; used again, since a page has ended before the next one begins. */
const rows: StoredRow[] = [];
const noBytes = Buffer.alloc(0);

/** Points `rows` at the records of `page`. @returns false where one is gone, is large, or must be fetched */
function placeRows(count: number, source: FastPathSource): boolean {
  let bytes = 0;
  for (let i = 0; i < count; i++) {
    const document = page[i] as number; // i < length
    bytes += source.lengthOf(document);
    if (rows.length === i) rows.push({ docNum: 0, etag: 0, bytes: noBytes, start: 0, block: null });
    const row = rows[i] as StoredRow; // pushed above
    if (bytes > recordBytesMax || !source.readNow(document, row)) return false;
    if (isLargeDocument(row.bytes, row.start)) return false;
  }
  return true;
}

/**
 * Rows must not retain the images of segments that they point into: segments may be released, or their database closed.
 */
function leaveRows(count: number): void {
  const end = Math.min(count, rows.length);
  for (let i = 0; i < end; i++) (rows[i] as StoredRow).bytes = noBytes; // i < length
}

function addDocuments(count: number, source: FastPathSource, sink: RowSink): Promise<void> | null {
  let text = acquireText();
  let late: Late | null = null;
  for (let i = 0; i < count; i++) {
    text.clear();
    source.addDocument(rows[i] as StoredRow, noBytes, text); // i < count
    const isFirstLate = late === null;
    late = added(text.bytes, sink, late);
    // The sink has the bytes of the row that it waits with.
    if (isFirstLate && late !== null) text = acquireText();
  }
  releaseText(text);
  return late === null ? null : addDeferred(late, sink);
}

function addObjects(
  count: number,
  query: AnalyzedQuery,
  { source, index }: FastPathHost,
  sink: RowSink,
): Promise<void> | null {
  const projector = new FieldProjector(query, source, null, null, undefined, index?.name ?? null);
  // Collection queries report a score of 0, for no reason known to clients.
  const score = index === null ? 0 : null;
  let late: Late | null = null;
  for (let i = 0; i < count; i++) {
    const parts = { row: rows[i] as StoredRow, loaded: noLoaded, score, stored: null }; // i < count
    const object = withMetadata(projector.project(parts), projectionMetadata(parts, source));
    late = added(Buffer.from(object), sink, late);
  }
  return late === null ? null : addDeferred(late, sink);
}

/** Rows whose sink has them wait. */
interface Late {
  readonly waiting: Promise<void>;
  readonly rows: Buffer[];
}

/** Adds a row, or keeps a copy of it for later. */
function added(row: Buffer, sink: RowSink, late: Late | null): Late | null {
  if (late !== null) {
    late.rows.push(Buffer.from(row));
    return late;
  }
  const waiting = sink.add(row);
  return waiting === null ? null : { waiting, rows: [] };
}

async function addDeferred(late: Late, sink: RowSink): Promise<void> {
  await late.waiting;
  for (const row of late.rows) await sink.add(row);
}
