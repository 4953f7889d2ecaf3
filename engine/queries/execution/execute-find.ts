/**
 * Find stage. In: the query. Out: the candidates, a cursor over documents or reduced objects in the order of the query.
 * The order stage (execute-order.ts) is part of it.
 *
 * The entries of an index are found and sorted as of one moment and become a list of documents, which are then read one
 * by one. A document that is deleted before it is read is left out. When the index is compacted before all entries are
 * found, the search is restarted.
 */
import { assert } from "../../base/assert.ts";
import { EngineError } from "../../base/errors.ts";
import { newIndexWaitMs } from "../../base/limits.ts";
import type { Steps } from "../../base/scheduling/steps.ts";
import type { Work, WorkBudget } from "../../base/scheduling/work-budget.ts";
import { DocumentBits } from "../../indexing/columns/document-bits.ts";
import { slicedSort } from "../../indexing/columns/sliced-sort.ts";
import type { IndexReader } from "../../indexing/index-reader.ts";
import { readFieldsOf, wholeFieldsOf } from "../analysis/analyze-index.ts";
import { hasNearest } from "../analysis/meaning-of.ts";
import { namesStopWords, stopWordsIn } from "../analysis/named-documents.ts";
import { explainEntries } from "../conditions/compile-score.ts";
import { findEntries } from "../conditions/compile-where.ts";
import { distanceTexts } from "./execute-nearest.ts";
import { orderedMatches } from "./execute-order.ts";
import { conditionsText } from "./plan-text.ts";
import type { QueryRun } from "./query-run.ts";
import type { TracedCondition } from "./query-trace.ts";
import { GroupCursor, ListCursor } from "./row-cursors.ts";
import { type EntryScores, type PlacedCursor, RowEntry } from "./row-entry.ts";
import type { QueryIndex, RowCursor } from "./row-source.ts";

/** Rows to visit, in order. */
export interface Candidates {
  readonly cursor: RowCursor;
  /** Number of matches; -1: not counted. */
  readonly total: number;
  /** Number of matches that were left out because their documents are among the candidates already. */
  readonly duplicates: number;
  /** The index entry of the cursor's row; null: the query needs nothing of it. */
  readonly entry: RowEntry | null;
}

/** Maximum number of operands counted in a query trace. */
const tracedConditionsMax = 24;
/** Cost of finding an id. */
const idUnits = 16;
/** Entries processed between two checks of the budget. */
const entryStride = 16_384;
/** Bytes per entry of a list of entries and of their documents. */
const candidateBytes = 12;
const noNumbers = new Uint32Array(0);
const noFields: ReadonlySet<string> = new Set();

/**
 * Returns the index that answers the query, when it is as current as the request demands. Reads stop words documents.
 * @throws index-missing
 */
export function* readyIndex(run: QueryRun): Steps<QueryIndex> {
  const { access, where } = run.query;
  const { indexes } = run.host;
  assert(access.kind !== "collection", "only index queries use an index");
  const index =
    access.kind === "automatic-index"
      ? indexes.automatic(access.definition)
      : indexes.withWholeFields(access.name, () => wholeFieldsOf(run.query));
  if (index === undefined) {
    throw new EngineError("index-missing", `There is no index with '${access.name}' name.`);
  }
  return index.isStale || namesStopWords(where) ? yield* awaitIndex(run, index) : index;
}

/** As `readyIndex`, for an index that may be stale. */
export function* awaitIndex(run: QueryRun, index: QueryIndex): Steps<QueryIndex> {
  const { indexes, source } = run.host;
  run.stopWords = yield* stopWordsIn(run.query.where, source);
  if (!index.isStale) return index;
  const { waitForNonStale, waitTimeoutMs } = run.request;
  if (waitForNonStale) yield indexes.waitForNonStale(index.name, waitTimeoutMs);
  else if (index.isNew) yield indexes.waitForNonStale(index.name, newIndexWaitMs);
  return indexes.byName(index.name) ?? index;
}

/**
 * Runs work on an index; restarts it if the index is compacted in the meantime. `fields`: the fields that the work
 * reads; null if it may read any field.
 */
export function* onIndex<Result>(
  budget: WorkBudget,
  index: QueryIndex,
  fields: ReadonlySet<string> | null,
  begin: (reader: IndexReader) => Work<Result>,
): Steps<Result> {
  for (;;) {
    const refreshing = index.refresh(fields, budget);
    if (refreshing !== null) yield* budget.steps(refreshing);
    const heldBefore = budget.heldBytes;
    const reader = index.reader(budget);
    const work = begin(reader);
    do {
      const step = work.next();
      if (step.done === true) return step.value;
      reader.freeze();
      yield budget.pause();
    } while (reader.isCurrent);
    budget.release(budget.heldBytes - heldBefore);
  }
}

/** @param index null: the documents of a collection are read. @throws as `executeQuery` */
export function findCandidates(run: QueryRun, index: QueryIndex | null): Steps<Candidates> {
  const { query, budget } = run;
  if (index === null) return budget.steps(findInCollection(run));
  const fields = index.outputs === null ? noFields : readFieldsOf(query);
  return onIndex(budget, index, fields, (reader) => findInIndex(run, reader, index));
}

function* findInCollection({ query, source, collection, budget }: QueryRun): Work<Candidates> {
  const { access } = query;
  assert(access.kind === "collection", "collection queries have collection access");
  const { ids } = access;
  if (ids === null) return withoutEntry(source.rows(collection), source.countOf(collection));
  if (ids.kind === "prefix") return withoutEntry(source.rowsByPrefix(ids.prefix), -1);
  const [onlyId] = ids.ids;
  if (ids.ids.length === 1 && onlyId !== undefined) {
    const docNum = source.findDocument(onlyId);
    const isFound = docNum >= 0 && source.isIn(docNum, collection);
    const docNums = isFound ? Uint32Array.of(docNum) : noNumbers;
    return withoutEntry(new ListCursor(docNums, source), docNums.length);
  }
  const found = new Set<number>();
  budget.hold(ids.ids.length * candidateBytes);
  for (const id of ids.ids) {
    const docNum = source.findDocument(id);
    if (docNum >= 0 && source.isIn(docNum, collection)) found.add(docNum);
    budget.spend(idUnits);
    if (budget.isDue) yield;
  }
  const compare = (a: number, b: number) => source.compareIds(a, b);
  const docNums = yield* slicedSort(Uint32Array.from(found), compare, budget);
  return withoutEntry(new ListCursor(docNums, source), docNums.length);
}

function withoutEntry(cursor: RowCursor, total: number): Candidates {
  return { cursor, total, duplicates: 0, entry: null };
}

function* findInIndex(run: QueryRun, reader: IndexReader, index: QueryIndex): Work<Candidates> {
  const { source, budget } = run;
  const { trace } = run.request;
  const startMs = trace === undefined ? 0 : source.monotonicMs();
  const { entries, total } = yield* orderedMatches(run, reader, index);
  if (trace !== undefined) {
    trace.findMs = source.monotonicMs() - startMs;
    trace.entryCount = reader.store.liveCount;
    trace.conditions = yield* tracedConditions(run, reader);
  }
  budget.hold(entries.length * candidateBytes);
  if (index.outputs !== null) {
    const cursor = new GroupCursor(entries, index.outputs, reader);
    const entry = yield* rowEntry(run, reader, index, entries, cursor);
    return { cursor, total, duplicates: 0, entry };
  }
  const isWhole = run.query.projection.kind === "document";
  const isOnce = isWhole && !run.request.keepsDuplicates && reader.store.hasSeveral;
  const shown = isOnce ? yield* firstOfDocuments(entries, reader) : entries;
  const cursor = new ListCursor(yield* documentsOf(shown, reader), source);
  const entry = yield* rowEntry(run, reader, index, shown, cursor);
  return { cursor, total, duplicates: entries.length - shown.length, entry };
}

/** Returns the number of matches of each operand of the condition, evaluated separately. */
function* tracedConditions(run: QueryRun, reader: IndexReader): Work<TracedCondition[]> {
  const { where } = run.query;
  const traced: TracedCondition[] = [];
  if (where === null || (where.kind !== "and" && where.kind !== "or")) return traced;
  for (const operand of where.operands.slice(0, tracedConditionsMax)) {
    const found = hasNearest(operand)
      ? null
      : (yield* findEntries(operand, run.whereContext(reader))).count;
    traced.push({ text: conditionsText(operand), found });
  }
  return traced;
}

/** @param entries the entries of the cursor, in its order. @returns null if the query needs nothing of them */
function* rowEntry(
  run: QueryRun,
  reader: IndexReader,
  index: QueryIndex,
  entries: Uint32Array,
  cursor: PlacedCursor,
): Work<RowEntry | null> {
  const { projection, include } = run.query;
  const scores = yield* entryScores(run, reader, index, entries);
  const isHighlighting = include.highlights.length > 0;
  const readsStored = projection.kind !== "document" || isHighlighting;
  const stored = readsStored ? index.stored : null;
  if (scores === null && stored === null && !isHighlighting) return null;
  return new RowEntry(entries, cursor, reader, stored, scores);
}

/** Returns the scores of entries if the reply reports or explains them. */
function* entryScores(
  run: QueryRun,
  reader: IndexReader,
  index: QueryIndex,
  entries: Uint32Array,
): Work<EntryScores | null> {
  const { query, request } = run;
  const isExplained = query.include.explanations !== null;
  const areReported = index.outputs === null && request.reportsScores?.(index) === true;
  if (!isExplained && !areReported) return null;
  const context = run.whereContext(reader);
  const explained = yield* explainEntries(query.where, entries, context, isExplained);
  return { explained, areReported, distanceOf: yield* distanceTexts(query, reader) };
}

function* documentsOf(entries: Uint32Array, reader: IndexReader): Work<Uint32Array> {
  const { documents } = reader.view;
  const docNums = new Uint32Array(entries.length);
  for (let from = 0; from < entries.length; from += entryStride) {
    copyDocuments(entries, documents, docNums, from);
    if (from > 0) yield* spendStride(reader.budget);
  }
  return docNums;
}

/** Copies the document numbers of one stride of entries. */
function copyDocuments(
  entries: Uint32Array,
  documents: Uint32Array,
  target: Uint32Array,
  from: number,
): void {
  const to = Math.min(entries.length, from + entryStride);
  for (let i = from; i < to; i++) target[i] = documents[entries[i] as number] as number;
}

/** Returns the first entry of each document, in order: further entries of a whole document are duplicates. */
function* firstOfDocuments(entries: Uint32Array, reader: IndexReader): Work<Uint32Array> {
  const { documents } = reader.view;
  const seen = new DocumentBits();
  const first = new Uint32Array(entries.length);
  let count = 0;
  for (let i = 0; i < entries.length; i++) {
    const entry = entries[i] as number;
    const document = documents[entry] as number;
    if ((i & (entryStride - 1)) === entryStride - 1) yield* spendStride(reader.budget);
    if (seen.has(document)) continue;
    seen.add(document);
    first[count++] = entry;
  }
  return first.slice(0, count);
}

function* spendStride(budget: WorkBudget): Work<void> {
  budget.spend(entryStride);
  if (budget.isDue) yield;
}
