/**
 * Page stage. In: the candidates, in the order of the query. It passes each to the stages filter and project, until the
 * page is full. Out: the rows on the page, to the sink and to the stage include; and the counts of the outcome.
 *
 * The rules of totals and paging, some of them surprising, are RavenDB 7.2.7's: with `filter` the offset counts
 * candidates and not matches; without it, duplicates that `distinct` removes are not counted by the offset.
 *
 * Hot: bench/query.bench.ts, bench/scan.bench.ts. Rows without steps cost no generator.
 */
import { assert } from "../../base/assert.ts";
import { largeRecordBytes } from "../../base/limits.ts";
import type { Steps } from "../../base/scheduling/steps.ts";
import type { TextChunks } from "../../state/documents/document-chunks.ts";
import { bodyLengthOf } from "../../state/documents/document-record.ts";
import type { AnalyzedQuery } from "../analysis/analyzed-query.ts";
import { bodyOf } from "../conditions/compile-filter.ts";
import type { ChunkList } from "../time-series/series-row.ts";
import type { RowFilter } from "./execute-filter.ts";
import type { Candidates } from "./execute-find.ts";
import type { RowIncludes } from "./execute-include.ts";
import { noLoaded } from "./execute-load.ts";
import type { RowProjector } from "./execute-project.ts";
import type { QueryRun } from "./query-run.ts";
import type { RowSink } from "./results.ts";
import type { RowParts } from "./results-projection.ts";
import type { RowScripts } from "./row-scripts.ts";
import type { ProjectedText, QueryIndex, StoredRow } from "./row-source.ts";

/** The other stages of a page. */
interface PageStages {
  /** Null: the query has no `filter`. */
  readonly filter: RowFilter | null;
  /** Null: the query has no scripts and loads nothing. */
  readonly scripts: RowScripts | null;
  readonly projector: RowProjector;
  /** Null: nothing is included. */
  readonly includes: RowIncludes | null;
  readonly sink: RowSink;
}

/** Cost of visiting a row; every 16 bytes of it cost one unit more. */
const rowUnits = 16;
/** Cost of finding a field in a row. */
const fieldUnits = 16;
/** Units of rows between two checks of the budget. */
const lookTicks = 1024;
/**
 * Number of conditions of a filter, and of declared functions, from which their compilation uses a time slice of its
 * own.
 */
const longFilterUnits = 256;
const manyDeclarations = 16;
/** Memory overhead of a distinct row besides its text, in bytes. */
const distinctBytes = 64;
/** The rows seen by queries that are not `distinct`. */
const noRows = new Set<string>();
const noFilter: RowFilter = { test: null, units: 0 };

export class Page {
  /** Candidates that the filter was tested on. */
  scannedCount = 0;
  /** Duplicates, and rows rejected by the filter. */
  skippedCount: number;
  /** Candidates that passed the filter. */
  matchCount = 0;
  /** Candidates that were read, those of the offset included. */
  readCount = 0;
  /** Rows on the page. */
  returnedCount = 0;
  /** Rows that scripts made of candidates in addition to the first one. */
  #extraRowCount = 0;
  /** Candidates whose rows are on the page. */
  #spreadCount = 0;
  /** The rows of a `distinct` query so far. */
  readonly #seen: Set<string>;
  readonly #run: QueryRun;
  readonly #index: QueryIndex | null;
  readonly #candidates: Candidates;
  readonly #stages: PageStages;
  readonly #idsKind: "ids" | "prefix" | null;
  /** Whether the page has documents of an index, of which scripts may make several rows each. */
  readonly #pagesDocuments: boolean;
  /** Whether the offset counts candidates: with a filter it does, but a list of ids is filtered before it is paged. */
  readonly #isRawSkip: boolean;
  /** Distinct rows that precede the page, if the offset counts rows. */
  readonly #rowSkip: number;

  constructor(run: QueryRun, index: QueryIndex | null, candidates: Candidates, stages: PageStages) {
    const { access, filter, isDistinct, paging } = run.query;
    this.skippedCount = candidates.duplicates;
    this.#seen = isDistinct ? new Set() : noRows;
    this.#run = run;
    this.#index = index;
    this.#candidates = candidates;
    this.#stages = stages;
    this.#idsKind = access.kind === "collection" ? (access.ids?.kind ?? null) : null;
    this.#pagesDocuments = index !== null && stages.projector.isByScript && !isDistinct;
    this.#isRawSkip = filter === null ? !isDistinct : this.#idsKind !== "ids";
    this.#rowSkip = this.#isRawSkip ? 0 : paging.skip;
  }

  /** Visits candidates until the page is full. */
  *fill(): Steps<void> {
    const { query, source, collection, budget } = this.#run;
    const { filter, paging, isDistinct } = query;
    const { cursor, total } = this.#candidates;
    const hasSteps = this.#stages.scripts !== null || this.#stages.projector.hasSeries;
    const { test, units: filterUnits } = this.#stages.filter ?? noFilter;
    const isPrefix = this.#idsKind === "prefix";
    const visitsAll = (filter !== null && this.#idsKind === "ids") || this.#isCounting();
    const filterTake = paging.filterTake ?? Number.MAX_SAFE_INTEGER;
    // The offset is past the last row: no row is visited, and no duplicate counted.
    if (isDistinct && filter === null && paging.skip > 0 && paging.skip >= total) return;
    let rawSkip = this.#isRawSkip ? paging.skip : 0;
    // Compiling a long filter or many functions uses a time slice of its own; the first rows after it are slow.
    const isLong = filterUnits >= longFilterUnits;
    if (isLong || query.functions.length >= manyDeclarations) yield budget.pause();
    const unitsOfRow = rowUnits + fieldUnits * projectedCount(query);
    let ticks = 0;
    let filtered = 0;
    for (;;) {
      if (this.#isFull() && !visitsAll) break;
      if (this.scannedCount >= filterTake) break;
      if (ticks >= lookTicks) {
        budget.tick(ticks);
        budget.spend(filtered * filterUnits);
        ticks = 0;
        filtered = 0;
      }
      if (budget.isDue) yield budget.pause();
      ticks += unitsOfRow;
      if (!cursor.next()) {
        if (cursor.pending === null) break;
        yield cursor.pending;
        continue;
      }
      const { row } = cursor;
      if (isPrefix && !source.isIn(row.docNum, collection)) {
        this.skippedCount++;
        continue;
      }
      this.readCount++;
      if (rawSkip > 0) {
        rawSkip--;
        continue;
      }
      ticks += rowLengthOf(row) >>> 4;
      if (filter !== null) {
        this.scannedCount++;
        filtered++;
        ticks += filterUnits;
        const isPassed = test === null ? yield* this.#passesScript(row) : test(row, bodyOf(row));
        if (!isPassed) {
          this.skippedCount++;
          continue;
        }
      }
      this.matchCount++;
      const waiting = hasSteps ? null : this.#add(row);
      if (hasSteps) yield* this.#addInSteps(row);
      if (waiting !== null) yield waiting;
      if (hasSteps || waiting !== null) budget.refuseCancelled();
    }
  }

  #passesScript(row: StoredRow): Steps<boolean> {
    const { scripts } = this.#stages;
    assert(scripts !== null, "a filter without a test has a script");
    return scripts.passes(row);
  }

  #isFull(): boolean {
    const count = this.#pagesDocuments ? this.#spreadCount : this.returnedCount;
    return count >= this.#run.query.paging.take;
  }

  /** Returns whether this is a page of no rows whose total is known only after all rows were visited. */
  #isCounting(): boolean {
    const { filter, paging, isDistinct } = this.#run.query;
    return paging.take === 0 && (isDistinct || (filter !== null && this.#index === null));
  }

  /** Adds the rows of a candidate to the page. @returns back-pressure of the sink */
  #add(row: StoredRow): Promise<void> | null {
    return this.#isPast() ? null : this.#addParts(this.#stages.projector.partsOf(row));
  }

  /** As `#add`, for queries with loaded documents, scripts or series queries. */
  *#addInSteps(row: StoredRow): Steps<void> {
    if (this.#isPast()) return;
    const { projector, scripts } = this.#stages;
    const loading = scripts === null ? null : scripts.load(row);
    const parts = projector.partsOf(row, loading === null ? noLoaded : yield* loading);
    if (projector.hasSeries) {
      yield* this.#addSeries(parts);
      return;
    }
    let waiting: Promise<void> | null | undefined;
    while (waiting === undefined) {
      try {
        waiting = this.#addParts(parts);
      } catch (error) {
        if (scripts === null) throw error;
        yield scripts.missing(error);
      }
    }
    if (waiting !== null) yield waiting;
  }

  /** Returns whether no further whole candidate is on the page. */
  #isPast(): boolean {
    return this.#stages.projector.isWhole && this.returnedCount >= this.#run.query.paging.take;
  }

  /** @throws before anything was added, if a script lacks a record: see `RowScripts.missing` */
  #addParts(parts: RowParts): Promise<void> | null {
    const { projector } = this.#stages;
    return projector.isWhole
      ? this.#addWhole(parts)
      : this.#addTexts(parts, projector.textsOf(parts));
  }

  #addWhole(parts: RowParts): Promise<void> | null {
    const { includes, projector, sink } = this.#stages;
    includes?.add(parts, null);
    const large = sink.addLarge === undefined ? null : projector.largeRow(parts);
    return large === null ? this.#deliver(projector.wholeRow(parts)) : this.#deliverLarge(large);
  }

  /** Adds rows. Duplicates and rows before the page are left out. */
  #addTexts(parts: RowParts, texts: readonly ProjectedText[]): Promise<void> | null {
    const { projection, isDistinct, paging } = this.#run.query;
    const { includes, projector } = this.#stages;
    const isOfIndex = this.#index !== null;
    this.#extraRowCount += Math.max(0, texts.length - 1);
    if (texts.length === 0 && (projection.kind === "document" || !isOfIndex)) this.skippedCount++;
    if (this.#pagesDocuments) {
      if (this.#isFull()) return null;
      this.#spreadCount++;
    }
    let waiting: Promise<void> | null = null;
    let hasSkipped = false;
    for (const one of texts) {
      const { text } = one;
      // For a collection, duplicates after the page are not detected; for an index, a document's duplicates are counted
      // once.
      if (isDistinct && !isOfIndex && paging.take > 0 && this.#isFull()) break;
      if (isDistinct) {
        if (this.#seen.has(text)) {
          if (!hasSkipped) this.skippedCount++;
          hasSkipped = isOfIndex;
          continue;
        }
        this.#see(text);
        if (this.#seen.size <= this.#rowSkip) continue;
      }
      if (!this.#pagesDocuments && this.returnedCount >= paging.take) continue;
      includes?.add(parts, text);
      const next = this.#deliver(projector.projectedRow(one, parts));
      if (next !== null)
        waiting = waiting === null ? next : Promise.all([waiting, next]).then(() => {});
    }
    return waiting;
  }

  /** As `#addTexts`, for a row with results of series queries in it. */
  *#addSeries(parts: RowParts): Steps<void> {
    const { query, budget } = this.#run;
    if (this.returnedCount >= query.paging.take && !query.isDistinct) return;
    const { row, text, compared, heldBytes } = yield* this.#stages.projector.seriesRow(parts);
    if (compared === null || this.#isNew(compared)) {
      this.#stages.includes?.add(parts, text);
      const isLarge = row.length > largeRecordBytes && this.#stages.sink.addLarge !== undefined;
      const waiting = isLarge ? this.#deliverLarge(row) : this.#deliver(row.copy(0, row.length));
      if (waiting !== null) yield waiting;
    }
    budget.release(heldBytes);
  }

  /** Returns whether a distinct row is new and on the page. */
  #isNew(row: ChunkList): boolean {
    const text = row.copy(0, row.length).toString();
    if (this.#seen.has(text)) {
      this.skippedCount++;
      return false;
    }
    this.#see(text);
    return this.#seen.size > this.#rowSkip && this.returnedCount < this.#run.query.paging.take;
  }

  #see(text: string): void {
    this.#seen.add(text);
    this.#run.budget.hold(2 * text.length + distinctBytes);
  }

  #deliver(row: Buffer): Promise<void> | null {
    this.returnedCount++;
    this.#run.budget.tick(row.length >>> 4);
    return this.#stages.sink.add(row);
  }

  #deliverLarge(row: TextChunks): Promise<void> | null {
    this.returnedCount++;
    return this.#stages.sink.addLarge?.(row) ?? null;
  }

  /** The total of the outcome. */
  get total(): number {
    const { filter, isDistinct, paging } = this.#run.query;
    const { total } = this.#candidates;
    if (this.#idsKind === "prefix") {
      return this.readCount <= (this.#isRawSkip ? paging.skip : 0) ? 0 : -1;
    }
    if (isDistinct && paging.take === 0) return this.#seen.size;
    if (this.#index !== null && this.#run.request.isStream === true) {
      return streamedTotal(this.#run.query, this.#index, total);
    }
    if (this.#index !== null && this.#stages.projector.isByScript) {
      return Math.max(total, this.returnedCount);
    }
    const matches = filter !== null && this.#index === null ? this.matchCount : total;
    return matches + this.#extraRowCount;
  }
}

/** Of sorted matches, RavenDB 7.2.7 collects only those up to the end of the page if it streams. */
function streamedTotal(
  { orderBy, where, isDistinct, paging }: AnalyzedQuery,
  index: QueryIndex,
  total: number,
): number {
  const [key] = orderBy;
  if (key === undefined || isDistinct || index.outputs !== null) return total;
  // The entries are found in their order: all of them, or a range of the field that they are sorted by.
  const isRange = where?.kind === "comparison" || where?.kind === "between";
  const isOfKey = isRange && key.kind === "field" && where.field.name === key.field.name;
  if (orderBy.length === 1 && (where === null || isOfKey)) return total;
  return Math.min(total, paging.skip + paging.take);
}

/** Returns the number of lookups for each row. */
function projectedCount({ projection, include, load }: AnalyzedQuery): number {
  const { paths, counters, revisions, series } = include;
  const fields = projection.kind === "fields" ? projection.fields.length : 0;
  return fields + paths.length + counters.length + revisions.length + series.length + load.length;
}

/** Returns the bytes of the record of a row, or of the text of a reduced object. */
function rowLengthOf({ bytes, start }: StoredRow): number {
  return start < 0 ? bytes.length : bodyLengthOf(bytes, start);
}
