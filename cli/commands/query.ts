/**
 * `jackdaw query`: prints rows as a table, JSON, JSON Lines or CSV. The query is an argument, a file, standard input
 * or a prompt.
 */
import { text as textOf } from "node:stream/consumers";
import { nearestName } from "../../server/settings/nearest-name.ts";
import { inDatabase } from "../client.ts";
import type { CommandContext } from "../command.ts";
import { Failure } from "../failure.ts";
import { readInput } from "../input-file.ts";
import { cellOf, jsonMember, jsonMembers } from "../json-text.ts";
import { csvLine, painter, tableLines } from "../output.ts";
import { Schema } from "../schema.ts";
import { numberOr } from "../values.ts";

type Row = Readonly<Record<string, unknown>>;

interface QueryReply {
  /** JSON text of each row. */
  readonly rows: readonly string[];
  readonly TotalResults: number;
  /** Number of rows within the limit of the query, if it has one. */
  readonly CappedMaxResults?: number;
  readonly DurationInMs: number;
  readonly IndexName: string;
  readonly IsStale: boolean;
}

interface PlanReply {
  readonly DurationInMs: number;
  readonly Steps: readonly {
    readonly Text: string;
    readonly DurationInMs: number | null;
    readonly Conditions: readonly { readonly Condition: string; readonly Found: number | null }[];
  }[];
  readonly BetterIndex: {
    readonly Text: string;
    readonly Definition: { readonly Name: string; readonly Maps: readonly string[] };
    readonly IsDeployed: boolean;
    readonly Query: string;
  } | null;
}

const rowsDefault = 100;
/** Minimum number of rows per page at the prompt, and screen lines that are not available for rows. */
const rowsMin = 10;
const linesAround = 4;

export async function run(context: CommandContext): Promise<void> {
  const { arguments: given, options, print, streams, interrupted } = context;
  const isPrompt =
    given.length === 0 &&
    options.text("file") === undefined &&
    streams.input.isTTY === true &&
    streams.output.isTTY === true;
  if (isPrompt) {
    await prompt(context);
    return;
  }
  const Query = await queryText(context);
  if (Query.trim() === "") throw new Failure("usage", "The query is empty: jackdaw query TEXT");
  const rows = numberOr(options.text("limit"), rowsDefault, "--limit");
  const isPlan = options.is("plan");
  const text = await sendQuery(context, Query, 0, rows, interrupted, isPlan ? "plan" : undefined);
  if (options.is("json")) print(text);
  else if (isPlan) showPlan(context, JSON.parse(text) as PlanReply);
  else await show(context, Query, replyOf(text));
}

/** Runs the prompt. A page has as many rows as fit on the screen, or the given limit. */
async function prompt(context: CommandContext): Promise<void> {
  const { options, streams } = context;
  const { runPrompt } = await import("../prompt.ts");
  const screen = Math.max(rowsMin, (streams.output.rows ?? rowsDefault) - linesAround);
  const page = numberOr(options.text("limit"), screen, "--limit");
  await runPrompt(context, {
    rows: async (text, start, signal) => {
      const reply = replyOf(await sendQuery(context, text, start, page, signal));
      await show(context, text, reply);
      return { rows: reply.rows.length, total: reply.CappedMaxResults ?? reply.TotalResults };
    },
    plan: async (text, signal) => {
      const reply = await sendQuery(context, text, 0, page, signal, "plan");
      showPlan(context, JSON.parse(reply) as PlanReply);
    },
  });
}

/** Sends a query. @returns the text of the reply */
async function sendQuery(
  { client, database, options }: CommandContext,
  Query: string,
  Start: number,
  PageSize: number,
  signal: AbortSignal,
  debug?: "plan",
): Promise<string> {
  const path = debug === undefined ? "queries" : `queries?debug=${debug}`;
  const answer = await client().send(inDatabase(database(), path), {
    method: "POST",
    signal,
    body: {
      Query,
      QueryParameters: parametersOf(options.all("parameter")),
      Start,
      PageSize,
      ...(options.is("wait") ? { WaitForNonStaleResults: true } : {}),
    },
  });
  return answer.text;
}

/** Parses a reply. Rows are kept as text, so that numbers are printed as stored. */
function replyOf(text: string): QueryReply {
  const rows = jsonMembers(jsonMember(text, "Results") ?? "[]").map((piece) => piece.text);
  return { ...(JSON.parse(text) as Omit<QueryReply, "rows">), rows };
}

async function show(context: CommandContext, query: string, reply: QueryReply): Promise<void> {
  const { options, print, streams } = context;
  if (options.is("jsonl")) for (const row of reply.rows) print(row);
  else printColumns(context, reply);
  if (options.is("quiet")) return;
  const unknown = reply.TotalResults === 0 ? await unknownCollection(context, query) : undefined;
  if (unknown !== undefined) streams.errors.write(`${unknown}\n`);
  if (unknown !== undefined || options.is("jsonl") || options.is("csv")) return;
  const stale = reply.IsStale ? ", stale; use --wait to wait for the index" : "";
  streams.errors.write(
    `${reply.rows.length} of ${reply.TotalResults} rows, ${reply.DurationInMs} ms, ${reply.IndexName}${stale}\n`,
  );
}

/** Returns a message if the collection of a query does not exist. */
async function unknownCollection(
  { client, database }: CommandContext,
  query: string,
): Promise<string | undefined> {
  const found = /\bfrom\s+(?!index\b)(?:'([^']+)'|"([^"]+)"|([\w-]+))/i.exec(query);
  const name = found?.[1] ?? found?.[2] ?? found?.[3];
  if (name === undefined) return undefined;
  const known = Object.keys(await new Schema(client(), database()).collections());
  if (known.some((one) => one.toLowerCase() === name.toLowerCase())) return undefined;
  const near = nearestName(name, known);
  const hint =
    near === undefined ? "'from @all_docs' returns all documents" : `did you mean '${near}'?`;
  return `Collection '${name}' does not exist; ${hint}`;
}

/** Prints the steps of a query plan, and the recommended index. */
function showPlan(
  { print }: CommandContext,
  { Steps, DurationInMs, BetterIndex }: PlanReply,
): void {
  for (const [at, { Text, DurationInMs: ms, Conditions }] of Steps.entries()) {
    print(`${at + 1}. ${Text}${ms === null ? "" : ` ${ms.toFixed(1)} ms`}`);
    for (const { Condition, Found } of Conditions)
      print(`   ${Condition}${Found === null ? "" : `: ${Found} alone`}`);
  }
  print(`${DurationInMs} ms in total`);
  if (BetterIndex === null) return;
  const { Text, Definition, IsDeployed, Query } = BetterIndex;
  print(`\n${Text}`);
  if (IsDeployed) print(`The index ${Definition.Name} is deployed. Query that uses it:`);
  else {
    print(`${Definition.Name}:\n${Definition.Maps.join("\n")}`);
    print("Query that uses it:");
  }
  print(Query);
}

async function queryText({ arguments: given, options, streams }: CommandContext): Promise<string> {
  const [text] = given;
  const file = options.text("file");
  if (text !== undefined && file !== undefined) {
    throw new Failure("usage", "Specify either TEXT or --file, not both");
  }
  if (file !== undefined) return await readInput(file);
  return text ?? (await textOf(streams.input));
}

/** Parses `name=value`, where the value is JSON or plain text. @throws Failure usage */
export function parametersOf(given: readonly string[]): Row {
  return Object.fromEntries(
    given.map((one) => {
      const at = one.indexOf("=");
      if (at < 1) throw new Failure("usage", `--parameter '${one}' must be name=value`);
      return [one.slice(0, at), jsonOrText(one.slice(at + 1))];
    }),
  );
}

function jsonOrText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function printColumns({ options, print, streams, environment }: CommandContext, reply: QueryReply) {
  const rows = reply.rows.map((text) => {
    const members = jsonMembers(text);
    const metadata = members.find(({ name }) => name === "@metadata")?.text ?? "{}";
    const id = (JSON.parse(metadata) as { "@id"?: string })["@id"];
    const row = new Map<string, unknown>(id === undefined ? [] : [["id", id]]);
    for (const { name, text: value } of members)
      if (name !== "@metadata") row.set(name, cellOf(value));
    return row;
  });
  const columns = [...new Set(rows.flatMap((row) => [...row.keys()]))];
  const cells = rows.map((row) => columns.map((name) => row.get(name)));
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
