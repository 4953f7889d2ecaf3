/**
 * Large documents in replies. A record is held in memory once, however many replies use it, and is copied piece by
 * piece as each client reads its reply.
 *
 * Invariants:
 * - Memory for a record is reserved before it is read, and released by its last user.
 */

import { largeRecordBytes } from "../../engine/base/limits.ts";
import type { Database } from "../../engine/database/database.ts";
import type { DocumentPieces } from "../../engine/documents/document-pieces.ts";
import { piecesOf } from "../../engine/documents/reply-text.ts";
import type { HeldRecord } from "../../engine/store/store.ts";
import { takeRoom } from "./reply-room.ts";

/** Records up to this size are copied; the memory of larger ones is held, which may be that of a whole segment. */
const copiedBytesMax = 4 * largeRecordBytes;

/** The location of a document's record, in the committed state or in a view that the caller holds. */
export interface RecordAddress {
  readonly document: number;
  readonly position: number;
  readonly length: number;
}

/** A record in use; release it once. */
export interface LargeDocument {
  /** Valid until released. */
  readonly record: Buffer;
  readonly pieces: DocumentPieces;
  release(): void;
}

interface Shared {
  readonly controller: AbortController;
  readonly opened: Promise<{ record: Buffer; pieces: DocumentPieces }>;
  users: number;
}

const sharedByDatabase = new WeakMap<Database, Map<number, Shared>>();

/** Is a record of `length` bytes too large to be composed at once? */
export function isLarge(length: number): boolean {
  return length > largeRecordBytes;
}

/** Opens the record at `address`. @throws RequestError 503 when there is no memory, EngineError record-damaged */
export async function openLargeDocument(
  database: Database,
  address: RecordAddress,
): Promise<LargeDocument> {
  let known = sharedByDatabase.get(database);
  if (known === undefined) {
    known = new Map();
    sharedByDatabase.set(database, known);
  }
  const all = known;
  let shared = all.get(address.position);
  if (shared === undefined) {
    shared = share(database, address);
    all.set(address.position, shared);
  }
  const one = shared;
  one.users++;
  let isReleased = false;
  const release = () => {
    if (isReleased) return;
    isReleased = true;
    one.users--;
    if (one.users > 0) return;
    if (all.get(address.position) === one) all.delete(address.position);
    one.controller.abort();
  };
  try {
    const { record, pieces } = await one.opened;
    return { record, pieces, release };
  } catch (error) {
    release();
    throw error;
  }
}

function share(database: Database, { document, position, length }: RecordAddress): Shared {
  const controller = new AbortController();
  const { signal } = controller;
  // The view pins the segment while memory is awaited and the record is read.
  const view = database.view();
  const open = async () => {
    let give: (() => void) | undefined;
    let held: HeldRecord | undefined;
    const end = () => {
      held?.release();
      give?.();
      view.release();
    };
    try {
      give = await takeRoom("replies", length, signal);
      held = await database.holdRecord(document, position, length);
      const record = length <= copiedBytesMax ? Buffer.from(held.bytes) : held.bytes;
      if (record !== held.bytes) held.release();
      const pieces = piecesOf(database.state, record);
      if (signal.aborted) end();
      else signal.addEventListener("abort", end, { once: true });
      return { record, pieces };
    } catch (error) {
      end();
      throw error;
    }
  };
  return { controller, opened: open(), users: 0 };
}
