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

async function list({ client, database, options, print, streams, environment }: Surroundings) {
  const reply = await client().json(inDatabase(database(), "operations"));
  const { Results } = reply as { Results: ListedOperation[] };
  if (options.is("json")) {
    print(JSON.stringify(Results));
    return;
  }
  const rows = Results.map(({ Id, Description, State }) => [
    Id,
    Description.TaskType,
    State.Status,
    Description.StartTime,
    Description.Description,
  ]);
  const paint = painter(streams.output.isTTY === true, environment);
  const header = ["id", "kind", "state", "started", "what"];
  for (const line of tableLines(header, rows, streams.output.columns, paint)) print(line);
}
