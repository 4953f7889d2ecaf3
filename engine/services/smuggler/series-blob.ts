/**
 * A segment of a time series in a dump: the bytes that RavenDB 7.2.7 exports and imports (measured).
 *
 *   0           4       8       10         12         13      14        16
 *   +-----------+-------+-------+----------+----------+-------+---------+----- … -----+---- … ----+---- … ----+
 *   | last time | step  | count | tagBytes | last tag | width | version | 48 × width  | tags      | bits      |
 *   | u32, ms   | u32   | u16   | u16      | u8       | u8    | 1, 0    | statistics  | tagBytes  |           |
 *   +-----------+-------+-------+----------+----------+-------+---------+----- … -----+---- … ----+---- … ----+
 *
 * - Times are milliseconds after the segment's baseline, which is stored outside of these bytes. Last tag 255: none.
 * - statistics of a column: first, last, greatest, least, sum (f64); count (u32); leading and trailing zeros of the last
 *   block (u8 each); 2 bytes of zero.
 * - tags: for each its length (7 bits per byte), UTF-8 and a zero; then the size of each of these (u8); then their
 *   number (u8).
 * - bits: the number of uncompressed bits (u32); bytes of an LZ4 block before them, and of its decompressed content
 *   (u16 each; 0: no block); the block; the bits, most significant first, which continue those of the block. An entry
 *   is:
 *     1 bit: is it deleted? · its time · its values · its tag.
 *     first time: 31 bits. Others by how much the step differs from the one before, less 1 when positive:
 *     0 | 10 and 7 bits | 110 and 9 | 1110 and 12 | 1111 and 32, each with half of its range added.
 *     value, XOR the one before in its column: 0 (same) | 11 and the bits of the last block | 10, leading zeros (5), length
 *     less 1 (6), bits of a new block. An entry with fewer values than the widest has NaN for the rest, which
 *     the next value's XOR passes over.
 *     tag: 0 (same as before) | 10 (none) | 11 and its number (7).
 *
 * Integers are little-endian. Knows nothing of dumps, nor of how this database stores segments.
 *
 * Invariants:
 * - Encoded entries decode to the same entries, bit for bit.
 * - Malformed bytes cause an error, never an endless loop or a read out of bounds.
 */
import { EngineError } from "../../base/errors.ts";
import { seriesValuesMax } from "../../base/limits.ts";
import type { SeriesEntry } from "../../state/keyspaces/time-series/series-segment.ts";

const headBytes = 16;
const columnBytes = 48;
const bitsHeadBytes = 8;
/** RavenDB's segments are no larger. */
export const seriesBlobBytesMax = 2048;
const noTag = 255;
const tagsMax = 127;
const firstTimeBits = 31;
const stepMax = 2 ** 31;
/** Widths of the delta-of-deltas forms, and their prefix bits. */
const stepWidths = [7, 9, 12, 32] as const;
const stepMarks = [
  [0b10, 2],
  [0b110, 3],
  [0b1110, 4],
  [0b1111, 4],
] as const;

/** Returns the entries of a segment, without deleted ones. @throws EngineError invalid-format */
export function decodeSeriesBlob(bytes: Buffer, baseline: number): SeriesEntry[] {
  if (bytes.length < headBytes) throw damaged("is too short");
  const count = bytes.readUInt16LE(8);
  const tagBytes = bytes.readUInt16LE(10);
  const width = bytes[13] as number;
  const tagsAt = headBytes + columnBytes * width;
  const bitsAt = tagsAt + tagBytes + bitsHeadBytes;
  if (width === 0 || width > seriesValuesMax) throw damaged("has no possible number of values");
  if (bitsAt > bytes.length) throw damaged("is cut off");
  const tags = decodeTags(bytes.subarray(tagsAt, tagsAt + tagBytes));
  const bits = bitsOf(bytes, bitsAt);
  const columns = Array.from({ length: width }, () => new Column());
  const entries: SeriesEntry[] = [];
  let time = 0;
  let step = 0;
  let tag: string | null = null;
  for (let i = 0; i < count; i++) {
    const isDeleted = bits.read(1) === 1;
    if (i === 0) time = bits.read(firstTimeBits);
    else {
      step += readStepChange(bits);
      time += step;
    }
    const values = columns.map((column) => column.read(bits));
    if (bits.read(1) === 1) tag = bits.read(1) === 1 ? tagAt(tags, bits.read(7)) : null;
    while (values.length > 1 && Number.isNaN(values.at(-1))) values.pop();
    if (!isDeleted) entries.push({ time: baseline + time, values, tag });
  }
  return entries;
}

/**
 * Encodes the next segment of a list of entries in time order: as many as fit, at least one.
 * @returns its bytes, and the number of entries in it. The baseline is the time of the first.
 */
export function encodeSeriesBlob(
  entries: readonly SeriesEntry[],
  from: number,
): { readonly bytes: Buffer; readonly count: number } {
  let low = 1;
  let best = encodeRange(entries, from, 1);
  // Doubles the number until they do not fit, then bisects: an entry has at least 4 bits.
  let high = 2;
  for (; from + high <= entries.length; high *= 2) {
    const tried = encodeRange(entries, from, high);
    if (tried === null || tried.length > seriesBlobBytesMax) break;
    low = high;
    best = tried;
  }
  high = Math.min(high, entries.length - from + 1);
  while (high - low > 1) {
    const middle = (low + high) >>> 1;
    const tried = encodeRange(entries, from, middle);
    if (tried === null || tried.length > seriesBlobBytesMax) high = middle;
    else {
      low = middle;
      best = tried;
    }
  }
  return { bytes: best as Buffer, count: low }; // a single entry always fits
}

/** Null: the entries do not fit into one segment. */
function encodeRange(entries: readonly SeriesEntry[], from: number, count: number): Buffer | null {
  const part = entries.slice(from, from + count);
  const baseline = (part[0] as SeriesEntry).time; // count > 0
  const width = Math.max(...part.map(({ values }) => values.length));
  const tags = [...new Set(part.flatMap(({ tag }) => (tag === null ? [] : [tag])))];
  if (tags.length > tagsMax || count > 0xffff) return null;
  const bits = new BitWriter();
  const columns = Array.from({ length: width }, () => new Column());
  let time = 0;
  let step = 0;
  let tagNumber = noTag;
  for (const [i, entry] of part.entries()) {
    const next = entry.time - baseline;
    bits.write(0, 1);
    if (i === 0) bits.write(0, firstTimeBits);
    else {
      const change = next - time - step;
      if (Math.abs(change) >= stepMax) return null;
      writeStepChange(bits, change);
      step = next - time;
    }
    time = next;
    for (let c = 0; c < width; c++) (columns[c] as Column).write(bits, entry.values[c]);
    const number = entry.tag === null ? noTag : tags.indexOf(entry.tag);
    if (number === tagNumber) bits.write(0, 1);
    else if (number === noTag) bits.write(0b10, 2);
    else bits.write(0b110000000 | number, 9);
    tagNumber = number;
  }
  if (time >= stepMax) return null;
  const head = Buffer.alloc(headBytes + columnBytes * width);
  head.writeUInt32LE(time, 0);
  head.writeUInt32LE(step, 4);
  head.writeUInt16LE(count, 8);
  const tagBytes = encodeTags(tags);
  head.writeUInt16LE(tagBytes.length, 10);
  head[12] = tagNumber;
  head[13] = width;
  head[14] = 1;
  for (const [c, column] of columns.entries()) column.writeTo(head, headBytes + columnBytes * c);
  return Buffer.concat([head, tagBytes, bits.bytes()]);
}

function readStepChange(bits: BitReader): number {
  if (bits.read(1) === 0) return 0;
  let form = 0;
  while (form < 3 && bits.read(1) === 1) form++;
  const width = stepWidths[form] as number;
  const change = bits.read(width) - 2 ** (width - 1);
  return change < 0 ? change : change + 1;
}

function writeStepChange(bits: BitWriter, change: number): void {
  if (change === 0) {
    bits.write(0, 1);
    return;
  }
  const shifted = change > 0 ? change - 1 : change;
  const form = stepWidths.findIndex((width) => Math.abs(shifted) < 2 ** (width - 1));
  const width = stepWidths[form] as number;
  const [mark, markBits] = stepMarks[form] as readonly [number, number];
  bits.write(mark, markBits);
  bits.write(shifted + 2 ** (width - 1), width);
}

const leadingMax = 31;
const trailingOf = (value: bigint): number => {
  let count = 0;
  for (let rest = value; (rest & 1n) === 0n; rest >>= 1n) count++;
  return count;
};

/** Codec for the values of one column, each encoded as its XOR with the previous one. */
class Column {
  readonly #double = Buffer.alloc(8);
  #bits = 0n;
  #leading = 0;
  #trailing = 0;
  #count = 0;
  readonly #statistics = [0, 0, Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY, 0];

  read(bits: BitReader): number {
    if (bits.read(1) === 1) {
      if (bits.read(1) === 0) {
        this.#leading = bits.read(5);
        this.#trailing = 64 - this.#leading - (bits.read(6) + 1);
        if (this.#trailing < 0) throw damaged("has a value of more than 64 bits");
      }
      const changed = bits.readBig(64 - this.#leading - this.#trailing);
      this.#double.writeBigUInt64BE(this.#bits ^ (changed << BigInt(this.#trailing)));
    } else this.#double.writeBigUInt64BE(this.#bits);
    const value = this.#double.readDoubleBE(0);
    if (!Number.isNaN(value)) this.#bits = this.#double.readBigUInt64BE(0);
    return value;
  }

  /** `value` undefined: the entry has no value in this column. */
  write(bits: BitWriter, value: number | undefined): void {
    if (value !== undefined) this.#take(value);
    this.#double.writeDoubleBE(value ?? Number.NaN);
    const next = this.#double.readBigUInt64BE(0);
    const changed = next ^ this.#bits;
    if (value !== undefined) this.#bits = next;
    if (changed === 0n) {
      bits.write(0, 1);
      return;
    }
    const leading = Math.min(64 - changed.toString(2).length, leadingMax);
    const trailing = trailingOf(changed);
    if (leading >= this.#leading && trailing >= this.#trailing) {
      const kept = 64 - this.#leading - this.#trailing;
      if (kept <= 64 - leading - trailing + 11) {
        bits.write(0b11, 2);
        bits.writeBig(changed >> BigInt(this.#trailing), kept);
        return;
      }
    }
    this.#leading = leading;
    this.#trailing = trailing;
    const length = 64 - leading - trailing;
    bits.write(0b10, 2);
    bits.write(leading, 5);
    bits.write(length - 1, 6);
    bits.writeBig(changed >> BigInt(trailing), length);
  }

  #take(value: number): void {
    const [, , greatest, least, sum] = this.#statistics as [number, number, number, number, number];
    if (this.#count === 0) this.#statistics[0] = value;
    this.#statistics[1] = value;
    this.#statistics[2] = Math.max(greatest, value);
    this.#statistics[3] = Math.min(least, value);
    this.#statistics[4] = sum + value;
    this.#count++;
  }

  /** Writes the statistics. */
  writeTo(target: Buffer, at: number): void {
    const known = this.#count === 0 ? this.#statistics.map(() => Number.NaN) : this.#statistics;
    for (const [i, value] of known.entries()) target.writeDoubleLE(value, at + 8 * i);
    target.writeUInt32LE(this.#count, at + 40);
    target[at + 44] = this.#leading;
    target[at + 45] = this.#trailing;
  }
}

function decodeTags(bytes: Buffer): string[] {
  const count = bytes.length === 0 ? 0 : (bytes.at(-1) as number);
  const tags: string[] = [];
  let at = 0;
  for (let i = 0; i < count; i++) {
    let length = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = bytes[at++];
      if (byte === undefined || shift > 7) throw damaged("has a damaged tag");
      length |= (byte & 0x7f) << shift;
      if (byte < 0x80) break;
    }
    if (at + length >= bytes.length) throw damaged("has a damaged tag");
    tags.push(bytes.utf8Slice(at, at + length));
    at += length + 1;
  }
  return tags;
}

function encodeTags(tags: readonly string[]): Buffer {
  const parts: Buffer[] = [];
  const sizes: number[] = [];
  for (const tag of tags) {
    const text = Buffer.from(tag);
    const { length } = text;
    const head = length < 0x80 ? [length] : [(length & 0x7f) | 0x80, length >>> 7];
    const item = Buffer.concat([Buffer.from(head), text, Buffer.alloc(1)]);
    parts.push(item);
    sizes.push(item.length & 0xff);
  }
  return Buffer.concat([...parts, Buffer.from(sizes), Buffer.from([tags.length])]);
}

function tagAt(tags: readonly string[], number: number): string {
  const tag = tags[number];
  if (tag === undefined) throw damaged("names a tag that it does not have");
  return tag;
}

/** Reader of the bits whose header ends at `at`. */
function bitsOf(bytes: Buffer, at: number): BitReader {
  const count = bytes.readUInt32LE(at - bitsHeadBytes);
  const packedBytes = bytes.readUInt16LE(at - 4);
  if (packedBytes === 0) return new BitReader(bytes.subarray(at), count);
  const unpacked = unpackLz4(bytes.subarray(at, at + packedBytes), bytes.readUInt16LE(at - 2));
  const rest = bytes.subarray(at + packedBytes);
  return new BitReader(Buffer.concat([unpacked, rest]), 8 * unpacked.length + count);
}

/** Decompresses an LZ4 block. @throws EngineError invalid-format when the result is not exactly `size` bytes */
function unpackLz4(block: Buffer, size: number): Buffer {
  const target = Buffer.alloc(size);
  let from = 0;
  let to = 0;
  const next = (): number => {
    if (from >= block.length) throw damaged("has a damaged block");
    return block[from++] as number; // before the end
  };
  const lengthOf = (nibble: number): number => {
    let length = nibble;
    if (nibble === 15) {
      let more: number;
      do {
        more = next();
        length += more;
      } while (more === 255);
    }
    return length;
  };
  while (from < block.length) {
    const token = next();
    const literals = lengthOf(token >>> 4);
    if (from + literals > block.length || to + literals > size)
      throw damaged("has a damaged block");
    block.copy(target, to, from, from + literals);
    from += literals;
    to += literals;
    if (from === block.length) break;
    const offset = next() | (next() << 8);
    const length = lengthOf(token & 15) + 4;
    if (offset === 0 || offset > to || to + length > size) throw damaged("has a damaged block");
    for (let i = 0; i < length; i++, to++) target[to] = target[to - offset] as number; // offset <= to
  }
  if (to !== size) throw damaged("has a damaged block");
  return target;
}

class BitReader {
  readonly #bytes: Buffer;
  #at = 0;
  readonly #end: number;

  /** Reads the first `count` bits. */
  constructor(bytes: Buffer, count: number) {
    this.#bytes = bytes;
    this.#end = Math.min(count, bytes.length * 8);
  }

  /** Up to 32 bits. @throws EngineError invalid-format past the end */
  read(count: number): number {
    if (this.#at + count > this.#end) throw damaged("is cut off");
    let value = 0;
    for (let left = count; left > 0; ) {
      const free = 8 - (this.#at & 7);
      const take = Math.min(free, left);
      const byte = this.#bytes[this.#at >>> 3] as number; // before the end
      value = value * 2 ** take + ((byte >>> (free - take)) & ((1 << take) - 1));
      this.#at += take;
      left -= take;
    }
    return value;
  }

  readBig(count: number): bigint {
    if (count <= 32) return BigInt(this.read(count));
    return (BigInt(this.read(count - 32)) << 32n) | BigInt(this.read(32));
  }
}

class BitWriter {
  #bytes = Buffer.alloc(256);
  #count = 0;

  /** Writes the lower `count` bits, at most 32, of a nonnegative number. */
  write(value: number, count: number): void {
    const needed = ((this.#count + count) >>> 3) + 1;
    if (needed > this.#bytes.length) {
      this.#bytes = Buffer.concat([this.#bytes, Buffer.alloc(this.#bytes.length)]);
    }
    for (let left = count; left > 0; ) {
      const free = 8 - (this.#count & 7);
      const take = Math.min(free, left);
      const part = Math.floor(value / 2 ** (left - take)) & ((1 << take) - 1);
      const at = this.#count >>> 3;
      this.#bytes[at] = (this.#bytes[at] as number) | (part << (free - take));
      this.#count += take;
      left -= take;
    }
  }

  writeBig(value: bigint, count: number): void {
    if (count > 32) this.write(Number(value >> 32n), count - 32);
    this.write(Number(value & 0xffffffffn), Math.min(count, 32));
  }

  /** Returns the header of the bits and the bits. */
  bytes(): Buffer {
    const head = Buffer.alloc(bitsHeadBytes);
    head.writeUInt32LE(this.#count, 0);
    return Buffer.concat([head, this.#bytes.subarray(0, (this.#count + 7) >>> 3)]);
  }
}

function damaged(what: string): EngineError {
  return new EngineError("invalid-format", `A segment of a time series in the dump ${what}.`);
}
