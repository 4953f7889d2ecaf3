/** Time series of documents: entries by range, statistics, and writes. Long ranges are streamed. */

import { lowerCased } from "../../../engine/base/case-folding.ts";
import { EngineError, invalidArgument } from "../../../engine/base/errors.ts";
import { boundedDocumentId } from "../../../engine/base/names.ts";
import {
  type Database,
  type DocumentRow,
  type SeriesBounds,
  type SeriesPage,
  type SeriesSummary,
  seriesTimeText,
  timeMax,
  timeMin,
} from "../../../engine/engine.ts";
import { isUnchanged, quoted, StateHash } from "../../http/conditional.ts";
import type { Exchange } from "../../http/exchange.ts";
import { jsonBody } from "../../http/json-body.ts";
import { jsonContentType } from "../../http/response.ts";
import { StreamedReply } from "../../http/streamed-reply.ts";
import {
  boundsOf,
  type EntryForm,
  entryFormOf,
  rangeHead,
  sliceText,
  tagsOf,
} from "../../replies/time-series-text.ts";
import type { DatabaseContext, Route } from "../../routing/route.ts";

const int32Max = 2_147_483_647;
const path = "/databases/:database/timeseries";

export const timeSeriesRoutes: readonly Route[] = [
  { kind: "database", method: "GET", path, access: "read", handle: getSeries },
  { kind: "database", method: "GET", path: `${path}/ranges`, access: "read", handle: getRanges },
  { kind: "database", method: "GET", path: `${path}/stats`, access: "read", handle: getStatistics },
  {
    kind: "database",
    method: "GET",
    path: `${path}/debug/segments-summary`,
    access: "read",
    handle: getSegments,
  },
  { kind: "database", method: "POST", path, access: "write", handle: postSeries },
];

/** One range of the reply. */
interface Range {
  readonly bounds: SeriesBounds;
  readonly page: SeriesPage;
  readonly start: number;
  readonly form: EntryForm;
  /** The number of entries in the series, when the bounds include all of them. */
  readonly totalResults: number | undefined;
  /** Included documents, by id. */
  readonly includes: ReadonlyMap<string, DocumentRow>;
}

/** What a request includes in addition to the entries. */
interface RangeOptions {
  readonly includeDocument: boolean;
  readonly includeTags: boolean;
  readonly isFull: boolean;
}

function optionsOf({ query }: Exchange): RangeOptions {
  return {
    includeDocument: query.bool("includeDocument", false),
    includeTags: query.bool("includeTags", false),
    isFull: query.bool("full", false),
  };
}

/** GET timeseries?docId=…&name=…&from=…&to=…&start=…&pageSize=…: 404 when the series does not exist */
async function getSeries(exchange: Exchange, { database }: DatabaseContext): Promise<void> {
  const { query } = exchange;
  const id = boundedDocumentId(query.requiredFirst("docId"));
  const name = query.requiredFirst("name");
  const bounds = boundsOf([query.get("from"), query.get("to")], ["from", "to"]);
  const paging = pagingOf(exchange);
  const options = optionsOf(exchange);
  const planner = new RangePlanner(database, id, options);
  const range = await planner.plan(name, bounds, paging.start, paging.pageSize);
  if (range === null) {
    exchange.reply(404, { "content-type": jsonContentType });
    return;
  }
  if (isUnchanged(exchange, planner.etag)) {
    exchange.reply(304, { "content-type": jsonContentType });
    return;
  }
  const reply = new StreamedReply(exchange, 200, { etag: quoted(planner.etag) });
  await addRange(reply, range);
  await reply.end();
}

/** GET timeseries/ranges?docId=…(&name=…&from=…&to=…)*: 404 when one of the series does not exist */
async function getRanges(exchange: Exchange, { database }: DatabaseContext): Promise<void> {
  const id = boundedDocumentId(exchange.query.requiredFirst("docId"));
  const wanted = wantedRanges(exchange);
  const paging = pagingOf(exchange);
  const planner = new RangePlanner(database, id, optionsOf(exchange));
  const series = new Map<string, { name: string; ranges: Range[] }>();
  let { start, pageSize } = paging;
  for (const { name, bounds } of wanted) {
    const range = await planner.plan(name, bounds, start, pageSize);
    if (range === null) {
      exchange.reply(404, { "content-type": jsonContentType });
      return;
    }
    if (pageSize <= 0) continue;
    start -= range.page.skipped;
    pageSize -= range.page.count;
    // Here RavenDB 7.2.7 reports the total only when the page has all entries.
    const isWhole = range.page.count === range.totalResults;
    const shown = isWhole ? range : { ...range, totalResults: undefined };
    const known = series.get(lowerCased(name));
    if (known === undefined) series.set(lowerCased(name), { name, ranges: [shown] });
    else known.ranges.push(shown);
  }
  if (isUnchanged(exchange, planner.etag)) {
    exchange.reply(304, { "content-type": jsonContentType });
    return;
  }
  const reply = new StreamedReply(exchange, 200, { etag: quoted(planner.etag) });
  reply.text.addText(`{"Id":${JSON.stringify(id)},"Values":{`);
  let isFirst = true;
  for (const { name, ranges } of series.values()) {
    reply.text.addText(`${isFirst ? "" : ","}${JSON.stringify(name)}:[`);
    isFirst = false;
    for (const [position, range] of ranges.entries()) {
      if (position > 0) reply.text.addText(",");
      await addRange(reply, range);
    }
    reply.text.addText("]");
  }
  reply.text.addText("}}");
  await reply.end();
}

/** GET timeseries/debug/segments-summary?docId=…&name=…&from=…&to=…: the stored parts of a series; none if it does not exist */
async function getSegments(exchange: Exchange, { database }: DatabaseContext): Promise<void> {
  const { query } = exchange;
  const id = boundedDocumentId(query.requiredFirst("docId"));
  const name = query.requiredFirst("name");
  const bounds = boundsOf([query.get("from"), query.get("to")], ["from", "to"]);
  const reply = new StreamedReply(exchange, 200);
  reply.text.addText('{"Results":[');
  for (const [at, { first, count, etag }] of database.timeSeries
    .segments(id, name, bounds)
    .entries()) {
    if (at > 0) reply.text.addText(",");
    reply.text.addText(
      JSON.stringify({
        DocumentId: id,
        Name: lowerCased(name),
        StartTime: seriesTimeText(first),
        NumberOfEntries: count,
        NumberOfLiveEntries: count,
        ChangeVector: database.changeVectorAt(etag),
      }),
    );
    await reply.flush();
    if (reply.isClosed) return;
  }
  reply.text.addText("]}");
  await reply.end();
}

/** GET timeseries/stats?docId=…: 404 when the document does not exist */
function getStatistics(exchange: Exchange, { database }: DatabaseContext): void {
  const id = boundedDocumentId(exchange.query.requiredFirst("docId"));
  if (database.documents.find(id) === null) {
    exchange.reply(404, { "content-type": jsonContentType });
    return;
  }
  const { timeSeries } = database;
  const rows: string[] = [];
  for (const name of timeSeries.names(id)) {
    const summary = timeSeries.summary(id, name);
    if (summary === undefined) continue;
    const { count, first, last } = summary;
    rows.push(
      `{"Name":${JSON.stringify(name)},"NumberOfEntries":${count},"StartDate":"${seriesTimeText(first)}","EndDate":"${seriesTimeText(last)}"}`,
    );
  }
  exchange.replyJson(200, `{"DocumentId":${JSON.stringify(id)},"TimeSeries":[${rows.join(",")}]}`);
}

/** POST timeseries?docId=…, body `{"Name","Appends"?,"Deletes"?,"Increments"?}`: 204 */
async function postSeries(exchange: Exchange, { database }: DatabaseContext): Promise<void> {
  const id = boundedDocumentId(exchange.query.requiredFirst("docId"));
  await database.timeSeries.apply(id, await jsonBody(exchange));
  exchange.reply(204);
}

/** @throws EngineError invalid-operation for a negative size */
function pagingOf({ query }: Exchange): { start: number; pageSize: number } {
  const pageSize = query.int("pageSize", int32Max);
  if (pageSize < 0) throw new EngineError("invalid-operation", "'pageSize' cannot be negative.");
  return { start: Math.max(0, query.int("start", 0)), pageSize };
}

/** @throws EngineError invalid-argument */
function wantedRanges({ query }: Exchange): { name: string; bounds: SeriesBounds }[] {
  const names = query.all("name");
  const froms = query.all("from");
  const tos = query.all("to");
  for (const [key, values] of Object.entries({ name: names, from: froms, to: tos })) {
    if (values.length > 0) continue;
    throw invalidArgument(`Query string ${key} is mandatory, but wasn't specified.`);
  }
  if (froms.length !== tos.length) {
    throw invalidArgument(
      "Length of query string values 'from' must be equal to the length of query string values 'to'",
    );
  }
  if (froms.length !== names.length) {
    throw invalidArgument(
      "Length of query string values 'name' must be equal to the length of query string values 'from'",
    );
  }
  return names.map((name, position) => ({
    name,
    bounds: boundsOf([froms[position], tos[position]], [name, name]),
  }));
}

/** Determines the contents of ranges, and their ETag. */
class RangePlanner {
  readonly #database: Database;
  readonly #id: string;
  readonly #options: RangeOptions;
  readonly #hash = new StateHash();
  /** Documents already included with an earlier range. */
  readonly #included = new Set<number>();
  #etag: string | undefined;

  constructor(database: Database, id: string, options: RangeOptions) {
    this.#database = database;
    this.#id = id;
    this.#options = options;
  }

  /** Covers all ranges planned so far; nothing can be planned after it was read. */
  get etag(): string {
    this.#etag ??= this.#hash.etag;
    return this.#etag;
  }

  /** Null when the series does not exist. */
  async plan(
    name: string,
    bounds: SeriesBounds,
    start: number,
    pageSize: number,
  ): Promise<Range | null> {
    const { timeSeries } = this.#database;
    const version = timeSeries.version(this.#id, name);
    if (version === null) return null;
    this.#hash.add(version);
    const page = timeSeries.page(this.#id, name, bounds, start, pageSize);
    const totalResults = totalOf(timeSeries.summary(this.#id, name), bounds);
    const includes = await this.#includesOf(page);
    const form = entryFormOf(this.#database, name, this.#options.isFull);
    return { bounds, page, start, form, totalResults, includes };
  }

  async #includesOf(page: SeriesPage): Promise<Map<string, DocumentRow>> {
    const found = new Map<string, DocumentRow>();
    const ids = this.#options.includeDocument ? [this.#id] : [];
    if (this.#options.includeTags) ids.push(...tagsOf(page));
    for (const id of ids) {
      const document = this.#database.documents.find(id);
      if (document === null || this.#included.has(document.key)) continue;
      this.#included.add(document.key);
      const row = (await document.read()).copy();
      this.#hash.add(row.changeVector);
      found.set(row.id, row);
    }
    return found;
  }
}

function totalOf(
  summary: SeriesSummary | undefined,
  { from = timeMin, to = timeMax }: SeriesBounds,
): number | undefined {
  if (summary === undefined || from > summary.first || to < summary.last) return undefined;
  return summary.count;
}

async function addRange(
  reply: StreamedReply,
  { bounds, page, start, form, totalResults, includes }: Range,
): Promise<void> {
  const { text } = reply;
  text.addText(`{${rangeHead(bounds, page, start)}`);
  for (const [position, slice] of page.slices.entries()) {
    if (reply.isClosed) return;
    if (position > 0) text.addText(",");
    text.addText(sliceText(slice, form));
    await reply.flush();
  }
  text.addText("]");
  if (totalResults !== undefined) text.addText(`,"TotalResults":${totalResults}`);
  if (includes.size > 0) {
    let separator = ',"Includes":{';
    for (const [id, row] of includes) {
      row.addTo(text.addText(separator).addString(id).addText(":"));
      separator = ",";
    }
    text.addText("}");
  }
  text.addText("}");
}
