/**
 * Posting lists: for each term of a column, its entries and frequencies, as compressed lists in slices of a common
 * pool, appended to as entries arrive. A reader decodes or skips whole slices.
 *
 *   a slice:     | address of the next slice u32 | posting | posting | … | 0 … 0 |
 *   a posting:   varint of 2 * step, plus 1 when a varint of the frequency follows; without one the frequency is 1
 *   a step:      the distance from the entry before; in a slice of the largest size the first one is the entry plus one
 *
 * Slices of a list grow up to 256 bytes. A term's only posting uses no slice.
 *
 * Invariants:
 * - Entries of a term are appended in ascending order. Bytes of postings never change, so a reader may continue after
 *   others have appended.
 * - A slice ends with a byte 0 at least, and no posting begins with one.
 *
 * Hot: bench/text.bench.ts.
 */
import { assert } from "../../base/assert.ts";
import { partitionPoint } from "../../base/partition-point.ts";
import { grownBytes, grownUint32 } from "./packed.ts";

const chunkBits = 18;
const chunkBytes = 1 << chunkBits;
const offsetMask = chunkBytes - 1;
const linkBytes = 4;
/** Bytes of the slices of a list, one after the other; all others are of the largest size. */
const sliceBytes = [16, 24, 32, 48, 64, 96, 128, 192, 256] as const;
const topLevel = sliceBytes.length - 1;
/** Postings that fit into a slice, of one byte each. */
const sliceEntriesMax = 256;
/** Cap of the frequencies in `peaks`. */
export const peakMax = 255;
/** Twice an entry, and a bit, are 32 bits. */
const entryMax = 2 ** 30;
/** The smallest chunk; they double up to the common size. */
const firstChunkBytes = 4096;

/** Where the largest slices of a list are, and the first entry of each. */
interface SliceTable {
  addresses: Uint32Array;
  firsts: Uint32Array;
  count: number;
}

export class TermPostings {
  /** By term: how often it occurs, in removed entries too. */
  counts: Uint32Array = new Uint32Array(16);
  /** By term: entries that have it and are not removed. */
  lives: Uint32Array = new Uint32Array(16);
  /** By term: how often one entry has it at most, removed ones too; `peakMax`: as often, or more. */
  peaks: Buffer = Buffer.alloc(16);
  /** By term: the last entry. */
  #lasts: Uint32Array = new Uint32Array(16);
  /** By term: the address of the first slice (0: no slice), and that of the next posting. */
  #heads: Uint32Array = new Uint32Array(16);
  #tails: Uint32Array = new Uint32Array(16);
  /** By term: bytes left in the last slice, and its size as a position in `sliceBytes`. */
  #rooms: Buffer = Buffer.alloc(16);
  #levels: Buffer = Buffer.alloc(16);
  readonly #chunks: Buffer[] = [];
  /** Bytes in use of the last chunk. */
  #used = 0;
  /** Made when a list is searched, of long lists only. */
  readonly #tables = new Map<number, SliceTable>();

  /** Makes room for terms below a number. */
  reserve(termCount: number): void {
    if (termCount <= this.counts.length) return;
    this.counts = grownUint32(this.counts, termCount);
    // As many of each, however each of them grows.
    const { length } = this.counts;
    this.lives = grownUint32(this.lives, length);
    this.peaks = grownBytes(this.peaks, length);
    this.#lasts = grownUint32(this.#lasts, length);
    this.#heads = grownUint32(this.#heads, length);
    this.#tails = grownUint32(this.#tails, length);
    this.#rooms = grownBytes(this.#rooms, length);
    this.#levels = grownBytes(this.#levels, length);
  }

  /**
   * Appends an entry, which must be greater than all entries of the term, with its frequency. Memory must be reserved
   * already.
   */
  append(term: number, entry: number, frequency: number): void {
    const known = this.counts[term] as number;
    const last = this.#lasts[term] as number;
    this.counts[term] = known + frequency;
    this.lives[term] = (this.lives[term] as number) + 1;
    if (frequency > (this.peaks[term] as number)) this.peaks[term] = Math.min(frequency, peakMax);
    this.#lasts[term] = entry;
    if (known === 0) return;
    if (this.#heads[term] === 0) this.#write(term, last + 1, last, known);
    this.#write(term, entry - last, entry, frequency);
  }

  /** An entry with the term is no longer live. */
  removed(term: number): void {
    this.lives[term] = (this.lives[term] as number) - 1;
  }

  /** Returns the address of the first slice of a term; 0 when it has at most one entry. */
  headOf(term: number): number {
    return this.#heads[term] ?? 0;
  }

  /** Returns the last entry of a term, which has one. */
  lastOf(term: number): number {
    return this.#lasts[term] as number;
  }

  /** Returns the chunk of an address. */
  chunkOf(address: number): Buffer {
    return this.#chunks[address >>> chunkBits] as Buffer; // addresses are in chunks
  }

  /**
   * Returns the address of the largest slice at which a search for an entry can begin; 0 if no such slice begins after
   * the entry `after`.
   */
  sliceBefore(term: number, entry: number, after: number): number {
    if ((this.#levels[term] as number) < topLevel) return 0;
    const { firsts, addresses, count } = this.#tableOf(term);
    const at = partitionPoint(0, count, (i) => (firsts[i] as number) <= entry) - 1;
    return at < 0 || (firsts[at] as number) <= after ? 0 : (addresses[at] as number);
  }

  /** Bytes of the pool. */
  get bytes(): number {
    return this.#chunks.reduce((sum, chunk) => sum + chunk.length, 0);
  }

  #tableOf(term: number): SliceTable {
    let table = this.#tables.get(term);
    if (table === undefined) {
      table = { addresses: new Uint32Array(16), firsts: new Uint32Array(16), count: 0 };
      this.#tables.set(term, table);
    }
    let address =
      table.count === 0
        ? this.#firstOfTop(term)
        : this.#next(table.addresses[table.count - 1] as number);
    for (; address !== 0; address = this.#next(address)) {
      table.addresses = grownUint32(table.addresses, table.count + 1);
      table.firsts = grownUint32(table.firsts, table.count + 1);
      table.addresses[table.count] = address;
      table.firsts[table.count++] = this.#firstEntry(address);
    }
    return table;
  }

  #firstOfTop(term: number): number {
    let address = this.#heads[term] as number;
    for (let level = 0; level < topLevel && address !== 0; level++) address = this.#next(address);
    return address;
  }

  #firstEntry(address: number): number {
    const chunk = this.chunkOf(address);
    let at = (address & offsetMask) + linkBytes;
    let value = 0;
    let shift = 0;
    let byte = 0;
    do {
      byte = chunk[at++] as number;
      value |= (byte & 0x7f) << shift;
      shift += 7;
    } while (byte >= 0x80);
    return (value >>> 1) - 1;
  }

  #next(address: number): number {
    return this.chunkOf(address).readUInt32LE(address & offsetMask);
  }

  /** Writes a posting at the end of the term's list. */
  #write(term: number, step: number, entry: number, frequency: number): void {
    let value = step * 2 + (frequency === 1 ? 0 : 1);
    const needed = varintLength(value) + (frequency === 1 ? 0 : varintLength(frequency));
    // One byte remains 0.
    if (this.#heads[term] === 0 || (this.#rooms[term] as number) <= needed) {
      this.#addSlice(term);
      if (this.#levels[term] === topLevel) value = (entry + 1) * 2 + (frequency === 1 ? 0 : 1);
    }
    const tail = this.#tails[term] as number;
    const chunk = this.chunkOf(tail);
    let at = tail & offsetMask;
    at = writeVarint(chunk, at, value);
    if (frequency !== 1) at = writeVarint(chunk, at, frequency);
    const written = at - (tail & offsetMask);
    this.#tails[term] = tail + written;
    this.#rooms[term] = (this.#rooms[term] as number) - written;
  }

  #addSlice(term: number): void {
    assert((this.#lasts[term] as number) < entryMax, "entries in postings fit into 30 bits");
    const isFirst = this.#heads[term] === 0;
    const level = isFirst ? 0 : Math.min(topLevel, (this.#levels[term] as number) + 1);
    const size = sliceBytes[level] as number; // levels are positions
    const address = this.#allocate(size);
    if (isFirst) this.#heads[term] = address;
    else this.#link(term, address);
    this.#levels[term] = level;
    this.#rooms[term] = size - linkBytes;
    this.#tails[term] = address + linkBytes;
  }

  /** Links the term's last slice to the next one. */
  #link(term: number, next: number): void {
    const size = sliceBytes[this.#levels[term] as number] as number; // levels are positions
    const start = (this.#tails[term] as number) + (this.#rooms[term] as number) - size;
    this.chunkOf(start).writeUInt32LE(next, start & offsetMask);
  }

  #allocate(size: number): number {
    const last = this.#chunks.at(-1);
    if (last === undefined || this.#used + size > last.length) {
      const length = Math.min(chunkBytes, 2 * (last?.length ?? firstChunkBytes / 2));
      this.#chunks.push(Buffer.alloc(length));
      // No slice has the address 0.
      this.#used = this.#chunks.length === 1 ? size : 0;
    }
    assert(this.#chunks.length <= 2 ** (32 - chunkBits), "addresses of slices are 32 bits");
    const address = (this.#chunks.length - 1) * chunkBytes + this.#used;
    this.#used += size;
    return address;
  }
}

/** Reads the lists of terms slice by slice. Postings appended after `begin` may or may not be read. */
export class PostingReader {
  /** The decoded slice: ascending entries, and how often each has the term. Valid until the next call. */
  readonly entries: Uint32Array = new Uint32Array(sliceEntriesMax);
  readonly frequencies: Uint32Array = new Uint32Array(sliceEntriesMax);
  count = 0;
  /** The largest frequency in the slice. */
  frequencyMax = 0;
  readonly #postings: TermPostings;
  #term = 0;
  /** The slice that is decoded next; 0: none. */
  #next = 0;
  /** Its size as a position in `sliceBytes`. */
  #level = 0;
  /** The last decoded entry. */
  #last = -1;
  /** The term has one entry, in no slice, which is yet to be read. */
  #isSingle = false;
  /** Position of `seek` in the decoded slice. */
  #at = 0;

  constructor(postings: TermPostings) {
    this.#postings = postings;
  }

  /** Moves before the first entry of a term. */
  begin(term: number): this {
    this.#term = term;
    this.#next = this.#postings.headOf(term);
    this.#level = 0;
    this.#last = -1;
    this.count = 0;
    const count = this.#postings.counts[term] ?? 0;
    this.#isSingle = this.#next === 0 && count > 0;
    if (this.#isSingle) {
      this.entries[0] = this.#postings.lastOf(term);
      this.frequencies[0] = count;
    }
    return this;
  }

  /** Decodes the next slice. @returns false at the end */
  read(): boolean {
    this.#at = 0;
    if (this.#next === 0) return this.#readSingle();
    const { entries, frequencies } = this;
    const chunk = this.#postings.chunkOf(this.#next);
    let at = this.#enterSlice(chunk);
    let entry = this.#last;
    let count = 0;
    let most = 1;
    for (let byte = chunk[at] as number; byte !== 0; byte = chunk[at] as number) {
      at++;
      let value = byte & 0x7f;
      for (let shift = 7; byte >= 0x80; shift += 7) {
        byte = chunk[at++] as number;
        value |= (byte & 0x7f) << shift;
      }
      entry += value >>> 1;
      entries[count] = entry;
      let frequency = 1;
      if ((value & 1) === 1) {
        byte = chunk[at++] as number;
        frequency = byte & 0x7f;
        for (let shift = 7; byte >= 0x80; shift += 7) {
          byte = chunk[at++] as number;
          frequency |= (byte & 0x7f) << shift;
        }
        if (frequency > most) most = frequency;
      }
      frequencies[count++] = frequency;
    }
    this.count = count;
    this.frequencyMax = most;
    this.#last = entry;
    return true;
  }

  /**
   * As `read`, into a bitmap of entries: entries beyond its end are ignored. Only `count` and `last` are set, so `seek`
   * must not be used in the same pass. The loop of `read` is duplicated: a shared loop would decode values that are not
   * needed here.
   * @returns false at the end
   */
  readBits(words: Uint32Array): boolean {
    if (this.#next === 0) {
      if (!this.#readSingle()) return false;
      setBits(words, this.entries, 1);
      return true;
    }
    const chunk = this.#postings.chunkOf(this.#next);
    let at = this.#enterSlice(chunk);
    let entry = this.#last;
    let count = 0;
    for (let byte = chunk[at] as number; byte !== 0; byte = chunk[at] as number) {
      at++;
      let value = byte & 0x7f;
      for (let shift = 7; byte >= 0x80; shift += 7) {
        byte = chunk[at++] as number;
        value |= (byte & 0x7f) << shift;
      }
      entry += value >>> 1;
      words[entry >>> 5] = (words[entry >>> 5] as number) | (1 << (entry & 31));
      count++;
      if ((value & 1) === 1) while ((chunk[at++] as number) >= 0x80);
    }
    this.count = count;
    this.#last = entry;
    return true;
  }

  /** Moves to the next slice, which is in `chunk`. @returns the offset of its postings */
  #enterSlice(chunk: Buffer): number {
    const offset = this.#next & offsetMask;
    if (this.#level === topLevel) this.#last = -1;
    else this.#level++;
    this.#next =
      ((chunk[offset] as number) |
        ((chunk[offset + 1] as number) << 8) |
        ((chunk[offset + 2] as number) << 16) |
        ((chunk[offset + 3] as number) << 24)) >>>
      0;
    return offset + linkBytes;
  }

  /** The last entry that was decoded; -1: none. */
  get last(): number {
    return this.#last;
  }

  /** Skips slices that end before an entry, according to their levels. */
  skipTo(entry: number): void {
    if (this.#next === 0) return;
    const address = this.#postings.sliceBefore(this.#term, entry, this.#last);
    if (address === 0) return;
    this.#next = address;
    this.#level = topLevel;
  }

  /** Decodes the slice in which an entry would be, as `seek` does. @returns false when all entries are smaller */
  reach(entry: number): boolean {
    return this.#last >= entry || this.#readTo(entry);
  }

  /** How often an entry has the term. Of several calls, none is for a smaller entry than the one before. */
  seek(entry: number): number {
    if (this.#last < entry && !this.#readTo(entry)) return 0;
    const { entries } = this;
    let at = this.#at;
    while ((entries[at] as number) < entry) at++;
    this.#at = at;
    return entries[at] === entry ? (this.frequencies[at] as number) : 0;
  }

  /** Decodes the slice in which an entry is, if anywhere. @returns false when all entries are smaller */
  #readTo(entry: number): boolean {
    this.skipTo(entry);
    while (this.read()) if (this.#last >= entry) return true;
    return false;
  }

  #readSingle(): boolean {
    if (!this.#isSingle) {
      this.count = 0;
      return false;
    }
    this.#isSingle = false;
    this.#last = this.entries[0] as number;
    this.frequencyMax = this.frequencies[0] as number;
    this.count = 1;
    return true;
  }
}

/** Sets bits by number. A typed array ignores writes beyond its end. */
export function setBits(words: Uint32Array, entries: Uint32Array, count: number): void {
  for (let i = 0; i < count; i++) {
    const entry = entries[i] as number;
    const at = entry >>> 5;
    words[at] = (words[at] as number) | (1 << (entry & 31));
  }
}

function varintLength(value: number): number {
  if (value < 0x80) return 1;
  if (value < 0x4000) return 2;
  if (value < 0x20_0000) return 3;
  return value < 0x1000_0000 ? 4 : 5;
}

/** @returns where the next one begins */
export function writeVarint(target: Buffer, from: number, value: number): number {
  let at = from;
  let rest = value;
  while (rest >= 0x80) {
    target[at++] = (rest & 0x7f) | 0x80;
    rest >>>= 7;
  }
  target[at++] = rest;
  return at;
}
