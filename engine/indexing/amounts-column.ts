/**
 * Numbers of each entry of a store, equally many, each with its kind: nine bytes a number.
 *
 * Hot: bench/reduce.bench.ts.
 */
import { assert } from "../base/assert.ts";
import { grownBytes, grownFloat64 } from "./packed.ts";
import type { PartReader, PartWriter } from "./saved-parts.ts";
import type { StoreColumn } from "./store-column.ts";

export class AmountsColumn implements StoreColumn {
  entryCount = 0;
  /** Numbers of an entry. */
  readonly width: number;
  /** Those of an entry are at `entry * width` and behind it. */
  values: Float64Array = new Float64Array(16);
  /** By value: less than 256. */
  kinds: Buffer = Buffer.alloc(16);

  constructor(width: number) {
    this.width = width;
  }

  /** The values of the entry that `endEntry` will end. */
  set(values: Float64Array, kinds: Uint8Array): void {
    const { width } = this;
    const from = this.entryCount * width;
    this.#reserve(from + width);
    for (let i = 0; i < width; i++) {
      this.values[from + i] = values[i] as number;
      this.kinds[from + i] = kinds[i] as number;
    }
  }

  endEntry(): void {
    this.entryCount++;
  }

  repeats(entry: number): boolean {
    const { width } = this;
    const from = this.entryCount * width;
    const before = entry * width;
    for (let i = 0; i < width; i++) {
      if (!Object.is(this.values[from + i], this.values[before + i])) return false;
      if (this.kinds[from + i] !== this.kinds[before + i]) return false;
    }
    return true;
  }

  dropPending(): void {}

  empty(): AmountsColumn {
    return new AmountsColumn(this.width);
  }

  copierTo(target: AmountsColumn): (entry: number) => void {
    const { width } = this;
    return (entry) => {
      const from = entry * width;
      target.set(this.values.subarray(from, from + width), this.kinds.subarray(from, from + width));
    };
  }

  save(parts: PartWriter): void {
    const count = this.entryCount * this.width;
    parts.set("entryCount", this.entryCount);
    parts.add("values", this.values.subarray(0, count));
    parts.add("kinds", this.kinds.subarray(0, count));
  }

  // biome-ignore lint/correctness/useYield: there is nothing to do for each entry
  *restore(parts: PartReader): Generator<void> {
    this.entryCount = parts.get<number>("entryCount");
    this.values = parts.float64("values");
    this.kinds = parts.bytes("kinds");
  }

  checkInvariants(): void {
    const count = this.entryCount * this.width;
    assert(this.values.length >= count && this.kinds.length >= count, "every entry has its values");
  }

  #reserve(count: number): void {
    if (count <= this.values.length && count <= this.kinds.length) return;
    this.values = grownFloat64(this.values, count);
    this.kinds = grownBytes(this.kinds, count);
  }
}
