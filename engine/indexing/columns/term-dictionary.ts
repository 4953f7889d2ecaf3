/**
 * The distinct terms of one field of one index, numbered densely. Terms are bytes in a slab, found through a packed
 * hash table; nothing is on the object heap.
 *
 * Knows nothing of entries, nor of how values become terms (document-fields.ts).
 *
 * Invariants:
 * - Numbers are assigned from `firstTerm` on without gaps; smaller ones are markers without text.
 * - Two terms differ in kind or in bytes. A text, a number and a date may have the same bytes.
 * - `values[term]` is the number of a number, the milliseconds of a date or time span (moment-terms.ts), NaN for a text.
 *
 * Hot: bench/scan.bench.ts.
 */
import { assert } from "../../base/assert.ts";
import type { PartReader, PartWriter } from "../saved/saved-parts.ts";
import { grownBytes, grownFloat64, grownUint32 } from "./packed.ts";
import { restoreStride } from "./store-column.ts";

/** The type of value that a term was made from. */
export const textKind = 0;
export const numberKind = 1;
export const dateKind = 2;
/** Shapes, as well-known text (spatial-terms.ts). */
export const shapeKind = 3;
/** Vectors, as bytes (vector-form.ts). */
export const vectorKind = 4;

/** Markers, which are not terms of the dictionary, and the first real term. */
export const gapTerm = 0;
export const nullTerm = 1;
export const objectTerm = 2;
export const firstTerm = 3;

/** Scratch buffer for looking up short texts; valid only during a call. */
const sought = Buffer.alloc(768);
/** Length in bytes up to which a loop is faster than the built-in comparison. */
const loopBytesMax = 64;
/**
 * Maximum length of a term whose letters are stored, in bytes: a long text has most letters, so its set excludes
 * nothing.
 */
const lettersBytesMax = 64;
/** A set is never negative. */
const letterBits = 31;
const slabBytesMax = 2 ** 31 - 1;
const dateTicksAt = 23;
const fractionDigits = 7;
const tickDigits = 4;
const byteMinus = 0x2d;
const byteDot = 0x2e;

/** A test of properties that are known without reading a term. */
export interface LikelyTest {
  /** Terms of fewer or of more bytes do not pass. */
  readonly bytesMin: number;
  readonly bytesMax: number;
  /** Returns whether a term of this many characters, all ASCII, may pass. `letters`: see `TermDictionary.lettersOf`. */
  mayPass(letters: number, length: number): boolean;
}

export class TermDictionary {
  /** Upper bound (exclusive) of the numbers in use. */
  count = firstTerm;
  values: Float64Array = new Float64Array(16);
  /**
   * Whether some number has a fraction, is too large for a double to distinguish it from its neighbors, or has another
   * text than its digits (`1e3`, `-0`).
   */
  hasInexact = false;
  hasDates = false;
  hasNumbers = false;
  /** Terms that are neither numbers nor dates. */
  textCount = 0;
  #slab: Buffer = Buffer.alloc(256);
  /** Term t is slab[starts[t], starts[t + 1]). */
  #starts: Uint32Array = new Uint32Array(17);
  #kinds: Buffer = Buffer.alloc(16);
  #hashes: Uint32Array = new Uint32Array(16);
  /** Hash table of term numbers; 0 is free. */
  #table: Uint32Array = new Uint32Array(64);
  /** By term: see `lettersOf`; 0: not computed yet. Empty until the first use. */
  #letters: Int32Array = new Int32Array(0);

  /** Returns the number of a term, or -1. */
  find(kind: number, bytes: Buffer, length: number): number {
    const hash = hashOf(kind, bytes, length);
    const mask = this.#table.length - 1;
    for (let slot = hash & mask; ; slot = (slot + 1) & mask) {
      const term = this.#table[slot] as number;
      if (term === 0) return -1;
      if (this.#hashes[term] === hash && this.#equals(term, kind, bytes, length)) return term;
    }
  }

  findText(kind: number, text: string): number {
    if (text.length * 3 <= sought.length) return this.find(kind, sought, sought.write(text));
    const bytes = Buffer.from(text);
    return this.find(kind, bytes, bytes.length);
  }

  internText(kind: number, text: string, value: number): number {
    if (text.length * 3 <= sought.length) {
      // Words are mostly short and ASCII: with this loop instead of `write`, a MB of text takes 30 ms instead of 66.
      let length = 0;
      for (; length < text.length; length++) {
        const code = text.charCodeAt(length);
        if (code >= 0x80) return this.intern(kind, sought, sought.write(text), value);
        sought[length] = code;
      }
      return this.intern(kind, sought, length, value);
    }
    const bytes = Buffer.from(text);
    return this.intern(kind, bytes, bytes.length, value);
  }

  /** Returns the number of the term `bytes[0, length)`, added if needed. `value`: see `values`. */
  intern(kind: number, bytes: Buffer, length: number, value: number): number {
    const hash = hashOf(kind, bytes, length);
    const mask = this.#table.length - 1;
    let slot = hash & mask;
    for (;;) {
      const term = this.#table[slot] as number;
      if (term === 0) break;
      if (this.#hashes[term] === hash && this.#equals(term, kind, bytes, length)) return term;
      slot = (slot + 1) & mask;
    }
    const term = this.count++;
    this.#reserve(term, length);
    const start = this.#starts[term] as number;
    bytes.copy(this.#slab, start, 0, length);
    this.#starts[term + 1] = start + length;
    this.#kinds[term] = kind;
    this.#hashes[term] = hash;
    this.values[term] = value;
    this.#table[slot] = term;
    if (kind === numberKind) {
      this.hasNumbers = true;
      if (!Number.isSafeInteger(value)) this.hasInexact = true;
    } else if (kind === dateKind) this.hasDates = true;
    else this.textCount++;
    if (this.count * 2 > this.#table.length) this.#growTable();
    return term;
  }

  /** Adds a term of another dictionary. */
  internFrom(other: TermDictionary, term: number): number {
    const start = other.#starts[term] as number;
    const end = other.#starts[term + 1] as number;
    const bytes = other.#slab.subarray(start, end);
    return this.intern(other.kindOf(term), bytes, end - start, other.values[term] as number);
  }

  kindOf(term: number): number {
    return this.#kinds[term] as number;
  }

  textOf(term: number): string {
    const form = this.#kinds[term] === vectorKind ? "base64" : "utf8";
    return this.#slab.toString(form, this.#starts[term], this.#starts[term + 1]);
  }

  /** Compares the bytes of two terms: negative, 0 or positive. */
  compareBytes(left: number, right: number): number {
    const slab = this.#slab;
    let i = this.#starts[left] as number;
    let k = this.#starts[right] as number;
    const leftLength = (this.#starts[left + 1] as number) - i;
    const rightLength = (this.#starts[right + 1] as number) - k;
    const common = Math.min(leftLength, rightLength);
    if (common > loopBytesMax) {
      return slab.compare(slab, k, k + rightLength, i, i + leftLength);
    }
    const end = i + common;
    for (; i < end; i++, k++) {
      const difference = (slab[i] as number) - (slab[k] as number);
      if (difference !== 0) return difference;
    }
    return leftLength - rightLength;
  }

  /** Compares a term's bytes with `bytes`. */
  compareTo(term: number, bytes: Buffer): number {
    const start = this.#starts[term] as number;
    return this.#slab.compare(bytes, 0, bytes.length, start, this.#starts[term + 1] as number);
  }

  startsWith(term: number, prefix: Buffer): boolean {
    const start = this.#starts[term] as number;
    const end = start + prefix.length;
    if (end > (this.#starts[term + 1] as number)) return false;
    return this.#slab.compare(prefix, 0, prefix.length, start, end) === 0;
  }

  endsWith(term: number, suffix: Buffer): boolean {
    const end = this.#starts[term + 1] as number;
    const start = end - suffix.length;
    if (start < (this.#starts[term] as number)) return false;
    return this.#slab.compare(suffix, 0, suffix.length, start, end) === 0;
  }

  /**
   * Returns a rank that decreases with the number of pairs of neighboring bytes that the term shares with a text, each as
   * often as the term has it; -1 if it shares no pair. Equal numbers are ordered by the first shared pair in the text, then by its position in the
   * term.
   * @param places by pair: its position in the text plus one, 0 if the text lacks it
   */
  pairRank(term: number, places: Uint16Array): number {
    const slab = this.#slab;
    const start = this.#starts[term] as number;
    const end = this.#starts[term + 1] as number;
    let count = 0;
    let first = 0xffff;
    let firstAt = 0;
    for (let at = start; at + 1 < end; at++) {
      const place = places[((slab[at] as number) << 8) | (slab[at + 1] as number)] as number;
      if (place === 0) continue;
      count++;
      if (place >= first) continue;
      first = place;
      firstAt = at - start;
    }
    if (count === 0) return -1;
    return (
      ((0xffff - Math.min(count, pairsMax)) * 0x1_0000 + first) * 0x1_0000 +
      Math.min(firstAt, 0xffff)
    );
  }

  /** Four bytes of the term from `depth` on, big-endian, padded with 0: a sort key. */
  bytesAt(term: number, depth: number): number {
    const at = (this.#starts[term] as number) + depth;
    const end = this.#starts[term + 1] as number;
    const slab = this.#slab;
    let key = 0;
    for (let i = at; i < at + 4; i++) key = (key << 8) | (i < end ? (slab[i] as number) : 0);
    return key >>> 0;
  }

  /** The bytes of all terms; replaced when it grows. */
  get slab(): Buffer {
    return this.#slab;
  }

  /** Where the bytes of a term begin in `slab`. */
  startOf(term: number): number {
    return this.#starts[term] as number;
  }

  /** Returns the bytes of a term. */
  bytesOf(term: number): Buffer {
    return this.#slab.subarray(this.#starts[term], this.#starts[term + 1]);
  }

  lengthOf(term: number): number {
    return (this.#starts[term + 1] as number) - (this.#starts[term] as number);
  }

  /**
   * Returns a set of bits for the characters of a term: the same characters have the same bit, and different ones may.
   * -1: it is not all ASCII, or long.
   */
  lettersOf(term: number): number {
    if (term >= this.#letters.length) {
      const longer = new Int32Array(Math.max(this.count, this.#starts.length));
      longer.set(this.#letters);
      this.#letters = longer;
    }
    const known = this.#letters[term] as number;
    if (known !== 0) return known;
    const letters = letterSetOf(
      this.#slab,
      this.#starts[term] as number,
      this.#starts[term + 1] as number,
    );
    this.#letters[term] = letters;
    return letters;
  }

  /** Returns those of the terms [from, to) that may pass a test, according to their letters and lengths. Hot. */
  likely(from: number, to: number, { bytesMin, bytesMax, mayPass }: LikelyTest): number[] {
    const found: number[] = [];
    const starts = this.#starts;
    if (to > this.#letters.length) this.lettersOf(to - 1);
    const letters = this.#letters;
    for (let term = from; term < to; term++) {
      const length = (starts[term + 1] as number) - (starts[term] as number);
      if (length < bytesMin || length > bytesMax) continue;
      const set = (letters[term] as number) || this.lettersOf(term);
      if (set < 0 || mayPass(set, length)) found.push(term);
    }
    return found;
  }

  /** 100 ns units of a date or time span beyond its milliseconds: the last four of its seven fraction digits. */
  ticksOf(term: number): number {
    const start = this.#starts[term] as number;
    const end = this.#starts[term + 1] as number;
    if (this.#slab[start + 4] !== byteMinus) return this.#spanTicksOf(start, end);
    if (end - start < dateTicksAt + 4) return 0;
    const at = start + dateTicksAt;
    return Number(this.#slab.latin1Slice(at, at + 4));
  }

  /** As `ticksOf`, for a time span, which has seven fraction digits or none, and may be negative. */
  #spanTicksOf(start: number, end: number): number {
    if (this.#slab[end - fractionDigits - 1] !== byteDot) return 0;
    const ticks = Number(this.#slab.latin1Slice(end - tickDigits, end));
    return this.#slab[start] === byteMinus && ticks > 0 ? 10_000 - ticks : ticks;
  }

  save(parts: PartWriter): void {
    const { count, hasInexact, hasDates, hasNumbers, textCount } = this;
    parts.set("terms", { count, hasInexact, hasDates, hasNumbers, textCount });
    const isText = textCount === count - firstTerm;
    parts.add("starts", this.#starts.subarray(0, count + 1));
    parts.add("kinds", this.#kinds.subarray(0, count));
    parts.add("hashes", this.#hashes.subarray(0, count));
    parts.add("values", this.values.subarray(0, isText ? 0 : count));
    parts.add("slab", this.#slab.subarray(0, this.#starts[count] as number));
  }

  *restore(parts: PartReader): Generator<void> {
    type Saved = Pick<this, "count" | "hasInexact" | "hasDates" | "textCount"> & {
      /** Absent in snapshots of older versions. */
      readonly hasNumbers?: boolean;
    };
    Object.assign(this, { hasNumbers: true, ...parts.get<Saved>("terms") });
    this.#starts = parts.uint32("starts");
    this.#kinds = parts.bytes("kinds");
    this.#hashes = parts.uint32("hashes");
    this.#slab = parts.bytes("slab");
    const values = parts.float64("values");
    const isText = values.length < this.count;
    this.values = isText ? new Float64Array(this.count).fill(Number.NaN) : values;
    let size = this.#table.length;
    while (this.count * 2 > size) size *= 2;
    const table = new Uint32Array(size);
    for (let from = firstTerm; from < this.count; from += restoreStride) {
      yield;
      enterTerms(table, this.#hashes, from, Math.min(from + restoreStride, this.count));
    }
    this.#table = table;
  }

  checkInvariants(): void {
    for (let term = firstTerm; term < this.count; term++) {
      const start = this.#starts[term] as number;
      const end = this.#starts[term + 1] as number;
      assert(start <= end, "terms follow one another in the slab");
      const bytes = this.#slab.subarray(start, end);
      assert(this.find(this.kindOf(term), bytes, end - start) === term, "every term is found");
    }
  }

  #equals(term: number, kind: number, bytes: Buffer, length: number): boolean {
    if (this.#kinds[term] !== kind) return false;
    const start = this.#starts[term] as number;
    if ((this.#starts[term + 1] as number) - start !== length) return false;
    const slab = this.#slab;
    for (let i = 0; i < length; i++) if (slab[start + i] !== bytes[i]) return false;
    return true;
  }

  #reserve(term: number, length: number): void {
    this.#starts = grownUint32(this.#starts, term + 2);
    this.#kinds = grownBytes(this.#kinds, term + 1);
    this.#hashes = grownUint32(this.#hashes, term + 1);
    this.values = grownFloat64(this.values, term + 1);
    const needed = (this.#starts[term] as number) + length;
    assert(needed <= slabBytesMax, "the terms of one field fit into two gigabytes");
    this.#slab = grownBytes(this.#slab, needed);
  }

  #growTable(): void {
    const table = new Uint32Array(this.#table.length * 2);
    enterTerms(table, this.#hashes, firstTerm, this.count);
    this.#table = table;
  }
}

/** Higher numbers of pairs that a term shares with a text are not distinguished. */
export const pairsMax = 256;

/** Returns the number of pairs that a term with this rank shares with the text: see `TermDictionary.pairRank`. */
export function pairsOfRank(rank: number): number {
  return 0xffff - Math.floor(rank / 0x1_0000_0000);
}

/** Returns the set of `lettersOf`. */
export function letterSetOf(bytes: Uint8Array, from: number, to: number): number {
  if (to - from > lettersBytesMax) return -1;
  let letters = 0;
  for (let at = from; at < to; at++) {
    const byte = bytes[at] as number;
    if (byte >= 0x80) return -1;
    letters |= 1 << (byte % letterBits);
  }
  return letters;
}

/** Inserts terms [from, to) into a table that has room for them. */
function enterTerms(table: Uint32Array, hashes: Uint32Array, from: number, to: number): void {
  const mask = table.length - 1;
  for (let term = from; term < to; term++) {
    let slot = (hashes[term] as number) & mask;
    while (table[slot] !== 0) slot = (slot + 1) & mask;
    table[slot] = term;
  }
}

/** FNV-1a over the bytes, with a finalizer: the table uses the lowest bits. */
function hashOf(kind: number, bytes: Buffer, length: number): number {
  let hash = 0x811c9dc5 ^ kind;
  for (let i = 0; i < length; i++) hash = Math.imul(hash ^ (bytes[i] as number), 0x01000193);
  hash ^= hash >>> 15;
  hash = Math.imul(hash, 0x2c1b3c6d);
  return (hash ^ (hash >>> 13)) >>> 0;
}
