/**
 * Binary search by a condition. Trees search for keys with base/tree/search.ts; the hot loops of tree/ search inline.
 */

/**
 * Returns the first index in [`from`, `to`) for which `isBefore` is false; `to` if it is true for all. `isBefore` must
 * be true for all indexes up to some point and false for all after it. Cost: O(log(to - from)) calls.
 */
export function partitionPoint(
  from: number,
  to: number,
  isBefore: (index: number) => boolean,
): number {
  let low = from;
  let high = to;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (isBefore(middle)) low = middle + 1;
    else high = middle;
  }
  return low;
}
