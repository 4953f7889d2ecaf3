/**
 * Scores of the rows of an index query by position, with explanations. Created only for queries that report scores.
 *
 * Invariant: the cursor walks the same entries, in the same order.
 */
import { idOf } from "../documents/document-record.ts";
import type { StoredRow } from "../indexing/index-host.ts";
import type { ExplainedScores } from "./compile-score.ts";

/** A cursor that reports the position of the walk in its list. */
export interface PlacedCursor {
  readonly position: number;
}

export class RowScores {
  /** By document id, or by the identifier of a reduced row: the explanation of its score. */
  readonly explanations = new Map<string, string[]>();
  readonly #cursor: PlacedCursor;
  readonly #explained: ExplainedScores;

  constructor(explained: ExplainedScores, cursor: PlacedCursor) {
    this.#cursor = cursor;
    this.#explained = explained;
  }

  /** The score of the current row. */
  get current(): number {
    return this.#explained.scores[this.#cursor.position] as number;
  }

  /** Explains the score of the current row. `text`: the row as sent. */
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
