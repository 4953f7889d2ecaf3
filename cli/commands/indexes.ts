/** `jackdaw index`: list, show, errors, put, reset, pause, resume, delete. */
import { inDatabase } from "../client.ts";
import type { CommandContext } from "../command.ts";
import { Failure } from "../failure.ts";
import { readInput } from "../input-file.ts";
import { painter, tableLines } from "../output.ts";

export async function run(context: CommandContext): Promise<void> {
  const { command, arguments: given, client, database, options, print } = context;
  const [name = ""] = given;
  const action = command.name.split(" ")[1] ?? "";
  if (action === "list") await list(context);
  else if (action === "errors") await errors(context);
  else if (action === "put") await put(context, name);
  else if (action === "show") {
    const definition = await found(context, name);
    print(JSON.stringify(definition, null, options.is("json") ? 0 : 2));
  } else {
    await found(context, name);
    const [method, path, done] = changes[action] as [string, string, string];
    await client().send(inDatabase(database(), path), { method, query: { name } });
    print(options.is("json") ? JSON.stringify({ Name: name }) : `${name} ${done}`);
  }
}

const changes: Readonly<Record<string, readonly [string, string, string]>> = {
  reset: ["RESET", "indexes", "is being rebuilt"],
  pause: ["POST", "admin/indexes/stop", "is paused"],
  resume: ["POST", "admin/indexes/start", "is resumed"],
  delete: ["DELETE", "indexes", "deleted"],
};

async function found({ client, database }: CommandContext, name: string): Promise<unknown> {
  const path = inDatabase(database(), "indexes");
  const answer = await client().send(path, { query: { name }, accepts: [404] });
  if (answer.status !== 404) return (JSON.parse(answer.text) as { Results: unknown[] }).Results[0];
  throw new Failure(
    "missing",
    `Index '${name}' does not exist; 'jackdaw index list' lists all indexes`,
  );
}

async function list({ client, database, options, print, streams, environment }: CommandContext) {
  const reply = await client().json(inDatabase(database(), "indexes/stats"));
  const { Results } = reply as { Results: Readonly<Record<string, unknown>>[] };
  if (options.is("json")) {
    print(JSON.stringify(Results));
    return;
  }
  const rows = Results.map((one) => [
    one["Name"],
    one["Type"],
    one["EntriesCount"],
    one["State"] === "Error" ? "" : one["IsStale"] === true ? "stale" : "up to date",
    one["State"] === "Error" ? "Failed" : (one["Status"] ?? one["State"]),
    one["ErrorsCount"],
  ]);
  const paint = painter(streams.output.isTTY === true, environment);
  const header = ["index", "type", "entries", "", "status", "errors"];
  for (const line of tableLines(header, rows, streams.output.columns, paint)) print(line);
  for (const { Name } of Results.filter(({ State }) => State === "Error")) {
    print(
      `${paint("red", "failed")}: ${Name} cannot run queries: 'jackdaw index errors ${Name} -d ${database()}' shows the errors; deploy a corrected definition`,
    );
  }
}

async function errors({ arguments: [name], client, database, options, print }: CommandContext) {
  const reply = await client().json(inDatabase(database(), "indexes/errors"), { query: { name } });
  const { Results } = reply as {
    Results: { Name: string; Errors: { Document: string; Error: string; Timestamp: string }[] }[];
  };
  if (options.is("json")) {
    print(JSON.stringify(Results));
    return;
  }
  for (const { Name, Errors } of Results) {
    for (const { Timestamp, Document, Error: why } of Errors) {
      print(`${Timestamp}  ${Name}  ${Document}  ${why.split("\n")[0]}`);
    }
  }
}

/** Deploys the JSON definition in a file under the name of the command. */
async function put(
  { arguments: given, client, database, options, print }: CommandContext,
  name: string,
) {
  const [, path = ""] = given;
  const text = await readInput(path);
  let definition: object;
  try {
    definition = JSON.parse(text) as object;
  } catch (error) {
    throw new Failure("usage", `${path} is not an index definition: ${(error as Error).message}`, {
      cause: error,
    });
  }
  const reply = await client().json(inDatabase(database(), "admin/indexes"), {
    method: "PUT",
    body: { Indexes: [{ ...definition, Name: name }] },
  });
  print(options.is("json") ? JSON.stringify(reply) : `${name} is deployed`);
}
