/**
 * A keyspace is one kind of durable state: its log records, its memory and its replay. Keyspaces are listed in
 * keyspace-table.ts; replay, compaction and snapshots use only this interface.
 *
 * Invariants:
 * - State changes only through staged entries that are committed in the order in which they were staged,
 *   or through replay. Readers see committed state.
 * - Replaying all live records in log order restores the committed state.
 */

import type { RecordKind } from "../../base/record.ts";
import type { Position, SnapshotSection } from "../../storage/log/log.ts";

export interface Keyspace {
  readonly name: string;
  readonly kind: RecordKind;
  /** Replays one record of this kind during recovery, in commit order. */
  replay(bytes: Buffer, start: number, length: number, position: Position): void;
  /**
   * Returns whether this record, at `position`, is the current one of its entry. A deletion is never live by itself.
   */
  isLive(bytes: Buffer, start: number, length: number, position: Position): boolean;
  /** Returns whether an entry with the key of this record exists, regardless of its own record. */
  hasKeyOf(bytes: Buffer, start: number): boolean;
  /** Returns the position of the current record with this record's key and etag; -1 if no such record exists. */
  positionOf(bytes: Buffer, start: number): Position;
  /** The record of the entry with this record's key has moved to `target`. There must be an entry. */
  relocate(bytes: Buffer, start: number, target: Position): void;
  /** Makes the oldest `count` staged entries visible, in order. */
  commitStaged(count: number): void;
  /** Drops the newest `count` staged entries. */
  discardStaged(count: number): void;
  /** Returns the committed state at this moment, as bytes for an index snapshot. */
  sections(): SnapshotSection[];
  /** Their approximate size in bytes. Cost: O(1). */
  readonly snapshotBytes: number;
  /** Restores the state from a snapshot; the map also holds the sections of other keyspaces. */
  restore(sections: ReadonlyMap<string, Buffer>): void;
  checkInvariants(): void;
}

/** Called when a record is superseded, so that compaction can count its bytes. */
export type DeadRecordListener = (position: Position, length: number) => void;
