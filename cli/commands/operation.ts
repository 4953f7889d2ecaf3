/**
 * `jackdaw operation`: list, show, wait, kill; pause, resume, limit and undo patches and deletions. With --server,
 * operations of the server; otherwise of a database.
 */
import { inDatabase } from "../client.ts";
import type { CommandContext } from "../command.ts";
import { Failure } from "../failure.ts";
import { operationState, waitForOperation } from "../operations.ts";
import { painter, tableLines } from "../output.ts";

interface ListedOperation {
  readonly Id: number;
  readonly Description: {
    readonly Description: string;
    readonly TaskType: string;
    /** Query of a patch or deletion, then its parameters on a new line. */
    readonly DetailedDescription?: { readonly Query?: string } | null;
    readonly StartTime: string;
    readonly StartedBy?: string;
  };
  readonly State: {
    readonly Status: string;
    readonly IsPaused?: boolean;
    readonly CanResume?: boolean;
    readonly UndoneBy?: number;
  };
}

/** Message after an action. */
const actionResults: Readonly<Record<string, string>> = {
  pause: "is paused",
  resume: "is resumed",
  limit: "has a new limit",
};

export async function run(context: CommandContext): Promise<void> {
  const { command, arguments: given, client, options, print } = context;
  const action = command.name.split(" ")[1];
  if (action === "list") {
    await list(context);
    return;
  }
  const id = Number(given[0]);
  if (!Number.isInteger(id)) throw new Failure("usage", `'${given[0]}' is not an operation id`);
  const database = options.is("server") ? undefined : context.database();
  if (action === "kill") {
    await operationState(context, database, id);
    const path =
      database === undefined ? "/admin/operations/kill" : inDatabase(database, "operations/kill");
    await client().send(path, { method: "POST", query: { id } });
    print(options.is("json") ? JSON.stringify({ Id: id }) : `Operation ${id} is being canceled`);
    return;
  }
  if (action !== undefined && actionResults[action] !== undefined) {
    await operationState(context, database, id);
    const path = inDatabase(context.database(), `operations/${action}`);
    const maxOpsPerSec = action === "limit" ? options.text("max-per-second") : undefined;
    await client().send(path, { method: "POST", query: { id, maxOpsPerSec } });
    print(
      options.is("json") ? JSON.stringify({ Id: id }) : `Operation ${id} ${actionResults[action]}`,
    );
    return;
  }
  if (action === "undo") {
    await undo(context, id);
    return;
  }
  const state =
    action === "wait"
      ? await waitForOperation(context, database, id)
      : await operationState(context, database, id);
  if (options.is("json") || action === "show") print(JSON.stringify(state));
  else print(`Operation ${id} is completed`);
}

/** Starts the undo operation, waits for it, and prints the result. */
async function undo(context: CommandContext, id: number): Promise<void> {
  const { client, options, print } = context;
  const database = context.database();
  await operationState(context, database, id);
  const started = (await client().json(inDatabase(database, "operations/undo"), {
    method: "POST",
    query: { id },
  })) as { OperationId: number };
  const { Result } = await waitForOperation(context, database, started.OperationId);
  if (options.is("json")) {
    print(JSON.stringify(Result));
    return;
  }
  const left = (Result?.["LeftAlone"] ?? []) as readonly string[];
  print(`${Number(Result?.["Restored"])} documents were restored`);
  const since = Number(Result?.["ChangedSince"]);
  if (since > 0) print(`${since} were changed since then and were not restored`);
  const made = Number(Result?.["WithoutRevision"]);
  if (made > 0) print(`${made} have no previous version: the operation created them`);
  for (const one of left) print(`  ${one}`);
}

/** Returns a derived state such as `Paused`, or the status. */
function stateText({ Status, IsPaused, CanResume, UndoneBy }: ListedOperation["State"]): string {
  if (IsPaused === true) return "Paused";
  if (CanResume === true) return "Interrupted";
  return UndoneBy === undefined ? Status : `Undone by ${UndoneBy}`;
}

/** Lists the operations of the selected database, or of all databases and, with sufficient access, of the server. */
async function list(context: CommandContext): Promise<void> {
  const { options, print, streams, environment } = context;
  const named = options.text("database") ?? environment["JACKDAW_DATABASE"];
  const found = named
    ? (await operationsOf(context, named)).map((one) => ({ Database: named, ...one }))
    : await allOperations(context);
  if (options.is("json")) {
    print(JSON.stringify(found));
    return;
  }
  const rows = found.map(({ Database, Id, Description, State }) => [
    Database ?? "(server)",
    Id,
    Description.TaskType,
    stateText(State),
    Description.StartTime.slice(0, 19),
    Description.StartedBy ?? "",
    Description.DetailedDescription?.Query?.replace(/\n\{\}$/, "") ?? Description.Description,
  ]);
  const paint = painter(streams.output.isTTY === true, environment);
  const header = ["database", "id", "type", "state", "started", "by", "description"];
  for (const line of tableLines(header, rows, streams.output.columns, paint)) print(line);
}

async function operationsOf({ client }: CommandContext, name: string): Promise<ListedOperation[]> {
  const reply = await client().json(inDatabase(name, "operations"));
  return (reply as { Results: ListedOperation[] }).Results;
}

async function allOperations(
  context: CommandContext,
): Promise<(ListedOperation & { Database: string | null })[]> {
  const { client } = context;
  const answer = await client().send("/admin/operations", { accepts: [403] });
  const own = answer.status === 403 ? { Results: [] } : JSON.parse(answer.text);
  const all = (own as { Results: ListedOperation[] }).Results.map((one) => ({
    Database: null,
    ...one,
  }));
  const { Databases } = (await client().json("/databases")) as {
    Databases: { Name: string; Disabled: boolean }[];
  };
  const open = Databases.filter(({ Disabled }) => !Disabled);
  const found: (ListedOperation & { Database: string | null })[] = [...all];
  for (const { Name } of open) {
    for (const one of await operationsOf(context, Name)) found.push({ Database: Name, ...one });
  }
  return found;
}
