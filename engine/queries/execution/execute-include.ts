/**
 * Include stage. In: the rows on the page, one after the other. Out, after the last row: the documents that they refer
 * to, and all other members of the outcome that the clause `include` requests.
 */

import { lowerCased } from "../../base/case-folding.ts";
import { quoteString } from "../../base/json/escape.ts";
import { decodeString, findMember, skipValue, ValueSpan } from "../../base/json/field-access.ts";
import type { Steps } from "../../base/scheduling/steps.ts";
import type { WorkBudget } from "../../base/scheduling/work-budget.ts";
import { bodyTextOf, idOf } from "../../state/documents/document-record.ts";
import { changeVectorsAt, includedIds } from "../../state/documents/include-path.ts";
import type { AnalyzedInclude, AnalyzedQuery, SeriesInclude } from "../analysis/analyzed-query.ts";
import { bodyOf } from "../conditions/compile-filter.ts";
import { idsAtPath, readRecord } from "./execute-load.ts";
import { RowHighlights } from "./highlight.ts";
import type { OutcomeDraft } from "./query-outcome.ts";
import type { QueryRun } from "./query-run.ts";
import type { IncludedCounters, IncludedDocument, IncludedRevisions } from "./results.ts";
import { type RowParts, wholeDocument } from "./results-projection.ts";
import type { RowEntry } from "./row-entry.ts";
import type { RowSource, ScriptIncludes, StoredRow } from "./row-source.ts";

/** Memory overhead of an included item besides its name, in bytes. */
const wantedBytes = 128;

/** Returns whether a query includes something of its rows. */
export function hasIncludes(include: AnalyzedInclude): boolean {
  const { paths, counters, compareExchange, revisions, series } = include;
  return (
    paths.length + counters.length + compareExchange.length + revisions.length + series.length > 0
  );
}

/** The clause `include` of a query. */
export class RowIncludes {
  readonly #query: AnalyzedQuery;
  readonly #collector: IncludeCollector;
  readonly #highlights: RowHighlights | null;
  readonly #entry: RowEntry | null;

  /** @param entry that of the row that is added */
  constructor({ query, source, budget }: QueryRun, entry: RowEntry | null) {
    this.#query = query;
    this.#collector = new IncludeCollector(query, source, budget);
    this.#entry = entry;
    const hasHighlights = query.include.highlights.length > 0;
    const analyzerOf = entry?.luceneAnalyzerOf ?? null;
    this.#highlights = hasHighlights ? new RowHighlights(query, budget, analyzerOf) : null;
  }

  /** Adds a row. `projected`: its text; null: it is the reduced object itself, or the document. */
  add(parts: RowParts, projected: string | null): void {
    const { explanations } = this.#query.include;
    this.#collector.addRow(parts.row, projected);
    if (explanations !== null) this.#entry?.explain(parts.row, projected, explanations.groupKey);
    this.#highlights?.add(parts, projected);
  }

  /** Reads the documents that rows and scripts include. */
  finish(scripted: ScriptIncludes | null): Steps<IncludedDocument[]> {
    if (scripted !== null) this.#collector.addScripted(scripted);
    return this.#collector.finish();
  }

  addTo(outcome: OutcomeDraft, hasRows: boolean): void {
    const { access, include } = this.#query;
    const collector = this.#collector;
    outcome.includedPaths = collector.pathTexts;
    outcome.counterIncludes = collector.counters;
    outcome.compareExchangeKeys = collector.compareExchangeKeys;
    outcome.revisionIncludes = collector.revisions;
    outcome.seriesIncludes = collector.series;
    // RavenDB 7.2.7 omits the members when there are no rows.
    if (!hasRows || access.kind === "collection") return;
    outcome.highlightings = this.#highlights?.found ?? null;
    if (include.explanations !== null) outcome.explanations = this.#entry?.explanations ?? null;
  }
}

/** Returns the stage for a query; null: it includes nothing. */
export function rowIncludes(run: QueryRun, entry: RowEntry | null, hasScripts: boolean) {
  const { include } = run.query;
  const { highlights, explanations } = include;
  const isNeeded = hasIncludes(include) || highlights.length > 0 || explanations !== null;
  return isNeeded || hasScripts ? new RowIncludes(run, entry) : null;
}

/** The references of rows, collected as rows pass and read at the end. */
export class IncludeCollector {
  readonly #query: AnalyzedQuery;
  readonly #source: RowSource;
  readonly #budget: WorkBudget;
  /** Lower-cased id -> id as spelled in the first row. */
  readonly #ids = new Map<string, string>();
  readonly #counters: IncludedCounters[] = [];
  /** Lower-cased key -> key as spelled in the first row. */
  readonly #compareExchangeKeys = new Map<string, string>();
  readonly #revisionVectors = new Set<string>();
  readonly #revisionsBefore: { documentId: string; micros: number }[] = [];
  readonly #series = new Map<string, SeriesInclude[]>();
  /** Documents that are rows themselves and are not included again. */
  readonly #rows = new Set<number>();

  constructor(query: AnalyzedQuery, source: RowSource, budget: WorkBudget) {
    this.#query = query;
    this.#source = source;
    this.#budget = budget;
  }

  /** The paths as the reply lists them, or null when the query includes none. */
  get pathTexts(): readonly string[] | null {
    const { paths } = this.#query.include;
    return paths.length === 0 ? null : paths.map((path) => path.text);
  }

  get counters(): readonly IncludedCounters[] | null {
    return this.#query.include.counters.length === 0 ? null : this.#counters;
  }

  get compareExchangeKeys(): readonly string[] | null {
    const isAsked = this.#query.include.compareExchange.length > 0;
    const keys = this.#compareExchangeKeys;
    return isAsked || keys.size > 0 ? [...keys.values()] : null;
  }

  get revisions(): IncludedRevisions | null {
    if (this.#query.include.revisions.length === 0) return null;
    return { changeVectors: this.#revisionVectors, before: this.#revisionsBefore };
  }

  get series(): ReadonlyMap<string, readonly SeriesInclude[]> | null {
    return this.#query.include.series.length === 0 ? null : this.#series;
  }

  /**
   * `projected`: the row's text when there is a projection; paths are then read from it.
   * @throws EngineError invalid-operation when the row lacks the field of a revision's change vector; work-limit and
   * memory-full when the references of all rows exceed the quota
   */
  addRow(row: StoredRow, projected: string | null): void {
    const { include } = this.#query;
    this.#addDocuments(row, projected);
    if (row.start < 0) return;
    if (projected === null && include.paths.length > 0) this.#rows.add(row.docNum);
    for (const counters of include.counters) {
      const names = counters.names.length === 0 ? null : counters.names;
      const ids =
        counters.of === null || counters.of.path.length === 0
          ? [idOf(row.bytes, row.start)]
          : idsAtPath(row.bytes, bodyOf(row), counters.of.path);
      for (const documentId of ids) {
        this.#hold(documentId.length);
        this.#counters.push({ documentId, names });
      }
    }
    for (const path of include.compareExchange) {
      for (const key of idsAtPath(row.bytes, bodyOf(row), path)) this.#addKey(key);
    }
    this.#addRevisions(row, projected);
    for (const { of, wanted } of include.series) {
      const isOwn = of === null || of.path.length === 0;
      const ids = isOwn ? [idOf(row.bytes, row.start)] : idsAtPath(row.bytes, bodyOf(row), of.path);
      for (const id of ids) {
        this.#hold(id.length);
        const known = this.#series.get(id);
        if (known === undefined) this.#series.set(id, [wanted]);
        else known.push(wanted);
      }
    }
  }

  #addDocuments(row: StoredRow, projected: string | null): void {
    let body: unknown;
    for (const { path, text, wanted } of this.#query.include.paths) {
      const isField = path.length === 1 && path[0]?.name === text;
      if (projected === null && isField && wanted.format === null) {
        for (const id of idsAtPath(row.bytes, bodyOf(row), path)) this.addId(id);
        continue;
      }
      body ??= JSON.parse(projected ?? textOf(row));
      if (projected !== null) for (const id of idsAtKey(projected, text)) this.addId(id);
      includedIds(body, wanted, (id) => this.addId(id));
    }
  }

  addScripted({ documents, compareExchange }: ScriptIncludes): void {
    for (const id of documents) this.addId(id);
    for (const key of compareExchange) this.#addKey(key);
  }

  #addKey(key: string): void {
    const lower = lowerCased(key);
    if (this.#compareExchangeKeys.has(lower)) return;
    this.#hold(2 * key.length);
    this.#compareExchangeKeys.set(lower, key);
  }

  addId(id: string): void {
    const key = lowerCased(id);
    if (this.#ids.has(key)) return;
    this.#hold(2 * id.length);
    this.#ids.set(key, id);
  }

  #hold(length: number): void {
    this.#budget.hold(wantedBytes + length);
    this.#budget.tick(wantedBytes);
  }

  #addRevisions(row: StoredRow, projected: string | null): void {
    const { revisions } = this.#query.include;
    if (revisions.length === 0) return;
    const body: unknown = JSON.parse(projected ?? bodyTextOf(row.bytes, row.start));
    for (const wanted of revisions) {
      if (typeof wanted === "number") {
        const documentId = idOf(row.bytes, row.start);
        this.#hold(documentId.length);
        this.#revisionsBefore.push({ documentId, micros: wanted });
      } else {
        for (const vector of changeVectorsAt(body, wanted)) {
          this.#hold(vector.length);
          this.#revisionVectors.add(vector);
        }
      }
    }
  }

  /** Whole documents; missing ones are omitted. */
  *finish(): Steps<IncludedDocument[]> {
    const documents: IncludedDocument[] = [];
    const row: StoredRow = { docNum: 0, etag: 0, bytes: Buffer.alloc(0), start: 0, block: null };
    for (const asked of this.#ids.values()) {
      const docNum = this.#source.findDocument(asked);
      if (docNum < 0 || this.#rows.has(docNum)) continue;
      if (!(yield* readRecord(docNum, this.#source, row))) continue;
      const id = idOf(row.bytes, row.start);
      const text = wholeDocument(row, null, this.#source);
      documents.push({ id, text });
      this.#budget.hold(text.length);
      this.#budget.tick(wantedBytes + (text.length >>> 4));
      if (this.#budget.isDue) yield this.#budget.pause();
    }
    return documents;
  }
}

function textOf({ bytes, start }: StoredRow): string {
  return start < 0 ? bytes.toString() : bodyTextOf(bytes, start);
}

/** Returns a column whose key is the whole text of the path. */
function idsAtKey(projected: string, key: string): string[] {
  const bytes = Buffer.from(projected);
  const span = new ValueSpan();
  if (!key.includes(".") || !findMember(bytes, 0, quoteString(key), span)) return [];
  if (bytes[span.from] !== 0x22) return [];
  return [decodeString(bytes, span.from, skipValue(bytes, span.from))];
}
