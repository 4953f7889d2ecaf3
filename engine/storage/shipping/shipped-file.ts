/**
 * The head of a shipped file: a copy of frames of a log, in two lines of text before the bytes.
 *
 *   {"format":"jackdaw-frames","version":1,"kind":"base","databaseId":"<32 hex digits>", ...}\n
 *   crc32 <8 hex digits of the first line>\n
 *   bytes [from, to) of each segment, one after another
 *
 * A base has everything up to a frame; the files of frames continue it, each where the one before ends. The frames have
 * checksums of their own, each of which depends on all frames before it (storage/segments/frame.ts): damaged, missing or reordered
 * frames are detected.
 */
import { crc32 } from "node:zlib";
import { EngineError } from "../../base/errors.ts";
import type { LogPoint, LogRange } from "../log/log-follower.ts";
import type { SegmentKind } from "../segments/segment.ts";

const formatName = "jackdaw-frames";
const formatVersion = 1;
/** A segment uses some 200 bytes of the line. */
export const headBytesMax = 16 * 1024 * 1024;

type ShippedKind = "base" | "frames";

/** A segment, and which of its bytes are in the file. Names as in storage/segments/segment.ts. */
export interface ShippedSegment {
  readonly number: number;
  readonly kind: SegmentKind;
  readonly size: number;
  readonly salt: number;
  readonly from: number;
  readonly to: number;
  readonly firstNumber: number;
  readonly lastNumber: number;
  readonly lastCrc: number;
  readonly cleanThrough: number;
  readonly deadBytesAtBirth: number;
}

export interface ShippedHead {
  readonly kind: ShippedKind;
  /** 32 hex digits. */
  readonly databaseId: string;
  /** The frame before the first one, and the last one. */
  readonly after: LogPoint;
  readonly through: LogPoint;
  /** Microseconds since 1970: when the copy was begun. No later frame is in it. */
  readonly takenMicros: number;
  /** The newest etag and the number of documents, as of the last frame; null: not known. */
  readonly etag: number | null;
  readonly documents: number | null;
  readonly segments: readonly ShippedSegment[];
}

export function shippedSegment({ segment, from, to }: LogRange): ShippedSegment {
  const { number, kind, size, salt, firstNumber, cleanThrough, deadBytesAtBirth } = segment;
  const { lastNumber, lastCrc } = segment;
  return {
    number,
    kind,
    size,
    salt,
    from,
    to,
    firstNumber,
    lastNumber,
    lastCrc,
    cleanThrough,
    deadBytesAtBirth,
  };
}

export function encodeShippedHead(head: ShippedHead): Buffer {
  const line = JSON.stringify({ format: formatName, version: formatVersion, ...head });
  return Buffer.from(`${line}\n${sumLine(line)}\n`);
}

/** Returns the second line, without its end. */
function sumLine(line: string): string {
  return `crc32 ${crc32(line).toString(16).padStart(8, "0")}`;
}

/** Returns the length of the two lines at the beginning of `bytes`; null if they are incomplete. */
export function headLengthOf(bytes: Buffer): number | null {
  const first = bytes.indexOf("\n");
  const second = first < 0 ? -1 : bytes.indexOf("\n", first + 1);
  return second < 0 ? null : second + 1;
}

/** @param name of the file, for messages. @throws EngineError backup-damaged */
export function decodeShippedHead(bytes: Buffer, name: string): ShippedHead {
  const [line = "", sum] = bytes.toString("latin1").split("\n");
  if (sum !== sumLine(line)) throw damaged(name, "its head is damaged");
  const { format, version, ...head } = JSON.parse(line) as ShippedHead & {
    format: string;
    version: number;
  };
  if (format !== formatName || version !== formatVersion) {
    throw damaged(name, `it is of format ${format} ${version}, which this version does not read`);
  }
  return head;
}

/** Returns the error for a damaged file of a backup. */
export function damaged(name: string, what: string): EngineError {
  return new EngineError(
    "backup-damaged",
    `The file ${name} of the backup cannot be used: ${what}. Nothing was restored; an earlier moment, or another backup, may be whole.`,
  );
}
