/**
 * Records read from disk for one transaction, so that each of its runs finds them: records that a run missed one by
 * one, and records that a scan's reader has fetched.
 */
import { borrowed, type OwnedBytes } from "../../base/memory/borrowed-bytes.ts";
import type { Position } from "../../storage/log/log.ts";
import type { RecordPlace } from "../../storage/segments/blocks.ts";

/** Finds records that it holds in memory. */
export interface RecordSource {
  locate(position: Position, length: number, target: RecordPlace): boolean;
}

export class FetchedRecords implements RecordSource {
  readonly #base: RecordSource | null;
  #own: Map<Position, OwnedBytes> | null = null;

  /** `base` is searched first. */
  constructor(base: RecordSource | null) {
    this.#base = base;
  }

  /** Stores a record for the time slices of a transaction. */
  set(position: Position, bytes: OwnedBytes): void {
    this.#own ??= new Map();
    this.#own.set(position, bytes);
  }

  /** Valid as long as this object is. Hot: most often there is nothing. */
  locate(position: Position, length: number, target: RecordPlace): boolean {
    if (this.#base?.locate(position, length, target)) return true;
    const bytes = this.#own === null ? undefined : this.#own.get(position);
    if (bytes === undefined) return false;
    target.bytes = borrowed(bytes);
    target.start = 0;
    target.block = null;
    return true;
  }
}

export const nothingFetched = new FetchedRecords(null);
