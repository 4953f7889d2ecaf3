/**
 * Loading documents by id: the reply of `GET docs?id=…` with includes, counters, time series and compare-exchange
 * values.
 *
 * The common case, one resident document with nothing included, is a look-up and a few copies of bytes.
 *
 * Hot: bench/http.bench.ts.
 */

import { parseTimestamp } from "../../engine/base/timestamp.ts";
import { turnIsOver } from "../../engine/base/turns.ts";
import { bodyTextOf, changeVectorOf, idOf } from "../../engine/documents/document-record.ts";
import {
  changeVectorsAt,
  type IncludePath,
  includedIds,
  parseIncludePath,
} from "../../engine/documents/include-path.ts";
import { ReplyText } from "../../engine/documents/reply-text.ts";
import type { Database } from "../../engine/engine.ts";
import { compareExchangeKey } from "../../engine/keyspaces/compare-exchange.ts";
import { counterKey } from "../../engine/keyspaces/counters.ts";
import type { SeriesInclude } from "../../engine/rql/analyzed-query.ts";
import type { IncludedRevisions } from "../../engine/rql/results.ts";
import { compareNames } from "../../engine/writes/counter-operations.ts";
import { isUnchanged, missingEtag, quoted, StateHash } from "../http/conditional.ts";
import type { Exchange } from "../http/exchange.ts";
import { isLarge, openLargeDocument, type RecordAddress } from "../http/large-document.ts";
import { jsonContentType } from "../http/response.ts";
import { StreamedReply } from "../http/streamed-reply.ts";
import { addIncludedRevisions, includedRevisions } from "./revision-includes.ts";
import {
  seriesIncludesOf,
  seriesIncludesState,
  seriesIncludesText,
} from "./time-series-includes.ts";

const jsonHeaders = { "content-type": jsonContentType };
const resultsOpenText = '{"Results":[';
const resultsEndText = '],"Includes":{}}';
const resultsOpen = Buffer.from(resultsOpenText);
const resultsEnd = Buffer.from(resultsEndText);

/** What a load returns in addition to the documents. */
interface LoadOptions {
  readonly metadataOnly: boolean;
  readonly includes: readonly IncludePath[];
  readonly counters: readonly string[];
  readonly compareExchange: readonly IncludePath[];
  /** Paths to change vectors of revisions. */
  readonly revisionPaths: readonly string[];
  /** Microseconds since 1970: includes each document's newest revision up to then. */
  readonly revisionsBefore: number | undefined;
  readonly series: readonly SeriesInclude[];
  /** Missing documents are omitted instead of null (cluster-wide sessions). */
  readonly skipsMissing: boolean;
}

const usualOptions: LoadOptions = {
  metadataOnly: false,
  includes: [],
  counters: [],
  compareExchange: [],
  revisionPaths: [],
  revisionsBefore: undefined,
  series: [],
  skipsMissing: false,
};

/** Replies with the documents `ids`, in that order. @throws EngineError invalid-argument for bad parameters */
export function loadDocuments(
  exchange: Exchange,
  database: Database,
  ids: readonly string[],
): Promise<void> | void {
  const options = exchange.query.hasOnly("id") ? usualOptions : optionsOf(exchange);
  const [first] = ids;
  if (ids.length === 1 && first !== undefined) {
    const document = first === "" ? -1 : database.find(first);
    if (document < 0 && !options.skipsMissing) {
      exchange.reply(isUnchanged(exchange, missingEtag) ? 304 : 404, jsonHeaders);
      return;
    }
    if (document >= 0 && options.includes.length === 0 && !hasExtras(options)) {
      const length = database.state.documents.lengthOf(document);
      if (isLarge(length) && !options.metadataOnly) {
        const position = database.state.documents.positionOf(document);
        return replyLarge(exchange, database, { document, position, length });
      }
      const record = database.record(document);
      return record instanceof Promise
        ? record.then((bytes) => replyOne(exchange, database, bytes, options.metadataOnly))
        : replyOne(exchange, database, record, options.metadataOnly);
    }
  }
  return replyMany(exchange, database, ids, options);
}

/** The change vector of an existing document. */
export async function changeVectorOfRow(database: Database, document: number): Promise<string> {
  const record = await database.record(document);
  return changeVectorOf(record, 0, database.state.databaseHash);
}

function hasExtras(options: LoadOptions): boolean {
  return (
    options.counters.length > 0 ||
    options.compareExchange.length > 0 ||
    options.series.length > 0 ||
    options.revisionPaths.length > 0 ||
    options.revisionsBefore !== undefined
  );
}

function optionsOf(exchange: Exchange): LoadOptions {
  const { query } = exchange;
  const before = parseTimestamp(query.get("revisionsBefore") ?? "");
  return {
    metadataOnly: query.strictBool("metadataOnly"),
    includes: query.all("include").map(parseIncludePath),
    counters: query.all("counter"),
    compareExchange: query.all("cmpxchg").map(parseIncludePath),
    revisionPaths: query.all("revisions"),
    // RavenDB 7.2.7 ignores an invalid date.
    revisionsBefore: Number.isNaN(before) ? undefined : before,
    series: seriesIncludesOf(query),
    skipsMissing: query.get("txMode") === "ClusterWide",
  };
}

function replyOne(
  exchange: Exchange,
  database: Database,
  record: Buffer,
  metadataOnly: boolean,
): void {
  const etag = changeVectorOf(record, 0, database.state.databaseHash);
  if (isUnchanged(exchange, etag)) {
    exchange.reply(304, jsonHeaders);
    return;
  }
  const text = new ReplyText(record.length + 256);
  text.addBytes(resultsOpen).addDocument(database.state, record, 0, metadataOnly);
  exchange.replyJson(200, text.addBytes(resultsEnd).bytes, { etag: quoted(etag) });
}

/** Replies with one document too large to be composed at once. @throws RequestError 503 when memory is short */
async function replyLarge(
  exchange: Exchange,
  database: Database,
  address: RecordAddress,
): Promise<void> {
  const large = await openLargeDocument(database, address);
  try {
    const etag = changeVectorOf(large.record, 0, database.state.databaseHash);
    if (isUnchanged(exchange, etag)) exchange.reply(304, jsonHeaders);
    else {
      const headers = { etag: quoted(etag) };
      await exchange.replyPieces(200, resultsOpenText, large.pieces, resultsEndText, headers);
    }
  } finally {
    large.release();
  }
}

async function replyMany(
  exchange: Exchange,
  database: Database,
  ids: readonly string[],
  options: LoadOptions,
): Promise<void> {
  const view = database.view();
  const reply = new StreamedReply(exchange, 200);
  try {
    const loader = new Loader(database, view.documents);
    const documents: number[] = [];
    for (const id of ids) {
      const document = id === "" ? -1 : view.documents.find(id);
      if (document >= 0 || !options.skipsMissing) documents.push(document);
      await turnIsOver();
    }
    const found = documents.filter((document) => document >= 0);
    const included = await findIncluded(loader, found, options.includes);
    const revisions = await includedRevisions(database, await revisionsOf(loader, found, options));
    const etag = await etagOf(loader, documents, included, options);
    if (isUnchanged(exchange, etag)) {
      exchange.reply(304, jsonHeaders);
      return;
    }
    reply.headers = { etag: quoted(etag) };
    await compose(reply, loader, documents, included, options);
    await composeExtras(reply, loader, found, options);
    addIncludedRevisions(reply.text, database, revisions);
    reply.text.addText("}");
    await reply.end();
  } catch (error) {
    if (!reply.fail()) throw error;
  } finally {
    view.release();
  }
}

/** Bytes of records that a load caches; records beyond that are read again at each use. */
const keptBytesMax = 1024 * 1024;

/** Reads records from one view. */
class Loader {
  readonly database: Database;
  readonly #documents: ReturnType<Database["view"]>["documents"];
  readonly #kept = new Map<number, Buffer>();
  #keptBytes = 0;

  constructor(database: Database, documents: ReturnType<Database["view"]>["documents"]) {
    this.database = database;
    this.#documents = documents;
  }

  find(id: string): number {
    return this.#documents.find(id);
  }

  addressOf(document: number): RecordAddress {
    const position = this.#documents.positionOf(document);
    return { document, position, length: this.#documents.lengthOf(document) };
  }

  /** The record, valid until the next turn of the event loop after it resolves. */
  async record(document: number): Promise<Buffer> {
    await turnIsOver();
    const kept = this.#kept.get(document);
    if (kept !== undefined) return kept;
    const { position, length } = this.addressOf(document);
    const read = this.database.recordAt(document, position, length);
    if (this.#keptBytes + length > keptBytesMax) return read;
    const copy = read instanceof Promise ? await read : Buffer.from(read);
    this.#kept.set(document, copy);
    this.#keptBytes += length;
    return copy;
  }

  /** The body, parsed. */
  async body(document: number): Promise<unknown> {
    return JSON.parse(bodyTextOf(await this.record(document), 0));
  }

  async idOf(document: number): Promise<string> {
    return idOf(await this.record(document), 0);
  }
}

/** The documents that the include paths lead to, each once, without those already loaded. */
async function findIncluded(
  loader: Loader,
  found: readonly number[],
  paths: readonly IncludePath[],
): Promise<number[]> {
  if (paths.length === 0) return [];
  const seen = new Set(found);
  const wanted: string[] = [];
  for (const document of found) {
    const body = await loader.body(document);
    for (const path of paths) includedIds(body, path, (id) => wanted.push(id));
  }
  const included: number[] = [];
  for (const id of wanted) {
    const document = loader.find(id);
    if (document < 0 || seen.has(document)) continue;
    seen.add(document);
    included.push(document);
  }
  return included;
}

async function etagOf(
  loader: Loader,
  documents: readonly number[],
  included: readonly number[],
  options: LoadOptions,
): Promise<string> {
  const { database } = loader;
  const vectorOf = async (document: number) =>
    changeVectorOf(await loader.record(document), 0, database.state.databaseHash);
  const [only = -1] = documents;
  if (documents.length === 1 && only >= 0 && included.length === 0 && !hasExtras(options)) {
    return vectorOf(only);
  }
  const hash = new StateHash().add(documents.length);
  for (const document of documents) hash.add(document < 0 ? null : await vectorOf(document));
  hash.add(included.length);
  for (const document of included) hash.add(await vectorOf(document));
  if (!hasExtras(options)) return hash.etag;
  for (const document of documents) {
    if (document < 0) continue;
    const id = await loader.idOf(document);
    for (const row of counterRows(database, id, options.counters)) hash.add(row);
    for (const row of await compareExchangeRows(loader, document, options)) hash.add(row[1]);
    for (const state of seriesIncludesState(database, id, options.series)) hash.add(state);
  }
  return hash.etag;
}

/** Writes the documents, and the included ones. */
async function compose(
  reply: StreamedReply,
  loader: Loader,
  documents: readonly number[],
  included: readonly number[],
  { metadataOnly }: LoadOptions,
): Promise<void> {
  const { text } = reply;
  text.addText('{"Results":[');
  let count = 0;
  for (const document of documents) {
    if (count++ > 0) text.addText(",");
    if (document < 0) text.addText("null");
    else await addDocument(reply, loader, document, metadataOnly);
    if (reply.isClosed) return;
  }
  text.addText('],"Includes":{');
  count = 0;
  for (const document of included) {
    if (count++ > 0) text.addText(",");
    text.addString(await loader.idOf(document)).addText(":");
    await addDocument(reply, loader, document, false);
    if (reply.isClosed) return;
  }
  text.addText("}");
}

async function addDocument(
  reply: StreamedReply,
  loader: Loader,
  document: number,
  metadataOnly: boolean,
): Promise<void> {
  const { database } = loader;
  const address = loader.addressOf(document);
  if (isLarge(address.length) && !metadataOnly) await reply.addLarge(database, address);
  else {
    reply.text.addDocument(database.state, await loader.record(document), 0, metadataOnly);
    await reply.flush();
  }
}

/** Writes the requested counters, time series and compare-exchange values. */
async function composeExtras(
  { text }: StreamedReply,
  loader: Loader,
  found: readonly number[],
  options: LoadOptions,
): Promise<void> {
  const { database } = loader;
  if (options.counters.length > 0) {
    const rows: string[] = [];
    for (const document of found) {
      const id = await loader.idOf(document);
      rows.push(`${JSON.stringify(id)}:[${counterRows(database, id, options.counters).join(",")}]`);
    }
    text.addText(`,"CounterIncludes":{${rows.join(",")}}`);
  }
  if (options.series.length > 0) {
    const rows: string[] = [];
    for (const document of found) {
      const id = await loader.idOf(document);
      rows.push(`${JSON.stringify(id)}:${seriesIncludesText(database, id, options.series)}`);
    }
    text.addText(`,"TimeSeriesIncludes":{${rows.join(",")}}`);
  }
  if (options.compareExchange.length > 0) {
    const rows = new Map<string, string>();
    for (const document of found) {
      for (const [key, row] of await compareExchangeRows(loader, document, options)) {
        rows.set(key, row);
      }
    }
    const members = [...rows].map(([key, row]) => `${JSON.stringify(key)}:${row}`);
    if (members.length > 0) text.addText(`,"CompareExchangeValueIncludes":{${members.join(",")}}`);
  }
}

/** @throws EngineError invalid-operation when a document lacks the field of a path */
async function revisionsOf(
  loader: Loader,
  found: readonly number[],
  { revisionPaths, revisionsBefore }: LoadOptions,
): Promise<IncludedRevisions> {
  const changeVectors = new Set<string>();
  for (const document of revisionPaths.length === 0 ? [] : found) {
    const body = await loader.body(document);
    for (const path of revisionPaths) {
      for (const vector of changeVectorsAt(body, path)) changeVectors.add(vector);
    }
  }
  const before: { documentId: string; micros: number }[] = [];
  for (const document of revisionsBefore === undefined ? [] : found) {
    before.push({ documentId: await loader.idOf(document), micros: revisionsBefore ?? 0 });
  }
  return { changeVectors, before };
}

/** JSON texts of a document's counters: names are echoed as requested, missing counters are null. */
function counterRows(database: Database, id: string, names: readonly string[]): string[] {
  const { counters } = database.state.keyspaces;
  const row = (name: string, value: string) =>
    `{"DocumentId":${JSON.stringify(id)},"CounterName":${JSON.stringify(name)},"TotalValue":${value}}`;
  if (names.length === 1 && names[0] === "@all_counters") {
    return [...counters.withPrefix(counterKey(id, ""))]
      .map(([, counter]) => counter)
      .sort(compareNames)
      .map(({ name, value }) => row(name, value));
  }
  return names.map((name) => {
    const counter = counters.get(counterKey(id, name));
    return counter === undefined ? "null" : row(name, counter.value);
  });
}

/** Key and JSON text of each compare-exchange value that the document references. */
async function compareExchangeRows(
  loader: Loader,
  document: number,
  options: LoadOptions,
): Promise<[string, string][]> {
  const rows: [string, string][] = [];
  if (options.compareExchange.length === 0) return rows;
  const { compareExchange } = loader.database.state.keyspaces;
  const body = await loader.body(document);
  for (const path of options.compareExchange) {
    includedIds(body, path, (key) => {
      const stored = compareExchange.get(compareExchangeKey(key));
      const value = stored === undefined ? "null" : stored.text;
      rows.push([
        key,
        `{"Index":${stored?.index ?? -1},"Key":${JSON.stringify(key)},"Value":${value}}`,
      ]);
    });
  }
  return rows;
}
