/** `jackdaw get`, `put` and `delete`: documents by id. */
import { readFile } from "node:fs/promises";
import { text as textOf } from "node:stream/consumers";
import { inDatabase } from "../client.ts";
import type { Surroundings } from "../command.ts";
import { Failure } from "../failure.ts";

export async function run(surroundings: Surroundings): Promise<void> {
  const { command } = surroundings;
  if (command.name === "get") await get(surroundings);
  else if (command.name === "put") await put(surroundings);
  else await remove(surroundings);
}

async function get({
  arguments: ids,
  client,
  database,
  options,
  print,
}: Surroundings): Promise<void> {
  for (const id of ids) {
    const answer = await client().send(inDatabase(database(), "docs"), {
      query: { id },
      accepts: [404],
    });
    if (answer.status === 404 && answer.headers["database-missing"] === undefined) {
      throw new Failure("missing", `There is no document '${id}' in '${database()}'`);
    }
    // The text of the numbers stays as it is stored: nothing is parsed and printed again.
    const found = /^\{"Results":\[(.*)\],"Includes":/s.exec(answer.text)?.[1] ?? "";
    if (options.is("json")) print(found);
    else print(JSON.stringify(JSON.parse(found), null, 2));
  }
}

async function put(surroundings: Surroundings): Promise<void> {
  const { arguments: given, client, database, options, print } = surroundings;
  const [id = "", path] = given;
  const text =
    path === undefined || path === "-"
      ? await textOf(surroundings.streams.input)
      : await readFile(path, "utf8");
  const collection = options.text("collection");
  const expected = options.text("if-match");
  const answer = await client().send(inDatabase(database(), "docs"), {
    method: "PUT",
    query: { id },
    headers: {
      "content-type": "application/json",
      ...(expected === undefined ? {} : { "if-match": JSON.stringify(expected) }),
    },
    body: collection === undefined ? text : inCollection(text, collection),
  });
  const { Id, ChangeVector } = JSON.parse(answer.text) as { Id: string; ChangeVector: string };
  print(options.is("json") ? answer.text : `${Id}  ${ChangeVector}`);
}

function inCollection(text: string, collection: string): string {
  let document: Record<string, unknown>;
  try {
    document = JSON.parse(text) as Record<string, unknown>;
  } catch (error) {
    throw new Failure("usage", `The document is no JSON: ${(error as Error).message}`, {
      cause: error,
    });
  }
  const metadata = { ...(document["@metadata"] as object | undefined), "@collection": collection };
  return JSON.stringify({ ...document, "@metadata": metadata });
}

async function remove({
  arguments: ids,
  client,
  database,
  options,
  print,
}: Surroundings): Promise<void> {
  const expected = options.text("if-match");
  for (const id of ids) {
    await client().send(inDatabase(database(), "docs"), {
      method: "DELETE",
      query: { id },
      headers: expected === undefined ? {} : { "if-match": JSON.stringify(expected) },
    });
    print(options.is("json") ? JSON.stringify({ Id: id }) : `${id} deleted`);
  }
}
