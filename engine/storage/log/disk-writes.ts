/**
 * The newest writes of one log to its files, with their sizes and times, for the diagnosis of slow disks.
 *
 * Invariants:
 * - At most `keptWritesMax` are kept. An entry is a small object, whereas the sync that it describes takes a thousand
 *   times longer.
 */

/** `append`: a group commit; `sync`: making it durable; `rewrite`: a compacted segment or a snapshot, at leisure. */
export type DiskWriteKind = "append" | "sync" | "rewrite";

export interface DiskWrite {
  /** Counted from 1 since the log was opened. */
  readonly number: number;
  readonly kind: DiskWriteKind;
  /** The name of the file, below the folder of the database. */
  readonly file: string;
  readonly bytes: number;
  readonly fileBytes: number;
  /** Microseconds since 1970. */
  readonly endedAtMicros: number;
  readonly durationMs: number;
}

const keptWritesMax = 256;

export class DiskWrites {
  #kept: DiskWrite[] = [];
  #count = 0;

  /** One literal, as a spread would make a new shape of object for each of two writes in a group commit. */
  add(
    kind: DiskWriteKind,
    file: string,
    bytes: number,
    fileBytes: number,
    endedAtMicros: number,
    durationMs: number,
  ): void {
    this.#count++;
    const number = this.#count;
    this.#kept.push({ number, kind, file, bytes, fileBytes, endedAtMicros, durationMs });
    // Dropped in lots: shifting each time would move all.
    if (this.#kept.length >= 2 * keptWritesMax) this.#kept = this.#kept.slice(-keptWritesMax);
  }

  /** Returns the writes after number `number`, oldest first; 0: all stored writes. */
  after(number: number): DiskWrite[] {
    const kept = this.#kept.slice(-keptWritesMax);
    return kept.filter((one) => one.number > number);
  }
}
