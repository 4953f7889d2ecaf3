/**
 * Binary search in a sorted array: the loop at the end of every lookup in a tree.
 *
 * Invariants:
 * - `keys` is sorted by `compare` and has no two equal keys.
 */
import type { Compare } from "./compare.ts";

/**
 * Finds where `key` is, or belongs, in sorted `keys`.
 *
 * @returns the position of `key` when present; otherwise `~position`, a negative number, where
 *   `position` in [0, keys.length] is where it would be inserted.
 *
 * Cost: O(log keys.length) calls of `compare`. Hot: a free function over its arguments alone, so
 * that each loop reads locals and not `this`.
 */
export function search<K>(keys: readonly K[], key: K, compare: Compare<K>): number {
  let low = 0;
  let high = keys.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const order = compare(keys[middle] as K, key); // middle < high <= keys.length
    if (order < 0) low = middle + 1;
    else if (order > 0) high = middle;
    else return middle;
  }
  return ~low;
}

/** Returns the number of keys that are less than `key`, or equal to it too when `inclusive`. */
export function countBelow<K>(
  keys: readonly K[],
  key: K,
  inclusive: boolean,
  compare: Compare<K>,
): number {
  const at = search(keys, key, compare);
  if (at < 0) return ~at;
  return inclusive ? at + 1 : at;
}
