/**
 * The frame: one group commit in a segment. Encodes and decodes its header; does no I/O.
 *
 *   0       4        8         12        16       24        32         36      38        40       48      52      56
 *   +-------+--------+---------+---------+--------+---------+----------+-------+---------+--------+-------+-------+-------------+
 *   | magic | header | payload | payload | number | durable | previous | flags | version | wall   | trans | zero  | first       |
 *   | FRM1  | crc    | length  | crc     |        | number  | crc      |       |         | clock  | count |       | number      |
 *   | u32   | u32    | u32     | u32     | u64    | u64     | u32      | u16   | u16     | u64    | u32   | u32   | u64         |
 *   +-------+--------+---------+---------+--------+---------+----------+-------+---------+--------+-------+-------+-------------+
 *   64 bytes, then the payload: whole transactions, made of whole records.
 *
 * All integers are little-endian; u64 are below 2^53. These widths are on disk: never change them.
 *
 * - `header crc` is CRC-32 of bytes 8 to 63, seeded by the segment's salt: a header of another file or of an earlier
 *   use of the file never fits. It must be verified before any other field is used.
 * - `number` grows by one from frame to frame in log segments. In a compacted segment it is the number of the last
 *   frame whose records are in this one, and `first number` is the number of the first such frame; in log segments both
 *   are equal.
 * - `durable number`: every frame up to this one was on the device when this header was written. A damaged frame that
 *   is covered by a later header had been acknowledged; a damaged frame that no header covers may be the torn end of
 *   the log.
 * - `previous crc` is the header crc of the frame before, across segments (0 for the very first).
 * - `wall clock` is in microseconds since 1970.
 *
 * Invariants:
 * - A frame is durable as a whole or not at all, begins at a multiple of 8 and never spans two segments.
 */

import { crc32 } from "node:zlib";
import type { Throttle } from "../log/throttle.ts";

export const frameHeaderBytes = 64;
const magic = 0x314d5246;
const formatVersion = 1;

/** Some 50 microseconds. */
const crcChunkBytes = 256 * 1024;

/** Bits of `flags`. */
export const frameFlags = {
  /** The last frame of a log that was closed properly. */
  cleanClose: 1,
  /** Written by compaction. */
  compacted: 2,
  /** The last frame of a compacted segment. */
  last: 4,
} as const;

export interface FrameHeader {
  readonly payloadLength: number;
  readonly payloadCrc: number;
  readonly number: number;
  readonly firstNumber: number;
  readonly durableNumber: number;
  readonly previousCrc: number;
  readonly flags: number;
  readonly transactionCount: number;
  readonly wallClockMicros: number;
}

/** Writes a header at `at`. @returns its CRC. */
export function encodeFrameHeader(
  target: Buffer,
  at: number,
  salt: number,
  header: FrameHeader,
): number {
  target.writeUInt32LE(magic, at);
  target.writeUInt32LE(header.payloadLength, at + 8);
  target.writeUInt32LE(header.payloadCrc, at + 12);
  writeInteger(target, at + 16, header.number);
  writeInteger(target, at + 24, header.durableNumber);
  target.writeUInt32LE(header.previousCrc, at + 32);
  target.writeUInt16LE(header.flags, at + 36);
  target.writeUInt16LE(formatVersion, at + 38);
  writeInteger(target, at + 40, header.wallClockMicros);
  target.writeUInt32LE(header.transactionCount, at + 48);
  target.writeUInt32LE(0, at + 52);
  writeInteger(target, at + 56, header.firstNumber);
  const crc = crc32(target.subarray(at + 8, at + frameHeaderBytes), salt);
  target.writeUInt32LE(crc, at + 4);
  return crc;
}

/** Reads the header at `at`. @returns null when there is no header of this segment with room for its payload. */
export function decodeFrameHeader(
  source: Buffer,
  at: number,
  limit: number,
  salt: number,
): FrameHeader | null {
  if (at + frameHeaderBytes > limit) return null;
  if (source.readUInt32LE(at) !== magic) return null;
  if (source.readUInt32LE(at + 4) !== crc32(source.subarray(at + 8, at + 64), salt)) return null;
  const header = readFields(source, at);
  return at + frameHeaderBytes + header.payloadLength <= limit ? header : null;
}

/** As `decodeFrameHeader` when the salt is unknown: the payload's CRC is verified instead of the header's. */
export function decodeFrameWithoutSalt(
  source: Buffer,
  at: number,
  limit: number,
): FrameHeader | null {
  if (at + frameHeaderBytes > limit) return null;
  if (source.readUInt32LE(at) !== magic) return null;
  const header = readFields(source, at);
  if (header.payloadLength === 0) return null;
  if (at + frameHeaderBytes + header.payloadLength > limit) return null;
  return payloadIsWhole(source, at, header) ? header : null;
}

/** Returns the header CRC, which the next frame repeats. */
export function frameCrc(source: Buffer, at: number): number {
  return source.readUInt32LE(at + 4);
}

function payloadCrcOf(source: Buffer, at: number, payloadLength: number): number {
  const start = at + frameHeaderBytes;
  return crc32(source.subarray(start, start + payloadLength));
}

/** Returns the CRC-32 of a payload, yielding to the event loop. */
export async function slicedPayloadCrcOf(
  source: Buffer,
  at: number,
  payloadLength: number,
  throttle: Throttle,
): Promise<number> {
  const start = at + frameHeaderBytes;
  const end = start + payloadLength;
  let crc = 0;
  for (let from = start; from < end; from += crcChunkBytes) {
    crc = crc32(source.subarray(from, Math.min(end, from + crcChunkBytes)), crc);
    if (throttle.isDue()) await throttle.yield();
  }
  return crc;
}

export function payloadIsWhole(source: Buffer, at: number, header: FrameHeader): boolean {
  return payloadCrcOf(source, at, header.payloadLength) === header.payloadCrc;
}

/** Returns the next position from `at` where a header may begin, or -1. Cost: 1 ns per byte that is not a candidate. */
export function findMagic(source: Buffer, at: number, limit: number): number {
  let found = at - 1;
  for (;;) {
    found = source.indexOf("FRM1", found + 1, "latin1");
    if (found < 0 || found >= limit) return -1;
    if (found % 8 === 0) return found;
  }
}

const zeros = Buffer.alloc(64 * 1024);

/** Returns whether bytes [start, end) are all zero. */
export function isZero(source: Buffer, start: number, end: number): boolean {
  for (let at = start; at < end; at += zeros.length) {
    const count = Math.min(zeros.length, end - at);
    if (source.compare(zeros, 0, count, at, at + count) !== 0) return false;
  }
  return true;
}

function readFields(source: Buffer, at: number): FrameHeader {
  return {
    payloadLength: source.readUInt32LE(at + 8),
    payloadCrc: source.readUInt32LE(at + 12),
    number: readInteger(source, at + 16),
    durableNumber: readInteger(source, at + 24),
    previousCrc: source.readUInt32LE(at + 32),
    flags: source.readUInt16LE(at + 36),
    wallClockMicros: readInteger(source, at + 40),
    transactionCount: source.readUInt32LE(at + 48),
    firstNumber: readInteger(source, at + 56),
  };
}

/** Writes an integer in [0, 2^53) as u64. */
export function writeInteger(target: Buffer, at: number, value: number): void {
  target.writeUInt32LE(value % 2 ** 32, at);
  target.writeUInt32LE(Math.floor(value / 2 ** 32), at + 4);
}

export function readInteger(source: Buffer, at: number): number {
  return source.readUInt32LE(at + 4) * 2 ** 32 + source.readUInt32LE(at);
}
