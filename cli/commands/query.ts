/** `jackdaw query`: rows as a table, JSON, JSON lines or CSV; the text from the command line, a file or standard input. */
import { readFile } from "node:fs/promises";
import { text as textOf } from "node:stream/consumers";
import { inDatabase } from "../client.ts";
import type { Surroundings } from "../command.ts";
import { Failure } from "../failure.ts";
import { csvLine, painter, tableLines } from "../output.ts";

type Row = Readonly<Record<string, unknown>>;

interface QueryReply {
  readonly Results: readonly Row[];
  readonly TotalResults: number;
  readonly DurationInMs: number;
  readonly IndexName: string;
  readonly IsStale: boolean;
}

const rowsDefault = 100;

export async function run(surroundings: Surroundings): Promise<void> {
  const { client, database, options, print, streams } = surroundings;
  const Query = await queryText(surroundings);
  if (Query.trim() === "") throw new Failure("usage", "The query is empty: jackdaw query TEXT");
  const PageSize = rowLimit(options.text("limit"));
  const answer = await client().send(inDatabase(database(), "queries"), {
    method: "POST",
    body: {
      Query,
      QueryParameters: parametersOf(options.all("parameter")),
      PageSize,
      ...(options.is("wait") ? { WaitForNonStaleResults: true } : {}),
    },
  });
  if (options.is("json")) {
    print(answer.text);
    return;
  }
  const reply = JSON.parse(answer.text) as QueryReply;
  if (options.is("jsonl")) for (const row of reply.Results) print(JSON.stringify(row));
  else printColumns(surroundings, reply);
  if (options.is("quiet") || options.is("jsonl") || options.is("csv")) return;
  const stale = reply.IsStale ? ", stale: --wait waits for the index" : "";
  streams.errors.write(
    `${reply.Results.length} of ${reply.TotalResults} rows, ${reply.DurationInMs} ms, ${reply.IndexName}${stale}\n`,
  );
}

async function queryText({ arguments: given, options, streams }: Surroundings): Promise<string> {
  const [text] = given;
  const file = options.text("file");
  if (text !== undefined && file !== undefined) {
    throw new Failure("usage", "Give the text of the query or --file, not both");
  }
  if (file !== undefined) return await readFile(file, "utf8");
  return text ?? (await textOf(streams.input));
}

/** @throws Failure usage */
function rowLimit(text: string | undefined): number {
  if (text === undefined) return rowsDefault;
  const count = Number(text);
  if (Number.isInteger(count) && count >= 0) return count;
  throw new Failure("usage", `--limit '${text}' must be a whole number`);
}

/** `name=value`, where the value is JSON or else a text. @throws Failure usage */
export function parametersOf(given: readonly string[]): Row {
  return Object.fromEntries(
    given.map((one) => {
      const at = one.indexOf("=");
      if (at < 1) throw new Failure("usage", `--parameter '${one}' must be name=value`);
      return [one.slice(0, at), parsedOr(one.slice(at + 1))];
    }),
  );
}

function parsedOr(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function printColumns({ options, print, streams, environment }: Surroundings, reply: QueryReply) {
  const rows = reply.Results.map((row) => {
    const { "@metadata": metadata, ...fields } = row as { "@metadata"?: { "@id"?: string } };
    return {
      ...(metadata?.["@id"] === undefined ? {} : { id: metadata["@id"] }),
      ...fields,
    } as Row;
  });
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const cells = rows.map((row) => columns.map((name) => row[name]));
  if (options.is("csv")) {
    print(csvLine(columns));
    for (const row of cells) print(csvLine(row));
    return;
  }
  if (rows.length === 0) return;
  const paint = painter(streams.output.isTTY === true, environment);
  const width = streams.output.isTTY === true ? streams.output.columns : undefined;
  for (const line of tableLines(columns, cells, width, paint)) print(line);
}
