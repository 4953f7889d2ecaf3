/**
 * Numbers of each entry of a store, equally many, each with its kind: nine bytes a number. Once 64-bit integers exist,
 * two additional bytes per number hold the difference between an integer and its double.
 *
 * Hot: bench/reduce.bench.ts.
 */
import { assert } from "../../base/assert.ts";
import type { PartReader, PartWriter } from "../saved/saved-parts.ts";
import { grownBytes, grownFloat64 } from "./packed.ts";
import type { StoreColumn } from "./store-column.ts";

export class AmountsColumn implements StoreColumn {
  entryCount = 0;
  /** Numbers of an entry. */
  readonly width: number;
  /** The numbers of an entry start at `entry * width`. */
  values: Float64Array = new Float64Array(16);
  /** By value: less than 256. */
  kinds: Buffer = Buffer.alloc(16);

  /** By value: the difference between an integer and its double; null while no such integers exist. */
  lows: Int16Array | null = null;

  constructor(width: number) {
    this.width = width;
  }

  /** The values of the entry that `endEntry` will end. */
  set(values: Float64Array, kinds: Uint8Array, lows: Int16Array): void {
    const { width } = this;
    const from = this.entryCount * width;
    this.#reserve(from + width);
    for (let i = 0; i < width; i++) {
      this.values[from + i] = values[i] as number;
      this.kinds[from + i] = kinds[i] as number;
      if (lows[i] !== 0) this.lows ??= new Int16Array(this.values.length);
      if (this.lows !== null) this.lows[from + i] = lows[i] as number;
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
      if (this.lowAt(from + i) !== this.lowAt(before + i)) return false;
    }
    return true;
  }

  /** Returns the difference between the integer at a position of `values` and its double. */
  lowAt(at: number): number {
    return this.lows === null ? 0 : (this.lows[at] as number);
  }

  dropPending(): void {}

  empty(): AmountsColumn {
    return new AmountsColumn(this.width);
  }

  copierTo(target: AmountsColumn): (entry: number) => void {
    const { width } = this;
    const none = new Int16Array(width);
    return (entry) => {
      const [from, to] = [entry * width, (entry + 1) * width];
      const lows = this.lows?.subarray(from, to) ?? none;
      target.set(this.values.subarray(from, to), this.kinds.subarray(from, to), lows);
    };
  }

  save(parts: PartWriter): void {
    const count = this.entryCount * this.width;
    parts.set("entryCount", this.entryCount);
    parts.add("values", this.values.subarray(0, count));
    parts.add("kinds", this.kinds.subarray(0, count));
    if (this.lows !== null) parts.add("lows", this.lows.subarray(0, count));
  }

  // biome-ignore lint/correctness/useYield: there is nothing to do for each entry
  *restore(parts: PartReader): Generator<void> {
    this.entryCount = parts.get<number>("entryCount");
    this.values = parts.float64("values");
    this.kinds = parts.bytes("kinds");
    if (!parts.has("lows")) return;
    const lows = parts.bytes("lows");
    this.lows = new Int16Array(lows.buffer, lows.byteOffset, lows.length >>> 1);
  }

  checkInvariants(): void {
    const count = this.entryCount * this.width;
    assert(this.values.length >= count && this.kinds.length >= count, "every entry has its values");
  }

  #reserve(count: number): void {
    if (count <= this.values.length && count <= this.kinds.length) return;
    this.values = grownFloat64(this.values, count);
    this.kinds = grownBytes(this.kinds, count);
    if (this.lows === null) return;
    const grown = new Int16Array(this.values.length);
    grown.set(this.lows);
    this.lows = grown;
  }
}
