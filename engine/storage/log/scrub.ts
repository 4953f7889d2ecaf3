/**
 * Reads all sealed segments from their files, whether or not they are in memory, and reports every damaged record, so
 * that damage is found while a copy may still exist elsewhere.
 *
 * Invariants:
 * - Changes nothing, except that it marks damaged segments, which compaction then skips.
 */
import type { Clock } from "../../base/environment.ts";
import { recordHeaderBytes, recordLengthAt, verifyRecord } from "../../base/record.ts";
import { isReadFailed } from "../segments/failed-read.ts";
import { decodeFrameHeader, frameHeaderBytes, slicedPayloadCrcOf } from "../segments/frame.ts";
import { type Segment, segmentHeaderBytes } from "../segments/segment.ts";
import type { SegmentStore } from "../segments/segment-store.ts";
import { type Position, positionSegmentFactor } from "./log.ts";
import { Throttle } from "./throttle.ts";

/** A damaged record, or a range of bytes in which records cannot be told apart. */
export interface Damage {
  readonly position: Position;
  /** Bytes of the record, or of the range. */
  readonly length: number;
  readonly file: string;
  readonly offset: number;
  /** The bytes of a record whose checksum is wrong: its key may or may not be correct. Null for a range. */
  readonly record: Buffer | null;
}

export interface ScrubReport {
  readonly segments: number;
  readonly bytes: number;
  readonly damages: number;
  /** Segments that could not be read. */
  readonly unread: number;
}

/** Reads every segment that is sealed now, or stops early when `hurry` is aborted. `onDamage` must not throw. */
export async function scrub(
  store: SegmentStore,
  clock: Clock,
  bytesPerSecond: number,
  onDamage: (damage: Damage) => void,
  hurry?: AbortSignal,
): Promise<ScrubReport> {
  const throttle = new Throttle(clock, bytesPerSecond);
  hurry?.addEventListener("abort", () => throttle.hurry(), { once: true });
  const report = { segments: 0, bytes: 0, damages: 0, unread: 0 };
  if (store.disk === null) return report;
  const pin = store.pin();
  try {
    for (const segment of store.order.filter((listed) => listed.sealed)) {
      if (hurry?.aborted === true) break;
      const { images } = store.cache;
      const image = images.take(segment.end);
      const count = await store.readFrom(segment, image, 0).catch(unread);
      if (count === null) {
        // A transient read error is not damage; the next scrub reads the segment again.
        report.unread++;
        continue;
      }
      await throttle.spend(count);
      report.segments++;
      report.bytes += count;
      const bytes = image.subarray(0, count);
      const damages = await findDamages(segment, bytes, store.pathOf(segment), throttle);
      if (damages.length > 0) {
        segment.damaged = true;
        segment.compared.forget();
      }
      report.damages += damages.length;
      for (const damage of damages) onDamage(damage);
      images.releaseImage(image);
      await throttle.yield();
    }
  } finally {
    pin.release();
  }
  return report;
}

function unread(error: unknown): null {
  if (isReadFailed(error)) return null;
  throw error;
}

async function findDamages(
  segment: Segment,
  image: Buffer,
  file: string,
  throttle: Throttle,
): Promise<Damage[]> {
  const base = segment.number * positionSegmentFactor;
  const damages: Damage[] = [];
  const report = (offset: number, length: number, record: Buffer | null) =>
    damages.push({ position: base + offset, length, file, offset, record });
  let at = segmentHeaderBytes;
  while (at < segment.end) {
    const header = decodeFrameHeader(image, at, image.length, segment.salt);
    if (header === null) {
      // Without an intact header the start of the next frame is unknown.
      report(at, segment.end - at, null);
      break;
    }
    const start = at + frameHeaderBytes;
    const end = start + header.payloadLength;
    const crc = await slicedPayloadCrcOf(image, at, header.payloadLength, throttle);
    if (crc !== header.payloadCrc) findDamagedRecords(image, start, end, report);
    at = end;
  }
  return damages;
}

/** Reports the damaged records of a frame that is not intact. */
function findDamagedRecords(
  image: Buffer,
  start: number,
  end: number,
  report: (offset: number, length: number, record: Buffer | null) => void,
): void {
  let at = start;
  while (at < end) {
    const length = image.readUInt32LE(at + recordLengthAt);
    if (verifyRecord(image.subarray(0, end), at, length)) {
      at += length;
      continue;
    }
    const next = findRecord(image, at + 8, end);
    const isRecord = length === next - at && length >= recordHeaderBytes;
    report(at, next - at, isRecord ? Buffer.from(image.subarray(at, next)) : null);
    at = next;
  }
}

/** Returns the offset of the next intact record, from `at` on; `end` if none follows. */
export function findRecord(image: Buffer, at: number, end: number): number {
  const payload = image.subarray(0, end);
  for (let start = at; start + recordHeaderBytes <= end; start += 8) {
    const length = image.readUInt32LE(start + recordLengthAt);
    if (length >= recordHeaderBytes && verifyRecord(payload, start, length)) return start;
  }
  return end;
}
