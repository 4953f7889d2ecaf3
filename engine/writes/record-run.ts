/**
 * Adjacent records in which values are replaced by values of the same length: they are copied together, and the copies
 * are changed in place. Their checksums are updated incrementally from the changed words.
 *
 * Knows which fields of a document's header change with each write; the positions of values are given by the caller.
 *
 * Hot: bench/patch.bench.ts.
 *
 * Invariants:
 * - Its output equals that of `RecordPatch.write` and `sealRecord` (test/engine/record-run.test.ts).
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
import type { Transaction } from "../store/transaction.ts";

/** The parts of a transaction that a run writes to. */
export interface RunTarget extends Pick<Transaction, "nextEtag" | "stageDocument"> {
  readonly scratch: Pick<Transaction["scratch"], "bytes" | "reserve">;
  readonly state: Pick<Transaction["state"], "nextModified">;
}

/** Maximum records of one run. */
const recordsMax = 256;
const twoPow32 = 2 ** 32;
const firstCheckedWord = recordKindAt >>> 2;
const checkWord = recordCheckAt >>> 2;
// Words of a document's header, see document-record.ts.
const etagWord = 4;
const modifiedWord = 6;
const vectorLengthWord = 10;
const fieldCountWord = 11;

export class RecordRun {
  /** Number of records waiting to be copied. */
  count = 0;
  /** The memory that they are in. */
  #source: Buffer | null = null;
  #start = 0;
  #end = 0;
  readonly #documents = new Uint32Array(recordsMax);
  readonly #starts = new Uint32Array(recordsMax);
  /** For each record the end of its new values in the lists below. */
  readonly #patchEnds = new Uint32Array(recordsMax);
  #patchCount = 0;
  /** For each new value the position of the old one, and the span of its text. */
  readonly #ats: number[] = [];
  readonly #froms: number[] = [];
  readonly #tos: number[] = [];

  /** Discards the waiting records, those of a failed transaction. */
  forget(): void {
    this.count = 0;
  }

  /** Can the record at `start` be copied together with the waiting ones? If not, `flush` first. */
  takes(source: Buffer, start: number): boolean {
    if (this.count === 0) return true;
    return this.#source === source && this.#end === start && this.count < recordsMax;
  }

  /** Adds a record that starts and ends at multiples of 8 in its memory; its new values are added next. */
  add(document: number, source: Buffer, start: number, length: number): void {
    if (this.count === 0) {
      this.#source = source;
      this.#start = start;
      this.#patchCount = 0;
    }
    this.#end = start + length;
    const at = this.count++;
    this.#documents[at] = document;
    this.#starts[at] = start;
    this.#patchEnds[at] = this.#patchCount;
  }

  /**
   * Replaces the bytes at `at`, in the memory of the record added last, by `[from, to)` of the texts, which is as long.
   */
  replace(at: number, from: number, to: number): void {
    const patch = this.#patchCount++;
    this.#ats[patch] = at;
    this.#froms[patch] = from;
    this.#tos[patch] = to;
    this.#patchEnds[this.count - 1] = this.#patchCount;
  }

  /** Writes all waiting records to the transaction, with new etags and times. */
  flush(transaction: RunTarget, texts: Buffer): void {
    const { count } = this;
    if (count === 0) return;
    const source = this.#source as Buffer; // not null while records wait
    const { scratch, state } = transaction;
    const at = scratch.reserve(this.#end - this.#start);
    const target = scratch.bytes;
    assert(target.byteOffset === 0, "records are written where memory begins");
    source.copy(target, at, this.#start, this.#end);
    const words = wordsOf(target);
    const shift = at - this.#start;
    let patch = 0;
    for (let k = 0; k < count; k++) {
      const start = (this.#starts[k] as number) + shift;
      const base = start >>> 2;
      const length = words[base] as number;
      const etag = transaction.nextEtag();
      let growth = this.#renew(words, base, etag, state.nextModified());
      const patchEnd = this.#patchEnds[k] as number;
      for (; patch < patchEnd; patch++) {
        const to = (this.#ats[patch] as number) + shift;
        const from = this.#froms[patch] as number;
        growth += this.#overwrite(target, words, base, to, texts, from, this.#tos[patch] as number);
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
    }
    this.count = 0;
    this.#source = null;
  }

  /** @returns the increase of the checksum. */
  #renew(words: Int32Array, base: number, etag: number, lastModified: number): number {
    const etagHigh = Math.floor(etag / twoPow32);
    const modifiedHigh = Math.floor(lastModified / twoPow32);
    return (
      setWord(words, base, etagWord, (etag - etagHigh * twoPow32) | 0) +
      setWord(words, base, etagWord + 1, etagHigh) +
      setWord(words, base, modifiedWord, (lastModified - modifiedHigh * twoPow32) | 0) +
      setWord(words, base, modifiedWord + 1, modifiedHigh)
    );
  }

  /** @returns the increase of the checksum. */
  #overwrite(
    target: Buffer,
    words: Int32Array,
    base: number,
    at: number,
    texts: Buffer,
    from: number,
    to: number,
  ): number {
    const first = at >>> 2;
    const last = (at + to - from - 1) >>> 2;
    const origin = base + firstCheckedWord;
    let growth = 0;
    for (let word = first; word <= last; word++) {
      growth -= checkOfWord(words[word] as number, word - origin);
    }
    for (let next = at, i = from; i < to; i++) target[next++] = texts[i] as number;
    for (let word = first; word <= last; word++) {
      growth += checkOfWord(words[word] as number, word - origin);
    }
    return growth;
  }
}

/** Sets word `at` of the record whose first word is `base`. @returns the increase of the checksum. */
function setWord(words: Int32Array, base: number, at: number, value: number): number {
  const before = words[base + at] as number;
  if (before === value) return 0;
  words[base + at] = value;
  const place = at - firstCheckedWord;
  return checkOfWord(value, place) - checkOfWord(before, place);
}
