/**
 * A segment: one file of the log and its state, or, in an in-memory log, only its image.
 *
 *   0          8        12        16            32       40     44     46     48            56        64
 *   +----------+--------+---------+-------------+--------+------+------+------+-------------+---------+--- ... ---+
 *   | JACKDAW1 | header | version | database id | number | salt | kind | zero | size        | zero    | frames    |
 *   | 8 bytes  | crc u32| u32     | 16 bytes    | u64    | u32  | u16  | u16  | u64         | 8 bytes | ...       |
 *   +----------+--------+---------+-------------+--------+------+------+------+-------------+---------+--- ... ---+
 *
 * All integers are little-endian. `header crc` is CRC-32 of bytes 12 to 63. These widths are on disk: never change
 * them. The file is created with `size` bytes, filled with zeros: overwriting zeros that are on the device is two to
 * four times faster than extending a file.
 *
 * Invariants:
 * - The header and all zeros are on the device before the manifest lists the segment.
 * - A log segment keeps room for one empty frame at its end, so that a log can always be closed properly.
 */

import { crc32 } from "node:zlib";
import type { FileHandle } from "../../base/environment.ts";
import type { Block, Extent, SingleTable } from "./blocks.ts";
import { ChunkSums } from "./chunk-sums.ts";
import { ComparedExtents } from "./compared-extents.ts";
import type { DeferredCopies } from "./deferred-copies.ts";
import { readInteger, writeInteger } from "./frame.ts";

export const segmentHeaderBytes = 64;
const magic = "JACKDAW1";
/** Format 1 used another checksum for records. */
export const segmentFormat = 2;

/** "log": frames in their original form. "compacted": the live records of one or more segments, in their order. */
export type SegmentKind = "log" | "compacted";

const kindCodes: Readonly<Record<SegmentKind, number>> = { log: 0, compacted: 1 };

interface SegmentHeader {
  readonly databaseId: Buffer;
  readonly number: number;
  readonly salt: number;
  readonly kind: SegmentKind;
  /** Bytes of the file. */
  readonly size: number;
}

/** The identity of a new segment. */
interface SegmentIdentity {
  readonly number: number;
  readonly kind: SegmentKind;
  readonly salt: number;
  readonly size: number;
}

/**
 * Initial value that makes V8 represent a field as a double. If a field has only had small integers, its first double
 * changes the map of all objects of the class, which discards the compiled code of all users: of patches, in the middle
 * of the first patch.
 */
const notSmall = Number.NaN;

export class Segment {
  readonly number: number;
  readonly kind: SegmentKind;
  readonly salt: number = notSmall;
  /** Bytes of the file, and of the image. */
  readonly size: number;
  /** Content, while it is in memory: an ArrayBuffer of its own, from offset 0. */
  image: Buffer | null = null;
  /** It was made for one large transaction: its image is dropped as soon as that is durable. */
  isOversized = false;
  /** The owner of the image's memory; null in an in-memory log. */
  imageBlock: Block | null = null;
  /** Pending copies into the image; null: none. */
  deferredCopies: DeferredCopies | null = null;
  /** When the image was last used, in ticks of the cache. */
  usedAt = 0;
  /** End of the last durable frame. */
  end = segmentHeaderBytes;
  /** Bytes of all records in durable frames. */
  payloadBytes = 0;
  /**
   * Bytes of records that are no longer needed. This and the other numbers initialized to `notSmall` may result from
   * arithmetic in doubles, or have more than 31 bits.
   */
  deadBytes = notSmall;
  /** Bytes of records replaced since the log was opened, excluding deletions, which may still be needed. */
  replacedBytes = notSmall;
  /** In a compacted segment: dead bytes when it was created (deletions that must be kept). */
  deadBytesAtBirth = 0;
  /** In a compacted segment: the first frame of the segments that it replaces. 0 in a log segment. */
  firstNumber = notSmall;
  /** Number of the last durable frame; in a compacted segment, of the last frame of the segments that it replaces. */
  lastNumber = notSmall;
  lastCrc = notSmall;
  /** No record in it was superseded by a frame up to this number. 0 for log segments. */
  cleanThrough = notSmall;
  /** No frame will be added, and all are durable and reported. */
  sealed = false;
  /** A scrub or compaction found damage: it is not compacted. */
  damaged = false;
  /** Index snapshots may refer to positions in it, as no compaction is moving its records. */
  settled = true;
  /** Created ahead of need, and now the active segment. */
  isTaken = false;
  /** Resolves when the file is on the device and listed; null until its creation begins. */
  ready: Promise<void> | null = null;
  file: FileHandle | null = null;
  /** Reads in progress on `file`; with `closeAfterRead` it is closed when they have ended. */
  readers = 0;
  closeAfterRead = false;
  /** By extent number, for the first extents: CRC-32 of their durable bytes. See extent-sums.ts. */
  extentSums: number[] = [];
  /** Input of `extentSums` while the segment is written. */
  readonly chunkSums = new ChunkSums();
  /** Which extents were verified lately, and need not be verified again. */
  readonly compared = new ComparedExtents();
  /** Cached extents by number, and reads of extents in progress. */
  readonly extents: (Extent | null)[] = [];
  readonly extentReads = new Map<number, Promise<Extent | null>>();
  /** Individually read records in the cache: short ones, and long ones by offset. */
  singles: SingleTable | null = null;
  readonly longRecords = new Map<number, Extent>();
  /** Set while the file is being opened. */
  opening: Promise<FileHandle> | null = null;

  constructor(identity: SegmentIdentity) {
    this.number = identity.number;
    this.kind = identity.kind;
    this.salt = identity.salt;
    this.size = identity.size;
    this.deadBytes = 0;
    this.replacedBytes = 0;
    this.firstNumber = 0;
    this.lastNumber = 0;
    this.lastCrc = 0;
    this.cleanThrough = 0;
  }
}

/** Returns an image of `size` zero bytes, aligned for typed views. */
export function newImage(size: number): Buffer {
  return Buffer.from(new ArrayBuffer(size));
}

export function encodeSegmentHeader(target: Buffer, header: SegmentHeader): void {
  target.fill(0, 0, segmentHeaderBytes);
  target.write(magic, 0, "latin1");
  target.writeUInt32LE(segmentFormat, 12);
  header.databaseId.copy(target, 16, 0, 16);
  writeInteger(target, 32, header.number);
  target.writeUInt32LE(header.salt, 40);
  target.writeUInt16LE(kindCodes[header.kind], 44);
  writeInteger(target, 48, header.size);
  target.writeUInt32LE(crc32(target.subarray(12, segmentHeaderBytes)), 8);
}

/** Returns the segment format in an intact header; null if the header is not intact. */
export function segmentFormatOf(source: Buffer): number | null {
  if (source.length < segmentHeaderBytes) return null;
  if (source.toString("latin1", 0, 8) !== magic) return null;
  if (source.readUInt32LE(8) !== crc32(source.subarray(12, segmentHeaderBytes))) return null;
  return source.readUInt32LE(12);
}

/** @returns null when there is no intact header of this format. */
export function decodeSegmentHeader(source: Buffer): SegmentHeader | null {
  if (segmentFormatOf(source) !== segmentFormat) return null;
  return {
    databaseId: Buffer.from(source.subarray(16, 32)),
    number: readInteger(source, 32),
    salt: source.readUInt32LE(40),
    kind: source.readUInt16LE(44) === kindCodes.compacted ? "compacted" : "log",
    size: readInteger(source, 48),
  };
}

/** `00000000000000000001.seg` */
export function segmentFileName(number: number): string {
  return `${number.toString().padStart(20, "0")}.seg`;
}

/** Returns the number in a segment's file name; null for other names. */
export function segmentNumberOf(name: string): number | null {
  return /^\d{20}\.seg$/.test(name) ? Number(name.slice(0, 20)) : null;
}
