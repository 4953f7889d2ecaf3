/**
 * Replies to queries: the rows and the other members, in the order of RavenDB 7.2.7. A large reply is streamed while rows
 * still arrive; its totals then follow the rows instead of preceding them.
 */

import { acquireText, type JsonText, releaseText } from "../../engine/base/json/json-text.ts";
import { largeRecordBytes } from "../../engine/base/limits.ts";
import { formatTimestamp } from "../../engine/base/timestamp.ts";
import type {
  Database,
  IncludedCounters,
  QueryOutcome,
  QueryTaker,
  RowSink,
  TextChunks,
} from "../../engine/engine.ts";
import type { Exchange } from "../http/exchange.ts";
import { GatheringRoom, takeRoom, takeRoomNow } from "../http/reply-room.ts";
import { type ReplyStream, streamHeldBytes, writePieces } from "../http/reply-stream.ts";
import { addIncludedRevisions, includedRevisions } from "./revision-includes.ts";
import { seriesIncludesText } from "./time-series-includes.ts";

/** Maximum size of rows buffered until the totals are known, in bytes. */
const waitingBytesMax = 4 * 1024 * 1024;
const pieceBytes = 64 * 1024;
/** Reserved space for the members that precede the rows, in bytes. */
const headBytesMax = 512;
const never = "0001-01-01T00:00:00.0000000Z";

/** Collects the rows of one query and replies. */
export class QueryReply implements RowSink, QueryTaker {
  readonly #exchange: Exchange;
  readonly #database: Database;
  /** The rows, after reserved space for the preceding members. */
  readonly #rows: JsonText = acquireText();
  #isEmpty = true;
  /** Memory of the rows buffered until the totals are known. */
  readonly #room = new GatheringRoom(waitingBytesMax);
  #stream: ReplyStream | undefined;
  /** Whether the reserved space was skipped: no members precede the rows of a stream. */
  #isHeadSkipped = false;

  constructor(exchange: Exchange, database: Database) {
    this.#exchange = exchange;
    this.#database = database;
    this.#rows.reserve(headBytesMax);
    this.#rows.advance(headBytesMax);
  }

  add(row: Buffer): Promise<void> | null {
    if (row.length > largeRecordBytes) return this.#addLargeRow(row);
    this.#addComma();
    this.#rows.addBytes(row);
    if (this.#stream !== undefined) return this.#rows.length < pieceBytes ? null : this.#flush();
    return this.#room.holds(this.#rows.length) ? null : this.#flush();
  }

  async addLarge(document: TextChunks): Promise<void> {
    let give: (() => void) | undefined;
    try {
      if (!document.isHeld) {
        give = await takeRoom("replies", document.length, this.#exchange);
      }
      this.#addComma();
      await this.#flush();
      if (this.#stream !== undefined) await writePieces(this.#stream, document);
    } finally {
      give?.();
    }
  }

  /**
   * Sends the rest; a promise resolves when it has been passed to the transport.
   * @returns the whole reply, valid until `release`, or null if it was streamed
   */
  end(outcome: QueryOutcome, tail: string): Buffer | null | Promise<Buffer | null> {
    const totals = totalsText(outcome);
    const members =
      `],"Includes":${includesText(outcome)}` +
      stateText(outcome, this.#database.nodeTag) +
      this.#extras(outcome);
    if (outcome.revisionIncludes === null) return this.#finish(outcome, totals, members + tail);
    this.#rows.addText(members);
    return this.#addRevisions(outcome).then(() => this.#finish(outcome, totals, tail));
  }

  #finish(outcome: QueryOutcome, totals: string, last: string): Buffer | Promise<null> {
    if (this.#stream !== undefined) {
      return this.#stream.end(this.#rows.addText(`${last},${totals}}`).bytes).then(() => null);
    }
    this.#room.release();
    const whole = withHead(`{${totals},"Results":[`, this.#rows.addText(`${last}}`));
    this.#exchange.replyJson(200, whole, { etag: String(outcome.resultEtag) });
    return whole;
  }

  /** Releases the reply's buffer for other replies, unless it is still being sent. */
  release(): void {
    if (this.#exchange.isReplyTaken) releaseText(this.#rows);
  }

  /** Called when the query failed. */
  fail(): void {
    this.#room.release();
  }

  /** Cuts off a reply that has begun, because its client may read slowly; otherwise sends the error. */
  queryKilled(): void {
    if (this.#stream !== undefined) this.#exchange.abort();
  }

  /**
   * Sends a large computed row. Fails if memory is not available immediately, because waiting would hold the row.
   * @throws RequestError 503
   */
  async #addLargeRow(row: Buffer): Promise<void> {
    const give = takeRoomNow(row.length);
    try {
      this.#addComma();
      await this.#flush();
      for (let start = 0; start < row.length; start += pieceBytes) {
        await this.#stream?.write(row.subarray(start, start + pieceBytes));
      }
    } finally {
      give();
    }
  }

  #addComma(): void {
    if (!this.#isEmpty) this.#rows.addText(",");
    this.#isEmpty = false;
  }

  /** Sends the buffered rows, under the client's back-pressure. @throws RequestError 503 */
  async #flush(): Promise<void> {
    if (this.#stream === undefined) {
      this.#room.release();
      const give = await takeRoom("replies", streamHeldBytes, this.#exchange);
      this.#stream = this.#exchange.stream(200, undefined, give);
      await this.#stream.write('{"Results":[');
    }
    const rows = this.#rows.take();
    await this.#stream.write(this.#isHeadSkipped ? rows : rows.subarray(headBytesMax));
    this.#isHeadSkipped = true;
  }

  #extras(outcome: QueryOutcome): string {
    let text = "";
    if (outcome.timings !== null) text += `,"Timings":${timingsText(outcome.timings)}`;
    if (outcome.highlightings !== null) {
      const fields = [...outcome.highlightings].map(([field, found]) => [
        field,
        Object.fromEntries(found),
      ]);
      text += `,"Highlightings":${JSON.stringify(Object.fromEntries(fields))}`;
    }
    if (outcome.explanations !== null) {
      text += `,"Explanations":${JSON.stringify(Object.fromEntries(outcome.explanations))}`;
    }
    if (outcome.seriesFields !== null) {
      text += `,"TimeSeriesFields":${JSON.stringify(outcome.seriesFields)}`;
    }
    const { counterIncludes, compareExchangeKeys } = outcome;
    if (counterIncludes !== null)
      text += `,${counterIncludesText(this.#database, counterIncludes)}`;
    if (compareExchangeKeys !== null) {
      text += `,"CompareExchangeValueIncludes":${compareExchangeText(this.#database, compareExchangeKeys)}`;
    }
    if (outcome.seriesIncludes !== null) {
      text += `,"TimeSeriesIncludes":${seriesText(this.#database, outcome.seriesIncludes)}`;
    }
    if (outcome.isSummary) return text;
    text += spatialText(outcome, this.#exchange);
    const etag = this.#database.indexes.definitionEtag(outcome.indexName);
    if (etag !== undefined) text += `,"IndexDefinitionRaftIndex":${etag}`;
    return text;
  }

  async #addRevisions({ revisionIncludes }: QueryOutcome): Promise<void> {
    if (revisionIncludes === null) return;
    const revisions = await includedRevisions(this.#database, revisionIncludes);
    addIncludedRevisions(this.#rows, revisions);
  }
}

/** Returns a reply with `head` written into the space reserved before its rows. */
function withHead(head: string, text: JsonText): Buffer {
  const length = Buffer.byteLength(head);
  if (length > headBytesMax) return Buffer.concat([Buffer.from(head), text.from(headBytesMax)]);
  const reply = text.from(headBytesMax - length);
  reply.utf8Write(head, 0);
  return reply;
}

function totalsText(outcome: QueryOutcome): string {
  if (outcome.isSummary) {
    return (
      `"TotalResults":${outcome.totalResults},"DurationInMs":${outcome.durationMs},` +
      `"IndexName":${JSON.stringify(outcome.indexName)}`
    );
  }
  const { cappedMaxResults, includedPaths } = outcome;
  const capped = cappedMaxResults === null ? "" : `"CappedMaxResults":${cappedMaxResults},`;
  return (
    `"TotalResults":${outcome.totalResults},${capped}"ScannedResults":${outcome.scannedResults},` +
    `"SkippedResults":${outcome.skippedResults},"DurationInMs":${outcome.durationMs},` +
    `"IncludedPaths":${includedPaths === null ? "null" : JSON.stringify(includedPaths)},"IndexName":${JSON.stringify(outcome.indexName)}`
  );
}

function includesText({ includes }: QueryOutcome): string {
  if (includes.length === 0) return "{}";
  const members = includes.map(({ id, text }) => `${JSON.stringify(id)}:${text.toString()}`);
  return `{${members.join(",")}}`;
}

function stateText(outcome: QueryOutcome, nodeTag: string): string {
  return (
    `,"IndexTimestamp":"${indexTimeText(outcome.indexTimestamp)}","LastQueryTime":"${timeText(outcome.lastQueryTime)}"` +
    `,"IsStale":${outcome.isStale},"ResultEtag":${outcome.resultEtag},"NodeTag":"${nodeTag}"`
  );
}

/** A timestamp of an index; 0 means never. */
export function timeText(micros: number): string {
  return micros === 0 ? never : formatTimestamp(micros);
}

/** Cache: the time of an index's last change is the same in many replies. */
let indexMicros = 0;
let indexTime = never;

function indexTimeText(micros: number): string {
  if (micros !== indexMicros) {
    indexTime = timeText(micros);
    indexMicros = micros;
  }
  return indexTime;
}

function timingsText(timings: NonNullable<QueryOutcome["timings"]>): string {
  const step = (ms: number, steps: object | null) => ({
    DurationInMs: Math.round(ms),
    Timings: steps,
  });
  const query = step(timings.queryMs + timings.retrieverMs, {
    Retriever: step(timings.retrieverMs, null),
  });
  const { stalenessMs } = timings;
  return JSON.stringify({
    DurationInMs: Math.round(timings.totalMs),
    Timings:
      stalenessMs === null
        ? { Query: query }
        : { Optimizer: step(0, null), Query: query, Staleness: step(stalenessMs, null) },
  });
}

/** Returns members with counters by document, in the requested order; a missing counter is null. */
export function counterIncludesText(
  database: Database,
  included: readonly IncludedCounters[],
): string {
  const values = new Map<string, string[]>();
  const names = new Map<string, string[]>();
  const { counters } = database;
  for (const { documentId, names: requested } of included) {
    const rows = values.get(documentId) ?? [];
    const known = names.get(documentId) ?? [];
    values.set(documentId, rows);
    names.set(documentId, known);
    const row = (name: string, value: string | bigint) =>
      rows.push(
        `{"DocumentId":${JSON.stringify(documentId)},"CounterName":${JSON.stringify(name)},"TotalValue":${value}}`,
      );
    if (requested === null) {
      for (const { name, value } of counters.all(documentId)) {
        if (name === "") rows.push("null");
        else row(name, value);
      }
      continue;
    }
    for (const name of requested) {
      if (known.includes(name)) continue;
      known.push(name);
      const counter = counters.get(documentId, name);
      if (counter === null) rows.push("null");
      else row(name, counter.value);
    }
  }
  const members = [...values].map(([id, rows]) => `${JSON.stringify(id)}:[${rows.join(",")}]`);
  const requested = JSON.stringify(Object.fromEntries(names));
  return `"CounterIncludes":{${members.join(",")}},"IncludedCounterNames":${requested}`;
}

/** Returns the spatial properties of the query, if the request includes them. */
function spatialText({ spatial }: QueryOutcome, { query }: Exchange): string {
  if (spatial === null || !query.bool("addSpatialProperties", false)) return "";
  const { properties, shapes } = spatial;
  return (
    (properties.length === 0 ? "" : `,"SpatialProperties":${JSON.stringify(properties)}`) +
    (shapes.length === 0 ? "" : `,"SpatialShapes":${JSON.stringify(shapes)}`)
  );
}

function compareExchangeText(database: Database, keys: readonly string[]): string {
  const members = keys.map((key) => {
    const stored = database.compareExchange.get(key);
    const name = JSON.stringify(key);
    return `${name}:{"Key":${name},"Index":${stored?.index ?? -1},"Value":${stored?.text ?? "null"}}`;
  });
  return `{${members.join(",")}}`;
}

/** Returns time series ranges by document: `{"document":{"Name":[range,…],…},…}`. */
export function seriesText(
  database: Database,
  wanted: NonNullable<QueryOutcome["seriesIncludes"]>,
): string {
  const members = [...wanted].map(
    ([id, includes]) => `${JSON.stringify(id)}:${seriesIncludesText(database, id, includes)}`,
  );
  return `{${members.join(",")}}`;
}
