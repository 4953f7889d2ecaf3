/**
 * The committed row of every document, packed in chunks, and counts over them.
 *
 *   numbers chunk (f64): etag | position | etag | position | ...
 *   words chunk (u32):   length | collection << 16 | flags | length | ...
 *
 * `RowColumns` is for reading; `RowStore` is its only writer. A view holds the columns as of its creation: the store
 * copies shared chunks on write.
 *
 * Invariants:
 * - Etag 0 means that there is no document; then position, length, collection and flags are 0 too.
 * - Columns that a view holds never change.
 */
import { assert } from "../assert.ts";
import { type ByteReader, bytesOf } from "./sections.ts";
import {
  type StagedRun,
  stagedDocNumAt,
  stagedLengthAt,
  stagedWordAt,
  stagedWords,
} from "./staged-rows.ts";

/**
 * Called for each row when it is committed, before it is replaced, with the previous row. `previousLength` 0: the
 * document did not exist. It must not change the rows.
 */
export type RowListener = (
  docNum: number,
  previousEtag: number,
  previousPosition: number,
  previousLength: number,
  previousCollection: number,
) => void;

export class RowColumns {
  readonly shift: number;
  readonly mask: number;
  readonly numbers: Float64Array[];
  readonly words: Uint32Array[];
  /** Number of documents of each collection; shorter than the list of collections if the last ones are empty. */
  collectionCounts: Uint32Array;
  documentCount = 0;
  /** The greatest etag of any document ever committed. */
  lastEtag = 0;

  constructor(shift: number, numbers: Float64Array[], words: Uint32Array[], counts: Uint32Array) {
    this.shift = shift;
    this.mask = 2 ** shift - 1;
    this.numbers = numbers;
    this.words = words;
    this.collectionCounts = counts;
  }

  /** 0 when there is no document of this number. Hot. */
  etagOf(docNum: number): number {
    const chunk = this.numbers[docNum >>> this.shift];
    return chunk === undefined ? 0 : (chunk[(docNum & this.mask) << 1] as number);
  }

  positionOf(docNum: number): number {
    const chunk = this.numbers[docNum >>> this.shift];
    return chunk === undefined ? 0 : (chunk[((docNum & this.mask) << 1) + 1] as number);
  }

  lengthOf(docNum: number): number {
    const chunk = this.words[docNum >>> this.shift];
    return chunk === undefined ? 0 : (chunk[(docNum & this.mask) << 1] as number);
  }

  collectionOf(docNum: number): number {
    return this.#wordOf(docNum) >>> 16;
  }

  flagsOf(docNum: number): number {
    return this.#wordOf(docNum) & 0xffff;
  }

  countOfCollection(collection: number): number {
    return this.collectionCounts[collection] ?? 0;
  }

  #wordOf(docNum: number): number {
    const chunk = this.words[docNum >>> this.shift];
    return chunk === undefined ? 0 : (chunk[((docNum & this.mask) << 1) + 1] as number);
  }

  /** Columns that share all chunks with these. */
  copy(): RowColumns {
    const { numbers, words, collectionCounts } = this;
    const copy = new RowColumns(
      this.shift,
      numbers.slice(),
      words.slice(),
      collectionCounts.slice(),
    );
    copy.documentCount = this.documentCount;
    copy.lastEtag = this.lastEtag;
    return copy;
  }
}

/** The epoch of the shared empty chunk, in which no row is set. */
const emptyEpoch = -1;

/** Pairs of chunks that are kept for further copies, so that short views leave no garbage. */
const spareChunksMax = 32;

/** A pair of chunks that the writer has replaced, and the epochs of the views that may hold it: (made, retired]. */
interface RetiredChunk {
  readonly numbers: Float64Array;
  readonly words: Uint32Array;
  readonly madeEpoch: number;
  readonly retiredEpoch: number;
}

/** Columns held for a view; `release` once per holder. */
export interface HeldRows {
  readonly columns: RowColumns;
  readonly epoch: number;
  holders: number;
}

export class RowStore {
  columns: RowColumns;
  /** Incremented when a view is released, as entries kept for it may then be removed. */
  releaseCount = 0;
  readonly #rowsPerChunk: number;
  /** The epoch in which each chunk was created; it is shared with every view of a later epoch. */
  #chunkEpochs: number[] = [];
  #directoryEpoch = 0;
  #epoch = 0;
  /** The epoch of the newest held view; 0 if no view is held. */
  #sharedEpoch = 0;
  /** The columns held for views, oldest first. */
  #held: HeldRows[] = [];
  /** Recently replaced chunks that a view may still hold, and free ones for reuse. */
  #retired: RetiredChunk[] = [];
  #spare: RetiredChunk[] = [];
  /** Shared by all chunks without a row. */
  readonly #emptyNumbers: Float64Array;
  readonly #emptyWords: Uint32Array;

  /** @param rowsPerChunk - a power of two. */
  constructor(rowsPerChunk: number) {
    this.#rowsPerChunk = rowsPerChunk;
    this.columns = new RowColumns(Math.log2(rowsPerChunk), [], [], new Uint32Array(4));
    this.#emptyNumbers = new Float64Array(rowsPerChunk * 2);
    this.#emptyWords = new Uint32Array(rowsPerChunk * 2);
  }

  /** Holds the present columns. Cost: O(1); the next change pays O(chunks). */
  hold(): HeldRows {
    const newest = this.#held[this.#held.length - 1];
    if (newest !== undefined && newest.columns === this.columns) {
      newest.holders++;
      return newest;
    }
    this.#epoch++;
    this.#sharedEpoch = this.#epoch;
    const held = { columns: this.columns, epoch: this.#epoch, holders: 1 };
    this.#held.push(held);
    return held;
  }

  release(held: HeldRows): void {
    assert(held.holders > 0, "each holder releases a view once");
    held.holders--;
    if (held.holders > 0) return;
    this.#held.splice(this.#held.indexOf(held), 1);
    this.#sharedEpoch = this.#held[this.#held.length - 1]?.epoch ?? 0;
    this.releaseCount++;
    const retired = this.#retired;
    this.#retired = [];
    for (const chunk of retired) {
      if (this.#isHeld(chunk)) this.#retired.push(chunk);
      else if (this.#spare.length < spareChunksMax) this.#spare.push(chunk);
    }
  }

  #isHeld(chunk: RetiredChunk): boolean {
    return this.#held.some(
      (held) => held.epoch > chunk.madeEpoch && held.epoch <= chunk.retiredEpoch,
    );
  }

  /** Sets a row, in an existing chunk or the next one; etag 0 clears it. Hot. */
  set(docNum: number, etag: number, position: number, length: number, word: number): void {
    const columns = this.#columnsToChange(docNum);
    const chunk = docNum >>> columns.shift;
    const at = (docNum & columns.mask) << 1;
    const numbers = columns.numbers[chunk] as Float64Array; // made by #columnsToChange
    const words = columns.words[chunk] as Uint32Array;
    numbers[at] = etag;
    numbers[at + 1] = position;
    words[at] = length;
    words[at + 1] = word;
  }

  /**
   * As `set` and `noteEtag` for the rows of a run, as long as each replaces a row that has a smaller etag and the same
   * collection, the most frequent case, which changes no count. `listener` is first called with that row.
   * @param previous gets the etags of the rows replaced, from its beginning
   * @returns how many were set. Hot.
   */
  replaceRun(run: StagedRun, previous: Float64Array, listener: RowListener | undefined): number {
    const { shift, mask } = this.columns;
    const { numbers: newNumbers, words: newWords, from, to } = run;
    const collection = (newWords[from * stagedWords + stagedWordAt] as number) >>> 16; // from < to
    let chunk = -1;
    let numbers = this.#emptyNumbers;
    let words = this.#emptyWords;
    let { lastEtag } = this.columns;
    let at = from;
    for (; at < to; at++) {
      const base = at * stagedWords;
      const docNum = newWords[base + stagedDocNumAt] as number;
      const length = newWords[base + stagedLengthAt] as number;
      const word = newWords[base + stagedWordAt] as number;
      const etag = newNumbers[at << 1] as number;
      if (docNum >>> shift !== chunk) {
        const known = this.columns.numbers[docNum >>> shift];
        if (known === undefined || known === this.#emptyNumbers) break;
        chunk = docNum >>> shift;
        const columns = this.#columnsToChange(docNum);
        numbers = columns.numbers[chunk] as Float64Array; // it was there before
        words = columns.words[chunk] as Uint32Array; // chunks form pairs
      }
      const row = (docNum & mask) << 1;
      const previousEtag = numbers[row] as number;
      if (length === 0 || previousEtag === 0 || previousEtag >= etag) break;
      const before = (words[row + 1] as number) >>> 16;
      if (before !== collection || word >>> 16 !== collection) break;
      listener?.(docNum, previousEtag, numbers[row + 1] as number, words[row] as number, before);
      previous[at - from] = previousEtag;
      numbers[row] = etag;
      numbers[row + 1] = newNumbers[(at << 1) + 1] as number;
      words[row] = length;
      words[row + 1] = word;
      if (etag > lastEtag) lastEtag = etag;
    }
    if (at > from) this.columns.lastEtag = lastEtag;
    return at - from;
  }

  setPosition(docNum: number, position: number): void {
    const columns = this.#columnsToChange(docNum);
    const numbers = columns.numbers[docNum >>> columns.shift] as Float64Array; // see set
    numbers[((docNum & columns.mask) << 1) + 1] = position;
  }

  /** Adds `step` to the counts. The columns must be the writer's own, which `set` ensures. */
  count(collection: number, step: 1 | -1): void {
    const columns = this.columns;
    if (collection >= columns.collectionCounts.length) {
      const counts = new Uint32Array(Math.max(collection + 1, columns.collectionCounts.length * 2));
      counts.set(columns.collectionCounts);
      columns.collectionCounts = counts;
    }
    columns.collectionCounts[collection] = columns.countOfCollection(collection) + step;
    columns.documentCount += step;
  }

  /** No row from `from` on is set: frees the whole chunks among them. */
  truncate(from: number): void {
    const length = (from + this.columns.mask) >>> this.columns.shift;
    if (length >= this.columns.numbers.length) return;
    const columns = this.#ownColumns();
    columns.numbers.length = length;
    columns.words.length = length;
    this.#chunkEpochs.length = length;
  }

  /** As `truncate`, for the rows `from` to `to`, exclusive, between others. */
  dropRows(from: number, to: number): void {
    const { shift, numbers } = this.columns;
    const end = Math.min(to >>> shift, numbers.length);
    for (let chunk = (from + this.columns.mask) >>> shift; chunk < end; chunk++) {
      if (numbers[chunk] === this.#emptyNumbers) continue;
      const columns = this.#ownColumns();
      columns.numbers[chunk] = this.#emptyNumbers;
      columns.words[chunk] = this.#emptyWords;
      this.#chunkEpochs[chunk] = emptyEpoch;
    }
  }

  noteEtag(etag: number): void {
    if (etag > this.columns.lastEtag) this.columns.lastEtag = etag;
  }

  /** Whether any view is held. */
  get hasViews(): boolean {
    return this.#held.length > 0;
  }

  /** Returns whether the row of any view has this etag. */
  isEtagHeld(docNum: number, etag: number): boolean {
    for (const held of this.#held) if (held.columns.etagOf(docNum) === etag) return true;
    return false;
  }

  /** Returns whether a document has this number, now or in any view. */
  isDocumentSeen(docNum: number): boolean {
    if (this.columns.etagOf(docNum) !== 0) return true;
    for (const held of this.#held) if (held.columns.etagOf(docNum) !== 0) return true;
    return false;
  }

  memoryBytes(): number {
    const seen = new Set<ArrayBufferView>();
    for (const columns of [this.columns, ...this.#held.map((held) => held.columns)]) {
      for (const chunk of columns.numbers) seen.add(chunk);
      for (const chunk of columns.words) seen.add(chunk);
      seen.add(columns.collectionCounts);
    }
    for (const chunk of [...this.#retired, ...this.#spare])
      seen.add(chunk.numbers).add(chunk.words);
    let bytes = 0;
    for (const chunk of seen) bytes += chunk.byteLength;
    return bytes;
  }

  /** Fills an empty store from the bytes of `rowParts`. @throws EngineError database-damaged */
  restore(reader: ByteReader): void {
    assert(this.columns.numbers.length === 0, "only an empty store is restored");
    const columns = this.columns;
    reader.expect(reader.uint32() === this.#rowsPerChunk, "rows of a chunk");
    const chunkCount = reader.uint32();
    const collectionCount = reader.uint32();
    columns.documentCount = reader.float64();
    columns.lastEtag = reader.float64();
    reader.expect(collectionCount <= 65_536, "number of collections");
    columns.collectionCounts = reader.uint32s(collectionCount);
    for (let at = 0; at < chunkCount; at++) {
      const numbers = reader.float64s(this.#rowsPerChunk * 2);
      const words = reader.uint32s(this.#rowsPerChunk * 2);
      const isEmpty = words.every((word) => word === 0);
      columns.numbers.push(isEmpty ? this.#emptyNumbers : numbers);
      columns.words.push(isEmpty ? this.#emptyWords : words);
      this.#chunkEpochs.push(isEmpty ? emptyEpoch : this.#epoch);
      if (isEmpty)
        reader.expect(
          numbers.every((number) => number === 0),
          "rows without a record",
        );
    }
    const sum = columns.collectionCounts.reduce((total, count) => total + count, 0);
    reader.expect(sum === columns.documentCount, "number of documents");
  }

  checkInvariants(docCount: number): void {
    checkColumns(this.columns, docCount);
    let epoch = 0;
    for (const held of this.#held) {
      assert(held.epoch > epoch && held.holders > 0, "views are held in the order they were made");
      epoch = held.epoch;
      checkColumns(held.columns, docCount);
    }
    const columnsInUse = [this.columns, ...this.#held.map((held) => held.columns)];
    for (const spare of this.#spare) {
      const isFree = columnsInUse.every((columns) => !columns.numbers.includes(spare.numbers));
      assert(isFree, "a spare chunk is in nobody's columns");
    }
    assert(this.#sharedEpoch === epoch, "the newest view held is known");
    const isZero = this.#emptyNumbers.every((each) => each === 0);
    assert(isZero && this.#emptyWords.every((each) => each === 0), "no row is set in all chunks");
    assert(this.#chunkEpochs.length === this.columns.numbers.length, "each chunk has an epoch");
  }

  /** Returns the columns, with a directory that no view shares. */
  #ownColumns(): RowColumns {
    if (this.#directoryEpoch < this.#sharedEpoch) {
      this.columns = this.columns.copy();
      this.#directoryEpoch = this.#epoch;
    }
    return this.columns;
  }

  #columnsToChange(docNum: number): RowColumns {
    const columns = this.#ownColumns();
    const chunk = docNum >>> columns.shift;
    while (chunk >= columns.numbers.length) {
      columns.numbers.push(new Float64Array(this.#rowsPerChunk * 2));
      columns.words.push(new Uint32Array(this.#rowsPerChunk * 2));
      this.#chunkEpochs.push(this.#epoch);
    }
    const epoch = this.#chunkEpochs[chunk] as number; // as many epochs as chunks
    if (epoch === emptyEpoch) {
      columns.numbers[chunk] = new Float64Array(this.#rowsPerChunk * 2);
      columns.words[chunk] = new Uint32Array(this.#rowsPerChunk * 2);
      this.#chunkEpochs[chunk] = this.#epoch;
    } else if (epoch < this.#sharedEpoch) this.#replaceChunk(columns, chunk);
    return columns;
  }

  /** Replaces a chunk that a view holds by a copy. */
  #replaceChunk(columns: RowColumns, chunk: number): void {
    const numbers = columns.numbers[chunk] as Float64Array; // the caller's chunk is there
    const words = columns.words[chunk] as Uint32Array;
    const spare = this.#spare.pop();
    if (spare === undefined) {
      columns.numbers[chunk] = numbers.slice();
      columns.words[chunk] = words.slice();
    } else {
      spare.numbers.set(numbers);
      spare.words.set(words);
      columns.numbers[chunk] = spare.numbers;
      columns.words[chunk] = spare.words;
    }
    if (this.#retired.length < spareChunksMax) {
      const madeEpoch = this.#chunkEpochs[chunk] as number; // as many epochs as chunks
      this.#retired.push({ numbers, words, madeEpoch, retiredEpoch: this.#epoch });
    }
    this.#chunkEpochs[chunk] = this.#epoch;
  }
}

/** Returns the bytes of columns, which must not change while they are in use. */
export function rowParts(columns: RowColumns): Uint8Array[] {
  const { numbers, words, collectionCounts } = columns;
  const parts: Uint8Array[] = [
    bytesOf(Uint32Array.of(columns.mask + 1, numbers.length, collectionCounts.length)),
    bytesOf(Float64Array.of(columns.documentCount, columns.lastEtag)),
    bytesOf(collectionCounts),
  ];
  for (const [at, chunk] of numbers.entries()) {
    parts.push(bytesOf(chunk), bytesOf(words[at] as Uint32Array)); // chunks form pairs
  }
  return parts;
}

function checkColumns(columns: RowColumns, docCount: number): void {
  const counts = new Map<number, number>();
  let documentCount = 0;
  for (let docNum = 0; docNum < columns.numbers.length << columns.shift; docNum++) {
    const collection = columns.collectionOf(docNum);
    const etag = columns.etagOf(docNum);
    if (etag === 0) {
      const rest = columns.positionOf(docNum) + columns.lengthOf(docNum) + columns.flagsOf(docNum);
      assert(rest + collection === 0, "a row without a document is empty");
      continue;
    }
    assert(docNum < docCount, "a document has an id");
    assert(etag <= columns.lastEtag, "no document is newer than the last etag");
    assert(columns.lengthOf(docNum) > 0, "a document has a record");
    counts.set(collection, (counts.get(collection) ?? 0) + 1);
    documentCount++;
  }
  assert(columns.documentCount === documentCount, "documents are counted");
  for (const [collection, count] of columns.collectionCounts.entries()) {
    assert(count === (counts.get(collection) ?? 0), "documents of a collection are counted");
    counts.delete(collection);
  }
  assert(counts.size === 0, "every collection with documents has a count");
}
