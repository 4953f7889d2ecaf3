/**
 * A segment: a run of a time series' entries, packed into bytes. It stays packed in memory, and is unpacked to be read
 * or changed.
 *
 *   0       1       2       4                12             20
 *   +-------+-------+-------+----------------+--------------+------- ... ------+-------- ... -------+
 *   | flags | width | count | time of first  | time of last | tags, if flag 2  | entries            |
 *   | u8    | u8    | u16   | f64, ms        | f64, ms      |                  |                    |
 *   +-------+-------+-------+----------------+--------------+------- ... ------+-------- ... -------+
 *
 * - flag 1: every entry has `width` values, and stores no count. flag 2: there are tags.
 * - width: the greatest number of values of an entry. Times: milliseconds since 1970. Integers are little-endian.
 * - tags: their number, then for each its length in bytes and its UTF-8 bytes. Numbers are varints of 7 bits per byte.
 * - an entry: unless it is the first, its time as delta of deltas: the step from the previous entry minus the step
 *   before that (initially 0), as zigzag varint, so that regular intervals use one byte; its number of values (u8)
 *   unless flag 1; the number of its tag (varint, 0: none) if flag 2; its values.
 * - a value: its 64 bits XOR those of the previous value in its column (initially 0). A byte `leading << 4 | length`
 *   stores the number of leading zero bytes and the number of the following bytes; the rest is zero.
 *
 * Knows nothing of documents, series or logs.
 *
 * Invariants:
 * - These widths are on disk: never change them.
 * - Times increase strictly from entry to entry; there is at least one entry, each with at least one value.
 * - Unpacking is the exact inverse of packing, bit for bit.
 */

import { assert } from "../../../base/assert.ts";
import { seriesValuesMax } from "../../../base/limits.ts";
import { partitionPoint } from "../../../base/partition-point.ts";

/** One entry of a time series. */
export interface SeriesEntry {
  /** Milliseconds since 1970, from the year 1 to the year 9999. */
  readonly time: number;
  readonly values: readonly number[];
  readonly tag: string | null;
}

const flagsAt = 0;
const widthAt = 1;
const countAt = 2;
const firstAt = 4;
const lastAt = 12;
const headBytes = 20;
const uniformFlag = 1;
const tagsFlag = 2;

/** Maximum bytes of one varint, and of one value. */
const varintBytesMax = 8;
const valueBytesMax = 9;

export class Segment {
  readonly bytes: Buffer;

  /** Takes ownership of `bytes`. */
  constructor(bytes: Buffer) {
    assert(bytes.length > headBytes, "a segment has a head and an entry");
    this.bytes = bytes;
  }

  get count(): number {
    return this.bytes.readUInt16LE(countAt);
  }

  /** The greatest number of values of an entry. */
  get width(): number {
    return this.bytes[widthAt] as number;
  }

  /** Time of the first entry. */
  get first(): number {
    return this.bytes.readDoubleLE(firstAt);
  }

  /** Time of the last entry. */
  get last(): number {
    return this.bytes.readDoubleLE(lastAt);
  }

  /** @param entries in time order, from 1 to 65,535. */
  static of(entries: readonly SeriesEntry[]): Segment {
    return new Segment(pack(entries));
  }

  /** Its entries. Cost: O(values). */
  unpack(): SegmentEntries {
    return new SegmentEntries(this.bytes);
  }

  /** As `unpack`, but as objects: for changes of a few entries. */
  toEntries(): SeriesEntry[] {
    const unpacked = this.unpack();
    const entries: SeriesEntry[] = [];
    for (let i = 0; i < unpacked.count; i++) entries.push(unpacked.entry(i));
    return entries;
  }
}

/** Codec of the segment keyspace: the bytes unchanged. */
export const segmentCodec = {
  encode: ({ bytes }: Segment): Buffer => bytes,
  decode(bytes: Buffer, from: number, to: number): Segment {
    const own = Buffer.allocUnsafeSlow(to - from);
    bytes.copy(own, 0, from, to);
    return new Segment(own);
  },
};

/** The bits of a double, accessible as bytes. */
const double = new Float64Array(1);
const doubleBytes = new Uint8Array(double.buffer);

/** Read or write position in packed bytes. */
class Cursor {
  bytes: Buffer;
  at: number;
  /** For each column the bytes of its previous value. */
  readonly columns = new Uint8Array(seriesValuesMax * 8);

  constructor(bytes: Buffer, at: number) {
    this.bytes = bytes;
    this.at = at;
  }

  reserve(count: number): void {
    if (this.at + count <= this.bytes.length) return;
    const larger = Buffer.allocUnsafeSlow(Math.max(this.at + count, this.bytes.length * 2));
    this.bytes.copy(larger, 0, 0, this.at);
    this.bytes = larger;
  }

  putVarint(value: number): void {
    let rest = value;
    while (rest >= 128) {
      const next = Math.floor(rest / 128);
      this.bytes[this.at++] = rest - next * 128 + 128;
      rest = next;
    }
    this.bytes[this.at++] = rest;
  }

  takeVarint(): number {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = this.bytes[this.at++] as number;
      if (byte < 128) return value + byte * scale;
      value += (byte - 128) * scale;
    }
  }

  putValue(column: number, value: number): void {
    const { columns } = this;
    const base = column * 8;
    double[0] = value;
    let low = 8;
    let high = -1;
    for (let i = 0; i < 8; i++) {
      const byte = doubleBytes[i] as number;
      const difference = byte ^ (columns[base + i] as number);
      columns[base + i] = byte;
      doubleBytes[i] = difference;
      if (difference !== 0) {
        if (low === 8) low = i;
        high = i;
      }
    }
    this.bytes[this.at++] = high < 0 ? 0 : ((7 - high) << 4) | (high - low + 1);
    for (let i = low; i <= high; i++) this.bytes[this.at++] = doubleBytes[i] as number;
  }

  takeValue(column: number): number {
    const { columns } = this;
    const base = column * 8;
    const head = this.bytes[this.at++] as number;
    const length = head & 15;
    const low = 8 - (head >>> 4) - length;
    for (let i = 0; i < length; i++) {
      columns[base + low + i] =
        (columns[base + low + i] as number) ^ (this.bytes[this.at++] as number);
    }
    for (let i = 0; i < 8; i++) doubleBytes[i] = columns[base + i] as number;
    return double[0] as number;
  }
}

function pack(entries: readonly SeriesEntry[]): Buffer {
  const first = entries[0];
  const last = entries.at(-1);
  assert(first !== undefined && last !== undefined, "a segment has an entry");
  assert(entries.length < 65_536, "a segment's count has 16 bits");
  let width = 0;
  for (const { values } of entries) width = Math.max(width, values.length);
  assert(width <= seriesValuesMax, "an entry has at most so many values");
  const isUniform = entries.every(({ values }) => values.length === width);
  const tags = tagNumbers(entries);
  const cursor = new Cursor(Buffer.allocUnsafe(headBytes + entries.length * 16), headBytes);
  putTags(cursor, tags);
  let time = first.time;
  let step = 0;
  entries.forEach((entry, position) => {
    cursor.reserve(2 * varintBytesMax + 1 + entry.values.length * valueBytesMax);
    if (position > 0) {
      const next = entry.time - time;
      assert(next > 0, "times grow");
      const change = next - step;
      cursor.putVarint(change >= 0 ? change * 2 : -change * 2 - 1);
      time = entry.time;
      step = next;
    }
    assert(entry.values.length > 0, "an entry has a value");
    if (!isUniform) cursor.bytes[cursor.at++] = entry.values.length;
    if (tags.size > 0) cursor.putVarint(entry.tag === null ? 0 : (tags.get(entry.tag) ?? 0));
    entry.values.forEach((value, column) => {
      cursor.putValue(column, value);
    });
  });
  const bytes = Buffer.allocUnsafeSlow(cursor.at);
  cursor.bytes.copy(bytes, 0, 0, cursor.at);
  bytes[flagsAt] = (isUniform ? uniformFlag : 0) | (tags.size > 0 ? tagsFlag : 0);
  bytes[widthAt] = width;
  bytes.writeUInt16LE(entries.length, countAt);
  bytes.writeDoubleLE(first.time, firstAt);
  bytes.writeDoubleLE(last.time, lastAt);
  return bytes;
}

/** Returns the tags, numbered from 1 in order of first occurrence. */
function tagNumbers(entries: readonly SeriesEntry[]): Map<string, number> {
  const numbers = new Map<string, number>();
  for (const { tag } of entries) {
    if (tag !== null && !numbers.has(tag)) numbers.set(tag, numbers.size + 1);
  }
  return numbers;
}

function putTags(cursor: Cursor, tags: ReadonlyMap<string, number>): void {
  if (tags.size === 0) return;
  cursor.reserve(varintBytesMax);
  cursor.putVarint(tags.size);
  for (const tag of tags.keys()) {
    const text = Buffer.from(tag);
    cursor.reserve(varintBytesMax + text.length);
    cursor.putVarint(text.length);
    cursor.at += text.copy(cursor.bytes, cursor.at);
  }
}

/** The entries of a segment in columns. Hot: every read of a long series passes through it. */
export class SegmentEntries {
  readonly count: number;
  readonly times: Float64Array;
  /** All values, entry by entry. */
  readonly values: Float64Array;
  /** Offset of the values of entry `i`; the values of the last end at `valueStarts[count]`. */
  readonly valueStarts: Uint32Array;
  readonly #tags: readonly string[];
  /** For each entry the number of its tag, 0: none. */
  readonly #tagNumbers: Uint16Array;

  constructor(bytes: Buffer) {
    const isUniform = ((bytes[flagsAt] as number) & uniformFlag) !== 0;
    const hasTags = ((bytes[flagsAt] as number) & tagsFlag) !== 0;
    const width = bytes[widthAt] as number;
    const count = bytes.readUInt16LE(countAt);
    const cursor = new Cursor(bytes, headBytes);
    this.count = count;
    this.times = new Float64Array(count);
    this.values = new Float64Array(count * width);
    this.valueStarts = new Uint32Array(count + 1);
    this.#tags = hasTags ? takeTags(cursor) : [];
    this.#tagNumbers = new Uint16Array(hasTags ? count : 0);
    let time = bytes.readDoubleLE(firstAt);
    let step = 0;
    let used = 0;
    for (let i = 0; i < count; i++) {
      if (i > 0) {
        const change = cursor.takeVarint();
        step += change % 2 === 0 ? change / 2 : -(change + 1) / 2;
        time += step;
      }
      this.times[i] = time;
      const length = isUniform ? width : (bytes[cursor.at++] as number);
      if (hasTags) this.#tagNumbers[i] = cursor.takeVarint();
      for (let column = 0; column < length; column++) {
        this.values[used++] = cursor.takeValue(column);
      }
      this.valueStarts[i + 1] = used;
    }
    assert(cursor.at === bytes.length, "a segment ends after its last entry");
    assert(time === bytes.readDoubleLE(lastAt), "a segment's last time is that of its last entry");
  }

  tag(entry: number): string | null {
    if (this.#tagNumbers.length === 0) return null;
    return this.#tags[(this.#tagNumbers[entry] as number) - 1] ?? null;
  }

  entry(entry: number): SeriesEntry {
    const from = this.valueStarts[entry];
    const values = Array.from(this.values.subarray(from, this.valueStarts[entry + 1]));
    return { time: this.times[entry] as number, values, tag: this.tag(entry) };
  }

  /** Returns the number of entries before `time`. */
  countBefore(time: number): number {
    return partitionPoint(0, this.count, (entry) => (this.times[entry] as number) < time);
  }
}

function takeTags(cursor: Cursor): string[] {
  const tags: string[] = [];
  for (let left = cursor.takeVarint(); left > 0; left--) {
    const length = cursor.takeVarint();
    tags.push(cursor.bytes.toString("utf8", cursor.at, cursor.at + length));
    cursor.at += length;
  }
  return tags;
}
