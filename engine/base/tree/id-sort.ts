/**
 * Sorts document numbers by id in small steps: first blocks, then adjacent blocks are merged until one is left. Ids
 * that are already in order cost one comparison each. Unlike in `slicedSort`, the items are complete between steps,
 * because a snapshot may contain them.
 */
import type { IdSlab } from "./id-slab.ts";

export class IdSort {
  readonly #slab: IdSlab;
  readonly #blockMax: number;
  #items: Uint32Array;
  #merged: Uint32Array;
  /** Length of the sorted blocks, 0 in the first pass; and the position of this pass. */
  #width = 0;
  #at = 0;

  /** @param blockMax - numbers sorted in one step; the last merge processes all of them in one step. */
  constructor(items: Uint32Array, slab: IdSlab, blockMax: number) {
    this.#items = items;
    this.#merged = new Uint32Array(items.length);
    this.#slab = slab;
    this.#blockMax = blockMax;
  }

  /** All numbers; sorted once `step` has returned true. */
  get items(): Uint32Array {
    return this.#items;
  }

  /** Performs one step, with at most `items.length` comparisons. @returns whether all is sorted. */
  step(): boolean {
    const length = this.#items.length;
    if (this.#width >= length) return true;
    if (this.#width === 0) {
      sortBlock(this.#items.subarray(this.#at, this.#at + this.#blockMax), this.#slab);
      this.#at += this.#blockMax;
      if (this.#at >= length) this.#nextPass(this.#blockMax);
    } else {
      const middle = Math.min(length, this.#at + this.#width);
      const end = Math.min(length, middle + this.#width);
      mergeBlocks(this.#items, this.#at, middle, end, this.#merged, this.#slab);
      this.#at = end;
      if (end < length) return false;
      const items = this.#items;
      this.#items = this.#merged;
      this.#merged = items;
      this.#nextPass(this.#width * 2);
    }
    return this.#width >= length;
  }

  #nextPass(width: number): void {
    this.#width = width;
    this.#at = 0;
  }
}

function sortBlock(block: Uint32Array, slab: IdSlab): void {
  for (let at = 1; at < block.length; at++) {
    if (slab.compare(block[at - 1] as number, block[at] as number) <= 0) continue; // at < length
    block.sort((left, right) => slab.compare(left, right));
    return;
  }
}

/** Merges sorted `source[start, middle)` and `source[middle, end)` into the same places of `target`. */
function mergeBlocks(
  source: Uint32Array,
  start: number,
  middle: number,
  end: number,
  target: Uint32Array,
  slab: IdSlab,
): void {
  let left = start;
  let right = middle;
  let to = start;
  const isInOrder =
    middle < end && slab.compare(source[middle - 1] as number, source[middle] as number) <= 0;
  if (!isInOrder) {
    while (left < middle && right < end) {
      const isLeft = slab.compare(source[left] as number, source[right] as number) <= 0; // within
      target[to++] = (isLeft ? source[left++] : source[right++]) as number;
    }
  }
  target.set(source.subarray(left, middle), to);
  target.set(source.subarray(right, end), to + middle - left);
}
