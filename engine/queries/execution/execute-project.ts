/**
 * Project stage. In: a candidate that passed the filter. Out: the texts of its rows, without metadata, by which `distinct`
 * compares them; then the bytes of each row that is on the page.
 *
 * Only rows with results of series queries are made in steps (`seriesRow`).
 *
 * Invariant: the bytes of a whole document are valid until the next one is composed.
 */
import { assert } from "../../base/assert.ts";
import { acquireText, type JsonText, releaseText } from "../../base/json/json-text.ts";
import type { Steps } from "../../base/scheduling/steps.ts";
import { type DocumentChunks, isLargeDocument } from "../../state/documents/document-chunks.ts";
import type { AnalyzedQuery, Projection } from "../analysis/analyzed-query.ts";
import { SeriesRunner } from "../time-series/execute-series.ts";
import { bytesOf, type ChunkList, rowOfColumns, rowOfSeries } from "../time-series/series-row.ts";
import { noLoaded } from "./execute-load.ts";
import type { QueryRun } from "./query-run.ts";
import {
  addWholeDocument,
  FieldProjector,
  indexedMetadata,
  largeDocument,
  projectionMetadata,
  type RowParts,
  severalValues,
  wholeDocument,
  wholeGroup,
  withMetadata,
  withScore,
} from "./results-projection.ts";
import type { RowEntry } from "./row-entry.ts";
import type { RowScripts } from "./row-scripts.ts";
import type { LoadedValue, ProjectedText, QueryIndex, StoredRow } from "./row-source.ts";

/** A row with results of series queries, whose memory the caller releases. */
interface ProjectedSeriesRow {
  readonly row: ChunkList;
  /** Its other columns. */
  readonly text: string;
  /** The row without its metadata; null: the query is not `distinct`. */
  readonly compared: ChunkList | null;
  readonly heldBytes: number;
}

const noExtra = Buffer.alloc(0);
/** Result of `select c` for a missing document; it gets the metadata of a projection. */
const missingDocument: ProjectedText = { text: "{}", isDocument: false };

export class RowProjector {
  /** Whether each row is a whole candidate. */
  readonly isWhole: boolean;
  /** Whether a script makes the rows, possibly several of one candidate. */
  readonly isByScript: boolean;
  /** Whether columns are results of series queries. */
  readonly hasSeries: boolean;
  readonly #run: QueryRun;
  readonly #index: QueryIndex | null;
  readonly #entry: RowEntry | null;
  readonly #scripts: RowScripts | null;
  readonly #fields: FieldProjector | null;
  readonly #series: SeriesRunner | null;
  /** The text of the current row. */
  #text: JsonText | null = null;

  /** @param entry moves with the candidates */
  constructor(
    run: QueryRun,
    index: QueryIndex | null,
    entry: RowEntry | null,
    scripts: RowScripts | null,
  ) {
    const { query, source, budget } = run;
    const { projection } = query;
    this.isWhole = projection.kind === "document" && projection.key === null;
    this.isByScript = isProjectionByScript(query);
    this.hasSeries =
      projection.kind === "fields" &&
      projection.fields.some(({ value }) => value.kind === "series");
    this.#run = run;
    this.#index = index;
    this.#entry = entry;
    this.#scripts = scripts;
    this.#fields = projection.kind === "fields" ? fieldProjector(run, index) : null;
    this.#series = this.hasSeries ? new SeriesRunner(query, source, budget) : null;
  }

  close(): void {
    if (this.#text !== null) releaseText(this.#text);
  }

  partsOf(row: StoredRow, loaded: ReadonlyMap<string, LoadedValue> = noLoaded): RowParts {
    const entry = this.#entry;
    if (entry === null) return { row, loaded, score: null, stored: null };
    return { row, loaded, score: entry.score, stored: entry.stored };
  }

  /** Returns the objects of fields or of a script, or documents. @throws as `RowScripts.project` */
  textsOf(parts: RowParts): readonly ProjectedText[] {
    if (this.#fields !== null) return [{ text: this.#fields.project(parts), isDocument: false }];
    const { projection } = this.#run.query;
    if (projection.kind === "document") return this.#documents(projection, parts);
    assert(this.#scripts !== null, "a projection by script has a script");
    return this.#scripts.project(parts);
  }

  /** Returns the rows of `select c` for a loaded `c`, or of `select o as X`. */
  #documents(
    { alias, key }: Extract<Projection, { kind: "document" }>,
    parts: RowParts,
  ): readonly ProjectedText[] {
    const { load, source } = this.#run.query;
    if (alias === null || alias === source.alias) {
      const text = wholeDocument(parts.row, null, this.#run.source).toString();
      return [{ text, isDocument: true }];
    }
    const step = load.find((one) => one.alias === alias);
    const isNested =
      step?.source.kind === "path" &&
      step.source.root !== null &&
      step.source.root !== source.alias;
    const loaded = isNested ? null : (parts.loaded.get(alias) ?? null);
    if (loaded === null) return step?.isArray ? [] : [missingDocument];
    if (typeof loaded === "string") return [{ text: loaded, isDocument: true }];
    if (!step?.isArray) throw severalValues(key ?? alias);
    return loaded.flatMap((text) => (text === null ? [] : [{ text, isDocument: true }]));
  }

  /** Returns the row of a whole candidate. */
  wholeRow({ row, score }: RowParts): Buffer {
    const { source, request } = this.#run;
    if (row.start < 0) return Buffer.from(wholeGroup(row.bytes.toString()));
    if (!request.isMetadataOnly) {
      this.#text ??= acquireText();
      this.#text.clear();
      addWholeDocument(row, score, source, this.#text);
      return this.#text.bytes;
    }
    const metadata = source.metadataOf(row, noExtra);
    return Buffer.concat([Buffer.from('{"@metadata":'), metadata, Buffer.from("}")]);
  }

  /** As `wholeRow`, for documents that are too large to be composed as one string; null: this one is not. */
  largeRow({ row, score }: RowParts): DocumentChunks | null {
    if (row.start < 0 || this.#run.request.isMetadataOnly) return null;
    if (!isLargeDocument(row.bytes, row.start)) return null;
    return largeDocument(row, score, this.#run.source);
  }

  /** Returns one of the rows of `textsOf`. */
  projectedRow({ text, isDocument }: ProjectedText, parts: RowParts): Buffer {
    const score = this.#scoreOf(parts);
    if (isDocument) return Buffer.from(score === null ? text : withScore(text, score));
    const { source } = this.#run;
    const metadata =
      this.#fields?.isFromIndex === true && this.#index?.outputs == null
        ? indexedMetadata(source.lowerIdOf(parts.row.docNum))
        : projectionMetadata({ ...parts, score }, source);
    return Buffer.from(withMetadata(text, metadata));
  }

  /** Collection queries report a score of 0, for no reason known to clients. */
  #scoreOf({ score }: RowParts): RowParts["score"] {
    return this.#index === null ? 0 : score;
  }

  /** Returns the row of a candidate if `hasSeries`. */
  *seriesRow(parts: RowParts): Steps<ProjectedSeriesRow> {
    const { query, request, source } = this.#run;
    const { projection, isDistinct } = query;
    assert(projection.kind === "fields", "series queries are columns");
    assert(this.#fields !== null, "columns have a projector");
    assert(this.#series !== null, "columns of series have a runner");
    const form = request.seriesForm ?? "object";
    const columns = this.#fields.project({ ...parts, hasSeries: true });
    const text = this.#fields.project(parts);
    const metadata = projectionMetadata({ ...parts, score: this.#scoreOf(parts) }, source);
    const results = yield* this.#series.columns(parts);
    const [only] = results;
    const row =
      projection.isSeries === true && form !== "list" && only !== undefined
        ? rowOfSeries(only, metadata, form)
        : rowOfColumns(columns, results, metadata, form);
    const compared = isDistinct ? rowOfColumns(columns, results, "}", "object") : null;
    return { row, text, compared, heldBytes: bytesOf(results) };
  }
}

/** Returns whether a script makes the rows of a query. */
export function isProjectionByScript({ projection }: AnalyzedQuery): boolean {
  return projection.kind === "script" || projection.kind === "call";
}

function fieldProjector({ query, source, request }: QueryRun, index: QueryIndex | null) {
  return new FieldProjector(
    query,
    source,
    index?.outputs ?? null,
    index?.stored ?? null,
    request.projectionBehavior,
    index?.name ?? null,
  );
}
