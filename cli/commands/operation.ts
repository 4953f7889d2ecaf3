/** `jackdaw operation`: list, show, wait, kill. With --server those of the server itself, else of a database. */
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
  };
  readonly State: { readonly Status: string };
}

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
  const state =
    action === "wait"
      ? await waitForOperation(surroundings, database, id)
      : await operationState(surroundings, database, id);
  if (options.is("json") || action === "show") print(JSON.stringify(state));
  else print(`Operation ${id} is completed`);
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
    State.Status,
    Description.StartTime.slice(0, 19),
    Description.Description,
  ]);
  const paint = painter(streams.output.isTTY === true, environment);
  const header = ["database", "id", "kind", "state", "started", "what"];
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
