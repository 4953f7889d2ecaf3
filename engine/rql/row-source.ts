/**
 * What the execution of queries needs from the database: documents by number, by id, by collection; the indexes; scripts.
 * The database implements it; tests do so over arrays of JSON texts.
 */

import type { GroupOutputs } from "../indexing/followed-index.ts";
import type { IndexDefinition } from "../indexing/index-definition.ts";
import type { RowCursor, StoredRow } from "../indexing/index-host.ts";
import type { IndexReader } from "../indexing/index-reader.ts";
import type { StoredFields } from "../indexing/open-index.ts";
import type { Shape } from "../keyspaces/shapes.ts";
import type { WorkBudget } from "../work-budget.ts";
import type { AnalyzedQuery, Condition, FieldReference } from "./analyzed-query.ts";
import type { ParameterValue, Scalar } from "./query-parameters.ts";

export type { GroupOutputs, RowCursor, StoredFields, StoredRow };

/** `collection` null means all documents, everywhere here. Names are compared without case. */
export interface RowSource {
  countOf(collection: string | null): number;
  /** A safe integer that changes whenever a document of the collection is written or deleted. */
  resultEtagOf(collection: string | null): number;
  /** The number of the document with this id in any case, or -1. */
  findDocument(id: string): number;
  isIn(docNum: number, collection: string | null): boolean;
  lowerIdOf(docNum: number): string;
  /** Orders by lower-cased ids. */
  compareIds(left: number, right: number): number;
  /**
   * Puts the document's record under `row`. @returns false when there is no such document any more, or its record must
   * be read from the disk first; then `pending()` is the promise to wait for before asking again.
   */
  read(docNum: number, row: StoredRow): boolean;
  /** As `read` for number `at` of a list, of which the next ones are read soon. */
  readListed(docNums: Uint32Array, at: number, row: StoredRow): boolean;
  pending(): Promise<void> | null;
  /** In the order of etags. */
  rows(collection: string | null): RowCursor;
  /** In the order of lower-cased ids, those that begin with `prefix` in any case; of all collections. */
  rowsByPrefix(prefix: string): RowCursor;
  shapeOf(shapeId: number): Shape;
  /** The document's `@metadata` object as JSON text, with `extra` members in it, each followed by a comma. */
  metadataOf(row: StoredRow, extra: Buffer): Buffer;
  /** The change vector's text. */
  changeVectorOf(row: StoredRow): string;
  /** The total of a counter, `null` when the document has none of this name. */
  counterOf(documentId: string, name: string): bigint | null;
  /** Per-node values of a counter as JSON text, or null. */
  rawCounterOf(documentId: string, name: string): string | null;
  /** Names of the counters of a document. */
  counterNamesOf(documentId: string): readonly string[];
  /** The JSON text of a compare-exchange value's `Object`, or null. */
  compareExchangeOf(key: string): string | null;
  /** Milliseconds that never go backward. */
  monotonicMs(): number;
  /** Microseconds since 1970. */
  nowMicros(): number;
}

/** An index that a query may use. */
export interface QueryIndex {
  readonly name: string;
  readonly isStale: boolean;
  /** Microseconds since 1970; 0 = never. */
  readonly indexedAtMicros: number;
  readonly queriedAtMicros: number;
  /** The last etag that is indexed: with the entries' count it makes the reply's etag. */
  readonly lastEtag: number;
  /** Created by this very query. */
  readonly isNew: boolean;
  /** `budget`: of whoever reads. */
  reader(budget?: WorkBudget): IndexReader;
  /** May conditions and order name this field? One that they may and the index has not is empty. */
  isKnownField(name: string): boolean;
  /** Why it answers no queries any more, or null. */
  readonly invalidity: string | null;
  /** What it keeps to be projected, or null. */
  readonly stored: StoredFields | null;
  /** Map-reduce: what an entry is, as JSON text of an object; null for a map index. */
  readonly outputs: GroupOutputs | null;
}

export interface IndexProvider {
  /** The automatic index for a query, made if need be; not yet up to date. */
  automatic(definition: IndexDefinition): QueryIndex;
  /** @returns undefined when there is none of this name, in any case. */
  byName(name: string): QueryIndex | undefined;
  /** Resolves when the index has passed the documents of now: true; or after `timeoutMs`: false. */
  waitForNonStale(name: string, timeoutMs: number): Promise<boolean>;
}

/** One row as scripts see it: the document or reduced object, and what `load` brought. */
export interface ScriptInput {
  /** Null for a reduced object, whose text is `text`. */
  readonly row: StoredRow | null;
  readonly text: string | null;
  readonly loaded: ReadonlyMap<string, LoadedValue>;
  /** JSON text of an object: what the index keeps of the row, which stands before what the document has. */
  readonly stored: string | null;
}

/** A loaded document as whole JSON text with its metadata at the end, null when it is missing, or a list of them. */
export type LoadedValue = string | null | readonly (string | null)[];

/** The JSON text of a projected object. */
export interface ProjectedText {
  readonly text: string;
  /** A whole document as it is stored, its `@metadata` at the end; else it still lacks the metadata of a row. */
  readonly isDocument: boolean;
}

/** What scripting does for queries. Made once for each query. */
export interface QueryScripts {
  /** Rows of a `select { … }` or `select f(…)`. */
  project(input: ScriptInput): readonly ProjectedText[];
  /** The query's whole `filter`. Used only when it calls what compile-filter.ts does not know. */
  passes(input: ScriptInput): boolean;
  /** What the scripts have asked to be sent along so far. */
  readonly included: ScriptIncludes;
  /**
   * When one of these threw because a document that a script loads must be read from the disk first: the promise to wait
   * for before it is run again with the same input. Null for every other error.
   */
  missing(error: unknown): Promise<void> | null;
}

/** Ids of documents and compare-exchange keys, as scripts named them. */
export interface ScriptIncludes {
  readonly documents: ReadonlySet<string>;
  readonly compareExchange: ReadonlySet<string>;
}

export interface ScriptProvider {
  forQuery(query: AnalyzedQuery): QueryScripts;
  /** A test of a .NET pattern, ignoring case, which `budget` pays for. @throws regex-invalid; the test: work-limit */
  textTest(pattern: string, budget?: WorkBudget): (text: string) => boolean;
}

export type { Condition, FieldReference, ParameterValue, Scalar };
