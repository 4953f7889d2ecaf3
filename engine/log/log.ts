/**
 * The seam under the database: an ordered, durable list of commits. Everything above it knows only this
 * interface, so that a log replicated by another engine can one day stand in the place of files.
 *
 * A commit is the bytes of one transaction: whole records (record.ts), all of them durable or none.
 */

import type { Extent, RecordPlace } from "./blocks.ts";

/** A place in the log: segment number * 2^32 + byte offset in the segment. */
export type Position = number;

export const positionSegmentFactor = 2 ** 32;

/** What recovery and compaction need from the owner of the records. */
export interface RecordOwner {
  /** One committed record, in commit order. `bytes` belongs to the log: copy what is kept. */
  replay(bytes: Buffer, start: number, length: number, position: Position): void;
  /**
   * Is the record at `position` still needed? Asked by compaction; must not change anything. A deletion is needed
   * until `FileLog.canDropDeletion` says otherwise.
   */
  isLive(bytes: Buffer, start: number, length: number, position: Position): boolean;
  /**
   * A copy of the record now stands at `target` too. The owner finds its entry by the record's key and
   * etag and points it there. @returns false when the entry is gone or newer: the copy is dead. Recovery may ask
   * it for a record that the snapshot already knows there: then the answer is true.
   */
  relocate(bytes: Buffer, start: number, length: number, target: Position): boolean;
}

/** One part of an index snapshot: bytes written and given back whole. */
export interface SnapshotSection {
  readonly name: string;
  /** Gone through once; what is made on the way is of the moment of the snapshot, but for where compaction moved records. */
  readonly parts: Iterable<Uint8Array>;
}

/** A section whose bytes are all there. */
export interface WholeSection extends SnapshotSection {
  readonly parts: readonly Uint8Array[];
}

/** Keeps the segments that exist now readable until `release`, though compaction replaces them. */
export interface Pin {
  release(): void;
}

/** What is known of the beginning of a payload. */
export interface SummedBytes {
  readonly length: number;
  readonly crc: number;
}

export interface CommitLog {
  /**
   * Copies `payload[0, length)`, the records of one transaction, to the end of the log.
   * Synchronous: the position is final, the bytes can be read at once, durability comes later.
   * @param evenIfFull it may use the last of the device.
   * @param summed of a given payload: this is copied later too, whatever the size of its records.
   * @param isGiven nobody will change the payload's memory any more: large records of it may be copied later.
   * @returns the position of the payload's first byte.
   * @throws EngineError disk-full or database-stopped; then nothing was appended.
   */
  append(
    payload: Buffer,
    length: number,
    evenIfFull?: boolean,
    isGiven?: boolean,
    summed?: SummedBytes | null,
  ): Position;
  /** How many transactions were appended since the log was opened. */
  readonly appendedCount: number;
  /** How many of them are durable; they become so in order. */
  readonly durableCount: number;
  /** Resolves when `appendedCount` transactions, as of now, are durable; rejects when one cannot become so. */
  flush(): Promise<void>;
  /** The bytes at `position` when they are in memory, else null. No copy: valid until the next turn of the event loop. */
  peek(position: Position, length: number): Buffer | null;
  /**
   * Puts the place of the record at `position` into `target` when it is in memory. Valid until the next turn of the event
   * loop; for longer when the place's block is held, or there is none and a pin is. With `isWalk` it does not count as a use
   * of an extent. @returns whether it is there
   */
  place(position: Position, length: number, target: RecordPlace, isWalk?: boolean): boolean;
  /** Would `place` find every record now? Cost: one look at each segment. */
  isInMemory(): boolean;
  /** For walks: the extent that `position` is in, if it is in memory as such. Hold it. Does not count as a use. */
  extentAt(position: Position): Extent | null;
  /** Where the extent begins that follows in the order of commits; null when there is none, or it is not on the disk alone. */
  extentAfter(position: Position): Position | null;
  /** Reads that extent from the disk. Hold it at once. @returns null when it cannot be read, or must not be */
  readExtent(position: Position): Promise<Extent | null>;
  /** Bytes of an extent: one holds what begins in a multiple of it, up to the next. */
  readonly extentBytes: number;
  /** Bytes from the beginning of an extent to where a record that begins in it must end. */
  readonly blockBytes: number;
  /** The bytes at `position`, from memory or disk, their check verified. @throws EngineError record-damaged */
  read(position: Position, length: number): Promise<Buffer>;
  /** The record there is no longer needed: what supersedes it is durable. Once for each record; counts towards compaction. */
  markDead(position: Position, length: number): void;
  pin(): Pin;
  close(): Promise<void>;
}

/** Told by the log, in order, in a turn of the event loop of its own. */
export interface LogListener {
  /** The first `count` transactions since opening are durable. */
  durable(count: number): void;
  /** Transactions after the first `count` are lost (the disk is full, or failed); nothing of them is in the log. */
  lost(count: number, error: Error): void;
  /** The log writes nothing any more. What was appended and is not durable is lost: that was told before. */
  stopped(error: Error): void;
}
