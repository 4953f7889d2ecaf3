/**
 * Evaluates the query of a subscription document by document: its condition, and the text to send. Documents are tested
 * one by one as they change, not through an index; conditions follow the rules of scripts.
 *
 * A subscription of revisions has rows of two states, `{"Current":…,"Previous":…}`; its conditions and scripts see
 * that object.
 *
 * Knows nothing of positions, batches or workers.
 */

import { EngineError, type ErrorCode } from "../../base/errors.ts";
import { recordLengthAt } from "../../base/record.ts";
import { runSteps } from "../../base/scheduling/steps.ts";
import { FreeBudget } from "../../base/scheduling/work-budget.ts";
import type { AnalyzedQuery } from "../../queries/analysis/analyzed-query.ts";
import type { QueryCompiler } from "../../queries/analysis/query.ts";
import { bodyOf, compileFilter, type RowTest } from "../../queries/conditions/compile-filter.ts";
import { isFilterByScript } from "../../queries/execution/execute-filter.ts";
import { IncludeCollector } from "../../queries/execution/execute-include.ts";
import { noLoaded, RowLoader } from "../../queries/execution/execute-load.ts";
import type {
  IncludedCounters,
  IncludedDocument,
  QueryOutcome,
} from "../../queries/execution/results.ts";
import {
  projectionMetadata,
  wholeDocument,
  withMetadata,
} from "../../queries/execution/results-projection.ts";
import type { QueryScripts, StoredRow } from "../../queries/execution/row-source.ts";
import { QueryRows } from "../../queries/rows/query-rows.ts";
import { callAsScript, DatabaseScripts } from "../../queries/rows/query-scripts.ts";
import { documentFlags, documentFlagsOf } from "../../state/documents/document-record.ts";
import type { Store } from "../../state/store/store.ts";

/** The text to send for one document. */
export interface SubscriptionItem {
  /** JSON text of the document or its projection, with `@metadata`. */
  readonly text: Buffer;
  /** Set if the script failed: then the text has `@metadata` only. */
  readonly error: EngineError | null;
}

/** The includes sent with a batch. */
export interface SubscriptionIncludes {
  readonly documents: readonly IncludedDocument[];
  /** Null: the query includes none. */
  readonly counters: readonly IncludedCounters[] | null;
  readonly series: QueryOutcome["seriesIncludes"];
}

/** Errors not caused by the script. */
const ofDatabase: ReadonlySet<ErrorCode> = new Set([
  "database-stopped",
  "record-damaged",
  "disk-full",
]);
const noExtra = Buffer.alloc(0);

/** Kinds of includes. */
export type IncludeKind = "documents" | "counters" | "series";

/** A store with a compiler for the queries of its subscriptions. */
export type SubscriptionStore = Store & { readonly queries: Pick<QueryCompiler, "compile"> };

export class SubscriptionQuery {
  readonly text: string;
  /** Null: all collections. */
  readonly collection: string | null;
  readonly hasRevisions: boolean;
  readonly #database: Store;
  readonly #query: AnalyzedQuery;
  readonly #rows: QueryRows;
  /** Batches have their own limits. */
  readonly #budget = new FreeBudget();
  #scripts: QueryScripts;
  readonly #loader: RowLoader;
  readonly #test: RowTest | "script" | null;
  #includes: IncludeCollector;

  /** @throws EngineError query-syntax, query-invalid, not-supported, invalid-operation */
  constructor(database: SubscriptionStore, text: string) {
    this.text = text;
    this.#database = database;
    const query = callAsScript(database.queries.compile(text, "subscription", null));
    this.#query = query;
    this.collection = query.source.isAllDocuments ? null : query.source.name;
    this.hasRevisions = query.source.hasRevisions;
    this.#rows = new QueryRows(database, database.clock);
    this.#scripts = this.#newScripts();
    this.#loader = new RowLoader(query, this.#rows, this.#budget);
    this.#test = this.#testOf(query);
    this.#includes = new IncludeCollector(query, this.#rows, this.#budget);
  }

  /** The types of includes in the query itself. Types added by its scripts are not known in advance. */
  get includedKinds(): readonly IncludeKind[] {
    const { paths, counters, series } = this.#query.include;
    const kinds: IncludeKind[] = [];
    if (paths.length > 0) kinds.push("documents");
    if (counters.length > 0) kinds.push("counters");
    if (series.length > 0) kinds.push("series");
    return kinds;
  }

  #newScripts(): QueryScripts {
    return this.#allScripts().forQuery(this.#query, this.#budget, null);
  }

  #allScripts(): DatabaseScripts {
    return new DatabaseScripts(this.#database.state, this.#rows, (missing) =>
      this.#database.fetchRecord(missing),
    );
  }

  #testOf(query: AnalyzedQuery): RowTest | "script" | null {
    const { filter, source } = query;
    if (filter === null) return null;
    if (source.hasRevisions || isFilterByScript(query)) return "script";
    return compileFilter(filter, {
      source: this.#rows,
      alias: source.alias,
      parameters: null,
      textTest: (pattern) => this.#allScripts().textTest(pattern),
    });
  }

  /** Returns the item to send for the document under `row`; null: none. Its includes are collected. */
  evaluate(row: StoredRow): SubscriptionItem | null | Promise<SubscriptionItem | null> {
    const test = this.#test;
    try {
      if (typeof test === "function" && !test(row, bodyOf(row))) return null;
    } catch (error) {
      if (error instanceof EngineError) return { text: this.#failed(row), error };
      throw error;
    }
    const isPlain = this.#query.projection.kind === "document" && test !== "script";
    if (!isPlain) return this.#evaluateScripts(row, null, row);
    this.#includes.addRow(row, null);
    return { text: wholeDocument(row, null, this.#rows), error: null };
  }

  /** As `evaluate`, for a revision and its predecessor. */
  evaluatePair(current: StoredRow, previous: StoredRow | null): Promise<SubscriptionItem | null> {
    const isDeletion =
      (documentFlagsOf(current.bytes, current.start) & documentFlags.DeleteRevision) !== 0;
    const textOf = (row: StoredRow) => wholeDocument(row, null, this.#rows).toString();
    const pair = `{"Current":${isDeletion ? "null" : textOf(current)},"Previous":${previous === null ? "null" : textOf(previous)}}`;
    return this.#evaluateScripts(null, pair, current);
  }

  /** `document`: the source of the metadata that is sent. */
  async #evaluateScripts(
    row: StoredRow | null,
    text: string | null,
    document: StoredRow,
  ): Promise<SubscriptionItem | null> {
    // While other documents are awaited, the bytes of the row may be replaced.
    const own = keptRow(document);
    for (;;) {
      try {
        return await this.#evaluateOnce(row === null ? null : own, text, own);
      } catch (error) {
        const missing = this.#scripts.missing(error);
        if (missing !== null) await missing;
        else if (!(error instanceof EngineError) || ofDatabase.has(error.code)) throw error;
        else return { text: this.#failed(own), error };
      }
    }
  }

  async #evaluateOnce(
    row: StoredRow | null,
    text: string | null,
    document: StoredRow,
  ): Promise<SubscriptionItem | null> {
    const { projection } = this.#query;
    const loaded =
      this.#query.load.length === 0 || row === null
        ? noLoaded
        : await runSteps(this.#loader.load(row));
    const input = { row, text, loaded, stored: null };
    if (this.#test === "script" && !this.#scripts.passes(input)) return null;
    if (projection.kind === "document") {
      if (text === null) {
        this.#includes.addRow(document, null);
        return { text: wholeDocument(document, null, this.#rows), error: null };
      }
      this.#includes.addRow(bareRow, text);
      const metadata = `"@metadata":${this.#rows.metadataOf(document, noExtra).toString()}}`;
      return { text: Buffer.from(withMetadata(text, metadata)), error: null };
    }
    const rows = this.#scripts.project(input);
    const projected = oneObject(rows.map((one) => one.text));
    if (projected === null) return null;
    this.#includes.addRow(text === null ? document : bareRow, projected);
    if (rows[0]?.isDocument) return { text: Buffer.from(projected), error: null };
    const parts = { row: document, loaded, score: null, stored: null };
    const metadata = projectionMetadata(parts, this.#rows);
    return { text: Buffer.from(withMetadata(projected, metadata)), error: null };
  }

  /** Returns the includes of the documents since the last call. */
  async takeIncludes(): Promise<SubscriptionIncludes> {
    const collector = this.#includes;
    this.#includes = new IncludeCollector(this.#query, this.#rows, this.#budget);
    const { included } = this.#scripts;
    if (included.documents.size > 0 || included.compareExchange.size > 0) {
      collector.addScripted(included);
      this.#scripts = this.#newScripts();
    }
    const documents = await runSteps(collector.finish());
    return { documents, counters: collector.counters, series: collector.series };
  }

  /** Returns a text that only identifies the document. */
  #failed(row: StoredRow): Buffer {
    const metadata = JSON.parse(this.#rows.metadataOf(row, noExtra).toString()) as Record<
      string,
      unknown
    >;
    const names = ["@collection", "@id", "@change-vector", "@last-modified"];
    const known = Object.fromEntries(names.map((name) => [name, metadata[name]]));
    return Buffer.from(`{"@metadata":${JSON.stringify(known)}}`);
  }
}

/** Returns the same row with a copy of its bytes. */
function keptRow(row: StoredRow): StoredRow {
  const { docNum, etag, bytes, start } = row;
  if (start < 0) return row;
  const end = start + bytes.readUInt32LE(start + recordLengthAt);
  return { docNum, etag, bytes: Buffer.from(bytes.subarray(start, end)), start: 0, block: null };
}

/** Stands for an object that is not a stored document. */
const bareRow: StoredRow = { docNum: -1, etag: 0, bytes: noExtra, start: -1, block: null };

/**
 * Returns the one object that a script returned; null: none. RavenDB 7.2.7 sends a list as an object of its elements.
 */
function oneObject(texts: readonly string[]): string | null {
  const [first] = texts;
  if (texts.length <= 1) return first ?? null;
  const members = texts.map((text, position) => `"${position}":${text}`);
  return `{${members.join(",")},"length":${texts.length}}`;
}
