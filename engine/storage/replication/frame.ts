/**
 * A frame: one message of the stream that replicates a log.
 *
 *     0        4         5      6       8            12              16      24         32               64     72
 *     | magic  | version | type | zero  | generation | payload bytes | epoch | sequence | previous hash  | zero | payload … | hash |
 *     | 4      | 1       | 1    | 2     | 4          | 4             | 8     | 8        | 32             | 8    |           | 32   |
 *
 * All integers are little-endian; epoch and sequence are below 2^53. These widths are on disk: never change them.
 * - `hash` is the SHA-256 of everything before it; `previous hash` is the hash of the last valid frame (chain.ts).
 * - `sequence` is the sequence that the stream assigns to the message: it is known in advance, because an append
 *   specifies it.
 *
 * Payloads by type:
 * - genesis: the first frame of a generation. The mark that it continues: 4 generation, 8 sequence (its epoch and hash are
 *   the frame's epoch and previous hash; all zero for a new database), then the database's id.
 * - epoch: another leader begins. 1 length, node tag, 1 length, incarnation.
 * - part: a section of a group that continues in the next frame.
 * - commit: the last or only section of a group.
 * - content: 32 hash of the attachment's content, 8 offset, 8 total bytes, then bytes.
 * - barrier: nothing.
 *
 * Invariants:
 * - The same arguments produce the same bytes: a repeated append sends the same message.
 */
import { hash } from "node:crypto";
import { assert } from "../../base/assert.ts";
import { contentChunkBytesMax, framePayloadBytesMax } from "../../base/limits.ts";
import type { ContentChunk, Mark } from "./replica-types.ts";

/** The byte at `typeAt`; in the stream, never reused for another type. */
export const frameTypes = {
  genesis: 1,
  epoch: 2,
  part: 3,
  commit: 4,
  content: 5,
  barrier: 6,
} as const;

export type FrameType = (typeof frameTypes)[keyof typeof frameTypes];

/** The hash before the first frame of a new database. */
export const zeroHash = "0".repeat(64);

const magic = 0x4652444a; // "JDRF"
const version = 1;
const versionAt = 4;
const typeAt = 5;
const generationAt = 8;
const payloadBytesAt = 12;
const epochAt = 16;
const sequenceAt = 24;
const previousAt = 32;
const headerBytes = 72;
const hashBytes = 32;

/** Bytes of a frame beside its payload. */
export const frameOverheadBytes = headerBytes + hashBytes;

const contentHeadBytes = hashBytes + 16;
assert(contentHeadBytes + contentChunkBytesMax <= framePayloadBytesMax, "a chunk fits in a frame");

/** Where a frame is in the chain. */
export interface FramePlace {
  readonly generation: number;
  readonly epoch: number;
  readonly sequence: number;
  /** Hash of the last valid frame. */
  readonly previous: string;
}

export interface Frame extends FramePlace {
  readonly type: FrameType;
  /** Its own; 64 hexadecimal digits, as all hashes here. */
  readonly hash: string;
  /** A view of the frame's bytes. */
  readonly payload: Buffer;
}

/** A frame with its bytes. */
export interface EncodedFrame extends Frame {
  readonly bytes: Buffer;
}

/** @param pieces the payload, which is copied: at most `framePayloadBytesMax` */
export function encodeFrame(
  type: FrameType,
  place: FramePlace,
  pieces: readonly Buffer[],
): EncodedFrame {
  let payloadBytes = 0;
  for (const piece of pieces) payloadBytes += piece.length;
  assert(payloadBytes <= framePayloadBytesMax, "a frame's payload has a limit");
  const bytes = Buffer.allocUnsafe(frameOverheadBytes + payloadBytes);
  let at = headerBytes;
  for (const piece of pieces) at += piece.copy(bytes, at);
  const payload = bytes.subarray(headerBytes, at);
  bytes.fill(0, 0, headerBytes);
  bytes.writeUInt32LE(magic, 0);
  bytes[versionAt] = version;
  bytes[typeAt] = type;
  bytes.writeUInt32LE(place.generation, generationAt);
  bytes.writeUInt32LE(payloadBytes, payloadBytesAt);
  writeNumber(bytes, place.epoch, epochAt);
  writeNumber(bytes, place.sequence, sequenceAt);
  bytes.write(place.previous, previousAt, "hex");
  const own = hash("sha256", bytes.subarray(0, at), "hex");
  bytes.write(own, at, "hex");
  const { generation, epoch, sequence, previous } = place;
  return { type, generation, epoch, sequence, previous, hash: own, payload, bytes };
}

/** Null: these bytes are not a whole and undamaged frame. The payload is a view of `bytes`. */
export function decodeFrame(bytes: Buffer): Frame | null {
  const end = bytes.length - hashBytes;
  if (end < headerBytes || end - headerBytes > framePayloadBytesMax) return null;
  if (bytes.readUInt32LE(0) !== magic || bytes[versionAt] !== version) return null;
  if (bytes.readUInt32LE(payloadBytesAt) !== end - headerBytes) return null;
  const type = frameTypeOf(bytes[typeAt] as number); // within the length
  if (type === null) return null;
  const payload = bytes.subarray(headerBytes, end);
  const own = hash("sha256", bytes.subarray(0, end), "hex");
  if (own !== bytes.toString("hex", end)) return null;
  return {
    type,
    generation: bytes.readUInt32LE(generationAt),
    epoch: readNumber(bytes, epochAt),
    sequence: readNumber(bytes, sequenceAt),
    previous: bytes.toString("hex", previousAt, previousAt + hashBytes),
    hash: own,
    payload,
  };
}

function frameTypeOf(value: number): FrameType | null {
  for (const type of Object.values(frameTypes)) if (type === value) return type;
  return null;
}

/** Returns the payload of a generation's first frame, which continues the log that ends with `mark`. */
export function genesisPayload(databaseId: string, mark: Mark | null): Buffer {
  const id = Buffer.from(databaseId);
  const payload = Buffer.alloc(12 + id.length);
  payload.writeUInt32LE(mark?.generation ?? 0, 0);
  writeNumber(payload, mark?.sequence ?? 0, 4);
  id.copy(payload, 12);
  return payload;
}

interface Genesis {
  readonly databaseId: string;
  /** Of the mark that it continues; 0: a new database. */
  readonly generation: number;
  readonly sequence: number;
}

/** Null if the payload is not that of a genesis frame. */
export function readGenesis(payload: Buffer): Genesis | null {
  if (payload.length < 12) return null;
  const [generation, sequence] = [payload.readUInt32LE(0), readNumber(payload, 4)];
  return { databaseId: payload.toString("utf8", 12), generation, sequence };
}

/** @param tag at most 255 bytes of UTF-8, as `incarnation` */
export function epochPayload(tag: string, incarnation: string): Buffer {
  const texts = [Buffer.from(tag), Buffer.from(incarnation)];
  return Buffer.concat(
    texts.flatMap((text) => {
      assert(text.length <= 255, "a tag and an incarnation are short");
      return [Buffer.from([text.length]), text];
    }),
  );
}

export interface EpochBegin {
  readonly tag: string;
  readonly incarnation: string;
}

/** Null if the payload is not that of an epoch frame. */
export function readEpoch(payload: Buffer): EpochBegin | null {
  const tagEnd = 1 + (payload[0] ?? 0);
  const end = tagEnd + 1 + (payload[tagEnd] ?? 0);
  if (end !== payload.length) return null;
  const tag = payload.toString("utf8", 1, tagEnd);
  return { tag, incarnation: payload.toString("utf8", tagEnd + 1, end) };
}

/** Returns the payload in chunks: the content's bytes are not copied. */
export function contentChunks(chunk: ContentChunk): Buffer[] {
  assert(chunk.bytes.length <= contentChunkBytesMax, "a chunk of content has a limit");
  const head = Buffer.alloc(contentHeadBytes);
  head.write(chunk.sha256, 0, "hex");
  writeNumber(head, chunk.offset, hashBytes);
  writeNumber(head, chunk.total, hashBytes + 8);
  return [head, chunk.bytes];
}

/** Null if the payload is not that of a content frame. */
export function readContent(payload: Buffer): ContentChunk | null {
  if (payload.length < contentHeadBytes) return null;
  return {
    sha256: payload.toString("hex", 0, hashBytes),
    offset: readNumber(payload, hashBytes),
    total: readNumber(payload, hashBytes + 8),
    bytes: payload.subarray(contentHeadBytes),
  };
}

/** 8 bytes; `value` is below 2^53. */
function writeNumber(bytes: Buffer, value: number, at: number): void {
  assert(Number.isSafeInteger(value) && value >= 0, "a number of the stream is below 2^53");
  bytes.writeUInt32LE(value % 2 ** 32, at);
  bytes.writeUInt32LE(Math.floor(value / 2 ** 32), at + 4);
}

function readNumber(bytes: Buffer, at: number): number {
  return bytes.readUInt32LE(at) + bytes.readUInt32LE(at + 4) * 2 ** 32;
}
