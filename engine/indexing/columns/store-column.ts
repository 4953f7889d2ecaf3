/**
 * The data that an entry store keeps for each entry: terms (field-column.ts), one number (number-column.ts), or bytes
 * (bytes-column.ts).
 *
 * Invariants, of every kind:
 * - Entries are appended in ascending order and never change afterward: this allows a snapshot of a column that
 *   continues to grow.
 */
import type { PartReader, PartWriter } from "../saved/saved-parts.ts";

/** Contents of a term column: a few values per entry, or the words of texts, which are packed. */
export type ColumnKind = "values" | "text";

export interface StoreColumn {
  /** Number of appended entries. */
  readonly entryCount: number;
  endEntry(): void;
  /**
   * Returns whether the values that were added since the last entry equal those of `entry`. Must be followed by
   * `endEntry` or `dropPending`.
   */
  repeats(entry: number): boolean;
  /** Discards the values that were added since the last entry. */
  dropPending(): void;
  /** Returns a new column of the same kind. */
  empty(): StoreColumn;
  /** Returns a function that copies entries of this column to `target`, a column of the same kind, in call order. */
  copierTo(target: StoreColumn): (entry: number) => void;
  /** Saves the current entries. Cost: in proportion to the number of arrays. */
  save(parts: PartWriter): void;
  /** Restores the output of `save` into an empty column, in steps. */
  restore(parts: PartReader): Generator<void>;
  checkInvariants(): void;
}

/** Elements that `restore` processes per step: some tenths of a millisecond. */
export const restoreStride = 16_384;
/** As `restoreStride`, for removals of documents. */
export const goneStride = 512;
