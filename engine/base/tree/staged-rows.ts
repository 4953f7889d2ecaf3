/**
 * Rows that are staged until they are durable: a queue packed in recycled chunks.
 *
 *   numbers chunk (f64): etag | position | ...
 *   words chunk (u32):   docNum | length | word | previous | next | ...
 *
 * A slot is chunk * slotsPerChunk + offset. `previous` and `next` link the entries of one document
 * (slot + 1, 0 = none); `#newest` has, for each document, the slot + 1 of its last entry.
 *
 * Invariants:
 * - The queued entries of one document are linked both ways in the order in which they were staged.
 */
import { assert } from "../assert.ts";

/** Chunks that are kept while nothing is staged. */
const idleChunks = 4;
/** Words per slot, and their offsets in it; for loops over a `StagedRun`. */
export const stagedWords = 5;
export const stagedDocNumAt = 0;
export const stagedLengthAt = 1;
export const stagedWordAt = 2;
const previousAt = 3;
const nextAt = 4;

/** Rows to stage, by row: words with their offsets, and etags. */
export interface PackedRows {
  readonly count: number;
  readonly words: Uint32Array;
  readonly etags: Float64Array;
}
export const packedRow = { words: 4, docNum: 0, offset: 1, length: 2, word: 3 } as const;

/** Contiguous entries, `from` to `to` of a chunk, in the layout shown above. */
export interface StagedRun {
  numbers: Float64Array;
  words: Uint32Array;
  from: number;
  to: number;
}

const noNumbers = new Float64Array(0);
const noWords: Uint32Array = new Uint32Array(0);

export class StagedRows {
  readonly #shift: number;
  readonly #mask: number;
  readonly #newestShift: number;
  readonly #newestMask: number;
  #numbers: Float64Array[] = [];
  #words: Uint32Array[] = [];
  /** Chunks in the order of the queue, including those of its first and last entry. */
  #order: number[] = [];
  #free: number[] = [];
  /** Offset of the oldest entry in the first chunk; offset after the newest in the last. */
  #head = 0;
  #tail: number;
  #count = 0;
  /** Undefined where no document of the chunk has a staged entry. */
  #newest: (Uint32Array | undefined)[] = [];
  readonly #run: StagedRun = { numbers: noNumbers, words: noWords, from: 0, to: 0 };

  /** @param slotsPerChunk, docNumsPerChunk - powers of two. */
  constructor(slotsPerChunk: number, docNumsPerChunk: number) {
    this.#shift = Math.log2(slotsPerChunk);
    this.#mask = slotsPerChunk - 1;
    this.#newestShift = Math.log2(docNumsPerChunk);
    this.#newestMask = docNumsPerChunk - 1;
    this.#tail = slotsPerChunk;
  }

  get count(): number {
    return this.#count;
  }

  /** Appends an entry. Hot. */
  push(docNum: number, etag: number, position: number, length: number, word: number): void {
    if (this.#tail > this.#mask) this.#addChunk();
    const chunk = this.#order[this.#order.length - 1] as number; // #addChunk made one
    const at = this.#tail++;
    const slot = (chunk << this.#shift) + at;
    const numbers = this.#numbers[chunk] as Float64Array;
    numbers[at << 1] = etag;
    numbers[(at << 1) + 1] = position;
    const words = this.#words[chunk] as Uint32Array;
    const base = at * stagedWords;
    const newest = this.#newest[docNum >>> this.#newestShift] ?? this.#addNewest(docNum);
    const previous = newest[docNum & this.#newestMask] as number;
    words[base + stagedDocNumAt] = docNum;
    words[base + stagedLengthAt] = length;
    words[base + stagedWordAt] = word;
    words[base + previousAt] = previous;
    words[base + nextAt] = 0;
    if (previous > 0) this.#setWord(previous - 1, nextAt, slot + 1);
    newest[docNum & this.#newestMask] = slot + 1;
    this.#count++;
  }

  /** Appends entries for all rows; the position of each is `base` + its offset, or 0 when its length is 0. Hot. */
  pushAll({ count, words: rows, etags }: PackedRows, base: number): void {
    for (let row = 0; row < count; ) {
      if (this.#tail > this.#mask) this.#addChunk();
      const chunk = this.#order[this.#order.length - 1] as number; // #addChunk made one
      const slots = chunk << this.#shift;
      const numbers = this.#numbers[chunk] as Float64Array;
      const words = this.#words[chunk] as Uint32Array;
      const end = Math.min(count, row + this.#mask + 1 - this.#tail);
      let at = this.#tail;
      let newestAt = -1;
      let newest = noWords;
      for (; row < end; row++, at++) {
        const from = row * packedRow.words;
        const docNum = rows[from + packedRow.docNum] as number; // row < count
        const length = rows[from + packedRow.length] as number;
        if (docNum >>> this.#newestShift !== newestAt) {
          newestAt = docNum >>> this.#newestShift;
          newest = this.#newest[newestAt] ?? this.#addNewest(docNum);
        }
        const previous = newest[docNum & this.#newestMask] as number;
        newest[docNum & this.#newestMask] = slots + at + 1;
        if (previous > 0) this.#setWord(previous - 1, nextAt, slots + at + 1);
        numbers[at << 1] = etags[row] as number;
        numbers[(at << 1) + 1] =
          length === 0 ? 0 : base + (rows[from + packedRow.offset] as number);
        const to = at * stagedWords;
        words[to + stagedDocNumAt] = docNum;
        words[to + stagedLengthAt] = length;
        words[to + stagedWordAt] = rows[from + packedRow.word] as number;
        words[to + previousAt] = previous;
        words[to + nextAt] = 0;
      }
      this.#tail = at;
    }
    this.#count += count;
  }

  /** Returns the slot of the oldest entry; there must be one. */
  oldest(): number {
    return ((this.#order[0] as number) << this.#shift) + this.#head;
  }

  /** Yields the documents of all entries, oldest first, with duplicates. */
  *docNums(): Generator<number> {
    for (const [place, chunk] of this.#order.entries()) {
      const from = place === 0 ? this.#head : 0;
      const to = place === this.#order.length - 1 ? this.#tail : this.#mask + 1;
      for (let at = from; at < to; at++) yield this.docNumOf((chunk << this.#shift) + at);
    }
  }

  /** Returns the oldest entries, at most `most`, that are contiguous. One object, valid until the next call. */
  head(most: number): StagedRun {
    const run = this.#run;
    const chunk = this.#order[0] as number; // there must be an entry
    const end = this.#order.length === 1 ? this.#tail : this.#mask + 1;
    run.numbers = this.#numbers[chunk] as Float64Array;
    run.words = this.#words[chunk] as Uint32Array;
    run.from = this.#head;
    run.to = Math.min(end, this.#head + most);
    return run;
  }

  /**
   * Removes the `count` oldest entries, which are contiguous. Their slots keep their content until the next `push`.
   * Hot.
   */
  shift(count: number): void {
    const words = this.#words[this.#order[0] as number] as Uint32Array; // there must be an entry
    const end = this.#head + count;
    for (let at = this.#head; at < end; at++) {
      const base = at * stagedWords;
      const next = words[base + nextAt] as number;
      if (next === 0) this.#setNewest(words[base + stagedDocNumAt] as number, 0);
      else this.#setWord(next - 1, previousAt, 0);
    }
    this.#count -= count;
    this.#head = end;
    if (this.#head > this.#mask || this.#count === 0) {
      this.#free.push(this.#order.shift() as number); // the chunk of these entries
      this.#head = 0;
      if (this.#count === 0) this.#reset();
    }
  }

  /** Removes the newest entry; there must be one. @returns its document. */
  pop(): number {
    const slot = ((this.#order[this.#order.length - 1] as number) << this.#shift) + this.#tail - 1;
    const previous = this.#word(slot, previousAt);
    const docNum = this.docNumOf(slot);
    if (previous !== 0) this.#setWord(previous - 1, nextAt, 0);
    this.#setNewest(docNum, previous);
    this.#count--;
    this.#tail--;
    if (this.#tail === 0 || this.#count === 0) {
      this.#free.push(this.#order.pop() as number); // the chunk of `slot`
      this.#tail = this.#mask + 1;
      if (this.#count === 0) this.#reset();
    }
    return docNum;
  }

  /** The queue is empty: frees the chunks beyond `idleChunks` that a burst has needed. */
  #reset(): void {
    this.#head = 0;
    this.#tail = this.#mask + 1;
    if (this.#numbers.length <= idleChunks) return;
    this.#numbers.length = idleChunks;
    this.#words.length = idleChunks;
    this.#free = Array.from({ length: idleChunks }, (_, chunk) => chunk);
  }

  /** Returns the slot of the last entry of a document, or -1. Hot. */
  newestOf(docNum: number): number {
    const chunk = this.#newest[docNum >>> this.#newestShift];
    return chunk === undefined ? -1 : (chunk[docNum & this.#newestMask] as number) - 1;
  }

  /** Returns the slot of the entry of the same document before this one, or -1. */
  previousOf(slot: number): number {
    return this.#word(slot, previousAt) - 1;
  }

  docNumOf(slot: number): number {
    return this.#word(slot, stagedDocNumAt);
  }

  etagOf(slot: number): number {
    return (this.#numbers[slot >>> this.#shift] as Float64Array)[
      (slot & this.#mask) << 1
    ] as number;
  }

  positionOf(slot: number): number {
    const numbers = this.#numbers[slot >>> this.#shift] as Float64Array; // callers have a slot in use
    return numbers[((slot & this.#mask) << 1) + 1] as number;
  }

  setPosition(slot: number, position: number): void {
    const numbers = this.#numbers[slot >>> this.#shift] as Float64Array; // callers have a slot in use
    numbers[((slot & this.#mask) << 1) + 1] = position;
  }

  lengthOf(slot: number): number {
    return this.#word(slot, stagedLengthAt);
  }

  wordOf(slot: number): number {
    return this.#word(slot, stagedWordAt);
  }

  /** No document in the chunk of this number has a staged entry, nor soon will have: frees the chunk's memory. */
  dropNumbers(docNum: number): void {
    const at = docNum >>> this.#newestShift;
    if (at < this.#newest.length) this.#newest[at] = undefined;
  }

  memoryBytes(): number {
    const slots = this.#numbers.length * (this.#mask + 1);
    let bytes = slots * (16 + stagedWords * 4);
    for (const chunk of this.#newest) bytes += chunk?.byteLength ?? 8;
    return bytes;
  }

  checkInvariants(docCount: number): void {
    const last = new Map<number, number>();
    let count = 0;
    for (const [turn, chunk] of this.#order.entries()) {
      const start = turn === 0 ? this.#head : 0;
      const end = turn === this.#order.length - 1 ? this.#tail : this.#mask + 1;
      for (let at = start; at < end; at++) {
        const slot = (chunk << this.#shift) + at;
        const docNum = this.docNumOf(slot);
        const previous = last.get(docNum) ?? -1;
        assert(docNum < docCount, "a staged row has an id");
        assert(this.previousOf(slot) === previous, "a staged row knows the one before it");
        assert(previous < 0 || this.#word(previous, nextAt) === slot + 1, "and that one knows it");
        last.set(docNum, slot);
        count++;
      }
    }
    assert(count === this.#count, "staged rows are counted");
    assert(this.#order.length + this.#free.length === this.#numbers.length, "chunks are not lost");
    for (let docNum = 0; docNum < docCount; docNum++) {
      const slot = last.get(docNum) ?? -1;
      assert(this.newestOf(docNum) === slot, "a document's newest staged row is its last");
      assert(slot < 0 || this.#word(slot, nextAt) === 0, "nothing follows the newest");
    }
  }

  #addChunk(): void {
    let chunk = this.#free.pop();
    if (chunk === undefined) {
      chunk = this.#numbers.length;
      this.#numbers.push(new Float64Array((this.#mask + 1) * 2));
      this.#words.push(new Uint32Array((this.#mask + 1) * stagedWords));
    }
    this.#order.push(chunk);
    this.#tail = 0;
  }

  #word(slot: number, at: number): number {
    const words = this.#words[slot >>> this.#shift] as Uint32Array; // callers have a slot in use
    return words[(slot & this.#mask) * stagedWords + at] as number;
  }

  #setWord(slot: number, at: number, value: number): void {
    const words = this.#words[slot >>> this.#shift] as Uint32Array; // callers have a slot in use
    words[(slot & this.#mask) * stagedWords + at] = value;
  }

  /** For a document that was staged before. */
  #setNewest(docNum: number, value: number): void {
    const newest = this.#newest[docNum >>> this.#newestShift] as Uint32Array;
    newest[docNum & this.#newestMask] = value;
  }

  #addNewest(docNum: number): Uint32Array {
    const at = docNum >>> this.#newestShift;
    while (at >= this.#newest.length) this.#newest.push(undefined);
    const chunk = new Uint32Array(this.#newestMask + 1);
    this.#newest[at] = chunk;
    return chunk;
  }
}
