/**
 * Scores of the rows of an index query by their places, and why they are so. Made only for queries that tell them.
 *
 * Invariant: the cursor walks the same entries, in the same order.
 */
import { idOf } from "../document-record.ts";
import type { StoredRow } from "../indexing/index-host.ts";
import type { ExplainedScores } from "./compile-score.ts";

/** What says at which place of the list the walk is. */
export interface PlacedCursor {
  readonly position: number;
}

export class RowScores {
  /** By document id, or by what tells a reduced row apart: why it has its score. */
  readonly explanations = new Map<string, string[]>();
  readonly #cursor: PlacedCursor;
  readonly #explained: ExplainedScores;

  constructor(explained: ExplainedScores, cursor: PlacedCursor) {
    this.#cursor = cursor;
    this.#explained = explained;
  }

  /** The score of the row that the walk is at. */
  get current(): number {
    return this.#explained.scores[this.#cursor.position] as number;
  }

  /** Explains the row that the walk is at. `text`: the row as it is told. */
  explain(row: StoredRow, text: string, groupKey: string | null): void {
    const { position } = this.#cursor;
    const key =
      row.start >= 0
        ? idOf(row.bytes, row.start)
        : groupKey === null
          ? String(position)
          : String((JSON.parse(text) as Record<string, unknown>)[groupKey]);
    this.explanations.set(key, [this.#explained.textOf(position)]);
  }
}
