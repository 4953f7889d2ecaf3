/**
 * Loading documents by id: the reply of `GET docs?id=…` with includes, counters, time series and compare-exchange
 * values.
 *
 * The common case, one resident document with nothing included, is a look-up and a few copies of bytes.
 *
 * Hot: bench/http.bench.ts.
 */
import type { Database } from "../engine/database.ts";
import { bodyTextOf, changeVectorOf, idOf } from "../engine/document.ts";
import {
  changeVectorsAt,
  type IncludePath,
  includedIds,
  parseIncludePath,
} from "../engine/include-path.ts";
import { compareExchangeKey } from "../engine/keyspaces/compare-exchange.ts";
import { counterKey } from "../engine/keyspaces/counters.ts";
import { ReplyText } from "../engine/reply-text.ts";
import type { SeriesInclude } from "../engine/rql/analyzed-query.ts";
import type { IncludedRevisions } from "../engine/rql/results.ts";
import { parseTimestamp } from "../engine/timestamp.ts";
import { compareNames } from "../engine/writes/counter-operations.ts";
import { isUnchanged, missingEtag, quoted, StateHash } from "./conditional.ts";
import type { Exchange } from "./exchange.ts";
import { jsonContentType } from "./response.ts";
import { addIncludedRevisions, includedRevisions } from "./revision-includes.ts";
import {
  seriesIncludesOf,
  seriesIncludesState,
  seriesIncludesText,
} from "./time-series-includes.ts";

const jsonHeaders = { "content-type": jsonContentType };
const resultsOpen = Buffer.from('{"Results":[');
const resultsEnd = Buffer.from('],"Includes":{}}');

/** A document of the reply; its record is valid until the next turn of the event loop. */
interface Loaded {
  /** As it is stored, in whatever case it was asked for. */
  readonly id: string;
  readonly document: number;
  readonly record: Buffer;
}

/** What a load asks for beside the documents. */
interface LoadOptions {
  readonly metadataOnly: boolean;
  readonly includes: readonly IncludePath[];
  readonly counters: readonly string[];
  readonly compareExchange: readonly IncludePath[];
  /** Paths of change vectors of revisions. */
  readonly revisionPaths: readonly string[];
  /** Microseconds since 1970: of each document the newest revision that is not later. */
  readonly revisionsBefore: number | undefined;
  readonly series: readonly SeriesInclude[];
  /** Missing documents are left out instead of null (cluster-wide sessions). */
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

/** Answers a load of `ids`, in their order. @throws EngineError invalid-argument for bad parameters */
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
      const record = database.record(document);
      return record instanceof Promise
        ? record.then((bytes) => replyOne(exchange, database, bytes, options.metadataOnly))
        : replyOne(exchange, database, record, options.metadataOnly);
    }
  }
  return replyMany(exchange, database, ids, options);
}

/** The change vector of a document that exists. */
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
    // RavenDB 7.2.7 passes over what is no date.
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

async function replyMany(
  exchange: Exchange,
  database: Database,
  ids: readonly string[],
  options: LoadOptions,
): Promise<void> {
  const view = database.view();
  try {
    const loader = new Loader(database, view.documents);
    const results: (Loaded | null)[] = [];
    for (const id of ids) {
      const loaded = id === "" ? null : await loader.load(id);
      if (loaded !== null || !options.skipsMissing) results.push(loaded);
    }
    const found = results.filter((loaded) => loaded !== null);
    const included = await loadIncluded(loader, found, options.includes);
    const revisions = await includedRevisions(database, revisionsOf(found, options));
    const etag = etagOf(database, results, included, options);
    if (isUnchanged(exchange, etag)) {
      exchange.reply(304, jsonHeaders);
      return;
    }
    const text = compose(database, results, included, options);
    addIncludedRevisions(text, database, revisions);
    text.addText("}");
    exchange.replyJson(200, text.bytes, { etag: quoted(etag) });
  } finally {
    view.release();
  }
}

/** Reads records of one view; those that are only borrowed from the log are copied, so that awaiting is safe. */
class Loader {
  readonly #database: Database;
  readonly #documents: ReturnType<Database["view"]>["documents"];

  constructor(database: Database, documents: ReturnType<Database["view"]>["documents"]) {
    this.#database = database;
    this.#documents = documents;
  }

  async load(id: string): Promise<Loaded | null> {
    const document = this.#documents.find(id);
    if (document < 0) return null;
    const position = this.#documents.positionOf(document);
    const length = this.#documents.lengthOf(document);
    const record = this.#database.recordAt(document, position, length);
    const kept = record instanceof Promise ? await record : Buffer.from(record);
    return { id: idOf(kept, 0), document, record: kept };
  }
}

/** Documents under the include paths, without those that were asked for themselves, each once. */
async function loadIncluded(
  loader: Loader,
  results: readonly Loaded[],
  paths: readonly IncludePath[],
): Promise<Loaded[]> {
  if (paths.length === 0) return [];
  const seen = new Set(results.map(({ document }) => document));
  const wanted: string[] = [];
  for (const { record } of results) {
    const body: unknown = JSON.parse(bodyTextOf(record, 0));
    for (const path of paths) includedIds(body, path, (id) => wanted.push(id));
  }
  const included: Loaded[] = [];
  for (const id of wanted) {
    const loaded = await loader.load(id);
    if (loaded === null || seen.has(loaded.document)) continue;
    seen.add(loaded.document);
    included.push(loaded);
  }
  return included;
}

function etagOf(
  database: Database,
  results: readonly (Loaded | null)[],
  included: readonly Loaded[],
  options: LoadOptions,
): string {
  const vectorOf = ({ record }: Loaded) => changeVectorOf(record, 0, database.state.databaseHash);
  const [only] = results;
  if (results.length === 1 && only != null && included.length === 0 && !hasExtras(options)) {
    return vectorOf(only);
  }
  const hash = new StateHash().add(results.length);
  for (const loaded of results) hash.add(loaded === null ? null : vectorOf(loaded));
  hash.add(included.length);
  for (const loaded of included) hash.add(vectorOf(loaded));
  for (const loaded of results) {
    if (loaded === null) continue;
    for (const row of counterRows(database, loaded, options.counters)) hash.add(row);
    for (const row of compareExchangeRows(database, loaded, options)) hash.add(row[1]);
    for (const state of seriesIncludesState(database, loaded.id, options.series)) hash.add(state);
  }
  return hash.etag;
}

/** The reply, but its last brace. */
function compose(
  database: Database,
  results: readonly (Loaded | null)[],
  included: readonly Loaded[],
  options: LoadOptions,
): ReplyText {
  const text = new ReplyText(4096).addText('{"Results":[');
  results.forEach((loaded, position) => {
    if (position > 0) text.addText(",");
    if (loaded === null) text.addText("null");
    else text.addDocument(database.state, loaded.record, 0, options.metadataOnly);
  });
  text.addText('],"Includes":{');
  included.forEach(({ record }, position) => {
    if (position > 0) text.addText(",");
    text.addString(idOf(record, 0)).addText(":").addDocument(database.state, record, 0);
  });
  text.addText("}");
  const found = results.filter((loaded) => loaded !== null);
  if (options.counters.length > 0) {
    const rows = found.map(
      (loaded) =>
        `${JSON.stringify(loaded.id)}:[${counterRows(database, loaded, options.counters).join(",")}]`,
    );
    text.addText(`,"CounterIncludes":{${rows.join(",")}}`);
  }
  if (options.series.length > 0) {
    const rows = found.map(
      ({ id }) => `${JSON.stringify(id)}:${seriesIncludesText(database, id, options.series)}`,
    );
    text.addText(`,"TimeSeriesIncludes":{${rows.join(",")}}`);
  }
  if (options.compareExchange.length > 0) {
    const rows = new Map(found.flatMap((loaded) => compareExchangeRows(database, loaded, options)));
    const members = [...rows].map(([key, row]) => `${JSON.stringify(key)}:${row}`);
    if (members.length > 0) text.addText(`,"CompareExchangeValueIncludes":{${members.join(",")}}`);
  }
  return text;
}

/** @throws EngineError invalid-operation when a document has not the field of a path */
function revisionsOf(
  found: readonly Loaded[],
  { revisionPaths, revisionsBefore }: LoadOptions,
): IncludedRevisions {
  const changeVectors = new Set<string>();
  for (const { record } of revisionPaths.length === 0 ? [] : found) {
    const body: unknown = JSON.parse(bodyTextOf(record, 0));
    for (const path of revisionPaths) {
      for (const vector of changeVectorsAt(body, path)) changeVectors.add(vector);
    }
  }
  const before =
    revisionsBefore === undefined
      ? []
      : found.map(({ id }) => ({ documentId: id, micros: revisionsBefore }));
  return { changeVectors, before };
}

/** JSON texts of a document's counters: asked-for spellings are echoed, missing ones are null. */
function counterRows(database: Database, loaded: Loaded, names: readonly string[]): string[] {
  const { counters } = database.state.keyspaces;
  const row = (name: string, value: string) =>
    `{"DocumentId":${JSON.stringify(loaded.id)},"CounterName":${JSON.stringify(name)},"TotalValue":${value}}`;
  if (names.length === 1 && names[0] === "@all_counters") {
    return [...counters.withPrefix(counterKey(loaded.id, ""))]
      .map(([, counter]) => counter)
      .sort(compareNames)
      .map(({ name, value }) => row(name, value));
  }
  return names.map((name) => {
    const counter = counters.get(counterKey(loaded.id, name));
    return counter === undefined ? "null" : row(name, counter.value);
  });
}

/** Key and JSON text of each compare-exchange value that the document names. */
function compareExchangeRows(
  database: Database,
  loaded: Loaded,
  options: LoadOptions,
): [string, string][] {
  const rows: [string, string][] = [];
  if (options.compareExchange.length === 0) return rows;
  const body: unknown = JSON.parse(bodyTextOf(loaded.record, 0));
  for (const path of options.compareExchange) {
    includedIds(body, path, (key) => {
      const stored = database.state.keyspaces.compareExchange.get(compareExchangeKey(key));
      const value = stored === undefined ? "null" : stored.text;
      rows.push([
        key,
        `{"Index":${stored?.index ?? -1},"Key":${JSON.stringify(key)},"Value":${value}}`,
      ]);
    });
  }
  return rows;
}
