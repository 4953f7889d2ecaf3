/**
 * Orders over keys: pure functions, which know nothing of trees.
 *
 * Invariants:
 * - Each is a total order: negative, zero or positive, and zero only for keys that are considered equal.
 */
import { lowerCased } from "../case-folding.ts";

export type Compare<K> = (left: K, right: K) => number;

/** Returns the order of numbers; neither may be NaN. */
export function compareNumbers(left: number, right: number): number {
  return left < right ? -1 : left > right ? 1 : 0;
}

/**
 * Orders strings by code point, which is the order of their UTF-8 bytes (JavaScript's `<` compares UTF-16 units and
 * puts U+FFFF after an emoji). Cost: O(length of the common prefix).
 */
export function compareStrings(left: string, right: string): number {
  const length = Math.min(left.length, right.length);
  for (let at = 0; at < length; at++) {
    const leftUnit = left.charCodeAt(at);
    const rightUnit = right.charCodeAt(at);
    if (leftUnit !== rightUnit) return codePointRank(leftUnit) - codePointRank(rightUnit);
  }
  return left.length - right.length;
}

/** UTF-16 units from which their order is not the order of code points: surrogates, and the units above them. */
const highUnit = /[\ud800-\uffff]/;

/**
 * The order of `compareStrings` for the keys of a tree, by JavaScript's `<` until a key with a high unit is added: a
 * commit of 50,000 counters takes half the time.
 *
 * Invariants:
 * - `compare` never reorders added keys: where at most one side has high units, `<` is the order of code points.
 */
export class KeyOrder {
  #hasHighUnits = false;

  /** Must be called before a key enters a tree of this order. */
  add(key: string): void {
    if (!this.#hasHighUnits && highUnit.test(key)) this.#hasHighUnits = true;
  }

  /** Compares two keys of which at least one was added. */
  readonly compare: Compare<string> = (left, right) => {
    if (this.#hasHighUnits) return compareStrings(left, right);
    return left < right ? -1 : left === right ? 0 : 1;
  };
}

/** Orders ids as documents are ordered: by the UTF-8 bytes of their lower-cased text. */
export function compareIds(left: string, right: string): number {
  return compareStrings(lowerCased(left), lowerCased(right));
}

/** Surrogates encode code points above U+FFFF, so they sort after the units U+E000 to U+FFFF. */
function codePointRank(unit: number): number {
  if (unit < 0xd800) return unit;
  return unit < 0xe000 ? unit + 0x2000 : unit - 0x800;
}

/** Orders two byte ranges; a proper prefix is less. Hot: short ranges. */
export function compareBytes(
  left: Uint8Array,
  leftStart: number,
  leftLength: number,
  right: Uint8Array,
  rightStart: number,
  rightLength: number,
): number {
  const length = Math.min(leftLength, rightLength);
  for (let at = 0; at < length; at++) {
    const difference = (left[leftStart + at] as number) - (right[rightStart + at] as number); // within
    if (difference !== 0) return difference;
  }
  return leftLength - rightLength;
}
