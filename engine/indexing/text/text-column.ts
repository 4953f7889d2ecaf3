/**
 * The words of one full-text field of one index: a column of terms that is packed, because an entry has many of them and a
 * term many entries.
 *
 *   entry ──offsets──► [varint varint varint]   the terms of its values, in order: small numbers are frequent words
 *   term ──postings──► entries with frequencies (term-postings.ts), made from the same values
 *
 * Invariants:
 * - Entries are appended in ascending order; the bytes of an entry are in one chunk.
 * - Every value but a gap is in the postings of its term.
 *
 * Hot: bench/text.bench.ts.
 */
import { assert } from "../../base/assert.ts";
import { partitionPoint } from "../../base/partition-point.ts";
import type { Work, WorkBudget } from "../../base/scheduling/work-budget.ts";
import { FieldColumn } from "../columns/field-column.ts";
import { grownUint32 } from "../columns/packed.ts";
import { firstTerm, gapTerm } from "../columns/term-dictionary.ts";
import { PostingReader, peakMax, TermPostings, writeVarint } from "../columns/term-postings.ts";
import type { PartReader, PartWriter } from "../saved/saved-parts.ts";

const chunkBytesMin = 4096;
const chunkBytesMax = 1024 * 1024;
/** Bytes of a term at most. */
const termBytesMax = 5;
/** Values that `restore` processes per step. */
const restoredValues = 4096;

/** A term that at least one in this many entries has is read as a bitmap; bitmaps of some terms are cached. */
const denseShare = 32;
/** Minimum number of cached bitmaps; more are cached while they use at most this share of the postings' bytes. */
const keptBitsMin = 32;
const keptShare = 8;
/** Entries from which on bits are kept. */
const keptEntriesMin = 4096;

/** The entries of a term as bits, up to one of them. */
interface TermBits {
  words: Uint32Array;
  /** The last entry that was read, -1 when none was. */
  last: number;
}

const none: Uint32Array = new Uint32Array(0);

export class TextColumn extends FieldColumn {
  override readonly isPacked = true;
  readonly postings = new TermPostings();
  /** By entry: its first byte in its chunk, and how many values it has. */
  #offsets: Uint32Array = new Uint32Array(16);
  #lengths: Uint32Array = new Uint32Array(16);
  readonly #chunks: Buffer[] = [];
  /** By chunk: its first entry. */
  readonly #firstEntries: number[] = [];
  /** Bytes in use of the last chunk. */
  #used = 0;
  /** The values of the entry that `endEntry` will end. */
  #pending: Uint32Array = new Uint32Array(64);
  #pendingCount = 0;
  /** The terms of the entry that was read last. */
  #read: Uint32Array = new Uint32Array(64);
  /** The chunk that was read last. */
  #chunk = 0;
  readonly #finder: PostingReader;
  /** Bitmaps of frequent terms, the most recently used last. */
  readonly #bits = new Map<number, TermBits>();

  constructor() {
    super();
    this.starts = none;
    this.terms = none;
    this.entries = none;
    this.nexts = none;
    this.firsts = none;
    this.lasts = none;
    this.counts = this.postings.counts;
    this.#finder = this.reader();
  }

  override add(term: number): void {
    const at = this.#pendingCount++;
    if (at >= this.#pending.length) this.#pending = grownUint32(this.#pending, at + 1);
    this.#pending[at] = term;
    this.valueCount++;
  }

  override repeats(entry: number): boolean {
    const count = this.#pendingCount;
    if (this.lengthOf(entry) !== count) return false;
    const terms = this.termsOf(entry);
    for (let i = 0; i < count; i++) if (terms[i] !== this.#pending[i]) return false;
    return true;
  }

  override dropPending(): void {
    this.valueCount -= this.#pendingCount;
    this.#pendingCount = 0;
  }

  override endEntry(): void {
    const count = this.#pendingCount;
    this.#pendingCount = 0;
    const values = this.#pending.subarray(0, count);
    this.#write(values);
    this.#post(this.entryCount++, values);
  }

  /** Readers of the entries of terms, with the number of occurrences. */
  reader(): PostingReader {
    return new PostingReader(this.postings);
  }

  override lengthOf(entry: number): number {
    return this.#lengths[entry] as number;
  }

  /** The numbers of values by entry; replaced when it grows. */
  get lengths(): Uint32Array {
    return this.#lengths;
  }

  override termsOf(entry: number): Uint32Array {
    const length = this.#lengths[entry] as number;
    if (length > this.#read.length) this.#read = grownUint32(this.#read, length);
    decode(this.#chunkOf(entry), this.#offsets[entry] as number, length, this.#read);
    return this.#read.subarray(0, length);
  }

  override *entriesOf(term: number): Generator<number> {
    const reader = this.reader().begin(term);
    while (reader.read()) {
      for (let i = 0; i < reader.count; i++) yield reader.entries[i] as number;
    }
  }

  /** Returns the entries of a term, dead ones too, as bits; null: too few have it. Made when it is first used. */
  *bitsOf(term: number, budget: WorkBudget): Work<Uint32Array | null> {
    const isDense = (this.counts[term] ?? 0) * denseShare >= this.entryCount;
    if (!isDense || this.entryCount < keptEntriesMin) return null;
    const bits = this.#bits.get(term) ?? { words: none, last: -1 };
    this.#bits.delete(term);
    this.#bits.set(term, bits);
    const [oldest] = this.#bits.keys();
    if (this.#bits.size > this.#keptMax()) this.#bits.delete(oldest as number); // there is one
    const reader = this.reader().begin(term);
    reader.skipTo(bits.last + 1);
    for (;;) {
      // Another query may have replaced it in the meantime.
      bits.words = grownUint32(bits.words, (this.entryCount + 31) >>> 5);
      if (!reader.readBits(bits.words)) break;
      bits.last = Math.max(bits.last, reader.last);
      budget.spend(reader.count);
      if (budget.isDue) yield;
    }
    return bits.words;
  }

  /** How many terms bits are kept of. */
  #keptMax(): number {
    const bytes = this.entryCount >>> 3;
    return Math.max(keptBitsMin, Math.floor(this.postings.bytes / keptShare / bytes));
  }

  override removed(entry: number): void {
    const { postings } = this;
    const terms = this.termsOf(entry).sort();
    let last = gapTerm;
    for (let i = 0; i < terms.length; i++) {
      const term = terms[i] as number;
      if (term !== last) postings.removed(term);
      last = term;
    }
  }

  override empty(): TextColumn {
    return new TextColumn();
  }

  override copierTo(target: FieldColumn): (entry: number) => void {
    /** By term: its number in the target; 0: not copied yet. */
    let mapped: Uint32Array = new Uint32Array(this.dictionary.count);
    return (entry) => {
      if (mapped.length < this.dictionary.count) {
        mapped = grownUint32(mapped, this.dictionary.count);
      }
      for (const term of this.termsOf(entry)) {
        if (term >= firstTerm && mapped[term] === 0) {
          mapped[term] = target.dictionary.internFrom(this.dictionary, term);
        }
        target.add(term < firstTerm ? term : (mapped[term] as number));
      }
    };
  }

  override save(parts: PartWriter): void {
    const last = this.#chunks.length - 1;
    parts.set("valueCount", this.valueCount);
    parts.add("offsets", this.#offsets.subarray(0, this.entryCount));
    parts.add("lengths", this.#lengths.subarray(0, this.entryCount));
    parts.add(
      "words",
      ...this.#chunks.map((chunk, i) => (i === last ? chunk.subarray(0, this.#used) : chunk)),
    );
    const sizes = this.#chunks.map((chunk, i) => (i === last ? this.#used : chunk.length));
    parts.set("chunks", { sizes, firstEntries: [...this.#firstEntries] });
    this.saveTerms(parts);
  }

  override *restore(parts: PartReader): Generator<void> {
    yield* this.restoreTerms(parts);
    this.#offsets = parts.uint32("offsets");
    this.#lengths = parts.uint32("lengths");
    this.valueCount = parts.get<number>("valueCount");
    type Chunks = { readonly sizes: number[]; readonly firstEntries: number[] };
    const { sizes, firstEntries } = parts.get<Chunks>("chunks");
    const bytes = parts.bytes("words");
    let at = 0;
    for (const size of sizes) {
      this.#chunks.push(bytes.subarray(at, at + size));
      at += size;
    }
    this.#firstEntries.push(...firstEntries);
    this.#used = sizes.at(-1) ?? 0;
    let visited = 0;
    for (let entry = 0; entry < this.#offsets.length; entry++) {
      visited += 1 + this.lengthOf(entry);
      this.#post(entry, this.termsOf(entry));
      this.entryCount++;
      if (visited < restoredValues) continue;
      visited = 0;
      yield;
    }
  }

  override checkInvariants(): void {
    this.dictionary.checkInvariants();
    /** By term: its entries in order, and how often each has it. */
    const expected = new Map<number, Map<number, number>>();
    let total = 0;
    for (let entry = 0; entry < this.entryCount; entry++) {
      const terms = this.termsOf(entry);
      total += terms.length;
      for (const term of terms) {
        const entries = expected.get(term) ?? new Map<number, number>();
        expected.set(term, entries.set(entry, (entries.get(entry) ?? 0) + 1));
      }
    }
    assert(total + this.#pendingCount === this.valueCount, "values are counted");
    expected.delete(gapTerm);
    for (const [term, entries] of expected) this.#checkPostings(term, [...entries]);
  }

  #checkPostings(term: number, expected: readonly (readonly [number, number])[]): void {
    let at = 0;
    let count = 0;
    for (const reader = this.#finder.begin(term); reader.read(); ) {
      for (let i = 0; i < reader.count; i++, at++) {
        const [entry, frequency] = expected[at] ?? [];
        assert(reader.entries[i] === entry, "the list of a term has its entries, in order");
        assert(
          reader.frequencies[i] === frequency,
          "a posting contains the frequency of the term in its entry",
        );
        const least = Math.min(frequency as number, peakMax); // compared
        assert(least <= (this.postings.peaks[term] as number), "no entry has it more often");
        count += frequency as number;
      }
    }
    assert(at === expected.length, "every entry with a term is in its list");
    assert(count === this.counts[term], "the count of a term is that of its values");
    assert((this.postings.lives[term] as number) <= at, "no more entries are live than listed");
  }

  #chunkOf(entry: number): Buffer {
    const firsts = this.#firstEntries;
    const known = this.#chunk;
    const isKnown =
      (firsts[known] as number) <= entry &&
      (known + 1 === firsts.length || entry < (firsts[known + 1] as number));
    if (!isKnown) {
      this.#chunk = partitionPoint(0, firsts.length, (i) => (firsts[i] as number) <= entry) - 1;
    }
    return this.#chunks[this.#chunk] as Buffer; // every entry is in a chunk
  }

  /** Appends the values of the entry that is being ended. */
  #write(values: Uint32Array): void {
    const entry = this.entryCount;
    const needed = values.length * termBytesMax;
    let chunk = this.#chunks.at(-1);
    if (chunk === undefined || this.#used + needed > chunk.length) {
      const size = Math.min(chunkBytesMax, 2 * (chunk?.length ?? chunkBytesMin / 2));
      chunk = Buffer.allocUnsafeSlow(Math.max(size, needed));
      this.#chunks.push(chunk);
      this.#firstEntries.push(entry);
      this.#used = 0;
    }
    this.#offsets = grownUint32(this.#offsets, entry + 1);
    this.#lengths = grownUint32(this.#lengths, entry + 1);
    this.#offsets[entry] = this.#used;
    this.#lengths[entry] = values.length;
    let at = this.#used;
    for (let i = 0; i < values.length; i++) at = writeVarint(chunk, at, values[i] as number);
    this.#used = at;
  }

  /** Adds an entry to the postings of its terms. Sorts the values. */
  #post(entry: number, values: Uint32Array): void {
    const { postings } = this;
    postings.reserve(this.dictionary.count);
    this.counts = postings.counts;
    if (values.length > 1) {
      this.hasSeveral = true;
      values.sort();
    } else if (values.length === 0) this.emptyCount++;
    for (let i = 0; i < values.length; ) {
      const term = values[i] as number;
      const from = i;
      do i++;
      while (values[i] === term);
      if (term !== gapTerm) postings.append(term, entry, i - from);
    }
  }
}

/** Reads `count` numbers. */
function decode(chunk: Buffer, from: number, count: number, target: Uint32Array): void {
  let at = from;
  for (let i = 0; i < count; i++) {
    let byte = chunk[at++] as number;
    let value = byte & 0x7f;
    for (let shift = 7; byte >= 0x80; shift += 7) {
      byte = chunk[at++] as number;
      value |= (byte & 0x7f) << shift;
    }
    target[i] = value;
  }
}
