/**
 * One number for each entry of a store, and for each number the ascending list of its entries. Numbers are dense group
 * numbers, from 0.
 *
 * Hot: bench/scan.bench.ts.
 */
import { assert } from "../../base/assert.ts";
import type { PartReader, PartWriter } from "../saved/saved-parts.ts";
import { grownUint32 } from "./packed.ts";
import { restoreStride, type StoreColumn } from "./store-column.ts";

export class NumberColumn implements StoreColumn {
  entryCount = 0;
  /** By entry. */
  numbers: Uint32Array = new Uint32Array(16);
  /** By entry: the next entry of the same number, plus one; 0 ends the list. */
  nexts: Uint32Array = new Uint32Array(16);
  /** By number: its first and last entry, plus one; 0 if the number has no entry. */
  #firsts: Uint32Array = new Uint32Array(16);
  #lasts: Uint32Array = new Uint32Array(16);
  #pending = 0;

  /** The number of the entry that `endEntry` will end. */
  set(number: number): void {
    this.#pending = number;
  }

  repeats(entry: number): boolean {
    return this.numbers[entry] === this.#pending;
  }

  dropPending(): void {}

  endEntry(): void {
    const entry = this.entryCount++;
    if (entry >= this.numbers.length) {
      this.numbers = grownUint32(this.numbers, entry + 1);
      this.nexts = grownUint32(this.nexts, entry + 1);
    }
    this.numbers[entry] = this.#pending;
    this.#link(entry);
  }

  /** Returns the first entry of a number, or -1. */
  firstOf(number: number): number {
    return (this.#firsts[number] ?? 0) - 1;
  }

  /** Returns the next entry in the list, or -1. */
  nextOf(entry: number): number {
    return (this.nexts[entry] as number) - 1;
  }

  empty(): NumberColumn {
    return new NumberColumn();
  }

  copierTo(target: NumberColumn): (entry: number) => void {
    return (entry) => target.set(this.numbers[entry] as number);
  }

  save(parts: PartWriter): void {
    parts.add("numbers", this.numbers.subarray(0, this.entryCount));
  }

  *restore(parts: PartReader): Generator<void> {
    this.numbers = parts.uint32("numbers");
    this.entryCount = this.numbers.length;
    this.nexts = new Uint32Array(this.entryCount);
    for (let entry = 0; entry < this.entryCount; entry++) {
      this.#link(entry);
      if (entry % restoreStride === 0) yield;
    }
  }

  checkInvariants(): void {
    let listed = 0;
    for (let number = 0; number < this.#firsts.length; number++) {
      let previous = -1;
      for (let entry = this.firstOf(number); entry >= 0; entry = this.nextOf(entry)) {
        assert(entry > previous, "the list of a number ascends");
        assert(this.numbers[entry] === number, "the list of a number has its entries only");
        previous = entry;
        listed++;
      }
    }
    assert(listed === this.entryCount, "every entry is in one list");
  }

  #link(entry: number): void {
    const number = this.numbers[entry] as number;
    if (number >= this.#firsts.length) {
      this.#firsts = grownUint32(this.#firsts, number + 1);
      this.#lasts = grownUint32(this.#lasts, number + 1);
    }
    const last = this.#lasts[number] as number;
    if (last === 0) this.#firsts[number] = entry + 1;
    else this.nexts[last - 1] = entry + 1;
    this.#lasts[number] = entry + 1;
  }
}
