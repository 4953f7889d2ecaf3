/**
 * Loads documents by id: the reply of `GET docs?id=…` with includes, counters, time series, and compare-exchange values.
 *
 * The common case, one resident document without includes, is a lookup and a few copies of bytes.
 *
 * Hot: bench/http.bench.ts.
 */

import { JsonText } from "../../engine/base/json/json-text.ts";
import { pauseIfDue } from "../../engine/base/scheduling/time-slices.ts";
import { parseTimestamp } from "../../engine/base/timestamp.ts";
import {
  changeVectorsAt,
  type Database,
  type DocumentRow,
  type DocumentsView,
  type FoundDocument,
  type IncludedRevisions,
  type IncludePath,
  includedIds,
  parseIncludePath,
  type SeriesInclude,
} from "../../engine/engine.ts";
import { isUnchanged, missingEtag, quoted, StateHash } from "../http/conditional.ts";
import type { Exchange } from "../http/exchange.ts";
import { reserveForReply } from "../http/reply-room.ts";
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

/** The data that a load returns in addition to the documents. */
interface LoadOptions {
  readonly metadataOnly: boolean;
  readonly includes: readonly IncludePath[];
  readonly counters: readonly string[];
  readonly compareExchange: readonly IncludePath[];
  /** Paths to change vectors of revisions. */
  readonly revisionPaths: readonly string[];
  /** Microseconds since the Unix epoch: includes each document's newest revision up to then. */
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
    const document = database.documents.find(first);
    if (document === null && !options.skipsMissing) {
      exchange.reply(isUnchanged(exchange, missingEtag) ? 304 : 404, jsonHeaders);
      return;
    }
    if (document !== null && options.includes.length === 0 && !hasExtras(options)) {
      if (document.isLarge && !options.metadataOnly) return replyLarge(exchange, document);
      const row = document.read();
      return row instanceof Promise
        ? row.then((read) => replyOne(exchange, read, options.metadataOnly))
        : replyOne(exchange, row, options.metadataOnly);
    }
  }
  return replyMany(exchange, database, ids, options);
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

function replyOne(exchange: Exchange, row: DocumentRow, metadataOnly: boolean): void {
  const etag = row.changeVector;
  if (isUnchanged(exchange, etag)) {
    exchange.reply(304, jsonHeaders);
    return;
  }
  const text = new JsonText(row.storedBytes + 256);
  row.addTo(text.addBytes(resultsOpen), metadataOnly);
  exchange.replyJson(200, text.addBytes(resultsEnd).bytes, { etag: quoted(etag) });
}

/** Replies with one document too large to be composed synchronously. @throws RequestError 503 when memory is short */
async function replyLarge(exchange: Exchange, document: FoundDocument): Promise<void> {
  const large = await document.open(reserveForReply);
  try {
    const etag = large.row.changeVector;
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
  const view = database.documents.view();
  const reply = new StreamedReply(exchange, 200);
  try {
    const loader = new Loader(database, view);
    const documents: (FoundDocument | null)[] = [];
    for (const id of ids) {
      const document = view.find(id);
      if (document !== null || !options.skipsMissing) documents.push(document);
      await pauseIfDue();
    }
    const found = documents.filter((document) => document !== null);
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
    addIncludedRevisions(reply.text, revisions);
    reply.text.addText("}");
    await reply.end();
  } finally {
    view.release();
  }
}

/** Maximum size of records that a load caches, in bytes; further records are read again at each use. */
const keptBytesMax = 1024 * 1024;

/** Reads documents of one view. */
class Loader {
  readonly database: Database;
  readonly #view: DocumentsView;
  readonly #kept = new Map<number, DocumentRow>();
  #keptBytes = 0;

  constructor(database: Database, view: DocumentsView) {
    this.database = database;
    this.#view = view;
  }

  find(id: string): FoundDocument | null {
    return this.#view.find(id);
  }

  /** Valid until the event-loop tick after it resolves. */
  async row(document: FoundDocument): Promise<DocumentRow> {
    await pauseIfDue();
    const kept = this.#kept.get(document.key);
    if (kept !== undefined) return kept;
    const read = document.read();
    if (this.#keptBytes + document.storedBytes > keptBytesMax) return read;
    const copy = (read instanceof Promise ? await read : read).copy();
    this.#kept.set(document.key, copy);
    this.#keptBytes += document.storedBytes;
    return copy;
  }

  /** The body, parsed. */
  async body(document: FoundDocument): Promise<unknown> {
    return (await this.row(document)).body();
  }

  async idOf(document: FoundDocument): Promise<string> {
    return (await this.row(document)).id;
  }
}

/** Returns the documents at the include paths, each once, without those already loaded. */
async function findIncluded(
  loader: Loader,
  found: readonly FoundDocument[],
  paths: readonly IncludePath[],
): Promise<FoundDocument[]> {
  if (paths.length === 0) return [];
  const seen = new Set(found.map(({ key }) => key));
  const wanted: string[] = [];
  for (const document of found) {
    const body = await loader.body(document);
    for (const path of paths) includedIds(body, path, (id) => wanted.push(id));
  }
  const included: FoundDocument[] = [];
  for (const id of wanted) {
    const document = loader.find(id);
    if (document === null || seen.has(document.key)) continue;
    seen.add(document.key);
    included.push(document);
  }
  return included;
}

async function etagOf(
  loader: Loader,
  documents: readonly (FoundDocument | null)[],
  included: readonly FoundDocument[],
  options: LoadOptions,
): Promise<string> {
  const { database } = loader;
  const vectorOf = async (document: FoundDocument) => (await loader.row(document)).changeVector;
  const [only = null] = documents;
  if (documents.length === 1 && only !== null && included.length === 0 && !hasExtras(options)) {
    return vectorOf(only);
  }
  const hash = new StateHash().add(documents.length);
  for (const document of documents) hash.add(document === null ? null : await vectorOf(document));
  hash.add(included.length);
  for (const document of included) hash.add(await vectorOf(document));
  if (!hasExtras(options)) return hash.etag;
  for (const document of documents) {
    if (document === null) continue;
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
  documents: readonly (FoundDocument | null)[],
  included: readonly FoundDocument[],
  { metadataOnly }: LoadOptions,
): Promise<void> {
  const { text } = reply;
  text.addText('{"Results":[');
  let count = 0;
  for (const document of documents) {
    if (count++ > 0) text.addText(",");
    if (document === null) text.addText("null");
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
  document: FoundDocument,
  metadataOnly: boolean,
): Promise<void> {
  if (document.isLarge && !metadataOnly) await reply.addLarge(document);
  else {
    (await loader.row(document)).addTo(reply.text, metadataOnly);
    await reply.flush();
  }
}

/** Writes the requested counters, time series and compare-exchange values. */
async function composeExtras(
  { text }: StreamedReply,
  loader: Loader,
  found: readonly FoundDocument[],
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
  found: readonly FoundDocument[],
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
  const { counters } = database;
  const row = (name: string, value: string | bigint) =>
    `{"DocumentId":${JSON.stringify(id)},"CounterName":${JSON.stringify(name)},"TotalValue":${value}}`;
  if (names.length === 1 && names[0] === "@all_counters") {
    return counters.all(id).map(({ name, value }) => (name === "" ? "null" : row(name, value)));
  }
  return names.map((name) => {
    const counter = counters.get(id, name);
    return counter === null ? "null" : row(name, counter.value);
  });
}

/** Key and JSON text of each compare-exchange value that the document references. */
async function compareExchangeRows(
  loader: Loader,
  document: FoundDocument,
  options: LoadOptions,
): Promise<[string, string][]> {
  const rows: [string, string][] = [];
  if (options.compareExchange.length === 0) return rows;
  const { compareExchange } = loader.database;
  const body = await loader.body(document);
  for (const path of options.compareExchange) {
    includedIds(body, path, (key) => {
      const stored = compareExchange.get(key);
      const value = stored === undefined ? "null" : stored.text;
      rows.push([
        key,
        `{"Index":${stored?.index ?? -1},"Key":${JSON.stringify(key)},"Value":${value}}`,
      ]);
    });
  }
  return rows;
}
