/** `jackdaw index`: list, show, errors, put, reset, pause, resume, delete. */
import { inDatabase } from "../client.ts";
import type { Surroundings } from "../command.ts";
import { Failure } from "../failure.ts";
import { readInput } from "../input-file.ts";
import { painter, tableLines } from "../output.ts";

export async function run(surroundings: Surroundings): Promise<void> {
  const { command, arguments: given, client, database, options, print } = surroundings;
  const [name = ""] = given;
  const action = command.name.split(" ")[1] ?? "";
  if (action === "list") await list(surroundings);
  else if (action === "errors") await errors(surroundings);
  else if (action === "put") await put(surroundings, name);
  else if (action === "show") {
    const definition = await found(surroundings, name);
    print(JSON.stringify(definition, null, options.is("json") ? 0 : 2));
  } else {
    await found(surroundings, name);
    const [method, path, done] = changes[action] as [string, string, string];
    await client().send(inDatabase(database(), path), { method, query: { name } });
    print(options.is("json") ? JSON.stringify({ Name: name }) : `${name} ${done}`);
  }
}

const changes: Readonly<Record<string, readonly [string, string, string]>> = {
  reset: ["RESET", "indexes", "is built anew"],
  pause: ["POST", "admin/indexes/stop", "is paused"],
  resume: ["POST", "admin/indexes/start", "goes on"],
  delete: ["DELETE", "indexes", "deleted"],
};

async function found({ client, database }: Surroundings, name: string): Promise<unknown> {
  const path = inDatabase(database(), "indexes");
  const answer = await client().send(path, { query: { name }, accepts: [404] });
  if (answer.status !== 404) return (JSON.parse(answer.text) as { Results: unknown[] }).Results[0];
  throw new Failure("missing", `There is no index '${name}'; 'jackdaw index list' lists them`);
}

async function list({ client, database, options, print, streams, environment }: Surroundings) {
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
      `${paint("red", "failed")}: ${Name} answers no queries: 'jackdaw index errors ${Name} -d ${database()}' tells why; deploy it mended`,
    );
  }
}

async function errors({ arguments: [name], client, database, options, print }: Surroundings) {
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

/** The file has a definition as JSON, with its own `Name` or that of the command. */
async function put(
  { arguments: given, client, database, options, print }: Surroundings,
  name: string,
) {
  const [, path = ""] = given;
  const text = await readInput(path);
  let definition: object;
  try {
    definition = JSON.parse(text) as object;
  } catch (error) {
    throw new Failure("usage", `${path} is no index definition: ${(error as Error).message}`, {
      cause: error,
    });
  }
  const reply = await client().json(inDatabase(database(), "admin/indexes"), {
    method: "PUT",
    body: { Indexes: [{ ...definition, Name: name }] },
  });
  print(options.is("json") ? JSON.stringify(reply) : `${name} is deployed`);
}
