/**
 * Queries answered as a stream: an object with the rows in `Results`, one JSON object a line, or comma-separated values.
 * What is told beside the rows comes first when all rows fit into a buffer, else last.
 */
import type { Database } from "../engine/database.ts";
import { EngineError } from "../engine/errors.ts";
import { collectionIdNamed } from "../engine/query-rows.ts";
import { ReplyText } from "../engine/reply-text.ts";
import type { AnalyzedQuery } from "../engine/rql/analyzed-query.ts";
import { parseQueryParameters } from "../engine/rql/query-parameters.ts";
import type { QueryOutcome, RowSink } from "../engine/rql/results.ts";
import { CsvRows, rowCells } from "./csv.ts";
import type { Exchange } from "./exchange.ts";
import { timeText } from "./query-reply.ts";
import type { QueryRequest } from "./query-request.ts";
import type { ReplyStream } from "./reply-stream.ts";
import type { ReplyHeaders } from "./response.ts";

const waitingBytesMax = 1024 * 1024;
const pieceBytes = 64 * 1024;
/** A new index is waited for longer than by a query that is answered at once. */
const timeoutMs = 60_000;

/** How rows and statistics are put together. */
interface Framing {
  /** Text before the rows; `outcome` null: it is not known yet. */
  open(outcome: QueryOutcome | null): string;
  row(row: Buffer, isFirst: boolean, text: ReplyText): void;
  /** Text behind the rows. `isTold`: the statistics went before. */
  close(outcome: QueryOutcome, isTold: boolean): string;
  headers(): ReplyHeaders | undefined;
}

function statistics(outcome: QueryOutcome): string {
  return (
    `"ResultEtag":${outcome.resultEtag},"IsStale":${outcome.isStale},"IndexName":${JSON.stringify(outcome.indexName)},` +
    `"TotalResults":${outcome.totalResults},"IndexTimestamp":"${timeText(outcome.indexTimestamp)}"`
  );
}

const objectFraming: Framing = {
  open: (outcome) => (outcome === null ? '{"Results":[' : `{${statistics(outcome)},"Results":[`),
  row(row, isFirst, text) {
    if (!isFirst) text.addText(",");
    text.addBytes(row);
  },
  close: (outcome, isTold) => (isTold ? "]}" : `],${statistics(outcome)}}`),
  headers: () => undefined,
};

const lineFraming: Framing = {
  open: (outcome) => (outcome === null ? "" : `{"Stats":{${statistics(outcome)}}}\r\n`),
  row(row, _isFirst, text) {
    text.addText('{"Item":').addBytes(row).addText("}\r\n");
  },
  close: (outcome, isTold) => (isTold ? "" : `{"Stats":{${statistics(outcome)}}}\r\n`),
  headers: () => undefined,
};

function csvFraming(database: Database): Framing {
  const rows = new CsvRows();
  const stamp = new Date(database.state.nowMicros() / 1000).toISOString();
  const time = `${stamp.slice(0, 10).replaceAll("-", "")}_${stamp.slice(11, 16).replace(":", "")}`;
  const name = `${database.name}_A_query_result_${time}.csv`;
  return {
    open: () => "\uFEFF",
    row(row, _isFirst, text) {
      text.addText(
        rows.textOf(rowCells(JSON.parse(row.toString()) as Record<string, unknown>, row)),
      );
    },
    close: () => "",
    headers: () => ({
      "content-type": "text/csv",
      "content-disposition": `attachment; filename="${name}"; filename*=UTF-8''${encodeURIComponent(name)}`,
    }),
  };
}

/** Answers a query as a stream. @throws EngineError as the query */
export async function streamQuery(
  exchange: Exchange,
  database: Database,
  { text, options }: QueryRequest,
): Promise<void> {
  const format = exchange.query.get("format")?.toLowerCase();
  const { parametersText = null } = options;
  const parameters = parametersText === null ? null : parseQueryParameters(parametersText);
  const query = database.queries.compile(text, "read", parameters, options);
  refuseIncludes(query);
  const framing =
    format === "jsonl" ? lineFraming : format === "csv" ? csvFraming(database) : objectFraming;
  const sink = new StreamSink(exchange, framing);
  try {
    const outcome = await database.queries.execute(query, { ...options, timeoutMs }, sink);
    if (outcome !== null) await sink.end(withStreamedTotal(outcome, query, database));
  } catch (error) {
    if (sink.fail()) return;
    if (!(error instanceof EngineError) || error.code !== "index-missing") throw error;
    const name = query.access.kind === "index" ? query.access.name : "";
    // RavenDB 7.2.7 leaves out the braces, unless lines were asked for.
    exchange.replyJson(404, { Error: `Index ${name} does not exist` });
  }
}

/** A stream of a collection tells how many documents that has, whatever the query takes of them, as RavenDB 7.2.7 does. */
function withStreamedTotal(
  outcome: QueryOutcome,
  { access, source }: AnalyzedQuery,
  { state }: Database,
): QueryOutcome {
  if (access.kind !== "collection") return outcome;
  const { documents } = state;
  const totalResults = source.isAllDocuments
    ? documents.documentCount
    : documents.countOfCollection(collectionIdNamed(state, source.name));
  return { ...outcome, totalResults };
}

/** @throws EngineError not-supported */
function refuseIncludes({ include }: AnalyzedQuery): void {
  const kind =
    include.paths.length > 0
      ? "Document"
      : include.counters.length > 0
        ? "Counter"
        : include.compareExchange.length > 0
          ? "Compare Exchange Value"
          : null;
  if (kind === null) return;
  const complaint = `${kind} Includes are not supported by this type of query.`;
  throw new EngineError("not-supported", complaint);
}

class StreamSink implements RowSink {
  readonly #exchange: Exchange;
  readonly #framing: Framing;
  readonly #text = new ReplyText(8 * 1024);
  #stream: ReplyStream | undefined;
  #isFirst = true;

  constructor(exchange: Exchange, framing: Framing) {
    this.#exchange = exchange;
    this.#framing = framing;
  }

  add(row: Buffer): Promise<void> | null {
    if (this.#exchange.isClosed) {
      throw new EngineError("operation-cancelled", "The client of a stream has gone.");
    }
    this.#framing.row(row, this.#isFirst, this.#text);
    this.#isFirst = false;
    if (this.#text.length < (this.#stream === undefined ? waitingBytesMax : pieceBytes))
      return null;
    if (this.#stream === undefined) {
      this.#stream = this.#exchange.stream(200, this.#framing.headers());
      // The first piece is short; what waits for the client is the next one.
      void this.#stream.write(this.#framing.open(null));
    }
    return this.#stream.write(this.#text.take()) ?? null;
  }

  async end(outcome: QueryOutcome): Promise<void> {
    if (this.#stream !== undefined) {
      this.#text.addText(this.#framing.close(outcome, false));
      await this.#stream.end(this.#text.bytes);
      return;
    }
    const stream = this.#exchange.stream(200, this.#framing.headers());
    await stream.write(this.#framing.open(outcome));
    this.#text.addText(this.#framing.close(outcome, true));
    await stream.end(this.#text.bytes);
  }

  /** @returns false when nothing was sent; else the reply is cut off. */
  fail(): boolean {
    if (this.#stream === undefined) return false;
    this.#exchange.abort();
    return true;
  }
}
