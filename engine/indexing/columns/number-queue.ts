/**
 * A FIFO queue of dense numbers, each at most once. Four bytes per number in a ring, and a bitmap of the queued
 * numbers.
 *
 * Invariants:
 * - A number has its bit exactly while it is in the ring.
 */
import { assert } from "../../base/assert.ts";
import type { Work, WorkBudget } from "../../base/scheduling/work-budget.ts";
import { grownUint32 } from "./packed.ts";

export class NumberQueue {
  /** Number of removals so far: `takenCount + size` is the position of the next number in the sequence of all. */
  takenCount = 0;
  size = 0;
  /** A power of two in length; the first is at `takenCount`, modulo the length. */
  #ring: Uint32Array = new Uint32Array(16);
  /** One bit for each number. */
  #waiting: Uint32Array = new Uint32Array(1);

  /** Adds a number to the end, unless it waits already. */
  add(number: number): void {
    const word = number >>> 5;
    if (word >= this.#waiting.length) this.#waiting = grownUint32(this.#waiting, word + 1);
    const bit = 1 << (number & 31);
    if (((this.#waiting[word] as number) & bit) !== 0) return;
    this.#waiting[word] = (this.#waiting[word] as number) | bit;
    if (this.size === this.#ring.length) this.#grow();
    this.#ring[this.#placeOf(this.size++)] = number;
  }

  /** Removes and returns the first number; the queue must not be empty. */
  take(): number {
    assert(this.size > 0, "a number is taken from a queue that has one");
    const number = this.#ring[this.#placeOf(0)] as number;
    this.#waiting[number >>> 5] = (this.#waiting[number >>> 5] as number) & ~(1 << (number & 31));
    this.takenCount++;
    this.size--;
    return number;
  }

  /**
   * Removes, in slices, the numbers that are queued at the time of the call: including later ones it might never end.
   * Each number costs `units`.
   */
  *takeAll(take: (number: number) => void, units: number, budget: WorkBudget): Work<void> {
    const end = this.takenCount + this.size;
    while (this.takenCount < end) {
      take(this.take());
      budget.tick(units);
      if (budget.isDue) yield;
    }
  }

  /** Returns all that wait, in their order. */
  toArray(): Uint32Array {
    return Uint32Array.from(
      { length: this.size },
      (_, at) => this.#ring[this.#placeOf(at)] as number,
    );
  }

  #placeOf(at: number): number {
    return (this.takenCount + at) % this.#ring.length;
  }

  #grow(): void {
    const waiting = this.toArray();
    const ring = new Uint32Array(this.#ring.length * 2);
    waiting.forEach((number, at) => {
      ring[(this.takenCount + at) % ring.length] = number;
    });
    this.#ring = ring;
  }
}
