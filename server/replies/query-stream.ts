/**
 * Streams query results: an object with the rows in `Results`, one JSON object per line, or comma-separated values.
 * Statistics come first if all rows fit into a buffer, else last.
 */

import { EngineError } from "../../engine/base/errors.ts";
import { JsonText } from "../../engine/base/json/json-text.ts";
import { largeRecordBytes } from "../../engine/base/limits.ts";
import type {
  Database,
  PreparedQuery,
  QueryInclude,
  QueryOutcome,
  QueryTaker,
  RowSink,
  TextChunks,
} from "../../engine/engine.ts";
import { CsvRows, rowCells } from "../http/csv.ts";
import type { Exchange } from "../http/exchange.ts";
import { GatheringRoom, takeRoom, takeRoomNow } from "../http/reply-room.ts";
import { type ReplyStream, streamHeldBytes, writePieces } from "../http/reply-stream.ts";
import type { ReplyHeaders } from "../http/response.ts";
import { timeText } from "./query-reply.ts";
import type { QueryRequest } from "./query-request.ts";

const waitingBytesMax = 1024 * 1024;
const pieceBytes = 64 * 1024;
/** Timeout for a new index, in milliseconds; longer than that of buffered queries. */
const timeoutMs = 60_000;

/** The framing of rows and statistics. */
interface Framing {
  /** Returns the text before the rows; `outcome` is null if not known yet. */
  open(outcome: QueryOutcome | null): string;
  row(row: Buffer, isFirst: boolean, text: JsonText): void;
  /** Text around a row that is written separately; undefined if `row` formats such rows too. */
  readonly around:
    | { readonly first: string; readonly open: string; readonly close: string }
    | undefined;
  /** Returns the text after the rows. `hasStatistics` is true if the statistics were already sent. */
  close(outcome: QueryOutcome, hasStatistics: boolean): string;
  headers(): ReplyHeaders | undefined;
}

function statistics(outcome: QueryOutcome): string {
  return (
    `"ResultEtag":${outcome.resultEtag},"IsStale":${outcome.isStale},"IndexName":${JSON.stringify(outcome.indexName)},` +
    `"TotalResults":${outcome.totalResults},"IndexTimestamp":"${timeText(outcome.indexTimestamp)}"`
  );
}

const objectFraming: Framing = {
  around: { first: "", open: ",", close: "" },
  open: (outcome) => (outcome === null ? '{"Results":[' : `{${statistics(outcome)},"Results":[`),
  row(row, isFirst, text) {
    if (!isFirst) text.addText(",");
    text.addBytes(row);
  },
  close: (outcome, hasStatistics) => (hasStatistics ? "]}" : `],${statistics(outcome)}}`),
  headers: () => undefined,
};

const lineFraming: Framing = {
  around: { first: '{"Item":', open: '{"Item":', close: "}\r\n" },
  open: (outcome) => (outcome === null ? "" : `{"Stats":{${statistics(outcome)}}}\r\n`),
  row(row, _isFirst, text) {
    text.addText('{"Item":').addBytes(row).addText("}\r\n");
  },
  close: (outcome, hasStatistics) =>
    hasStatistics ? "" : `{"Stats":{${statistics(outcome)}}}\r\n`,
  headers: () => undefined,
};

/** @param fields the columns, if the request names any */
function csvFraming(database: Database, fields: readonly string[]): Framing {
  const rows = new CsvRows(fields);
  const stamp = new Date(database.nowMicros() / 1000).toISOString();
  const time = `${stamp.slice(0, 10).replaceAll("-", "")}_${stamp.slice(11, 16).replace(":", "")}`;
  const name = `${database.name}_A_query_result_${time}.csv`;
  return {
    around: undefined,
    open: () => "\uFEFF",
    row(row, _isFirst, text) {
      text.addText(rows.textOf(rowCells(row)));
    },
    close: () => "",
    headers: () => ({
      "content-type": "text/csv",
      "content-disposition": `attachment; filename="${name}"; filename*=UTF-8''${encodeURIComponent(name)}`,
    }),
  };
}

/** Streams the reply to a query. @returns null if its index is missing @throws EngineError as the query */
export async function streamQuery(
  exchange: Exchange,
  database: Database,
  { text, options }: QueryRequest,
): Promise<QueryOutcome | null> {
  const format = exchange.query.get("format")?.toLowerCase();
  const { signal } = exchange;
  const streamOptions = {
    ...options,
    timeoutMs,
    signal,
    seriesForm: "list",
    isStream: true,
  } as const;
  const query = await database.queries.prepare(text, streamOptions);
  refuseIncludes(query);
  const framing =
    format === "jsonl"
      ? lineFraming
      : format === "csv"
        ? csvFraming(database, exchange.query.all("field"))
        : objectFraming;
  const sink = new StreamSink(exchange, framing);
  try {
    const outcome = await query.run({ ...streamOptions, taker: sink }, sink);
    if (outcome !== null) await sink.end(withStreamedTotal(outcome, query));
    return outcome;
  } catch (error) {
    sink.fail();
    const isMissing = error instanceof EngineError && error.code === "index-missing";
    if (exchange.isReplied || !isMissing) throw error;
    const name = query.namedIndex ?? "";
    // RavenDB 7.2.7 sends this without braces, except for jsonl.
    exchange.replyJson(404, { Error: `Index ${name} does not exist` });
    return null;
  }
}

/** As in RavenDB 7.2.7, the total of a streamed collection is its document count, whatever the query filters. */
function withStreamedTotal(
  outcome: QueryOutcome,
  { collectionCount }: PreparedQuery,
): QueryOutcome {
  return collectionCount === null ? outcome : { ...outcome, totalResults: collectionCount };
}

const includeNames: Readonly<Record<QueryInclude, string>> = {
  documents: "Document Includes are",
  counters: "Counter Includes are",
  "compare-exchange": "Compare Exchange Value Includes are",
  highlights: "Highlighting is",
};

/** @throws EngineError not-supported */
function refuseIncludes({ includes: [kind] }: PreparedQuery): void {
  if (kind === undefined) return;
  const complaint = `${includeNames[kind]} not supported by this type of query.`;
  throw new EngineError("not-supported", complaint);
}

class StreamSink implements RowSink, QueryTaker {
  readonly #exchange: Exchange;
  readonly #framing: Framing;
  readonly #text = new JsonText(8 * 1024);
  readonly #room = new GatheringRoom(waitingBytesMax);
  #stream: ReplyStream | undefined;
  #isFirst = true;

  constructor(exchange: Exchange, framing: Framing) {
    this.#exchange = exchange;
    this.#framing = framing;
  }

  add(row: Buffer): Promise<void> | null {
    this.#requireClient();
    // A large computed row fails if memory is not available immediately, because waiting would hold the row.
    if (row.length > largeRecordBytes) return this.#addLargeRow(row);
    this.#framing.row(row, this.#isFirst, this.#text);
    this.#isFirst = false;
    const { length } = this.#text;
    if (this.#stream !== undefined) return length < pieceBytes ? null : this.#flush();
    return this.#room.holds(length) ? null : this.#flush();
  }

  async addLarge(document: TextChunks): Promise<void> {
    this.#requireClient();
    let give: (() => void) | undefined;
    try {
      if (!document.isHeld) {
        give = await takeRoom("replies", document.length, this.#exchange);
      }
      const around = this.#framing.around;
      if (around === undefined) {
        this.#framing.row(document.copy(0, document.length), this.#isFirst, this.#text);
      } else this.#text.addText(this.#isFirst ? around.first : around.open);
      this.#isFirst = false;
      await this.#flush();
      if (around === undefined || this.#stream === undefined) return;
      await writePieces(this.#stream, document);
      this.#text.addText(around.close);
    } finally {
      give?.();
    }
  }

  async #addLargeRow(row: Buffer): Promise<void> {
    const give = takeRoomNow(row.length);
    try {
      this.#framing.row(row, this.#isFirst, this.#text);
      this.#isFirst = false;
      await this.#flush();
    } finally {
      give();
    }
  }

  #requireClient(): void {
    if (this.#exchange.isClosed) {
      throw new EngineError("operation-cancelled", "The client of the stream has disconnected.");
    }
  }

  /** @throws RequestError 503 */
  async #flush(): Promise<void> {
    if (this.#stream === undefined) {
      this.#room.release();
      const give = await takeRoom("replies", streamHeldBytes, this.#exchange);
      this.#stream = this.#exchange.stream(200, this.#framing.headers(), give);
      await this.#stream.write(this.#framing.open(null));
    }
    const text = this.#text.take();
    for (let start = 0; start < text.length; start += pieceBytes) {
      await this.#stream.write(text.subarray(start, start + pieceBytes));
    }
  }

  async end(outcome: QueryOutcome): Promise<void> {
    if (this.#stream !== undefined) {
      this.#text.addText(this.#framing.close(outcome, false));
      await this.#stream.end(this.#text.bytes);
      return;
    }
    this.#room.release();
    const stream = this.#exchange.stream(200, this.#framing.headers());
    await stream.write(this.#framing.open(outcome));
    this.#text.addText(this.#framing.close(outcome, true));
    await stream.end(this.#text.bytes);
  }

  /** See `QueryReply`. */
  queryKilled(): void {
    if (this.#stream !== undefined) this.#exchange.abort();
  }

  /** Called when the query failed. */
  fail(): void {
    this.#room.release();
  }
}
