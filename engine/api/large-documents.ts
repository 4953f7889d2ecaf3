/**
 * Documents too large to be composed as one string. A record is in memory once, however many readers it has, and is
 * copied chunk by chunk as each of them reads it.
 *
 * Invariants:
 * - Memory for a record is reserved before it is read, and released by its last user.
 */
import { hugeLoadsMax, hugeRecordBytes, largeRecordBytes } from "../base/limits.ts";
import type { DocumentChunks } from "../state/documents/document-chunks.ts";
import { piecesOf } from "../state/documents/document-composing.ts";
import { DocumentRow } from "../state/documents/document-row.ts";
import type { HeldRecord } from "../state/store/store.ts";
import type { OpenDatabase } from "./database/open-database.ts";

/**
 * Maximum size of a record that is copied; the memory of larger records is held, which may be that of a whole segment.
 */
const copiedBytesMax = 4 * largeRecordBytes;

/** Waits for `bytes` of memory until `signal` is aborted. @returns a function that releases them, to be called once */
export type MemoryReserver = (bytes: number, signal: AbortSignal) => Promise<() => void>;

/** The location of a document's record, in the committed state or in a view that the caller holds. */
export interface RecordAddress {
  readonly document: number;
  readonly position: number;
  readonly length: number;
}

/** A document in use; release it once. */
export interface LargeDocument {
  /** Valid until released. */
  readonly row: DocumentRow;
  /** Its text, with `@metadata`. Valid until released. */
  readonly pieces: DocumentChunks;
  release(): void;
}

/** One load of a huge document. */
export interface HugeLoad {
  readonly id: string;
  readonly bytes: number;
  readonly atMicros: number;
}

interface Shared {
  readonly controller: AbortController;
  readonly opened: Promise<{ row: DocumentRow; pieces: DocumentChunks }>;
  users: number;
}

/** Returns whether a record of `length` bytes is too large to be composed as one string. */
export function isLarge(length: number): boolean {
  return length > largeRecordBytes;
}

/** The large documents of one database that are in use. */
export class LargeDocuments {
  readonly #database: OpenDatabase;
  readonly #shared = new Map<number, Shared>();
  /** Newest first. */
  readonly hugeLoads: HugeLoad[] = [];

  constructor(database: OpenDatabase) {
    this.#database = database;
  }

  /** Opens the record at `address`. @throws EngineError record-damaged, and the errors of `reserve` */
  async open(address: RecordAddress, reserve: MemoryReserver): Promise<LargeDocument> {
    let shared = this.#shared.get(address.position);
    if (shared === undefined) {
      shared = this.#share(address, reserve);
      this.#shared.set(address.position, shared);
    }
    const one = shared;
    one.users++;
    let isReleased = false;
    const release = () => {
      if (isReleased) return;
      isReleased = true;
      one.users--;
      if (one.users > 0) return;
      if (this.#shared.get(address.position) === one) this.#shared.delete(address.position);
      one.controller.abort();
    };
    try {
      const { row, pieces } = await one.opened;
      if (address.length > hugeRecordBytes) this.#keepLoad(row.id, address.length);
      return { row, pieces, release };
    } catch (error) {
      release();
      throw error;
    }
  }

  #keepLoad(id: string, bytes: number): void {
    const atMicros = this.#database.state.nowMicros();
    this.hugeLoads.unshift({ id, bytes, atMicros });
    if (this.hugeLoads.length > hugeLoadsMax) this.hugeLoads.pop();
  }

  #share({ document, position, length }: RecordAddress, reserve: MemoryReserver): Shared {
    const controller = new AbortController();
    const { signal } = controller;
    const database = this.#database;
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
        give = await reserve(length, signal);
        held = await database.holdRecord(document, position, length);
        const record = length <= copiedBytesMax ? Buffer.from(held.bytes) : held.bytes;
        if (record !== held.bytes) held.release();
        const pieces = piecesOf(database.state, record);
        if (signal.aborted) end();
        else signal.addEventListener("abort", end, { once: true });
        return { row: new DocumentRow(database.state, record), pieces };
      } catch (error) {
        end();
        throw error;
      }
    };
    return { controller, opened: open(), users: 0 };
  }
}
