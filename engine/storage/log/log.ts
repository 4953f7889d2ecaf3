/**
 * The interface between the database and its log: an ordered, durable list of commits. Everything above depends only on
 * this interface, so that a log replicated by another engine can one day replace the files.
 *
 * A commit is the bytes of one transaction: whole records (record.ts), all of them durable or none.
 */

import type { BorrowedBytes, OwnedBytes } from "../../base/memory/borrowed-bytes.ts";
import type { Extent, RecordPlace } from "../segments/blocks.ts";
import type { CompactionOptions, CompactionReport } from "./compaction.ts";
import type { DiskWrite } from "./disk-writes.ts";
import type { PlacedMark } from "./log-carrier.ts";
import type { LogFollower, LogPoint, LogRange } from "./log-follower.ts";
import type { Damage, ScrubReport } from "./scrub.ts";

/** A position in the log: segment number * 2^32 + byte offset in the segment. */
export type Position = number;

export const positionSegmentFactor = 2 ** 32;

/** The interface that recovery and compaction need from the owner of the records. */
export interface RecordOwner {
  /** Called with each committed record, in commit order. `bytes` belongs to the log: copy whatever is kept. */
  replay(bytes: Buffer, start: number, length: number, position: Position): void;
  /**
   * Returns whether the record at `position` is still needed. Called by compaction; must not change any state. A
   * deletion is needed unless `canDropDeletion` allows to drop it.
   */
  isLive(bytes: Buffer, start: number, length: number, position: Position): boolean;
  /**
   * There is now a copy of the record at `target`. The owner finds its entry by the record's key and etag and sets its
   * position to the copy. @returns false when the entry is gone or newer: the copy is dead. Recovery may call it for a
   * record that the snapshot already has at that position: then it returns true.
   */
  relocate(bytes: Buffer, start: number, length: number, target: Position): boolean;
  /**
   * Returns whether the owner can use the sections of this snapshot. Otherwise an older one is used, or the whole log
   * is replayed.
   */
  acceptsSnapshot?(sections: ReadonlyMap<string, Buffer>): boolean;
}

/** One part of an index snapshot: bytes that are written and read as a whole. */
export interface SnapshotSection {
  readonly name: string;
  /**
   * Iterated once; lazily made parts are of the time of the snapshot, except for the positions of records that
   * compaction has moved.
   */
  readonly parts: Iterable<Uint8Array>;
}

/** A section whose bytes all exist already. */
export interface WholeSection extends SnapshotSection {
  readonly parts: readonly Uint8Array[];
}

/** Keeps the present segments readable until `release`, even if compaction replaces them. */
export interface Pin {
  release(): void;
}

/** All durable bytes of a log at one moment. Release it. */
export interface LogImage {
  readonly through: LogPoint;
  /** In commit order. */
  readonly ranges: readonly LogRange[];
  /**
   * Copies of the bytes of a range, each valid until the next one, at the speed of background work.
   * @throws EngineError read-failed
   */
  read(range: LogRange): AsyncGenerator<Buffer>;
  release(): void;
}

/** Length and CRC-32 of the first bytes of a payload. */
export interface SummedBytes {
  readonly length: number;
  readonly crc: number;
}

/** Sizes, all in bytes but the counts. Exact, also after recovery. */
export interface LogMetrics {
  readonly segments: number;
  /** Bytes of the segments' files (or images, in memory), including segments that a pin still holds. */
  readonly segmentBytes: number;
  /** Bytes of segment images in memory. */
  readonly imageBytes: number;
  /** Bytes of all records, live and dead. */
  readonly recordBytes: number;
  readonly deadBytes: number;
  readonly snapshots: number;
  readonly unsyncedBytes: number;
  /** Bytes of the transactions appended since it was opened. */
  readonly appendedBytes: number;
}

export interface CommitLog {
  /**
   * Copies `payload[0, length)`, the records of one transaction, to the end of the log. Synchronous: the position is
   * final, the bytes are readable immediately, durability follows later.
   * @param evenIfFull it may use the reserve of the device.
   * @param summed only with `isGiven`: this part is copied later too, whatever the size of its records.
   * @param isGiven the payload's memory will not be modified later: large records may be copied later.
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
  /** Returns the newest writes to its files after number `after`, oldest first; none of a log in memory. */
  diskWrites(after: number): DiskWrite[];
  /** Number of transactions appended since the log was opened. */
  readonly appendedCount: number;
  /** Number of durable ones; transactions become durable in order. */
  readonly durableCount: number;
  /** Resolves when `appendedCount` transactions, as of now, are durable; rejects when one cannot become so. */
  flush(): Promise<void>;
  /**
   * Returns the bytes at `position` if they are in memory, else null. Not a copy: valid until the next tick of the
   * event loop.
   */
  peek(position: Position, length: number): BorrowedBytes | null;
  /**
   * Sets `target` to the place of the record at `position` if it is in memory. Valid until the next tick of the event
   * loop; longer while the place's block is held, or, if it has no block, while a pin is held. With `isWalk` it does
   * not count as a use of an extent. @returns whether the record is in memory
   */
  place(position: Position, length: number, target: RecordPlace, isWalk?: boolean): boolean;
  /** As `place`, for a reader that holds neither block nor pin: valid until the next tick of the event loop. */
  lend(position: Position, length: number, target: RecordPlace): boolean;
  /** Returns whether `place` would find every record now. Cost: O(segments). */
  isInMemory(): boolean;
  /**
   * For scans: returns the extent of `position`, if it is in memory as an extent. The caller must hold it. Does not
   * count as a use.
   */
  extentAt(position: Position): Extent | null;
  /**
   * Returns the start of the next extent in commit order; null if no extent follows, or if the next is not only on
   * disk.
   */
  extentAfter(position: Position): Position | null;
  /**
   * Reads that extent from disk. The caller must hold it immediately. @returns null if it cannot be read, or must not
   * be
   */
  readExtent(position: Position): Promise<Extent | null>;
  /** Bytes of an extent: it holds the records that begin in a multiple of it, up to the next. */
  readonly extentBytes: number;
  /** Bytes from the start of an extent to where a record that begins in it must end. */
  readonly blockBytes: number;
  /**
   * Reads the bytes at `position`, from memory or disk, with verified checksum: a copy, because ticks pass before the
   * caller receives it. @throws EngineError record-damaged
   */
  read(position: Position, length: number): Promise<OwnedBytes>;
  /**
   * The record there is no longer needed, as whatever supersedes it is durable. Once per record; counts toward
   * compaction.
   */
  markDead(position: Position, length: number): void;
  /**
   * As `markDead`, for a record that is never needed again, whatever else is kept or lost: not a deletion. A segment in
   * which all records were replaced is reclaimed without being read. Hot: adjacent records die one after another.
   */
  markReplaced(position: Position, length: number): void;
  pin(): Pin;
  /** Returns the part of the log that a copy of it begins with. Null in memory. */
  image(): LogImage | null;
  /**
   * Follows the log from its present end on, or as `LogFollower.fromOldest`. Null in memory.
   */
  follow(isFromOldest: boolean): LogFollower | null;
  /** 16 bytes, constant for the life of the database. */
  readonly databaseId: Buffer;
  /** Bytes of transactions that are not durable yet. */
  readonly unsyncedBytes: number;
  /** Resolves when `unsyncedBytes` is at most `bytes`; rejects when the log stops. */
  whenUnsyncedBelow(bytes: number): Promise<void>;
  /** Whether all writes except deletions are refused because the device is full. */
  readonly isDiskFull: boolean;
  metrics(): LogMetrics;
  /** Returns the file and byte offset of a position, for messages. In memory there is no file. */
  placeOf(position: Position): { readonly file: string; readonly offset: number };
  /**
   * Compacts everything worth it, see compaction.ts; first waits for a running compaction.
   * @throws EngineError disk-full, database-stopped
   */
  compact(options?: CompactionOptions): Promise<CompactionReport>;
  /** Resolves when no compaction is running: records are not moved before the next tick. */
  compactionEnded(): Promise<void>;
  /**
   * Postpones compaction until `release`, for work that is about to replace most of the log: half-dead segments would
   * be copied, and then die. Segments in which every record was replaced are reclaimed all the same, and the hold is
   * overridden when there are `deadShareMax` times as many dead bytes as live ones.
   */
  holdCompaction(): Pin;
  /** Whether compaction is held, because an operation replaces many records. */
  readonly isCompactionHeld: boolean;
  /**
   * Writes a snapshot of the index. `sections` contain exactly the state that was reported durable to the owner; their
   * bytes must not change before it resolves. One at a time. In memory it does nothing.
   * @returns bytes of the file. @throws EngineError disk-full, database-stopped
   */
  writeSnapshot(sections: readonly SnapshotSection[], bytesPerSecond?: number): Promise<number>;
  /** Bytes of the newest snapshot's file; 0 when there was none. */
  readonly lastSnapshotBytes: number;
  /**
   * Returns the bytes of deletions that must be kept until there is a newer snapshot, as far as is known. Cost:
   * O(segments).
   */
  deletionBytesBeyondSnapshots(): number;
  /** Bytes of needed records. Cost: O(segments). */
  readonly liveBytes: number;
  /**
   * Reads all sealed segments from the device and reports every damaged record; see scrub.ts. `onDamage` must not
   * throw.
   */
  scrub(onDamage: (damage: Damage) => void, bytesPerSecond: number): Promise<ScrubReport>;
  /** The log will be closed: running compactions, snapshots and scrubs end quickly. */
  hurry(): void;
  /** Stops the log for a reason of its owner: nothing more is written, and everything not yet being written is lost. */
  stop(cause: unknown): void;
  /**
   * Makes everything durable, closes the log, and releases its folder; also after a failure. With `sections` it writes
   * a final snapshot. Call it after `flush`, so that the sections contain everything. `sections` is called when a
   * running compaction has ended: until then it moves records.
   */
  close(sections?: () => readonly SnapshotSection[]): Promise<void>;
}

/** Called by the log, in order, in a separate tick of the event loop. */
export interface LogListener {
  /** The first `count` transactions since opening are durable. */
  durable(count: number): void;
  /** Transactions after the first `count` are lost (the disk is full, or failed); nothing of them is in the log. */
  lost(count: number, error: Error): void;
  /** The mark that the log's carrier has added to the newest durable frame; after `durable`. Only with a carrier. */
  marked?(mark: PlacedMark): void;
  /** The log has stopped writing. Appended transactions that are not durable are lost, which was reported before. */
  stopped(error: Error): void;
}
