/**
 * Numbers of the segments of time series that an index has mapped. A segment is identified by its key; its number is
 * valid in this index and its snapshots, and is assigned to another segment only after its removal.
 *
 * Invariants:
 * - No two keys have the same number.
 */
import { assert } from "../base/assert.ts";
import {
  type PartReader,
  type PartWriter,
  restoredTexts,
  savedTexts,
} from "./saved/saved-parts.ts";

export class SegmentNumbers {
  readonly #numbers = new Map<string, number>();
  /** By number; null for a free number. */
  readonly #keys: (string | null)[] = [];
  readonly #free: number[] = [];

  get count(): number {
    return this.#numbers.size;
  }

  /** -1 if the key has no number. */
  of(key: string): number {
    return this.#numbers.get(key) ?? -1;
  }

  keyOf(number: number): string | null {
    return this.#keys[number] ?? null;
  }

  /** Returns the number of a key; assigns one if needed. */
  add(key: string): number {
    const known = this.#numbers.get(key);
    if (known !== undefined) return known;
    const number = this.#free.pop() ?? this.#keys.length;
    this.#keys[number] = key;
    this.#numbers.set(key, number);
    return number;
  }

  remove(number: number): void {
    const key = this.#keys[number] ?? null;
    assert(key !== null, "a number that is removed is in use");
    this.#numbers.delete(key);
    this.#keys[number] = null;
    this.#free.push(number);
  }

  /** All numbers are below it. */
  get end(): number {
    return this.#keys.length;
  }

  save(parts: PartWriter): void {
    parts.add("keys", ...savedTexts(this.#keys));
  }

  /** Restores the output of `save`, in steps. */
  *restore(parts: PartReader): Generator<void> {
    for (const key of restoredTexts(parts.bytes("keys"))) {
      const number = this.#keys.length;
      this.#keys.push(key);
      if (key === null) this.#free.push(number);
      else this.#numbers.set(key, number);
      if (number % restoredStride === 0) yield;
    }
  }
}

/** Keys between two steps. */
const restoredStride = 1_024;
