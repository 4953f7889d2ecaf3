/**
 * Returns the page of a query in the order of distances from a location, without ordering all matches: if there are
 * many matches and the page is short, the nearest entries are read from the index one by one.
 *
 * The order equals that of the sort keys (functions/spatial-functions.ts); ties are in place order. Descending on the
 * globe is ascending from the opposite place.
 *
 * Hot: bench/spatial.bench.ts.
 */
import type { Work } from "../../base/scheduling/work-budget.ts";
import { BestEntries } from "../../indexing/columns/best-entries.ts";
import type { EntrySet } from "../../indexing/columns/entry-set.ts";
import { sortedByPlace } from "../../indexing/columns/place-order.ts";
import type { IndexReader } from "../../indexing/index-reader.ts";
import { reportedDistance } from "../../indexing/spatial/space.ts";
import type { SpatialColumn } from "../../indexing/spatial/spatial-column.ts";
import type { AnalyzedQuery, OrderKey } from "../analysis/analyzed-query.ts";
import { placeIn } from "../functions/spatial-arguments.ts";
import { isRounded, isWithoutFirst } from "../functions/spatial-functions.ts";

/** Entries below which computing the distances of all of them is as fast. */
const entriesMin = 1024;
/** Cost of computing a distance. */
const distanceUnits = 8;
/** More than the haversines of two equal distances differ when they are computed from the opposite place. */
const oppositeSlack = 1e-12;

type DistanceKey = Extract<OrderKey, { readonly kind: "spatial.distance" }>;

/**
 * Returns the first `count` entries of a set in the order of distances; null: they are better ordered as others are.
 */
export function* nearestEntries(
  key: DistanceKey,
  set: EntrySet,
  count: number,
  reader: IndexReader,
): Work<Uint32Array | null> {
  const { field, place, isDescending } = key;
  const { budget, view, store } = reader;
  const found = reader.spatial(field.name);
  if (found === undefined || store.hasSeveral) return null;
  const { column, isLucene } = found;
  if (isRounded(key, isLucene)) return null;
  // In a list, `has` is a search.
  const isWalked = set.list === null && count * view.size <= set.count * set.count;
  if (!isWalked || set.count < entriesMin) {
    return yield* leastDistant(column, key, set.toList(), count, reader, isLucene);
  }
  const isFlat = column.space.type === "Cartesian";
  const { x, y } = placeIn(column.space, place);
  yield* column.refresh(budget);
  if (isDescending && (isFlat || column.hasSeveral)) return null;
  const areFirst = isWithoutFirst(key, isLucene);
  const without = areFirst ? yield* withoutShape(column, set, count, reader) : [];
  const among = {
    accepts: (entry: number) => entry < view.size && set.has(entry),
    rankOf: (entry: number) => view.placeOf(entry),
  };
  const rest = count - without.length;
  const [fromX, fromY] = isDescending ? [x > 0 ? x - 180 : x + 180, -y] : [x, y];
  const slack = isDescending ? oppositeSlack : 0;
  const near = rest <= 0 ? [] : yield* column.nearest(fromX, fromY, rest, slack, among, budget);
  const ordered = isDescending ? yield* reordered(column, near, x, y, reader) : near;
  const entries = [...without, ...ordered];
  if (entries.length < count && !areFirst) {
    entries.push(...(yield* withoutShape(column, set, count - entries.length, reader)));
  }
  return Uint32Array.from(entries.slice(0, count));
}

/** Returns the same, from the distances of all entries of the set. */
function* leastDistant(
  column: SpatialColumn,
  key: DistanceKey,
  entries: Uint32Array,
  count: number,
  { budget, view }: IndexReader,
  isLucene: boolean,
): Work<Uint32Array | null> {
  if (count === 0) return null;
  const { place, isDescending } = key;
  const { x, y } = placeIn(column.space, place);
  yield* column.refresh(budget);
  const without = isWithoutFirst(key, isLucene)
    ? Number.POSITIVE_INFINITY
    : Number.NEGATIVE_INFINITY;
  const best = new BestEntries(Math.min(count, entries.length), view.places);
  for (let i = 0; i < entries.length; i++) {
    const entry = entries[i] as number;
    const distance = column.keyOf(entry, x, y);
    best.offer(entry, Number.isNaN(distance) ? without : isDescending ? distance : -distance);
    budget.spend(distanceUnits);
    if (budget.isDue) yield;
  }
  return best.take();
}

/**
 * Returns the entries found from the opposite place, whose distances are rounded otherwise, in the order of their own
 * distances.
 */
function* reordered(
  column: SpatialColumn,
  entries: readonly number[] | Uint32Array,
  x: number,
  y: number,
  { budget, view }: IndexReader,
): Work<number[]> {
  const keyed = [...entries].map((entry) => ({ entry, key: column.keyOf(entry, x, y) }));
  budget.spend(keyed.length * 16);
  keyed.sort((a, b) => b.key - a.key || view.placeOf(a.entry) - view.placeOf(b.entry));
  return keyed.map(({ entry }) => entry);
}

function* withoutShape(
  column: SpatialColumn,
  set: EntrySet,
  count: number,
  reader: IndexReader,
): Work<number[]> {
  const entries: number[] = [];
  const all = yield* sortedByPlace(column.withoutShape(reader.view), reader);
  for (let i = 0; i < all.length && entries.length < count; i++) {
    if (set.has(all[i] as number)) entries.push(all[i] as number);
  }
  reader.budget.spend(all.length >>> 2);
  return entries;
}

/**
 * Returns the `@spatial` member of rows that an index made for Lucene finds in the order of distances, which follows
 * `@index-score`; null if the rows have no such member.
 */
export function* distanceTexts(
  { orderBy }: AnalyzedQuery,
  reader: IndexReader,
): Work<((entry: number) => string) | null> {
  const key = orderBy.find((one) => one.kind === "spatial.distance");
  const found = key === undefined ? undefined : reader.spatial(key.field.name);
  if (key === undefined || found === undefined) return null;
  const { column } = found;
  const { x, y } = placeIn(column.space, key.place);
  yield* column.refresh(reader.budget);
  return (entry) => {
    const at = column.placeOf(entry, x, y);
    if (at === null) return ',"@spatial":{"Distance":"NaN","Latitude":"NaN","Longitude":"NaN"}';
    const distance = reportedDistance(column.space, x, y, at.x, at.y);
    return `,"@spatial":{"Distance":${distance},"Latitude":${at.y},"Longitude":${at.x}}`;
  };
}
