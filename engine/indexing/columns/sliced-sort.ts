/**
 * Sorting as work that pauses: by comparison, and by keys. Both are stable. Small arrays are sorted without pauses.
 * Independent of the meaning of the items.
 */
import type { Work, WorkBudget } from "../../base/scheduling/work-budget.ts";
import { radixCountMin, sortByKey } from "./packed.ts";

/** Number of items sorted in one call by the built-in sort. */
const runLength = 512;
/** Items between two checks of the budget. */
const stride = 1024;
const radixBits = 16;
const radixSize = 1 << radixBits;
const radixStride = 1 << 16;

/** Bottom-up merge sort by comparison. @returns `items` or another array */
export function* slicedSort(
  items: Uint32Array,
  compare: (left: number, right: number) => number,
  budget: WorkBudget,
): Work<Uint32Array> {
  if (items.length < 2) return items;
  for (let from = 0; from < items.length; from += runLength) {
    const run = items.subarray(from, from + runLength);
    run.sort(compare);
    budget.spend(run.length * 8);
    if (budget.isDue) yield;
  }
  let source = items;
  let target: Uint32Array = new Uint32Array(items.length > runLength ? items.length : 0);
  for (let width = runLength; width < items.length; width *= 2) {
    for (let from = 0; from < items.length; from += 2 * width) {
      yield* merge(source, target, from, width, compare, budget);
    }
    const swap = source;
    source = target;
    target = swap;
  }
  return source;
}

/** Merges `[from, from + width)` and the run after it. */
function* merge(
  source: Uint32Array,
  target: Uint32Array,
  from: number,
  width: number,
  compare: (left: number, right: number) => number,
  budget: WorkBudget,
): Work<void> {
  const middle = Math.min(source.length, from + width);
  const end = Math.min(source.length, middle + width);
  let left = from;
  let right = middle;
  for (let at = from; at < end; at++) {
    const isLeft =
      right >= end ||
      (left < middle && compare(source[left] as number, source[right] as number) <= 0);
    target[at] = source[isLeft ? left++ : right++] as number;
    if ((at & (stride - 1)) !== 0) continue;
    budget.spend(stride);
    if (budget.isDue) yield;
  }
}

/** Sorts `items` by `keys[item]`, ascending and stable. @returns `items` or another array */
export function* slicedSortByKey(
  items: Uint32Array,
  keys: Uint32Array,
  budget: WorkBudget,
): Work<Uint32Array> {
  if (items.length <= radixStride) {
    sortByKey(items, items.length, keys);
    budget.spend(items.length * (items.length < radixCountMin ? 8 : 2));
    if (budget.isDue) yield;
    return items;
  }
  let source = items;
  let target: Uint32Array = new Uint32Array(items.length);
  for (let shift = 0; shift < 32; shift += radixBits) {
    if (!(yield* radixPass(source, target, keys, shift, budget))) continue;
    const swap = source;
    source = target;
    target = swap;
  }
  return source;
}

/** One stable pass over 16 bits. @returns false, without moving anything, if all keys have the same 16 bits. */
function* radixPass(
  source: Uint32Array,
  target: Uint32Array,
  keys: Uint32Array,
  shift: number,
  budget: WorkBudget,
): Work<boolean> {
  const counts = new Uint32Array(radixSize);
  for (let from = 0; from < source.length; from += radixStride) {
    countKeys(source.subarray(from, from + radixStride), keys, shift, counts);
    budget.spend(radixStride);
    if (budget.isDue) yield;
  }
  const first = ((keys[source[0] as number] as number) >>> shift) & (radixSize - 1);
  if (counts[first] === source.length) return false;
  let sum = 0;
  for (let bucket = 0; bucket < radixSize; bucket++) {
    const size = counts[bucket] as number;
    counts[bucket] = sum;
    sum += size;
  }
  for (let from = 0; from < source.length; from += radixStride) {
    placeItems(source.subarray(from, from + radixStride), keys, shift, counts, target);
    budget.spend(radixStride);
    if (budget.isDue) yield;
  }
  return true;
}

function countKeys(
  items: Uint32Array,
  keys: Uint32Array,
  shift: number,
  counts: Uint32Array,
): void {
  for (let i = 0; i < items.length; i++) {
    const bucket = ((keys[items[i] as number] as number) >>> shift) & (radixSize - 1);
    counts[bucket] = (counts[bucket] as number) + 1;
  }
}

function placeItems(
  items: Uint32Array,
  keys: Uint32Array,
  shift: number,
  starts: Uint32Array,
  target: Uint32Array,
): void {
  for (let i = 0; i < items.length; i++) {
    const item = items[i] as number;
    const bucket = ((keys[item] as number) >>> shift) & (radixSize - 1);
    const at = starts[bucket] as number;
    starts[bucket] = at + 1;
    target[at] = item;
  }
}
