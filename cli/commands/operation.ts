/**
 * `jackdaw operation`: list, show, wait, kill; pause, resume, limit and undo patches and deletions. With --server those of
 * the server itself, else of a database.
 */
import { inDatabase } from "../client.ts";
import type { Surroundings } from "../command.ts";
import { Failure } from "../failure.ts";
import { operationState, waitForOperation } from "../operations.ts";
import { painter, tableLines } from "../output.ts";

interface ListedOperation {
  readonly Id: number;
  readonly Description: {
    readonly Description: string;
    readonly TaskType: string;
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

/** What is printed when an operation was told to do something. */
const told: Readonly<Record<string, string>> = {
  pause: "is paused",
  resume: "goes on",
  limit: "has another limit",
};

export async function run(surroundings: Surroundings): Promise<void> {
  const { command, arguments: given, client, options, print } = surroundings;
  const action = command.name.split(" ")[1];
  if (action === "list") {
    await list(surroundings);
    return;
  }
  const id = Number(given[0]);
  if (!Number.isInteger(id))
    throw new Failure("usage", `'${given[0]}' is no number of an operation`);
  const database = options.is("server") ? undefined : surroundings.database();
  if (action === "kill") {
    await operationState(surroundings, database, id);
    const path =
      database === undefined ? "/admin/operations/kill" : inDatabase(database, "operations/kill");
    await client().send(path, { method: "POST", query: { id } });
    print(options.is("json") ? JSON.stringify({ Id: id }) : `Operation ${id} was told to end`);
    return;
  }
  if (action !== undefined && told[action] !== undefined) {
    await operationState(surroundings, database, id);
    const path = inDatabase(surroundings.database(), `operations/${action}`);
    const maxOpsPerSec = action === "limit" ? options.text("max-per-second") : undefined;
    await client().send(path, { method: "POST", query: { id, maxOpsPerSec } });
    print(options.is("json") ? JSON.stringify({ Id: id }) : `Operation ${id} ${told[action]}`);
    return;
  }
  if (action === "undo") {
    await undo(surroundings, id);
    return;
  }
  const state =
    action === "wait"
      ? await waitForOperation(surroundings, database, id)
      : await operationState(surroundings, database, id);
  if (options.is("json") || action === "show") print(JSON.stringify(state));
  else print(`Operation ${id} is completed`);
}

/** Starts the undoing, waits for it, and tells what was put back. */
async function undo(surroundings: Surroundings, id: number): Promise<void> {
  const { client, options, print } = surroundings;
  const database = surroundings.database();
  await operationState(surroundings, database, id);
  const started = (await client().json(inDatabase(database, "operations/undo"), {
    method: "POST",
    query: { id },
  })) as { OperationId: number };
  const { Result } = await waitForOperation(surroundings, database, started.OperationId);
  if (options.is("json")) {
    print(JSON.stringify(Result));
    return;
  }
  const left = (Result?.["LeftAlone"] ?? []) as readonly string[];
  print(`${Number(Result?.["Restored"])} documents were put back`);
  const since = Number(Result?.["ChangedSince"]);
  if (since > 0) print(`${since} were changed by others since, and are left alone`);
  const made = Number(Result?.["WithoutRevision"]);
  if (made > 0) print(`${made} had nothing from before: the operation made them`);
  for (const one of left) print(`  ${one}`);
}

/** `Paused` and the like, else the status. */
function stateText({ Status, IsPaused, CanResume, UndoneBy }: ListedOperation["State"]): string {
  if (IsPaused === true) return "Paused";
  if (CanResume === true) return "Interrupted";
  return UndoneBy === undefined ? Status : `Undone by ${UndoneBy}`;
}

/** Of the database that is named, else of all, and of the server for those who may see them. */
async function list(surroundings: Surroundings): Promise<void> {
  const { options, print, streams, environment } = surroundings;
  const named = options.text("database") ?? environment["JACKDAW_DATABASE"];
  const found = named
    ? (await operationsOf(surroundings, named)).map((one) => ({ Database: named, ...one }))
    : await allOperations(surroundings);
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
    Description.Description,
  ]);
  const paint = painter(streams.output.isTTY === true, environment);
  const header = ["database", "id", "kind", "state", "started", "by", "what"];
  for (const line of tableLines(header, rows, streams.output.columns, paint)) print(line);
}

async function operationsOf({ client }: Surroundings, name: string): Promise<ListedOperation[]> {
  const reply = await client().json(inDatabase(name, "operations"));
  return (reply as { Results: ListedOperation[] }).Results;
}

async function allOperations(
  surroundings: Surroundings,
): Promise<(ListedOperation & { Database: string | null })[]> {
  const { client } = surroundings;
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
    for (const one of await operationsOf(surroundings, Name))
      found.push({ Database: Name, ...one });
  }
  return found;
}
