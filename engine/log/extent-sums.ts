/**
 * CRC-32 of each extent of a segment, without the segment's header, taken while its bytes are in memory and known to be
 * right: just written, or verified by the frames they came in. An extent that is read again later, also after a restart (the
 * snapshot of the table has the sums), is compared with its sum, which costs half of what checking its records costs.
 * Records in an extent without a sum are checked one by one.
 */
import { crc32 } from "node:zlib";
import { type Segment, segmentHeaderBytes } from "./segment.ts";
import type { Throttle } from "./throttle.ts";

/** Bytes of an extent when a cache is large enough for it: a read by the system's threads costs as much as copying some 100 KB. */
export const extentBytesMax = 1024 * 1024;
/** Behind the end of an extent this part of its bytes is read too. */
const overShare = 1 / 16;
/** Extents that are summed in one go: some 250 microseconds each. */
const sumsMax = 8;

/** Bytes of an extent with what is read behind its end. */
export function blockBytesFor(extentBytes: number): number {
  return extentBytes + extentBytes * overShare;
}

/** Takes the sums of extents whose bytes are durable and final by now, a few of them. @returns whether there may be more */
export function extendSums(segment: Segment, image: Buffer): boolean {
  const { extentSums } = segment;
  for (let count = 0; count < sumsMax; count++) {
    const start = extentSums.length * extentBytesMax;
    const end = start + blockBytesFor(extentBytesMax);
    if (start >= segment.end || (end > segment.end && !segment.sealed)) return false;
    extentSums.push(sumOf(image, start, Math.min(end, segment.end), 0));
  }
  return true;
}

/** The sum of bytes `[start, end)` of a segment, where byte 0 of `bytes` is byte `base` of it. Its header is not in an image. */
export function sumOf(bytes: Buffer, start: number, end: number, base: number): number {
  return crc32(bytes.subarray(Math.max(start, segmentHeaderBytes) - base, end - base));
}

/** As `extendSums`, all of them. */
export async function extendAllSums(
  segment: Segment,
  image: Buffer,
  throttle: Throttle,
): Promise<void> {
  while (extendSums(segment, image)) if (throttle.isDue()) await throttle.yield();
}
