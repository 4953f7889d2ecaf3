/**
 * Orders entries by their places (entry-store.ts): the order of results without `order by`, and of ties in another
 * order. In an index whose documents were never changed this is the order of their numbers, and costs nothing.
 *
 * Hot: bench/query.bench.ts.
 */
import type { Work, WorkBudget } from "../../base/scheduling/work-budget.ts";
import type { IndexReader } from "../index-reader.ts";
import { BestEntries } from "./best-entries.ts";
import type { EntrySet } from "./entry-set.ts";
import type { EntryStore } from "./entry-store.ts";
import type { EntryView } from "./entry-view.ts";
import { slicedSortByKey } from "./sliced-sort.ts";

/** Places that are visited in one go, before all entries of the set are looked at instead. */
const visitsMax = 16_384;
/** The first ones are selected where there are so many times more entries. */
const selectedShare = 4;
/** Entries between two checks of the budget. */
const stride = 4096;

/** The members of a query's reader that are used here. */
type PlaceReader = Pick<IndexReader, "view" | "store" | "budget">;

/** Sorts entries, which are in the order of their numbers, by place; the array must not be changed. */
export function* sortedByPlace(
  entries: Uint32Array,
  { view: { places }, budget }: PlaceReader,
): Work<Uint32Array> {
  if (places === null) return entries;
  budget.hold(2 * entries.byteLength);
  const sorted = yield* slicedSortByKey(entries.slice(), places, budget);
  budget.release(2 * entries.byteLength);
  return sorted;
}

/** Returns the first `count` entries of a set, or all; the array must not be changed. */
export function* firstInPlaces(
  set: EntrySet,
  count: number,
  reader: PlaceReader,
): Work<Uint32Array> {
  const { view, store, budget } = reader;
  const { places } = view;
  if (places === null) return set.first(count);
  if (set.list === null && view.hasAll) {
    const first = walkedPlaces(set, count, places, view, store);
    budget.spend(visitsMax >>> 2);
    if (first !== null) return first;
  }
  const entries = set.toList();
  if (count * selectedShare < entries.length)
    return yield* selected(entries, count, places, budget);
  return (yield* sortedByPlace(entries, reader)).subarray(0, count);
}

/**
 * Visits the places from the first on: the entries of a large set are soon met. Only while the store has all entries of the
 * view.
 * @returns null: most are further on
 */
function walkedPlaces(
  set: EntrySet,
  count: number,
  places: Uint32Array,
  { size }: EntryView,
  store: EntryStore,
): Uint32Array | null {
  const wanted = Math.min(count, set.count);
  const first = new Uint32Array(wanted);
  const end = Math.min(size, visitsMax);
  let found = 0;
  for (let place = 0; place < end && found < wanted; place++) {
    // Dead entries are not in the set.
    const isIn = set.has(place);
    if (isIn && places[place] === place) first[found++] = place;
    else if (!isIn) {
      const entry = store.entryAt(place);
      if (entry !== place && entry >= 0 && set.has(entry)) first[found++] = entry;
    }
  }
  return found === wanted ? first : null;
}

function* selected(
  entries: Uint32Array,
  count: number,
  places: Uint32Array,
  budget: WorkBudget,
): Work<Uint32Array> {
  if (count === 0) return new Uint32Array(0);
  const best = new BestEntries(count);
  for (let from = 0; from < entries.length; from += stride) {
    const to = Math.min(entries.length, from + stride);
    offerPlaces(best, entries.subarray(from, to), places);
    budget.spend(to - from);
    if (budget.isDue) yield;
  }
  return best.take();
}

function offerPlaces(best: BestEntries, entries: Uint32Array, places: Uint32Array): void {
  let { threshold } = best;
  for (let i = 0; i < entries.length; i++) {
    const entry = entries[i] as number; // i < length
    const score = -(places[entry] as number);
    if (score < threshold) continue;
    best.offer(entry, score);
    ({ threshold } = best);
  }
}
