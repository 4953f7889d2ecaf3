/**
 * Records in which values are replaced by values of the same length: neighbors are copied together, and the copies are
 * changed in place. Their checksums are updated incrementally from the changed words.
 *
 * Updates the fields of a document's header that change with each write; the caller supplies the positions of values.
 *
 * Hot: bench/patch.bench.ts.
 *
 * Invariants:
 * - Its output equals that of `RecordPatch.write` and `sealRecord` (test/engine/patching/record-run.test.ts).
 */
import { assert } from "../base/assert.ts";
import {
  checkOfWord,
  crcLengthMin,
  recordCheckAt,
  recordKindAt,
  sealRecord,
  wordsOf,
} from "../base/record.ts";
import type { Transaction } from "../state/store/transaction.ts";

/** The parts of a transaction that a run writes to. */
export interface RunTarget extends Pick<Transaction, "stageDocument"> {
  readonly scratch: Pick<Transaction["scratch"], "bytes" | "reserve">;
  readonly state: Pick<Transaction["state"], "takeEtags" | "takeTimes">;
}

/** Maximum records of one run. */
const recordsMax = 256;
const twoPow32 = 2 ** 32;
const firstCheckedWord = recordKindAt >>> 2;
const checkWord = recordCheckAt >>> 2;
/** Maximum size of spans that are copied by words, which is faster than a call for short spans; in bytes. */
const callBytesMin = 512;
// Words of a document's header, see document-record.ts.
const etagWord = 4;
const modifiedWord = 6;
const vectorLengthWord = 10;
const fieldCountWord = 11;
// Places of the words in the checksum.
const etagPlace = etagWord - firstCheckedWord;
const modifiedPlace = modifiedWord - firstCheckedWord;

export class RecordRun {
  /** Number of records waiting to be copied. */
  count = 0;
  /** The memory that they are in, in which they ascend. */
  #source: Buffer | null = null;
  #sourceWords: Int32Array = new Int32Array(0);
  #target: Buffer | null = null;
  #targetWords: Int32Array = new Int32Array(0);
  #length = 0;
  readonly #documents = new Uint32Array(recordsMax);
  readonly #starts = new Uint32Array(recordsMax);
  /** For each record the end of its new values in the lists below. */
  readonly #patchEnds = new Uint32Array(recordsMax);
  #patchCount = 0;
  /** For each new value its place in its record, and the span of its text. */
  readonly #ats: number[] = [];
  readonly #froms: number[] = [];
  readonly #tos: number[] = [];

  /** Discards the pending records of a failed transaction. */
  forget(): void {
    this.count = 0;
  }

  /** Returns whether a record of this memory can be copied together with the waiting ones. If not, `flush` first. */
  takes(source: Buffer): boolean {
    return this.count === 0 || (this.#source === source && this.count < recordsMax);
  }

  /** Adds a record that starts and ends at multiples of 8 in its memory; its new values are added next. */
  add(document: number, source: Buffer, start: number, length: number): void {
    if (this.count === 0) {
      if (this.#source !== source) this.#sourceWords = wordsOf(source);
      this.#source = source;
      this.#length = 0;
      this.#patchCount = 0;
    }
    this.#length += length;
    const at = this.count++;
    this.#documents[at] = document;
    this.#starts[at] = start;
    this.#patchEnds[at] = this.#patchCount;
  }

  /** Replaces the bytes at `at` of the record added last by `[from, to)` of the texts, which is as long. */
  replace(at: number, from: number, to: number): void {
    const patch = this.#patchCount++;
    this.#ats[patch] = at;
    this.#froms[patch] = from;
    this.#tos[patch] = to;
    this.#patchEnds[this.count - 1] = this.#patchCount;
  }

  /** Writes all waiting records to the transaction, with new etags and times. Hot. */
  flush(transaction: RunTarget, texts: Buffer): void {
    const { count } = this;
    if (count === 0) return;
    const { scratch, state } = transaction;
    const first = scratch.reserve(this.#length);
    const target = scratch.bytes;
    if (this.#target !== target) {
      assert(target.byteOffset === 0, "records are written where memory begins");
      this.#target = target;
      this.#targetWords = wordsOf(target);
    }
    const words = this.#targetWords;
    this.#copy(target, words, first);
    let etag = state.takeEtags(count);
    let modified = state.takeTimes(count);
    let start = first;
    let patch = 0;
    for (let k = 0; k < count; k++) {
      const base = start >>> 2;
      const length = words[base] as number;
      let growth = renew(words, base + etagWord, etagPlace, etag);
      growth += renew(words, base + modifiedWord, modifiedPlace, modified);
      const patchEnd = this.#patchEnds[k] as number;
      for (; patch < patchEnd; patch++) {
        const from = this.#froms[patch] as number;
        const to = this.#tos[patch] as number;
        growth += overwrite(target, words, start, this.#ats[patch] as number, texts, from, to);
      }
      if (length < crcLengthMin)
        words[base + checkWord] = (words[base + checkWord] as number) + growth;
      else sealRecord(target, start);
      transaction.stageDocument(
        this.#documents[k] as number,
        etag,
        length,
        (words[base + vectorLengthWord] as number) & 0xffff,
        (words[base + fieldCountWord] as number) >>> 16,
      );
      start += length;
      etag++;
      modified++;
    }
    this.count = 0;
  }

  /** Copies the records to `at`, one after the other. */
  #copy(target: Buffer, words: Int32Array, at: number): void {
    const source = this.#source as Buffer; // not null while records wait
    const sourceWords = this.#sourceWords;
    const { count } = this;
    let next = at;
    for (let k = 0; k < count; ) {
      const start = this.#starts[k] as number; // k < count
      let end = start;
      while (k < count && this.#starts[k] === end) {
        end += sourceWords[end >>> 2] as number;
        k++;
      }
      if (end - start >= callBytesMin) source.copy(target, next, start, end);
      else {
        const shift = (next - start) >> 2;
        for (let word = start >>> 2; word < end >>> 2; word++) {
          words[word + shift] = sourceWords[word] as number;
        }
      }
      next += end - start;
    }
  }
}

/** Sets the u64 at word `at`, whose place in the checksum is `place`. @returns the increase of the checksum. */
function renew(words: Int32Array, at: number, place: number, value: number): number {
  const high = Math.floor(value / twoPow32);
  const low = (value - high * twoPow32) | 0;
  const highBefore = words[at + 1] as number;
  const lowBefore = words[at] as number;
  words[at] = low;
  const growth = (checkOfWord(low, place) - checkOfWord(lowBefore, place)) | 0;
  if (highBefore === high) return growth;
  words[at + 1] = high;
  return (growth + checkOfWord(high, place + 1) - checkOfWord(highBefore, place + 1)) | 0;
}

/** Replaces the bytes at `at` of the record at `start`. @returns the increase of the checksum. */
function overwrite(
  target: Buffer,
  words: Int32Array,
  start: number,
  at: number,
  texts: Buffer,
  from: number,
  to: number,
): number {
  let next = start + at;
  const first = next >>> 2;
  const last = (next + to - from - 1) >>> 2;
  const origin = (start >>> 2) + firstCheckedWord;
  let growth = 0;
  for (let word = first; word <= last; word++) {
    growth = (growth - checkOfWord(words[word] as number, word - origin)) | 0;
  }
  for (let i = from; i < to; i++) target[next++] = texts[i] as number;
  for (let word = first; word <= last; word++) {
    growth = (growth + checkOfWord(words[word] as number, word - origin)) | 0;
  }
  return growth;
}
