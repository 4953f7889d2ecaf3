/**
 * A database over arrays of records, for tests of queries and indexes: a simple implementation of
 * `QueryHost` and `IndexHost`.
 */

import type { JsonText } from "../../../../engine/base/json/json-text.ts";
import { runSteps } from "../../../../engine/base/scheduling/steps.ts";
import type {
  CollectionEtags,
  DeletionCursor,
  IndexHost,
  NumberCursor,
  RowCursor,
  RowReader,
  StoredRow,
} from "../../../../engine/indexing/index-host.ts";
import { IndexSet } from "../../../../engine/indexing/index-set.ts";
import { analyzeQuery } from "../../../../engine/queries/analysis/analyze.ts";
import { automaticIndexName } from "../../../../engine/queries/analysis/auto-index-name.ts";
import { parseQueryParameters } from "../../../../engine/queries/analysis/query-parameters.ts";
import { executeQuery } from "../../../../engine/queries/execution/execute.ts";
import type { QueryHost } from "../../../../engine/queries/execution/query-run.ts";
import type { QueryOutcome } from "../../../../engine/queries/execution/results.ts";
import type {
  RowSource,
  ScriptProvider,
  StoredSeries,
} from "../../../../engine/queries/execution/row-source.ts";
import { parseQuery } from "../../../../engine/queries/syntax/parser.ts";
import { ChangeOrigin } from "../../../../engine/state/documents/change-origin.ts";
import {
  DocumentFields,
  documentRecordLength,
  encodeDocumentRecord,
} from "../../../../engine/state/documents/document-encoding.ts";
import { MetadataWriter } from "../../../../engine/state/documents/document-metadata.ts";
import { DocumentParser } from "../../../../engine/state/documents/document-parser.ts";
import {
  collectionMemberOf,
  composeDocument,
  composedLength,
  composedMetadataLength,
  composeMetadata,
} from "../../../../engine/state/documents/document-text.ts";
import { type Shape, ShapeTable } from "../../../../engine/state/documents/shapes.ts";
import {
  Segment,
  type SeriesEntry,
} from "../../../../engine/state/keyspaces/time-series/series-segment.ts";
import {
  segmentKey,
  seriesKey,
} from "../../../../engine/state/keyspaces/time-series/time-series.ts";

interface StoredDocument {
  readonly docNum: number;
  readonly etag: number;
  readonly id: string;
  readonly collection: string;
  readonly record: Buffer;
}

interface ArrayReply {
  readonly outcome: QueryOutcome;
  readonly rows: string[];
}

const origin = new ChangeOrigin("A", "aaaaaaaaaaaaaaaaaaaaaa");

/** Entries in time order, as a series of segments of at most three entries. */
function storedSeriesOf(
  entries: readonly SeriesEntry[],
  valueNames: readonly string[] = [],
): StoredSeries {
  const prefix = "series\u0000";
  const segments: [string, Segment][] = [];
  for (let at = 0; at < entries.length; at += 3) {
    const some = entries.slice(at, at + 3);
    segments.push([segmentKey(prefix, some[0]?.time ?? 0), Segment.of(some)]);
  }
  return {
    prefix,
    valueNames,
    segments: {
      up: (_prefix, from) => segments.filter(([key]) => key >= from),
      down: (_prefix, from) => segments.filter(([key]) => key <= from).reverse(),
    },
  };
}

/** Written and deleted by id; etags increase. */
export class ArrayDatabase implements RowSource, IndexHost {
  readonly isFollowing = false;
  readonly shapes = new ShapeTable();
  readonly indexes: IndexSet;
  readonly compareExchange = new Map<string, string>();
  readonly counters = new Map<string, Map<string, bigint>>();
  /** By `seriesKey`. */
  readonly series = new Map<string, readonly SeriesEntry[]>();
  scripts: ScriptProvider = noScripts;
  readonly #parser = new DocumentParser(this.shapes);
  readonly #metadata = new MetadataWriter();
  readonly #fields = new DocumentFields();
  readonly #numbers = new Map<string, number>();
  readonly #ids: string[] = [];
  readonly #documents: (StoredDocument | null)[] = [];
  /** Live documents in etag order, with gaps. */
  #byEtag: (StoredDocument | null)[] = [];
  readonly #deletions: { docNum: number; etag: number; collection: string }[] = [];
  #etag = 0;

  constructor() {
    this.indexes = new IndexSet(this, (definition) => automaticIndexName(definition));
  }

  put(id: string, text: string): void {
    const source = Buffer.from(text);
    const parsed = this.#parser.parse(source, 0, source.length);
    const metadata = this.#metadata.fromParsed(parsed, []);
    const { collection } = metadata;
    const fields = this.#fields;
    fields.etag = ++this.#etag;
    fields.lastModified = 1_700_000_000_000_000 + this.#etag;
    fields.setId(id);
    fields.setChangeVector("");
    const isPlain = metadata.isOnly(collectionMemberOf(collection));
    fields.setMetadata(metadata.text, 0, isPlain ? 0 : metadata.length);
    fields.setBody(parsed);
    const record = Buffer.alloc(documentRecordLength(fields));
    encodeDocumentRecord(record, 0, fields);
    const lower = id.toLowerCase();
    let docNum = this.#numbers.get(lower);
    if (docNum === undefined) {
      docNum = this.#ids.length;
      this.#numbers.set(lower, docNum);
      this.#ids.push(id);
    }
    this.#ids[docNum] = id;
    this.#forget(docNum);
    const document = { docNum, etag: this.#etag, id, collection, record };
    this.#documents[docNum] = document;
    this.#byEtag[this.#etag] = document;
    this.indexes.wake();
  }

  remove(id: string): void {
    const docNum = this.#numbers.get(id.toLowerCase());
    const document = docNum === undefined ? null : this.#documents[docNum];
    if (docNum === undefined || !document) return;
    this.#forget(docNum);
    this.#documents[docNum] = null;
    this.#deletions.push({ docNum, etag: ++this.#etag, collection: document.collection });
    this.indexes.wake();
  }

  #forget(docNum: number): void {
    const old = this.#documents[docNum];
    if (old) this.#byEtag[old.etag] = null;
  }

  async query(
    text: string,
    parameters: object | string | null = null,
    paging: { start?: number; pageSize?: number } = {},
  ): Promise<ArrayReply> {
    const rows: string[] = [];
    const json = typeof parameters === "string" ? parameters : JSON.stringify(parameters);
    const query = analyzeQuery(text, parseQuery(text), {
      kind: "read",
      parameters: parameters === null ? null : parseQueryParameters(json),
      paging,
    });
    const host: QueryHost = { source: this, indexes: this.indexes, scripts: this.scripts };
    const request = {
      waitForNonStale: true,
      waitTimeoutMs: 15_000,
      isMetadataOnly: false,
      keepsDuplicates: false,
    };
    const steps = executeQuery(query, host, request, {
      add(row) {
        rows.push(row.toString());
        return null;
      },
    });
    const outcome = await runSteps(steps);
    return { outcome, rows };
  }

  // RowSource

  countOf(collection: string | null): number {
    return this.#documents.filter((document) => document && isOf(document, collection)).length;
  }
  resultEtagOf(): number {
    return this.#etag;
  }
  findDocument(id: string): number {
    const docNum = this.#numbers.get(id.toLowerCase()) ?? -1;
    return docNum >= 0 && this.#documents[docNum] ? docNum : -1;
  }
  isIn(docNum: number, collection: string | null): boolean {
    const document = this.#documents[docNum];
    return document ? isOf(document, collection) : false;
  }
  lowerIdOf(docNum: number): string {
    return (this.#ids[docNum] as string).toLowerCase();
  }
  exists(docNum: number): boolean {
    return Boolean(this.#documents[docNum]);
  }
  compareIds(left: number, right: number): number {
    return Buffer.compare(Buffer.from(this.lowerIdOf(left)), Buffer.from(this.lowerIdOf(right)));
  }
  read(docNum: number, row: StoredRow): boolean {
    const document = this.#documents[docNum];
    if (!document) return false;
    setRow(row, document);
    return true;
  }
  readListed(docNums: Uint32Array, at: number, row: StoredRow): boolean {
    return this.read(docNums[at] as number, row);
  }
  pending(): Promise<void> | null {
    return null;
  }
  rows(collection: string | null): RowCursor {
    return this.rowsSince(collection, 0);
  }
  rowsByPrefix(prefix: string): RowCursor {
    const lower = prefix.toLowerCase();
    const found = this.#documents
      .filter((one) => one?.id.toLowerCase().startsWith(lower))
      .map((one) => one as StoredDocument)
      .sort((a, b) => this.compareIds(a.docNum, b.docNum));
    return cursorOver(found);
  }
  shapeOf(shapeId: number): Shape {
    return this.shapes.get(shapeId);
  }
  metadataOf(row: StoredRow, extra: Buffer = Buffer.alloc(0)): Buffer {
    const collection = collectionMemberOf(
      (this.#documents[row.docNum] as StoredDocument).collection,
    );
    const { bytes, start } = row;
    const length = composedMetadataLength(bytes, start, collection, origin, extra);
    const target = Buffer.alloc(length);
    composeMetadata(target, 0, bytes, start, collection, origin, extra);
    return target.subarray('"@metadata":'.length);
  }
  addDocument(row: StoredRow, extra: Buffer, text: JsonText): void {
    const collection = collectionMemberOf(
      (this.#documents[row.docNum] as StoredDocument).collection,
    );
    const { bytes, start } = row;
    const target = text.reserve(composedLength(bytes, start, collection, origin, extra));
    text.advance(composeDocument(target, text.length, bytes, start, collection, origin, extra));
  }
  changeVectorOf(row: StoredRow): string {
    return origin.changeVectorAt(row.etag);
  }
  counterOf(documentId: string, name: string): bigint | null {
    return this.counters.get(documentId.toLowerCase())?.get(name.toLowerCase()) ?? null;
  }
  rawCounterOf(): string | null {
    return null;
  }
  seriesOf(documentId: string, name: string): StoredSeries | null {
    const entries = this.series.get(seriesKey(documentId, name));
    return entries === undefined ? null : storedSeriesOf(entries);
  }
  compareExchangeOf(key: string): string | null {
    return this.compareExchange.get(key.toLowerCase()) ?? null;
  }
  monotonicMs(): number {
    return performance.now();
  }
  nowMicros(): number {
    return Math.floor((performance.timeOrigin + performance.now()) * 1000);
  }
  yieldSlice(): Promise<void> {
    return new Promise((resolve) => setImmediate(resolve));
  }

  // IndexHost

  etagsOf(collection: string | null): CollectionEtags {
    let document = 0;
    for (const one of this.#documents) {
      if (one && isOf(one, collection) && one.etag > document) document = one.etag;
    }
    const deletions = this.#deletions.filter((one) => isOf(one, collection));
    return { document, deletion: deletions.at(-1)?.etag ?? 0 };
  }
  newReader(): RowReader {
    return this;
  }
  rowsSince(collection: string | null, etag: number): RowCursor {
    const found: StoredDocument[] = [];
    for (let at = etag + 1; at < this.#byEtag.length; at++) {
      const document = this.#byEtag[at];
      if (document && isOf(document, collection)) found.push(document);
    }
    return cursorOver(found);
  }
  deletionsSince(collection: string | null, etag: number): DeletionCursor {
    const found = this.#deletions.filter((one) => one.etag > etag && isOf(one, collection));
    let at = 0;
    const cursor: DeletionCursor = {
      docNum: 0,
      lowerId: "",
      etag: 0,
      next: () => {
        const one = found[at++];
        if (one === undefined) return false;
        cursor.docNum = one.docNum;
        cursor.lowerId = this.lowerIdOf(one.docNum);
        cursor.etag = one.etag;
        return true;
      },
    };
    return cursor;
  }
  deletionsPurgedThrough = 0;
  counterOwnersSince(): number[] {
    return [];
  }
  countSince(collection: string | null, etag: number): number {
    return this.#documents.filter((one) => one && one.etag > etag && isOf(one, collection)).length;
  }
  idOf(docNum: number): string {
    return this.#ids[docNum] as string;
  }
  setTimer(ms: number, run: () => void): { cancel(): void } {
    const timer = setTimeout(run, ms);
    timer.unref();
    return { cancel: () => clearTimeout(timer) };
  }
  numbersSince(collection: string | null, etag: number): NumberCursor {
    const rows = this.rowsSince(collection, etag);
    const cursor: NumberCursor = {
      docNum: 0,
      etag: 0,
      next() {
        if (!rows.next()) return false;
        cursor.docNum = rows.row.docNum;
        cursor.etag = rows.row.etag;
        return true;
      },
    };
    return cursor;
  }
  rowsOf(docNums: readonly number[]): RowCursor {
    const found = docNums.map((docNum) => this.#documents[docNum] ?? null);
    return cursorOver(found.filter((document) => document !== null));
  }
  collectionOf(docNum: number): string {
    return this.#documents[docNum]?.collection ?? "";
  }
  settings: Readonly<Record<string, unknown>> = {};

  setting(name: string): unknown {
    return this.settings[name];
  }
  compareExchangeChanges = 0;
  compareExchangeVersionOf(): number {
    return 0;
  }
  counterEtag = 0;
  itemChangesOf(): number {
    return 0;
  }
  followCounters(): number {
    return 0;
  }
  counterChangesSince(): NumberCursor {
    return { docNum: 0, etag: 0, next: () => false };
  }
  indexChanged(): void {}
  indexDropped(): void {}
  indexReplaced(): void {}
  indexEvent(): void {}
}

function isOf(one: { readonly collection: string }, collection: string | null): boolean {
  return collection === null || one.collection.toLowerCase() === collection.toLowerCase();
}

function setRow(row: StoredRow, document: StoredDocument): void {
  row.docNum = document.docNum;
  row.etag = document.etag;
  row.bytes = document.record;
  row.start = 0;
}

function cursorOver(documents: readonly StoredDocument[]): RowCursor {
  const row: StoredRow = { docNum: 0, etag: 0, bytes: Buffer.alloc(0), start: 0 };
  let at = 0;
  return {
    row,
    pending: null,
    next() {
      const document = documents[at++];
      if (document === undefined) return false;
      setRow(row, document);
      return true;
    },
  };
}

/** The platform's regular expressions; no scripts. */
const noScripts: ScriptProvider = {
  forQuery() {
    throw new Error("scripts are not available here");
  },
  textTest(pattern) {
    const expression = new RegExp(pattern, "i");
    return (text) => expression.test(text);
  },
};

/** The id of each row, or the row itself if it is not a document. */
export function rowIds(rows: readonly string[]): string[] {
  return rows.map((row) => {
    const { "@metadata": metadata } = JSON.parse(row) as { "@metadata": Record<string, string> };
    return metadata["@id"] ?? row;
  });
}
