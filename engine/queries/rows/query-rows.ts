/**
 * The documents of a database as a query reads them: by number, by id, in the order of etags or ids. Created for one
 * query and closed after it.
 *
 * A walk over a collection sees the documents of one moment, through a view. Single documents are read in their current
 * version. Rows point into images of segments, or into blocks (record-reader.ts): no object is allocated for each.
 *
 * Hot: bench/scan.bench.ts.
 */

import type { Clock } from "../../base/environment.ts";
import type { JsonText } from "../../base/json/json-text.ts";
import { changeVectorOf, collectionIdOf } from "../../state/documents/document-record.ts";
import {
  composeDocument,
  composedLength,
  composedMetadataLength,
  composeMetadata,
} from "../../state/documents/document-text.ts";
import type { Shape } from "../../state/documents/shapes.ts";
import { compareExchangeKey } from "../../state/keyspaces/compare-exchange.ts";
import { counterKey } from "../../state/keyspaces/counters.ts";
import { allCollections, type DocumentReader } from "../../state/keyspaces/document-table.ts";
import { policiesOf } from "../../state/keyspaces/time-series/series-policies.ts";
import {
  segmentPrefix,
  seriesKey,
  viewedSegments,
} from "../../state/keyspaces/time-series/time-series.ts";
import type { DatabaseState } from "../../state/store/database-state.ts";
import type { DatabaseView, Store } from "../../state/store/store.ts";
import type { FastPathSource } from "../execution/execute-fast-path.ts";
import type { RowCursor, StoredRow, StoredSeries } from "../execution/row-source.ts";
import { seriesParts } from "../time-series/series-parts.ts";
import { RecordReader } from "./record-reader.ts";
import { valueNamesOf } from "./series-value-names.ts";

const noExtra = Buffer.alloc(0);
const metadataOpen = '"@metadata":'.length;
const batchRows = 256;
/** A source of document numbers in some order, a batch at a time. */
interface NumberCursor {
  fill(batch: Uint32Array, limit: number): number;
}

/** A walk over documents. Each is read in the version that `reader` has when the walk reaches it. */
export class DocumentCursor implements RowCursor {
  readonly row: StoredRow;
  pending: Promise<void> | null = null;
  readonly #documents: DocumentReader;
  readonly #records: RecordReader;
  readonly #numbers: NumberCursor;
  readonly #batch = new Uint32Array(batchRows);
  #at = 0;
  #count = 0;
  #isLast = false;

  /** `row`: reused from an earlier, finished walk of the same reader. */
  constructor(
    documents: DocumentReader,
    numbers: NumberCursor,
    records: RecordReader,
    row = newRow(),
  ) {
    this.row = row;
    this.#documents = documents;
    this.#numbers = numbers;
    this.#records = records;
  }

  next(): boolean {
    this.pending = null;
    const documents = this.#documents;
    const { row } = this;
    for (;;) {
      if (this.#at === this.#count && !this.#fill()) {
        this.end();
        return false;
      }
      const docNum = this.#batch[this.#at] as number; // #at < #count
      const etag = documents.etagOf(docNum);
      if (etag === 0) {
        this.#at++;
        continue;
      }
      const position = documents.positionOf(docNum);
      if (!this.#records.tryPlace(position, documents.lengthOf(docNum), row)) {
        this.pending = this.#records.gather(documents, this.#batch, this.#at, this.#count);
        return false;
      }
      row.docNum = docNum;
      row.etag = etag;
      this.#at++;
      return true;
    }
  }

  /** Releases its pins. Required when a walk ends early. */
  end(): void {
    this.#records.rest();
    this.row.block?.release();
    this.row.block = null;
  }

  #fill(): boolean {
    if (this.#isLast) return false;
    this.#count = this.#numbers.fill(this.#batch, batchRows);
    this.#isLast = this.#count < batchRows;
    this.#at = 0;
    return this.#count > 0;
  }
}

export function newRow(): StoredRow {
  return { docNum: 0, etag: 0, bytes: noExtra, start: 0, block: null };
}

const noNumbers: NumberCursor = { fill: () => 0 };

export class QueryRows implements FastPathSource {
  readonly #database: Store;
  readonly #state: DatabaseState;
  readonly #clock: Clock;
  readonly #records: RecordReader;
  readonly #views: DatabaseView[] = [];
  #pending: Promise<void> | null = null;

  constructor(database: Store, clock: Clock) {
    this.#database = database;
    this.#state = database.state;
    this.#clock = clock;
    this.#records = new RecordReader(database);
  }

  /** Releases the resources of the walks. No cursor may be used afterward. */
  close(): void {
    this.#records.close();
    if (this.#views.length === 0) return;
    for (const view of this.#views) view.release();
    this.#views.length = 0;
  }

  countOf(collection: string | null): number {
    const { documents } = this.#state;
    return collection === null
      ? documents.documentCount
      : documents.countOfCollection(this.#collectionId(collection));
  }

  resultEtagOf(collection: string | null): number {
    return fingerprintOf(this.#state, collection);
  }

  findDocument(id: string): number {
    return this.#state.documents.find(id);
  }

  isIn(docNum: number, collection: string | null): boolean {
    const { documents } = this.#state;
    if (documents.etagOf(docNum) === 0) return false;
    return collection === null || documents.collectionOf(docNum) === this.#collectionId(collection);
  }

  lowerIdOf(docNum: number): string {
    return this.#state.documents.lowerIdOf(docNum);
  }

  compareIds(left: number, right: number): number {
    return this.#state.documents.compareIds(left, right);
  }

  exists(docNum: number): boolean {
    return this.#state.documents.etagOf(docNum) !== 0;
  }

  read(docNum: number, row: StoredRow): boolean {
    this.#pending = null;
    const { documents } = this.#state;
    const etag = documents.etagOf(docNum);
    if (etag === 0) return false;
    const position = documents.positionOf(docNum);
    if (!this.#records.place(docNum, position, documents.lengthOf(docNum), row)) {
      this.#pending = this.#records.pending;
      return false;
    }
    row.docNum = docNum;
    row.etag = etag;
    return true;
  }

  readListed(docNums: Uint32Array, at: number, row: StoredRow): boolean {
    this.#pending = null;
    const { documents } = this.#state;
    const docNum = docNums[at] as number; // at < length
    const etag = documents.etagOf(docNum);
    if (etag === 0) return false;
    if (!this.#records.tryPlace(documents.positionOf(docNum), documents.lengthOf(docNum), row)) {
      const to = Math.min(docNums.length, at + batchRows);
      this.#pending = this.#records.gather(documents, docNums, at, to);
      return false;
    }
    row.docNum = docNum;
    row.etag = etag;
    return true;
  }

  readNow(docNum: number, row: StoredRow): boolean {
    const { documents } = this.#state;
    const etag = documents.etagOf(docNum);
    if (etag === 0) return false;
    const position = documents.positionOf(docNum);
    if (!this.#records.tryPlace(position, documents.lengthOf(docNum), row)) return false;
    row.docNum = docNum;
    row.etag = etag;
    return true;
  }

  lengthOf(docNum: number): number {
    return this.#state.documents.lengthOf(docNum);
  }

  pending(): Promise<void> | null {
    return this.#pending;
  }

  rows(collection: string | null): RowCursor {
    const { documents } = this.#view();
    const id = collection === null ? allCollections : this.#collectionId(collection);
    const numbers = id === missingCollection ? noNumbers : documents.byEtag(id, 0);
    return new DocumentCursor(documents, numbers, this.#records);
  }

  rowsByPrefix(prefix: string): RowCursor {
    const { documents } = this.#view();
    return new DocumentCursor(documents, documents.byId(prefix), this.#records);
  }

  shapeOf(shapeId: number): Shape {
    return this.#state.shapes.get(shapeId);
  }

  metadataOf(row: StoredRow, extra: Buffer): Buffer {
    return metadataTextOf(this.#state, row, extra);
  }

  addDocument({ bytes, start }: StoredRow, extra: Buffer, text: JsonText): void {
    const member = this.#state.collectionMember(collectionIdOf(bytes, start));
    const { origin } = this.#state;
    const target = text.reserve(composedLength(bytes, start, member, origin, extra));
    text.advance(composeDocument(target, text.length, bytes, start, member, origin, extra));
  }

  changeVectorOf(row: StoredRow): string {
    return changeVectorOf(row.bytes, row.start, this.#state.origin);
  }

  counterOf(documentId: string, name: string): bigint | null {
    const counter = this.#state.keyspaces.counters.get(counterKey(documentId, name));
    return counter === undefined ? null : BigInt(counter.value);
  }

  rawCounterOf(documentId: string, name: string): string | null {
    const value = this.counterOf(documentId, name);
    return value === null ? null : `{"${this.#state.origin.partKey}":${value}}`;
  }

  seriesOf(documentId: string, name: string): StoredSeries | null {
    const { keyspaces, documents } = this.#state;
    const { settings } = this.#database;
    const docNum = documents.find(documentId);
    const collection =
      docNum < 0 ? "" : keyspaces.collections.nameOf(documents.collectionOf(docNum));
    const policies = policiesOf(settings, collection);
    const isStored = keyspaces.timeSeries.get(seriesKey(documentId, name)) !== undefined;
    if (!isStored && policies === null) return null;
    const segments = viewedSegments(keyspaces.timeSeriesSegments);
    const parts = seriesParts(segments, documentId, name, policies);
    if (parts.length === 0) return null;
    const valueNames = valueNamesOf(settings, collection, name);
    return { segments, prefix: segmentPrefix(documentId, name), parts, valueNames };
  }

  compareExchangeOf(key: string): string | null {
    const stored = this.#state.keyspaces.compareExchange.get(compareExchangeKey(key));
    if (stored === undefined) return null;
    return JSON.stringify((JSON.parse(stored.text) as { Object?: unknown }).Object ?? null);
  }

  monotonicMs(): number {
    return this.#clock.monotonicMs();
  }

  nowMicros(): number {
    return this.#clock.nowMicros();
  }

  #collectionId(collection: string): number {
    return collectionIdNamed(this.#state, collection);
  }

  #view(): DatabaseView {
    const view = this.#database.view();
    this.#views.push(view);
    return view;
  }
}

/** No collection has this number: numbers in rows have 16 bits. */
const missingCollection = 0x1_0000;

/** Returns the number of a collection, or `missingCollection`. */
export function collectionIdNamed(state: DatabaseState, name: string): number {
  const id = state.keyspaces.collections.find(name);
  return id < 0 ? missingCollection : id;
}

/** Returns a row's `@metadata` object as JSON text, with `extra` members in it, each followed by a comma. */
export function metadataTextOf(state: DatabaseState, row: StoredRow, extra: Buffer): Buffer {
  const { bytes, start } = row;
  const member = state.collectionMember(collectionIdOf(bytes, start));
  const { origin } = state;
  const target = Buffer.allocUnsafe(composedMetadataLength(bytes, start, member, origin, extra));
  composeMetadata(target, 0, bytes, start, member, origin, extra);
  return target.subarray(metadataOpen);
}

/**
 * Returns a safe integer that identifies the state of a collection's documents (null: all documents): equal integers
 * mean equal states. It combines the greatest etag ever assigned in the collection with the number of documents:
 * without a write, documents can only become fewer.
 */
export function fingerprintOf(state: DatabaseState, collection: string | null): number {
  const { documents } = state;
  const id = collection === null ? allCollections : collectionIdNamed(state, collection);
  const count = collection === null ? documents.documentCount : documents.countOfCollection(id);
  return safeHash(documents.newestEtagOf(id), count);
}

const hashedWords = new Uint32Array(4);
const hashedNumbers = new Float64Array(hashedWords.buffer);

/** 53 bits of a hash of two numbers. Runs for every query. */
export function safeHash(first: number, second: number): number {
  hashedNumbers[0] = first;
  hashedNumbers[1] = second;
  let low = 0;
  let high = 0;
  for (const word of hashedWords) {
    low = mixed(low ^ word);
    high = mixed(high + word + low);
  }
  return (high & 0x1f_ffff) * 2 ** 32 + (low >>> 0);
}

/** Returns the last steps of MurmurHash3 for 32 bits: every bit of the input changes half of the output. */
function mixed(word: number): number {
  let bits = word;
  bits = Math.imul(bits ^ (bits >>> 16), 0x85eb_ca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2_ae35);
  return bits ^ (bits >>> 16) ^ 0x9e37_79b9;
}
