/**
 * A set of document numbers, a bitmap in chunks that are freed when empty. It can remove the lowest: numbers that are
 * reused lowest first stay together, so that the end of the range can be freed as a whole.
 *
 * Invariants:
 * - A chunk's count is the number of its bits that are set; no chunk below `#lowest` has one.
 */
import { assert } from "../assert.ts";

export class NumberSet {
  readonly #shift: number;
  readonly #mask: number;
  /** Undefined: no number in this chunk. */
  #chunks: (Uint32Array | undefined)[] = [];
  #counts: number[] = [];
  #lowest = 0;
  #count = 0;

  /** @param numbersPerChunk - a power of two. */
  constructor(numbersPerChunk: number) {
    this.#shift = Math.log2(numbersPerChunk);
    this.#mask = numbersPerChunk - 1;
  }

  get count(): number {
    return this.#count;
  }

  /** Returns the number of members in the chunk of this number. */
  countAround(number: number): number {
    return this.#counts[number >>> this.#shift] ?? 0;
  }

  has(number: number): boolean {
    const chunk = this.#chunks[number >>> this.#shift];
    if (chunk === undefined) return false;
    return (
      (((chunk[(number & this.#mask) >>> 5] as number) >>> (number & this.#mask & 31)) & 1) !== 0
    );
  }

  /** Adds a number, unless it is a member. */
  add(number: number): void {
    if (this.has(number)) return;
    const at = number >>> this.#shift;
    let chunk = this.#chunks[at];
    if (chunk === undefined) {
      while (this.#counts.length <= at) this.#counts.push(0);
      chunk = new Uint32Array(Math.ceil((this.#mask + 1) / 32));
      this.#chunks[at] = chunk;
    }
    const word = (number & this.#mask) >>> 5;
    chunk[word] = (chunk[word] as number) | (1 << (number & this.#mask & 31));
    this.#counts[at] = (this.#counts[at] as number) + 1;
    this.#count++;
    if (at < this.#lowest) this.#lowest = at;
  }

  /** @returns false when it was not a member. */
  delete(number: number): boolean {
    if (!this.has(number)) return false;
    const at = number >>> this.#shift;
    const chunk = this.#chunks[at] as Uint32Array; // it has the number
    const word = (number & this.#mask) >>> 5;
    chunk[word] = (chunk[word] as number) & ~(1 << (number & this.#mask & 31));
    this.#counts[at] = (this.#counts[at] as number) - 1;
    this.#count--;
    if (this.#counts[at] === 0) this.#chunks[at] = undefined;
    return true;
  }

  /** Removes the lowest number; there must be one. Cost: at most the scan of one chunk. */
  takeLowest(): number {
    assert(this.#count > 0, "there is a number");
    while ((this.#counts[this.#lowest] ?? 0) === 0) this.#lowest++;
    const chunk = this.#chunks[this.#lowest] as Uint32Array; // its count is not 0
    let word = 0;
    while (chunk[word] === 0) word++;
    const bits = chunk[word] as number; // one of the words is not 0
    const bit = 31 - Math.clz32(bits & -bits);
    const number = this.#lowest * (this.#mask + 1) + (word << 5) + bit;
    this.delete(number);
    return number;
  }

  memoryBytes(): number {
    let bytes = 0;
    for (const chunk of this.#chunks) bytes += chunk?.byteLength ?? 8;
    return bytes;
  }

  checkInvariants(): void {
    let count = 0;
    for (const [at, counted] of this.#counts.entries()) {
      let bits = 0;
      for (let word of this.#chunks[at] ?? []) for (; word !== 0; word &= word - 1) bits++;
      assert(bits === counted, "numbers of a chunk are counted");
      assert(bits === 0 || at >= this.#lowest, "the lowest chunk with a number is known");
      count += bits;
    }
    assert(count === this.#count, "numbers are counted");
  }
}
