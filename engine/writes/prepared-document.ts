/**
 * Large documents are parsed, copied to where their record will be encoded, and checksummed in slices, before the
 * transaction that stores them. The transaction, which runs in one tick of the event loop, then only writes the bytes
 * around the body.
 *
 *   bytes of a prepared document, which become the scratch buffer of its transaction
 *   +-------------------------------------------+----------+--------------------------------+
 *   | room for the header, the id, the metadata | the body | room for the table of its fields |
 *   +-------------------------------------------+----------+--------------------------------+
 *   0, where its record will begin              bodyStart
 *
 * The position of the body is an estimate: if the record has another change vector or other lists of attachments, the
 * body is moved again.
 *
 * Invariants:
 * - A prepared document depends only on the text and the id: it may be stored any number of times, or never.
 */

import { crc32 } from "node:zlib";
import { combinedCrc } from "../base/crc-combine.ts";
import { nameBytesMax, preparedBytesMin, shapeFieldCountMax } from "../base/limits.ts";
import type { OwnedBytes } from "../base/memory/borrowed-bytes.ts";
import { largeBuffer } from "../base/memory/large-buffer.ts";
import { pauseIfDue } from "../base/scheduling/time-slices.ts";
import type { Work } from "../base/scheduling/work-budget.ts";
import { DocumentParser } from "../state/documents/document-parser.ts";
import { documentHeaderBytes } from "../state/documents/document-record.ts";
import { collectionMemberOf } from "../state/documents/document-text.ts";
import type { ParsedDocument } from "../state/documents/parsed-document.ts";
import type { DatabaseState } from "../state/store/database-state.ts";

/** Bytes reserved before the body: for metadata with a little more than the collection. */
const roomBefore = 16 * 1024;
/** Bytes reserved after it: the field table, and the records of shapes. */
const roomAfter = 4 * shapeFieldCountMax + 64 * 1024;
/** Bytes that are moved and checksummed in one go. */
const movedBytes = 4 * 1024 * 1024;

/** The text of a document: `bytes[from, to)`. */
export interface DocumentText {
  readonly bytes: OwnedBytes;
  readonly from: number;
  readonly to: number;
}

/** Returns whether a text of `length` bytes is large enough to be prepared when stored individually. */
export function isPrepared(length: number): boolean {
  return length >= preparedBytesMin;
}

/**
 * Parses a document with a parser of its own, yielding to the event loop. The text must not change until it has
 * resolved.
 * @param id the expected id: a guess.
 * @throws EngineError json-…, too-large
 */
export async function prepareDocument(
  state: DatabaseState,
  text: DocumentText,
  id: string,
): Promise<ParsedDocument> {
  const work = prepare(state, text, Buffer.byteLength(id));
  for (;;) {
    const step = work.next();
    if (step.done === true) return step.value;
    await pauseIfDue();
  }
}

/**
 * The document of a text, unless it was prepared parsed now: then to be stored before another is parsed.
 * @throws EngineError json-…, too-large
 */
export function parsedOf(
  { parser }: DatabaseState,
  { bytes, from, to }: DocumentText,
  prepared: ParsedDocument | null | undefined,
): ParsedDocument {
  return prepared ?? parser.parse(bytes, from, to);
}

function* prepare(
  state: DatabaseState,
  { bytes: text, from, to }: DocumentText,
  idLength: number,
): Work<ParsedDocument> {
  const whole = largeBuffer(roomBefore + (to - from) + roomAfter);
  const parser = new DocumentParser(state.shapes);
  const target = whole.subarray(roomBefore, roomBefore + to - from);
  const parsed = yield* parser.parseInSlices(text, from, to, target);
  const { bodyLength } = parsed.found;
  const lead =
    documentHeaderBytes + Math.min(idLength, nameBytesMax) + metadataLength(state, parsed);
  // Records begin at multiples of 8, so the body moves by a few bytes, unless what precedes it does not fit.
  const recordStart = lead <= roomBefore ? (roomBefore - lead) & ~7 : 0;
  const bodyAt = lead <= roomBefore ? recordStart + lead : roomBefore;
  const moved = roomBefore - bodyAt;
  let bodyCrc = 0;
  for (let done = 0; done < bodyLength; done += movedBytes) {
    const end = Math.min(done + movedBytes, bodyLength);
    if (moved > 0) whole.copyWithin(bodyAt + done, roomBefore + done, roomBefore + end);
    const piece = crc32(whole.subarray(bodyAt + done, bodyAt + end));
    bodyCrc = combinedCrc(bodyCrc, piece, end - done);
    yield;
  }
  const bytes = whole.subarray(recordStart);
  return parser.moved(parsed, { bytes, bodyStart: bodyAt - recordStart, bodyCrc });
}

/** Returns the bytes of the stored metadata if the server adds nothing to it. */
function metadataLength({ metadata }: DatabaseState, parsed: ParsedDocument): number {
  const composed = metadata.fromParsed(parsed, []);
  metadata.forget();
  return composed.isOnly(collectionMemberOf(composed.collection)) ? 0 : composed.length;
}
