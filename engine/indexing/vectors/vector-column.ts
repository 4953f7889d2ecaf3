/**
 * The nearest vectors of a field, found among its terms. All vectors are compared exactly, or, if there are many long
 * ones, by their sketches first: one bit per dimension, the side of the mean on which the vector lies. The vectors
 * whose sketches differ least from that of the query are then compared exactly.
 *
 *   terms ──► norms ──► sketches ──► the nearest some thousand ──► compared exactly ──► the best entries
 *
 * A scan of sketches costs some twenty nanoseconds per vector of 384 numbers, needs no graph, is unaffected by
 * removals, and is as accurate combined with a narrow filter as without one. Norms and sketches are derived from the
 * terms when a query needs them, in slices, and are not saved: a hundred thousand take some tenths of a second.
 *
 * Invariants:
 * - Between two steps of `refresh` it is consistent, and up to date with the first `#termCount` terms.
 * - A sketch is complete for the terms below its `end`, with the same means.
 *
 * Hot: bench/vector.bench.ts.
 */
import type { Work, WorkBudget } from "../../base/scheduling/work-budget.ts";
import type { EntrySet } from "../columns/entry-set.ts";
import type { EntryView } from "../columns/entry-view.ts";
import type { FieldColumn } from "../columns/field-column.ts";
import { grownFloat64, grownUint32 } from "../columns/packed.ts";
import { slicedSort } from "../columns/sliced-sort.ts";
import { firstTerm, vectorKind } from "../columns/term-dictionary.ts";
import type { StoredType } from "./vector-form.ts";
import { vectorLengthOf } from "./vector-terms.ts";

/** Vectors and dimensions from which on sketches pay. */
const sketchedMin = 4096;
const sketchedDimensionsMin = 64;
/**
 * Number of vectors from which means are computed; the means are computed again when the number of vectors has grown by
 * this factor.
 */
const sampleMax = 4096;
const growthMax = 8;
/** Vectors compared exactly after a scan of sketches, and as a multiple of the wanted ones. */
const comparedMin = 2048;
const comparedFactor = 32;
/** Vectors between two checks of the budget. */
const stride = 64;
const sketchStride = 1024;
/** Maximum rounding error of a similarity. */
const tolerance = 1e-6;

const vectorColumns = new WeakMap<FieldColumn, VectorColumn>();

/** Returns the vector column of a field's column. `stored`: type of the field, always the same. */
export function vectorColumnOf(column: FieldColumn, stored: StoredType): VectorColumn {
  let found = vectorColumns.get(column);
  if (found === undefined) {
    found = new VectorColumn(column, stored);
    vectorColumns.set(column, found);
  }
  return found;
}

/** A nearest-neighbor search. */
interface NearestSearch {
  /** In the stored form. An entry is as near as the nearest pair. */
  readonly vectors: readonly Buffer[];
  /** Entries wanted at most. */
  readonly count: number;
  /** From 0 to 1. */
  readonly minimum: number;
  /** Compares every vector. */
  readonly isExact: boolean;
  /** Null: all live entries. */
  readonly within: EntrySet | null;
}

/** Scores of vectors that are compared with one. */
type Compare = (term: number) => number;

/** Bits of vectors, by term. */
class Sketches {
  readonly means: Float32Array;
  /** Number of vectors when the means were computed. */
  readonly count: number;
  readonly wordCount: number;
  words: Uint32Array = new Uint32Array(16);
  /** Terms below this have sketches. */
  end = firstTerm;

  constructor(means: Float32Array, count: number) {
    this.means = means;
    this.count = count;
    this.wordCount = (means.length + 31) >>> 5;
  }

  set(term: number, vector: ArrayLike<number>, from: number, scale: number): void {
    const { means, wordCount } = this;
    this.words = grownUint32(this.words, (term + 1) * wordCount);
    writeBits(this.words, term * wordCount, vector, from, scale, means);
  }

  of(vector: ArrayLike<number>, scale: number): Uint32Array {
    const words = new Uint32Array(this.wordCount);
    writeBits(words, 0, vector, 0, scale, this.means);
    return words;
  }
}

function writeBits(
  words: Uint32Array,
  at: number,
  vector: ArrayLike<number>,
  from: number,
  scale: number,
  means: Float32Array,
): void {
  for (let i = 0; i < means.length; i += 32) {
    const end = Math.min(32, means.length - i);
    let word = 0;
    for (let k = 0; k < end; k++) {
      const isAbove = (vector[from + i + k] as number) * scale > (means[i + k] as number);
      word |= (isAbove ? 1 : 0) << k;
    }
    words[at + (i >>> 5)] = word;
  }
}

class VectorColumn {
  readonly stored: StoredType;
  readonly #column: FieldColumn;
  /** By term: reciprocal of the length of its vector, 0 if it has no length. */
  #scales: Float64Array = new Float64Array(16);
  #termCount = firstTerm;
  #sketches: Sketches | null = null;
  /** The dictionary's bytes as numbers, and these bytes. */
  #numbers: Float32Array | Int8Array = new Float32Array(0);
  #slab: Buffer = Buffer.alloc(0);
  /** For a vector that does not begin at a multiple of four bytes. */
  #copied: Float32Array = new Float32Array(0);

  constructor(column: FieldColumn, stored: StoredType) {
    this.#column = column;
    this.stored = stored;
  }

  /** Length of a vector in bytes; 0 if the column has no vectors. */
  get length(): number {
    return vectorLengthOf(this.#column);
  }

  /** Returns the vectors of an entry. */
  vectorsOf(entry: number): Buffer[] {
    const { starts, terms, dictionary } = this.#column;
    const vectors: Buffer[] = [];
    const end = starts[entry + 1] as number;
    for (let value = starts[entry] as number; value < end; value++) {
      const term = terms[value] as number;
      if (term >= firstTerm && dictionary.kindOf(term) === vectorKind) {
        vectors.push(Buffer.from(dictionary.bytesOf(term)));
      }
    }
    return vectors;
  }

  /** Number of dimensions of vectors that are stored as numbers. */
  get #dimensions(): number {
    return this.stored === "Single" ? this.length >>> 2 : this.length - 4;
  }

  /** Cost of comparing two vectors. */
  get #compareUnits(): number {
    return 1 + (this.length >>> 6);
  }

  /** Adds new terms. */
  *refresh(budget: WorkBudget): Work<void> {
    if (this.length === 0 || this.stored === "Binary") return;
    const { dictionary } = this.#column;
    const units = this.#compareUnits;
    while (this.#termCount < dictionary.count) {
      const end = Math.min(this.#termCount + stride, dictionary.count);
      this.#scales = grownFloat64(this.#scales, end);
      for (; this.#termCount < end; this.#termCount++) {
        this.#scales[this.#termCount] = this.#scaleOf(this.#termCount);
      }
      budget.tick(stride * units);
      if (budget.isDue) yield;
    }
    const count = this.#termCount - firstTerm;
    if (count < sketchedMin || this.#dimensions < sketchedDimensionsMin) return;
    let sketches = this.#sketches;
    if (sketches === null || count >= sketches.count * growthMax) {
      sketches = new Sketches(yield* this.#means(budget), count);
    }
    const dimensions = this.#dimensions;
    while (sketches.end < this.#termCount) {
      const end = Math.min(sketches.end + stride, this.#termCount);
      for (; sketches.end < end; sketches.end++) {
        const from = this.#numbersOf(sketches.end, dimensions);
        sketches.set(sketches.end, this.#loaded, from, this.#scales[sketches.end] as number);
      }
      budget.tick(stride * units * 4);
      if (budget.isDue) yield;
    }
    if ((this.#sketches?.end ?? 0) <= sketches.end) this.#sketches = sketches;
  }

  *#means(budget: WorkBudget): Work<Float32Array> {
    const dimensions = this.#dimensions;
    const end = this.#termCount;
    const step = Math.max(1, Math.floor((end - firstTerm) / sampleMax));
    const sums = new Float64Array(dimensions);
    let count = 0;
    for (let term = firstTerm; term < end; term += step) {
      const from = this.#numbersOf(term, dimensions);
      const numbers = this.#loaded;
      const scale = this.#scales[term] as number;
      for (let i = 0; i < dimensions; i++) {
        sums[i] = (sums[i] as number) + (numbers[from + i] as number) * scale;
      }
      count++;
      budget.tick(this.#compareUnits);
      if (budget.isDue) yield;
    }
    return Float32Array.from(sums, (sum) => sum / count);
  }

  #scaleOf(term: number): number {
    const { dictionary } = this.#column;
    if (dictionary.kindOf(term) !== vectorKind) return 0;
    const dimensions = this.#dimensions;
    const from = this.#numbersOf(term, dimensions);
    return scaleOf(this.#loaded, from, dimensions);
  }

  /** The array that `#numbersOf` gave an offset in. */
  #loaded: Float32Array | Int8Array = new Float32Array(0);

  /** Where the numbers of a term's vector begin in `#loaded`. */
  #numbersOf(term: number, dimensions: number): number {
    const { dictionary } = this.#column;
    const { slab } = dictionary;
    const isSingle = this.stored === "Single";
    if (slab !== this.#slab) {
      this.#slab = slab;
      const isEven = slab.byteOffset % 4 === 0;
      if (!isSingle) this.#numbers = new Int8Array(slab.buffer, slab.byteOffset, slab.length);
      else if (isEven) {
        this.#numbers = new Float32Array(slab.buffer, slab.byteOffset, slab.length >>> 2);
      } else this.#numbers = new Float32Array(0);
    }
    const start = dictionary.startOf(term);
    if (!isSingle) {
      this.#loaded = this.#numbers;
      return start;
    }
    if (start % 4 === 0 && this.#numbers.length > 0) {
      this.#loaded = this.#numbers;
      return start >>> 2;
    }
    if (this.#copied.length !== dimensions) this.#copied = new Float32Array(dimensions);
    slab.copy(new Uint8Array(this.#copied.buffer), 0, start, start + dimensions * 4);
    this.#loaded = this.#copied;
    return 0;
  }

  /** How near vectors are to one: the cosine, or the share of equal bits; NaN for a vector of zeros. */
  #comparing(sought: Buffer): Compare {
    const { dictionary } = this.#column;
    if (this.stored === "Binary") {
      return (term) => equalBits(dictionary.slab, dictionary.startOf(term), sought);
    }
    const dimensions = this.#dimensions;
    const vector = queryNumbers(sought, this.stored);
    const scale = scaleOf(vector, 0, dimensions);
    const scales = this.#scales;
    return (term) => {
      const own = scales[term] as number;
      if (own === 0) return Number.NaN;
      const from = this.#numbersOf(term, dimensions);
      return product(this.#loaded, from, vector, dimensions) * own * scale;
    };
  }

  /**
   * Returns the best entries and their scores, in no order: cosines, or shares of equal bits. Call `refresh` first.
   * Cost: in proportion to the vectors of the field.
   */
  *find(search: NearestSearch, view: EntryView, budget: WorkBudget): Work<Map<number, number>> {
    const { vectors, minimum } = search;
    const least = (this.stored === "Binary" ? minimum : minimum * 2 - 1) - tolerance;
    const best = new BestEntries(Math.min(search.count, view.size), least, budget);
    for (const sought of vectors) {
      const compare = this.#comparing(sought);
      const { within } = search;
      const sketches = search.isExact ? null : this.#sketches;
      const termCount = this.#column.dictionary.count - firstTerm;
      const compared = Math.max(comparedMin, search.count * comparedFactor);
      const fewMax = sketches === null ? termCount : compared * 2;
      if (within !== null && within.count * 2 < termCount && within.count <= fewMax) {
        yield* this.#compareEntries(within, compare, best, view, budget);
      } else if (sketches === null || compared * 2 >= termCount) {
        yield* this.#compareAll(compare, best, search, view, budget);
      } else {
        yield* this.#compareNear(sketches, sought, compare, compared, best, search, view, budget);
      }
    }
    yield* best.prune();
    return best.scores;
  }

  /** Compares the vectors of some entries. */
  *#compareEntries(
    within: EntrySet,
    compare: Compare,
    best: BestEntries,
    view: EntryView,
    budget: WorkBudget,
  ): Work<void> {
    const { starts, terms, dictionary } = this.#column;
    for (const entry of within.toList()) {
      if (entry >= view.size) break;
      const end = starts[entry + 1] as number;
      for (let value = starts[entry] as number; value < end; value++) {
        const term = terms[value] as number;
        if (term < firstTerm || !this.#isKnown(term)) continue;
        if (dictionary.kindOf(term) === vectorKind) best.offer(entry, compare(term));
        budget.spend(this.#compareUnits);
      }
      if (best.isFull) yield* best.prune();
      budget.spend(1);
      if (budget.isDue) yield;
    }
  }

  /** Terms added while a query paused have no scale yet; its view lacks their entries. */
  #isKnown(term: number): boolean {
    return this.stored === "Binary" || term < this.#termCount;
  }

  *#compareAll(
    compare: Compare,
    best: BestEntries,
    { within }: NearestSearch,
    view: EntryView,
    budget: WorkBudget,
  ): Work<void> {
    const { dictionary } = this.#column;
    const end = this.stored === "Binary" ? dictionary.count : this.#termCount;
    const units = this.#compareUnits;
    for (let term = firstTerm; term < end; term++) {
      if (dictionary.kindOf(term) === vectorKind) {
        const score = compare(term);
        // Not for NaN.
        if (score >= best.least) yield* this.#offer(term, score, best, within, view, budget);
      }
      if (term % stride === 0) {
        budget.spend(stride * units);
        if (budget.isDue) yield;
      }
    }
  }

  /** Offers the entries of a term: there may be many. */
  *#offer(
    term: number,
    score: number,
    best: BestEntries,
    within: EntrySet | null,
    view: EntryView,
    budget: WorkBudget,
  ): Work<void> {
    for (const entry of this.#column.entriesOf(term)) {
      if (isWanted(entry, within, view)) best.offer(entry, score);
      budget.spend(1);
      if (best.isFull) yield* best.prune();
      if (budget.isDue) yield;
    }
  }

  /** Returns whether an entry of the term is wanted. */
  *#isUsed(
    term: number,
    within: EntrySet | null,
    view: EntryView,
    budget: WorkBudget,
  ): Work<boolean> {
    for (const entry of this.#column.entriesOf(term)) {
      if (isWanted(entry, within, view)) return true;
      budget.spend(1);
      if (budget.isDue) yield;
    }
    return false;
  }

  /** Compares the vectors whose sketches are nearest to the sought one's. */
  *#compareNear(
    sketches: Sketches,
    sought: Buffer,
    compare: Compare,
    compared: number,
    best: BestEntries,
    { within }: NearestSearch,
    view: EntryView,
    budget: WorkBudget,
  ): Work<void> {
    const { firsts, entries } = this.#column;
    const { wordCount, end } = sketches;
    const vector = queryNumbers(sought, this.stored);
    const own = sketches.of(vector, scaleOf(vector, 0, this.#dimensions));
    const far = 0xffff;
    budget.hold(end * Uint16Array.BYTES_PER_ELEMENT);
    const distances = new Uint16Array(end).fill(far);
    const counts = new Uint32Array(this.#dimensions + 1);
    const units = 2 + (wordCount >>> 2);
    for (let term = firstTerm; term < end; term++) {
      if (term % sketchStride === 0) {
        budget.spend(sketchStride * units);
        if (budget.isDue) yield;
      }
      const first = (firsts[term] ?? 0) - 1;
      const isFirst = first >= 0 && isWanted(entries[first] as number, within, view);
      if (!isFirst && !(yield* this.#isUsed(term, within, view, budget))) continue;
      const distance = differingBits(sketches.words, term * wordCount, own);
      distances[term] = distance;
      counts[distance] = (counts[distance] as number) + 1;
    }
    let nearest = 0;
    let limit = 0;
    while (limit < counts.length - 1 && nearest + (counts[limit] as number) < compared) {
      nearest += counts[limit++] as number;
    }
    for (let term = firstTerm; term < end; term++) {
      if ((distances[term] as number) <= limit) {
        const score = compare(term);
        if (score >= best.least) yield* this.#offer(term, score, best, within, view, budget);
        budget.spend(this.#compareUnits);
        if (budget.isDue) yield;
      }
      if (term % sketchStride === 0) {
        budget.spend(sketchStride >>> 3);
        if (budget.isDue) yield;
      }
    }
    budget.release(distances.byteLength);
  }
}

function isWanted(entry: number, within: EntrySet | null, view: EntryView): boolean {
  if (entry >= view.size) return false;
  return within === null ? view.isLive(entry) : within.has(entry);
}

/** The entries with the best scores of all that are offered, each once. */
class BestEntries {
  readonly #count: number;
  readonly #budget: WorkBudget;
  /** Scores below this are not among the best. */
  least: number;
  scores = new Map<number, number>();
  readonly #roomMax: number;

  constructor(count: number, least: number, budget: WorkBudget) {
    this.#count = count;
    this.least = least;
    this.#budget = budget;
    this.#roomMax = count * 2 + 256;
  }

  offer(entry: number, score: number): void {
    if (!(score >= this.least)) return;
    const known = this.scores.get(entry);
    if (known === undefined || known < score) this.scores.set(entry, score);
    if (known === undefined) this.#budget.hold(bytesPerScore);
  }

  /** Whether it must be pruned. */
  get isFull(): boolean {
    return this.scores.size >= this.#roomMax;
  }

  /** Leaves the best. */
  *prune(): Work<void> {
    const budget = this.#budget;
    const { scores } = this;
    if (scores.size <= this.#count) return;
    const entries = new Uint32Array(scores.size);
    let count = 0;
    for (const entry of scores.keys()) {
      entries[count++] = entry;
      budget.spend(1);
      if (budget.isDue) yield;
    }
    const scoreOf = (entry: number) => scores.get(entry) as number;
    const compare = (a: number, b: number) => scoreOf(b) - scoreOf(a) || a - b;
    const sorted = yield* slicedSort(entries, compare, budget);
    const kept = new Map<number, number>();
    for (const entry of sorted.subarray(0, this.#count)) {
      kept.set(entry, scoreOf(entry));
      budget.spend(1);
      if (budget.isDue) yield;
    }
    budget.release((scores.size - kept.size) * bytesPerScore);
    this.scores = kept;
    this.least = Math.max(this.least, scoreOf(sorted[this.#count - 1] as number));
  }
}

const bytesPerScore = 48;

function queryNumbers(sought: Buffer, stored: StoredType): Float32Array | Int8Array {
  if (stored !== "Single") {
    return Int8Array.from(sought.subarray(0, sought.length - 4), (byte) => (byte << 24) >> 24);
  }
  return Float32Array.from({ length: sought.length >>> 2 }, (_, i) => sought.readFloatLE(i * 4));
}

/** 1 by the length of a vector; 0 when it is 0. */
function scaleOf(numbers: ArrayLike<number>, from: number, dimensions: number): number {
  let sum = 0;
  for (let i = from; i < from + dimensions; i++) {
    sum += (numbers[i] as number) * (numbers[i] as number);
  }
  return sum > 0 ? 1 / Math.sqrt(sum) : 0;
}

/** Returns the inner product. Hot: four independent sums do not wait for each other. */
function product(
  numbers: Float32Array | Int8Array,
  from: number,
  sought: Float32Array | Int8Array,
  dimensions: number,
): number {
  if (numbers instanceof Float32Array) return floatProduct(numbers, from, sought, dimensions);
  let sum = 0;
  for (let i = 0; i < dimensions; i++) {
    sum += (numbers[from + i] as number) * (sought[i] as number);
  }
  return sum;
}

function floatProduct(
  numbers: Float32Array,
  from: number,
  sought: ArrayLike<number>,
  dimensions: number,
): number {
  let a = 0;
  let b = 0;
  let c = 0;
  let d = 0;
  const end = dimensions & ~3;
  let i = 0;
  for (; i < end; i += 4) {
    a += (numbers[from + i] as number) * (sought[i] as number);
    b += (numbers[from + i + 1] as number) * (sought[i + 1] as number);
    c += (numbers[from + i + 2] as number) * (sought[i + 2] as number);
    d += (numbers[from + i + 3] as number) * (sought[i + 3] as number);
  }
  for (; i < dimensions; i++) a += (numbers[from + i] as number) * (sought[i] as number);
  return a + b + (c + d);
}

function bitCount(word: number): number {
  let count = word - ((word >>> 1) & 0x55555555);
  count = (count & 0x33333333) + ((count >>> 2) & 0x33333333);
  return Math.imul((count + (count >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}

function differingBits(words: Uint32Array, at: number, own: Uint32Array): number {
  let count = 0;
  for (let i = 0; i < own.length; i++) {
    count += bitCount((words[at + i] as number) ^ (own[i] as number));
  }
  return count;
}

function equalBits(slab: Buffer, start: number, sought: Buffer): number {
  let differing = 0;
  for (let i = 0; i < sought.length; i++) {
    differing += bitCount((slab[start + i] as number) ^ (sought[i] as number));
  }
  return 1 - differing / (sought.length * 8);
}
