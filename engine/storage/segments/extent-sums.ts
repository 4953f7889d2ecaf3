/**
 * CRC-32 of each extent of a segment, without the segment's header, computed while its bytes are in memory and known to
 * be correct: just written, or verified by the checksums of their frames. An extent that is read later, also after a
 * restart (index snapshots contain the sums), is verified as a whole, at half the cost of verifying its records.
 * Records in an extent without a sum are verified one by one.
 */
import { crc32 } from "node:zlib";
import type { Throttle } from "../log/throttle.ts";
import { type Segment, segmentHeaderBytes } from "./segment.ts";

/**
 * Size of an extent in bytes, if the cache is large enough: a read by the thread pool costs as much as copying some 100
 * KB.
 */
export const extentBytesMax = 1024 * 1024;
/** Bytes read beyond the end of an extent, as a share of its size. */
const overShare = 1 / 16;
/** Extents summed in one call: some 250 microseconds each. */
const sumsMax = 8;

/** Returns the size of an extent in bytes, including the overlap read after its end. */
export function blockBytesFor(extentBytes: number): number {
  return extentBytes + extentBytes * overShare;
}

/**
 * Returns the next position after `at` where an extent or the overlap of an extent begins or ends: chunks are cut
 * there.
 */
export function nextExtentEdge(at: number): number {
  const begin = Math.floor(at / extentBytesMax) * extentBytesMax;
  const over = begin + extentBytesMax * overShare;
  return at < over ? over : begin + extentBytesMax;
}

/** Computes sums of a few more extents whose bytes are durable and final. @returns whether there may be more */
export function extendSums(segment: Segment, image: Buffer): boolean {
  const { extentSums, chunkSums } = segment;
  for (let count = 0; count < sumsMax; count++) {
    const start = extentSums.length * extentBytesMax;
    const end = start + blockBytesFor(extentBytesMax);
    if (start >= segment.end || (end > segment.end && !segment.sealed)) return false;
    const from = Math.max(start, segmentHeaderBytes);
    extentSums.push(chunkSums.sumOf(image, from, Math.min(end, segment.end)));
    chunkSums.dropBelow(start + extentBytesMax);
  }
  return true;
}

/**
 * Returns the sum of bytes `[start, end)` of a segment, without its header; byte 0 of `bytes` is the segment's byte
 * `base`.
 */
export function sumOf(bytes: Buffer, start: number, end: number, base: number): number {
  return crc32(bytes.subarray(Math.max(start, segmentHeaderBytes) - base, end - base));
}

/** As `extendSums`, for all extents, in slices. */
export async function extendAllSums(
  segment: Segment,
  image: Buffer,
  throttle: Throttle,
): Promise<void> {
  while (extendSums(segment, image)) if (throttle.isDue()) await throttle.yield();
}
