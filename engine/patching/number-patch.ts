/**
 * A patch of numbers by numbers, for the usual documents of one shape: they are in one segment's image, have nothing
 * but numbers where the patch reads and writes, and their new values are as long as the old ones. They are read in
 * place, and added to a run (record-run.ts). All other documents are left to the caller.
 *
 * Hot: bench/patch.bench.ts. Loop invariants are computed once, and nothing is allocated.
 *
 * Invariants:
 * - A document patched here has the same text as after the script (test/engine/patching/byte-patch.test.ts).
 */

import { decodeNumber } from "../base/json/field-access.ts";
import { documentHeaderBytes } from "../state/documents/document-record.ts";
import type { Shape } from "../state/documents/shapes.ts";
import type { Transaction } from "../state/store/transaction.ts";
import { keptFlags } from "../writes/documents.ts";
import type { NumberProgram } from "./number-program.ts";
import type { RecordPatch } from "./record-patch.ts";
import type { RecordRun } from "./record-run.ts";
import type { ValueTexts } from "./value-texts.ts";

/** Documents of a batch to patch: from `at`, below `end`. */
export interface PatchRange {
  readonly batch: Uint32Array;
  at: number;
  end: number;
  /** Documents with a greater etag are skipped. */
  readonly etagMax: number;
  /** Documents that were visited and not skipped. */
  count: number;
}

/** The rows of documents of a batch, from number `first` of it on. */
export interface PatchRows {
  first: number;
  /** 0: there is no document. */
  readonly etags: Float64Array;
  readonly positions: Float64Array;
}

/** A new value in `#spans`: its place in the record, and the span of its text. */
const wordsPerSpan = 3;
const narrowBodyBytes = 65_536;
const isLast = -1;
// Words of a document's header, see document-record.ts.
const flagsWord = 2;
const bodyLengthWord = 3;
const metadataLengthWord = 8;
const shapeIdWord = 9;
const vectorLengthWord = 10;
const fieldCountWord = 11;
const headerBytes = documentHeaderBytes;
const flagsKept = keptFlags;

export class NumberPatch {
  readonly #shapeId: number;
  readonly #program: NumberProgram;
  /** Targets in field order: the register of the new value, and the input that it replaces. */
  readonly #results: readonly number[];
  readonly #replaced: readonly number[];
  /** By field: bytes from the end of its value to the next one's; `isLast`: no value follows. */
  readonly #gaps: readonly number[];
  readonly #run: RecordRun;
  readonly #texts: ValueTexts;
  /** The spans of the inputs of one document, and its new values. */
  readonly #froms: Int32Array;
  readonly #tos: Int32Array;
  readonly #spans: Int32Array;

  /** Use `newNumberPatch`. */
  constructor(
    shape: Shape,
    program: NumberProgram,
    targets: readonly number[],
    run: RecordRun,
    texts: ValueTexts,
  ) {
    const { nameLengths } = shape;
    this.#shapeId = shape.id;
    this.#program = program;
    this.#results = targets.map((target) => program.results[target] as number);
    this.#replaced = targets.map((target) => program.before[target] as number);
    this.#gaps = nameLengths.map((_, field) => {
      const next = nameLengths[field + 1];
      return next === undefined ? isLast : next + 2; // the comma and the colon
    });
    this.#run = run;
    this.#texts = texts;
    this.#froms = new Int32Array(program.inputs.length);
    this.#tos = new Int32Array(program.inputs.length);
    this.#spans = new Int32Array(wordsPerSpan * targets.length);
  }

  /**
   * Patches documents of a range up to the first that is not usual, at most to `end`.
   * @param last an opened record without a change vector: only documents of its collection are usual
   * @param imageStart the position of the image that it is in. Hot.
   */
  patch(
    transaction: Transaction,
    range: PatchRange,
    end: number,
    rows: PatchRows,
    last: RecordPatch,
    imageStart: number,
  ): void {
    const { batch, etagMax } = range;
    const { first, etags, positions } = rows;
    const { bytes, words, collectionId } = last;
    const { committedEtag } = transaction.state;
    const run = this.#run;
    const spans = this.#spans;
    let { at, count } = range;
    for (; at < end; at++) {
      const etag = etags[at - first] as number; // at < end
      if (etag > etagMax) continue;
      if (etag === 0) {
        count++;
        continue;
      }
      const start = (positions[at - first] as number) - imageStart;
      // The bytes of a staged record may not be copied yet (storage/segments/deferred-copies.ts).
      if (etag > committedEtag || start < 0 || start >= bytes.length) break;
      const base = start >>> 2;
      if (words[base + shapeIdWord] !== this.#shapeId) break;
      if (words[base + vectorLengthWord] !== collectionId) break;
      if (((words[base + fieldCountWord] as number) >>> 16) & ~flagsKept) break;
      const bodyLength = words[base + bodyLengthWord] as number;
      if (bodyLength >= narrowBodyBytes) break;
      const idLength = (words[base + flagsWord] as number) >>> 16;
      const bodyAt = headerBytes + idLength + (words[base + metadataLengthWord] as number);
      const spanCount = this.#spell(bytes, start, bodyAt, bodyLength);
      if (spanCount < 0) break;
      count++;
      if (spanCount === 0) continue;
      if (!run.takes(bytes)) run.flush(transaction, this.#texts.bytes);
      run.add(batch[at] as number, bytes, start, words[base] as number);
      for (let k = 0; k < wordsPerSpan * spanCount; k += wordsPerSpan) {
        run.replace(spans[k] as number, spans[k + 1] as number, spans[k + 2] as number);
      }
    }
    range.at = at;
    range.count = count;
  }

  /**
   * Evaluates the program for a record, and puts the values that it changes into `#spans`.
   * @param bodyAt the place of the body in the record
   * @returns how many; -1 when it is not usual. Hot.
   */
  #spell(bytes: Buffer, start: number, bodyAt: number, bodyLength: number): number {
    const program = this.#program;
    const { inputs, registers } = program;
    const froms = this.#froms;
    const tos = this.#tos;
    const body = start + bodyAt;
    const bodyEnd = body + bodyLength - 1;
    const table = start + ((bodyAt + bodyLength + 1) & ~1);
    for (let k = 0; k < inputs.length; k++) {
      const field = inputs[k] as number;
      const gap = this.#gaps[field] as number;
      const from = body + offsetAt(bytes, table + 2 * field);
      const to = gap === isLast ? bodyEnd : body + offsetAt(bytes, table + 2 * field + 2) - gap;
      if (kindOf(bytes, from) !== kinds.number) return -1;
      registers[k] = decodeNumber(bytes, from, to);
      froms[k] = from;
      tos[k] = to;
    }
    if (!program.run()) return -1;
    const texts = this.#texts;
    if (this.#run.count === 0) texts.length = 0;
    const textsBefore = texts.length;
    const results = this.#results;
    const replaced = this.#replaced;
    const spans = this.#spans;
    let next = 0;
    for (let i = 0; i < results.length; i++) {
      const input = replaced[i] as number;
      const value = registers[results[i] as number] as number;
      if (isSameNumber(registers[input] as number, value)) continue;
      const from = froms[input] as number;
      const to = tos[input] as number;
      const textFrom = texts.length;
      texts.addNumber(value, isSpelledAsDouble(bytes, from, to));
      if (texts.length - textFrom !== to - from) {
        texts.length = textsBefore;
        return -1;
      }
      spans[next++] = from - start;
      spans[next++] = textFrom;
      spans[next++] = texts.length;
    }
    return next / wordsPerSpan;
  }
}

/**
 * @param targets in field order
 * @param run, texts - to which the documents and their new values are added
 * @returns null when a target is not among the inputs.
 */
export function newNumberPatch(
  shape: Shape,
  program: NumberProgram | null,
  targets: readonly number[],
  run: RecordRun,
  texts: ValueTexts,
): NumberPatch | null {
  if (program === null || targets.some((target) => (program.before[target] as number) < 0)) {
    return null;
  }
  return new NumberPatch(shape, program, targets, run, texts);
}

/** Returns a u16 of a field table. */
function offsetAt(bytes: Buffer, at: number): number {
  return (bytes[at] as number) | ((bytes[at + 1] as number) << 8);
}

/** Type of a value, by its first byte. */
export const kinds = { number: 0, string: 1, word: 2, other: 3 } as const;

export function kindOf(bytes: Buffer, at: number): number {
  const first = bytes[at] as number;
  if (first === 0x22) return kinds.string;
  if (first === 0x7b || first === 0x5b) return kinds.other;
  return first === 0x74 || first === 0x66 || first === 0x6e ? kinds.word : kinds.number;
}

/** Negative zero is always rewritten, as the script does. */
export function isSameNumber(old: number, value: number): boolean {
  return old === value && (value !== 0 || 1 / value > 0);
}

export function isSpelledAsDouble(bytes: Buffer, from: number, to: number): boolean {
  for (let at = from; at < to; at++) {
    const byte = bytes[at] as number;
    if (byte === 0x2e || byte === 0x65 || byte === 0x45) return true;
  }
  return false;
}
