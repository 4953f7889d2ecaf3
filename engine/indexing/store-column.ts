/**
 * What an entry store keeps for each of its entries, beside their documents: terms (field-column.ts), one number
 * (number-column.ts), some bytes (bytes-column.ts).
 *
 * Invariants, of every kind:
 * - Entries are appended in ascending order, and what was appended never changes: that is how a snapshot is taken of a column
 *   that goes on growing.
 */
import type { PartReader, PartWriter } from "./saved-parts.ts";

export interface StoreColumn {
  /** Entries below this have been appended. */
  readonly entryCount: number;
  endEntry(): void;
  /** A new column of the same kind. */
  empty(): StoreColumn;
  /** What copies entries of this column to `target`, which is one of the same kind, in the order that it is called. */
  copierTo(target: StoreColumn): (entry: number) => void;
  /** Gives its entries as they are now. Cost: in proportion to the number of arrays. */
  save(parts: PartWriter): void;
  /** Takes what `save` gave, into an empty column, in steps. */
  restore(parts: PartReader): Generator<void>;
  checkInvariants(): void;
}

/** Elements that `restore` looks at between two steps: some tenths of a millisecond. */
export const restoreStride = 16_384;
/** As `restoreStride`, of documents that are removed. */
export const goneStride = 512;
