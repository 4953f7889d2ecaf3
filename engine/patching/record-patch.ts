/**
 * Patches one document's record: locates its values, and writes a copy with some of them replaced. Created once and
 * reused for one record after another; nothing is parsed, and no object is allocated.
 *
 * The usual record (a body below 64 KiB, in aligned memory) is copied word by word; bytes after a value of another
 * length are shifted in the same pass. Others use `patchFields`.
 *
 * Hot: bench/patch.bench.ts.
 *
 * Invariants:
 * - Its output equals that of `patchFields` (test/engine/patching/record-patch.test.ts).
 */
import { assert } from "../base/assert.ts";
import { wordsOf } from "../base/record.ts";
import {
  FieldPatches,
  patchedRecordLength,
  patchFields,
} from "../state/documents/document-encoding.ts";
import { documentHeaderBytes, documentRecordFlags } from "../state/documents/document-record.ts";
import type { Shape } from "../state/documents/shapes.ts";

const noVector = Buffer.alloc(0);
const noWords = new Int32Array(0);
const twoPow32 = 2 ** 32;
const narrowBodyBytes = 65_536;
// Words of a document's header, see document-record.ts.
const flagsWord = 2;
const bodyLengthWord = 3;
const etagWord = 4;
const modifiedWord = 6;
const metadataLengthWord = 8;
const shapeIdWord = 9;
const vectorLengthWord = 10;
const fieldCountWord = 11;

export class RecordPatch {
  bytes: Buffer = noVector;
  start = 0;
  /** 0: there is no field table. */
  shapeId = 0;
  collectionId = 0;
  /** Bits of `documentFlags`. */
  flags = 0;
  /** Bytes of the stored change vector; 0: it has the default one. */
  vectorLength = 0;
  /** The new values so far, to which `replace` adds; the caller sets their texts and whether these are ASCII. */
  readonly patches = new FieldPatches();
  /** Spans of the replaced values. */
  readonly #starts: number[] = [];
  readonly #ends: number[] = [];
  /** Total length of the new values minus that of the old ones. */
  #growth = 0;
  /** Whether each new value is as long as the value it replaces. */
  #isSameLayout = true;
  #words: Int32Array = noWords;
  /** Whether the buffer starts at the beginning of its memory, so that offsets in words agree. */
  #beginsMemory = false;
  #target: Int32Array = noWords;
  #targetBytes: Buffer = noVector;
  #bodyStart = 0;
  #bodyLength = 0;
  #table = 0;
  #fieldCount = 0;
  /** Whether it can be copied by words. */
  #isUsual = false;

  /** Opens the record at `start`, without new values. */
  open(bytes: Buffer, start: number): void {
    if (this.bytes !== bytes) {
      this.bytes = bytes;
      this.#beginsMemory = bytes.byteOffset === 0;
      if (this.#beginsMemory) this.#words = wordsOf(bytes);
    }
    const isAligned = this.#beginsMemory && (start & 3) === 0;
    const words = isAligned ? this.#words : headerOf(bytes, start);
    const base = isAligned ? start >>> 2 : 0;
    this.start = start;
    const vectorWord = words[base + vectorLengthWord] as number;
    const countWord = words[base + fieldCountWord] as number;
    const bodyLength = words[base + bodyLengthWord] as number;
    this.shapeId = words[base + shapeIdWord] as number;
    this.collectionId = vectorWord & 0xffff;
    this.vectorLength = vectorWord >>> 16;
    this.#fieldCount = countWord & 0xffff;
    this.flags = countWord >>> 16;
    const idLength = (words[base + flagsWord] as number) >>> 16;
    const metadataLength = words[base + metadataLengthWord] as number;
    const bodyStart = start + documentHeaderBytes + idLength + this.vectorLength + metadataLength;
    this.#bodyLength = bodyLength;
    this.#bodyStart = bodyStart;
    const mask = bodyLength < narrowBodyBytes ? 1 : 3;
    this.#table = start + ((bodyStart + bodyLength - start + mask) & ~mask);
    this.#isUsual = isAligned && bodyLength < narrowBodyBytes;
    this.patches.count = 0;
    this.#growth = 0;
    this.#isSameLayout = true;
  }

  /** Position of the value of a field of the shape. */
  valueStart(index: number): number {
    const { bytes } = this;
    if (this.#bodyLength < narrowBodyBytes) {
      const at = this.#table + 2 * index;
      return this.#bodyStart + ((bytes[at] as number) | ((bytes[at + 1] as number) << 8));
    }
    return this.#bodyStart + bytes.readUInt32LE(this.#table + 4 * index);
  }

  /** Returns the position after it, derived from where the next field begins. */
  valueEnd(index: number, shape: Shape): number {
    const next = index + 1;
    if (next === shape.nameLengths.length) return this.#bodyStart + this.#bodyLength - 1;
    return this.valueStart(next) - (shape.nameLengths[next] as number) - 2;
  }

  /**
   * Replaces the value [start, end) of field `index` by `patches.source[from, to)`. Fields must be given in ascending
   * order.
   */
  replace(index: number, start: number, end: number, from: number, to: number): void {
    const { patches } = this;
    const k = patches.count++;
    patches.indexes[k] = index;
    patches.froms[k] = from;
    patches.tos[k] = to;
    this.#starts[k] = start;
    this.#ends[k] = end;
    const growth = to - from - (end - start);
    this.#growth += growth;
    if (growth !== 0) this.#isSameLayout = false;
  }

  /** Whether the new values are ASCII and each as long as the old one, and the record is a usual one. */
  get isOverwrite(): boolean {
    return this.#isUsual && this.#isSameLayout && this.patches.isAscii && this.vectorLength === 0;
  }

  /** The words of the memory that begins with `bytes`, if it does. */
  get words(): Int32Array {
    return this.#words;
  }

  /** Bytes of the record before the patch. */
  get length(): number {
    return this.#words[this.start >>> 2] as number; // of an aligned one only
  }

  /** Position of the value that new value `k` replaces. */
  replacedAt(k: number): number {
    return this.#starts[k] as number;
  }

  /** Returns the bytes of the record with the new values. */
  patchedLength(shape: Shape): number {
    const bodyLength = this.#bodyLength + this.#growth;
    if (!this.#isUsual || bodyLength >= narrowBodyBytes || this.vectorLength > 0) {
      this.#isUsual = false;
      return patchedRecordLength(this.bytes, this.start, this.patches, shape, 0);
    }
    const bodyEnd = this.#bodyStart - this.start + bodyLength;
    return (((bodyEnd + 1) & ~1) + 2 * this.#fieldCount + 7) & ~7;
  }

  /**
   * Writes the record with the new values at `at`, a multiple of 8, except for its checksum, with the default change
   * vector. `length` is the result of the last `patchedLength`.
   */
  write(
    target: Buffer,
    at: number,
    length: number,
    shape: Shape,
    etag: number,
    lastModified: number,
  ): void {
    const { patches } = this;
    if (this.#targetBytes !== target) {
      assert(target.byteOffset === 0, "records are written where memory begins");
      this.#targetBytes = target;
      this.#target = wordsOf(target);
    }
    if (!this.#isUsual) {
      const { bytes, start } = this;
      patchFields(target, at, bytes, start, patches, shape, etag, lastModified, noVector);
      return;
    }
    if (this.#isSameLayout) this.#overwrite(target, at, length);
    else this.#splice(target, at, length);
    const words = this.#target;
    const base = at >>> 2;
    words[base] = length;
    words[base + 1] = 0;
    if (!patches.isAscii) {
      words[base + flagsWord] = (words[base + flagsWord] as number) & ~asciiBit;
    }
    words[base + bodyLengthWord] = this.#bodyLength + this.#growth;
    words[base + etagWord] = (etag % twoPow32) | 0;
    words[base + etagWord + 1] = Math.floor(etag / twoPow32);
    words[base + modifiedWord] = (lastModified % twoPow32) | 0;
    words[base + modifiedWord + 1] = Math.floor(lastModified / twoPow32);
  }

  #overwrite(target: Buffer, at: number, length: number): void {
    const { patches, start } = this;
    const words = this.#words;
    const targetWords = this.#target;
    const shift = (at - start) >> 2;
    const end = (start + length) >>> 2;
    for (let from = start >>> 2; from < end; from++) {
      targetWords[from + shift] = words[from] as number;
    }
    for (let k = 0; k < patches.count; k++) {
      let next = at + (this.#starts[k] as number) - start;
      const to = patches.tos[k] as number;
      for (let i = patches.froms[k] as number; i < to; i++) {
        target[next++] = patches.source[i] as number;
      }
    }
  }

  #splice(target: Buffer, at: number, length: number): void {
    const { patches, start } = this;
    let next = at;
    let copied = start;
    for (let k = 0; k < patches.count; k++) {
      const from = this.#starts[k] as number;
      this.#copy(target, next, copied, from);
      next += from - copied;
      const to = patches.tos[k] as number;
      for (let i = patches.froms[k] as number; i < to; i++) {
        target[next++] = patches.source[i] as number;
      }
      copied = this.#ends[k] as number;
    }
    const bodyEnd = this.#bodyStart + this.#bodyLength;
    this.#copy(target, next, copied, bodyEnd);
    next += bodyEnd - copied;
    assert(next - at === bodyEnd - start + this.#growth, "a patched body has the computed length");
    if (((next - at) & 1) !== 0) target[next++] = 0;
    next = this.#writeTable(target, next);
    for (; next < at + length; next++) target[next] = 0;
  }

  #writeTable(target: Buffer, at: number): number {
    const { patches, bytes } = this;
    const end = this.#table + 2 * this.#fieldCount;
    let next = at;
    let patch = 0;
    let patched = patches.count === 0 ? -1 : (patches.indexes[0] as number);
    let shift = 0;
    let index = 0;
    for (let entry = this.#table; entry < end; entry += 2) {
      const offset = ((bytes[entry] as number) | ((bytes[entry + 1] as number) << 8)) + shift;
      target[next] = offset;
      target[next + 1] = offset >>> 8;
      next += 2;
      if (index === patched) {
        shift += (patches.tos[patch] as number) - (patches.froms[patch] as number);
        shift -= (this.#ends[patch] as number) - (this.#starts[patch] as number);
        patch++;
        patched = patch < patches.count ? (patches.indexes[patch] as number) : -1;
      }
      index++;
    }
    assert(patch === patches.count, "patches are in the order of the fields");
    return next;
  }

  /** Copies bytes [from, end) of the record to `to`, by words; differently aligned words are combined from two. */
  #copy(target: Buffer, to: number, from: number, end: number): void {
    const { bytes } = this;
    let next = to;
    let at = from;
    while ((next & 3) !== 0 && at < end) target[next++] = bytes[at++] as number;
    const words = this.#words;
    const targetWords = this.#target;
    const shift = (at & 3) << 3;
    const count = (end - at) >>> 2;
    const first = next >>> 2;
    let word = at >>> 2;
    if (shift === 0) {
      for (let k = first; k < first + count; k++) targetWords[k] = words[word++] as number;
    } else if (count > 0) {
      let low = words[word++] as number;
      for (let k = first; k < first + count; k++) {
        const high = words[word++] as number;
        targetWords[k] = (low >>> shift) | (high << (32 - shift));
        low = high;
      }
    }
    next += count << 2;
    at += count << 2;
    while (at < end) target[next++] = bytes[at++] as number;
  }
}

const asciiBit = documentRecordFlags.ascii << 8;

/** Returns a copy of a header's words. */
function headerOf(bytes: Buffer, start: number): Int32Array {
  const words = new Int32Array(documentHeaderBytes / 4);
  for (let k = 0; k < words.length; k++) words[k] = bytes.readInt32LE(start + 4 * k);
  return words;
}
