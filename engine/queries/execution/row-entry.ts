/**
 * The index entry of the current row of a query: its score, with an explanation, and its stored fields. Created only for
 * queries that need one of them.
 *
 * Invariant: the cursor walks the same entries, in the same order.
 */

import type { IndexReader } from "../../indexing/index-reader.ts";
import type { Analyzer } from "../../indexing/text/analyzer.ts";
import { idOf } from "../../state/documents/document-record.ts";
import type { ExplainedScores } from "../conditions/compile-score.ts";
import type { ReportedScore } from "./results-projection.ts";
import type { StoredFields, StoredRow } from "./row-source.ts";

/** A cursor that reports the position of the walk in its list. */
export interface PlacedCursor {
  readonly position: number;
}

/** The scores of the rows. */
export interface EntryScores {
  readonly explained: ExplainedScores;
  /** Whether rows report them; otherwise they are only explained. */
  readonly areReported: boolean;
  /** Returns the members after the score of an entry, or null. */
  readonly distanceOf: ((entry: number) => string) | null;
}

export class RowEntry {
  readonly isLucene: boolean;
  /** By document id, or by the identifier of a reduced row: the explanation of its score. Null: there are no scores. */
  readonly explanations: Map<string, string[]> | null;
  readonly #entries: Uint32Array;
  readonly #cursor: PlacedCursor;
  readonly #reader: IndexReader;
  readonly #stored: StoredFields | null;
  readonly #scores: EntryScores | null;

  /** @param stored null: the query reads no stored fields. @param scores null: it needs no scores */
  constructor(
    entries: Uint32Array,
    cursor: PlacedCursor,
    reader: IndexReader,
    stored: StoredFields | null,
    scores: EntryScores | null,
  ) {
    this.isLucene = reader.isLucene;
    this.explanations = scores === null ? null : new Map();
    this.#entries = entries;
    this.#cursor = cursor;
    this.#reader = reader;
    this.#stored = stored;
    this.#scores = scores;
  }

  /** Returns the analyzer of a field; null: the index was not made for Lucene. */
  get luceneAnalyzerOf(): ((field: string) => Analyzer) | null {
    return this.isLucene ? (name) => this.#reader.analyzerOf(name) : null;
  }

  /** The score of the current row, if rows report theirs. */
  get score(): ReportedScore | null {
    const scores = this.#scores;
    if (scores === null || !scores.areReported) return null;
    const { position } = this.#cursor;
    const score = scores.explained.scores[position] as number;
    if (scores.distanceOf === null) return score;
    return `${score}${scores.distanceOf(this.#entries[position] as number)}`;
  }

  /** The stored fields of the current row, as JSON text of an object; null: none. */
  get stored(): string | null {
    if (this.#stored === null) return null;
    const entry = this.#reader.currentOf(this.#entries[this.#cursor.position] as number);
    return entry < 0 ? null : this.#stored.textOf(entry);
  }

  /** Explains the score of the current row. `projected`: the row as sent; null: it is a whole row. */
  explain(row: StoredRow, projected: string | null, groupKey: string | null): void {
    if (this.#scores === null || this.explanations === null) return;
    const { position } = this.#cursor;
    let key = String(position);
    if (row.start >= 0) key = idOf(row.bytes, row.start);
    else if (groupKey !== null) {
      const text = projected ?? row.bytes.toString();
      key = String((JSON.parse(text) as Record<string, unknown>)[groupKey]);
    }
    this.explanations.set(key, [this.#scores.explained.textOf(position)]);
  }
}
