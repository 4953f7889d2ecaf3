/**
 * Order stage, the second half of the find stage (execute-find.ts). In: the condition and the order of a query. Out: the
 * entries of one index that match, in that order; all, or at least those up to the end of the page.
 *
 * A page is found in one of three ways: as the best by score, by a walk of the index in the order until the page is
 * full, or by sorting all that match.
 */
import type { Work } from "../../base/scheduling/work-budget.ts";
import {
  fieldSortKeys,
  positionsOf,
  smallestPositions,
  sortPositions,
} from "../../indexing/columns/entry-order.ts";
import type { EntrySet } from "../../indexing/columns/entry-set.ts";
import { firstInOrder } from "../../indexing/columns/ordered-prefix.ts";
import { firstInPlaces, sortedByPlace } from "../../indexing/columns/place-order.ts";
import type { IndexReader } from "../../indexing/index-reader.ts";
import type { AnalyzedQuery, OrderKey } from "../analysis/analyzed-query.ts";
import { refuseUnfit } from "../analysis/known-fields.ts";
import { hasScores, scoreEntries } from "../conditions/compile-score.ts";
import { findEntries } from "../conditions/compile-where.ts";
import { orderUseOf } from "../functions/function-table.ts";
import type { OrderContext } from "../functions/rql-function.ts";
import type { OrderType } from "../syntax/ast.ts";
import { bestEntries, isByScore, selectBest } from "./execute-best.ts";
import { nearestEntries } from "./execute-nearest.ts";
import type { QueryRun } from "./query-run.ts";
import type { OrderWay } from "./query-trace.ts";
import type { QueryIndex } from "./row-source.ts";

/** Rows up to the end of a page that is found without ordering all that the query finds. */
const pageEndMax = 4096;
/** A page is selected before sorting when there are so many times more entries. */
const selectedShare = 4;

/** Entries in the order of a query, and how many match. */
interface OrderedMatches {
  readonly entries: Uint32Array;
  readonly total: number;
}

/**
 * Returns the entries that match the condition, in the order of the query: all, or at least those up to the end of the
 * page. @throws query-invalid
 */
export function* orderedMatches(
  run: QueryRun,
  reader: IndexReader,
  index: QueryIndex,
): Work<OrderedMatches> {
  const { query } = run;
  refuseUnfit(query, index);
  const context = run.whereContext(reader);
  const isScored = hasScores(query, reader);
  const pageEnd = pageEndOf(query);
  const isByBest = isScored && pageEnd !== null && !reader.store.hasSeveral && isByScore(query);
  const best = isByBest ? yield* bestEntries(query, pageEnd, context) : null;
  if (best !== null && areThere(best.entries, run, reader, index)) {
    traceOrder(run, "best", best.entries.length);
    return best;
  }
  const set = query.where === null ? reader.all() : yield* findEntries(query.where, context);
  const total = set.count;
  if (pageEnd !== null && !isScored) {
    const first = yield* firstEntries(set, query.orderBy, pageEnd, reader);
    const page = first && (yield* orderedEntries(first, null, pageEnd, run, reader));
    if (page !== null && areThere(page, run, reader, index)) {
      traceOrder(run, query.orderBy.length === 0 ? "none" : "walk", page.length);
      return { entries: page, total };
    }
  }
  const entries = set.toList();
  traceOrder(run, query.orderBy.length === 0 && !isScored ? "none" : "sort", entries.length);
  const scores = isScored ? yield* scoreEntries(query.where, entries, context) : null;
  if (isByBest && scores !== null) {
    const page = yield* selectBest(entries, scores, pageEnd, context);
    if (page !== null && areThere(page, run, reader, index)) return { entries: page, total };
  }
  const page = yield* orderedEntries(entries, scores, pageEnd, run, reader);
  if (page.length === entries.length || areThere(page, run, reader, index)) {
    return { entries: page, total };
  }
  return { entries: yield* orderedEntries(entries, scores, null, run, reader), total };
}

function traceOrder({ request: { trace } }: QueryRun, way: OrderWay, count: number): void {
  if (trace === undefined) return;
  trace.way = way;
  trace.orderedCount = count;
}

/** Returns whether all documents of a page exist. If not, the page is filled with later candidates. */
function areThere(
  page: Uint32Array,
  { source }: QueryRun,
  { view }: IndexReader,
  { outputs }: QueryIndex,
): boolean {
  return outputs !== null || page.every((entry) => source.exists(view.documents[entry] as number));
}

const byScore: readonly OrderKey[] = [{ kind: "score", isDescending: false, nulls: null }];

/** `count`: only the first `count` entries need to be sorted; null: all. */
function* orderedEntries(
  entries: Uint32Array,
  scores: Float64Array | null,
  count: number | null,
  { query, source }: QueryRun,
  reader: IndexReader,
): Work<Uint32Array> {
  const orderBy = query.orderBy.length === 0 && scores !== null ? byScore : query.orderBy;
  const newSeed = () => String(source.monotonicMs());
  const enough = reader.store.hasSeveral ? undefined : (count ?? undefined);
  const isAll = query.where === null;
  return yield* orderEntries(entries, orderBy, { reader, source, scores, newSeed }, isAll, enough);
}

/** Returns the number of entries up to the end of the query's page; null: it needs all, or too many. */
export function pageEndOf({ filter, isDistinct, paging }: AnalyzedQuery): number | null {
  const end = paging.skip + paging.take;
  return filter === null && !isDistinct && end <= pageEndMax ? end : null;
}

/**
 * Returns the first entries of a set in the order, at least `count` of them, without visiting all; null if sorting the
 * list of entries is faster. Entries without an order are in the order of their places.
 */
export function* firstEntries(
  set: EntrySet,
  all: readonly OrderKey[],
  count: number,
  reader: IndexReader,
): Work<Uint32Array | null> {
  const orderBy = countingKeys(all, reader);
  if (reader.store.hasSeveral) return null;
  const [key] = orderBy;
  if (key === undefined) return yield* firstInPlaces(set, count, reader);
  if (key.kind === "spatial.distance" && orderBy.length === 1) {
    return yield* nearestEntries(key, set, count, reader);
  }
  const column = key.kind === "field" ? reader.column(key.field.name, "lower") : undefined;
  if (key.kind !== "field" || column === undefined) return null;
  const { isDescending, nulls } = key;
  const sort = { form: formOf(key, reader), isDescending, nulls, isOnly: false };
  return yield* firstInOrder(column, set, sort, count, reader);
}

/**
 * Sorts entries, which are in the order of their numbers; ties are in place order. `isAll`: these are all entries of
 * the index. `count`: only the first `count` entries need to be sorted.
 * @throws EngineError sorter-missing
 */
export function* orderEntries(
  entries: Uint32Array,
  all: readonly OrderKey[],
  context: OrderContext,
  isAll: boolean,
  count = Number.POSITIVE_INFINITY,
): Work<Uint32Array> {
  for (const key of all) if (key.kind !== "field") orderUseOf(key).check(key);
  const orderBy = countingKeys(all, context.reader);
  const [firstKey] = orderBy;
  if (entries.length < 2) return entries;
  if (firstKey === undefined) return yield* sortedByPlace(entries, context.reader);
  const { budget, view } = context.reader;
  const isOnly = isAll && orderBy.length === 1;
  const keys: Uint32Array[] = [];
  // Includes the arrays that sorting needs besides the keys.
  const heldBytes = (orderBy.length + (view.places === null ? 3 : 4)) * entries.byteLength;
  budget.hold(heldBytes);
  for (const key of orderBy) {
    keys.push(yield* sortKeysOf(entries, key, isOnly, context));
    if (budget.isDue) yield;
  }
  const [first] = keys as [Uint32Array];
  const isSelected = count * selectedShare < entries.length;
  const given = isSelected
    ? yield* smallestPositions(first, count, budget)
    : positionsOf(entries.length);
  if (view.places !== null) keys.push(placesOf(entries, view.places));
  const positions = yield* sortPositions(given, keys, budget);
  budget.release(heldBytes);
  return positions.map((position) => entries[position] as number);
}

/** Returns the keys that count: with Corax, none after a distance that is the first one, as in RavenDB 7.2.7. */
function countingKeys(orderBy: readonly OrderKey[], reader: IndexReader): readonly OrderKey[] {
  const isDistance = orderBy[0]?.kind === "spatial.distance";
  return isDistance && !reader.isLucene ? orderBy.slice(0, 1) : orderBy;
}

function placesOf(entries: Uint32Array, places: Uint32Array): Uint32Array {
  const found = new Uint32Array(entries.length);
  for (let i = 0; i < entries.length; i++) found[i] = places[entries[i] as number] as number;
  return found;
}

function sortKeysOf(
  entries: Uint32Array,
  key: OrderKey,
  isOnly: boolean,
  context: OrderContext,
): Work<Uint32Array> {
  if (key.kind !== "field") return orderUseOf(key).sortKeys(entries, key, context);
  const { reader } = context;
  const { isDescending, nulls } = key;
  const column = reader.column(key.field.name, "lower");
  const sort = { form: formOf(key, reader), isDescending, nulls, isOnly };
  return fieldSortKeys(column, entries, sort, reader.budget);
}

/** Without a type, an index made for Lucene sorts texts, also of time spans; others sort the ticks of these. */
function formOf(
  { type }: { readonly type: OrderType | null },
  { isLucene }: IndexReader,
): OrderType | null {
  return type ?? (isLucene ? "string" : null);
}

/** Returns whether the same query may return a different order the next time. */
export function isRandomOrder(orderBy: readonly OrderKey[]): boolean {
  return orderBy.some((key) => key.kind !== "field" && orderUseOf(key).isRandom);
}
