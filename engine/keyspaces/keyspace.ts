/**
 * A keyspace is one kind of durable state: its records in the log, its memory, its replay.
 * The list of them is keyspace-table.ts; replay, compaction and snapshots go through this interface alone.
 *
 * Invariants:
 * - State changes only through staged entries that are committed in the order in which they were staged,
 *   or through replay. Readers see committed state.
 * - Replaying all live records in log order gives the committed state again.
 */
import type { Position, SnapshotSection } from "../log/log.ts";
import type { RecordKind } from "../log/record.ts";

export interface Keyspace {
  readonly name: string;
  readonly kind: RecordKind;
  /** One record of this kind during recovery, in commit order. */
  replay(bytes: Buffer, start: number, length: number, position: Position): void;
  /** Does the entry of this record stand at `position`? A deletion is never live by itself. */
  isLive(bytes: Buffer, start: number, length: number, position: Position): boolean;
  /** Is there an entry under the key of this record, wherever its own record stands? */
  hasKeyOf(bytes: Buffer, start: number): boolean;
  /** Where the record of the entry stands that has the key and the etag of this record; -1 when there is none. */
  positionOf(bytes: Buffer, start: number): Position;
  /** The record of the entry under this record's key stands at `target` now. There must be an entry. */
  relocate(bytes: Buffer, start: number, target: Position): void;
  /** Makes the oldest `count` staged entries visible, in order. */
  commitStaged(count: number): void;
  /** Drops the newest `count` staged entries. */
  discardStaged(count: number): void;
  /** The committed state of this moment, as bytes for an index snapshot. */
  sections(): SnapshotSection[];
  /** How many bytes these are, about. Cost: O(1). */
  readonly snapshotBytes: number;
  /** Takes the state of a snapshot; sections of other keyspaces are in the map too. */
  restore(sections: ReadonlyMap<string, Buffer>): void;
  checkInvariants(): void;
}

/** Told when a record is superseded, so that compaction can count the bytes. */
export type DeadRecordListener = (position: Position, length: number) => void;
