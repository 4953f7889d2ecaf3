/** `jackdaw get`, `put` and `delete`: documents by id. */
import { text as textOf } from "node:stream/consumers";
import { inDatabase } from "../client.ts";
import type { Surroundings } from "../command.ts";
import { Failure } from "../failure.ts";
import { readInput } from "../input-file.ts";
import { inCollection, indented } from "../json-pieces.ts";

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
    if (answer.status === 404) throw noDocument(id, database());
    // The text of the numbers stays as it is stored: nothing is parsed and printed again.
    const found = /^\{"Results":\[(.*)\],"Includes":/s.exec(answer.text)?.[1] ?? "";
    print(options.is("json") ? found : indented(found));
  }
}

async function put(surroundings: Surroundings): Promise<void> {
  const { arguments: given, client, database, options, print } = surroundings;
  const [id = "", path] = given;
  const text =
    path === undefined || path === "-"
      ? await textOf(surroundings.streams.input)
      : await readInput(path);
  const collection = options.text("collection");
  const expected = options.text("if-match");
  const answer = await client().send(inDatabase(database(), "docs"), {
    method: "PUT",
    query: { id },
    headers: {
      "content-type": "application/json",
      ...(expected === undefined ? {} : { "if-match": JSON.stringify(expected) }),
    },
    body: collection === undefined ? text : inCollection(checked(text), collection),
  });
  const { Id, ChangeVector } = JSON.parse(answer.text) as { Id: string; ChangeVector: string };
  print(options.is("json") ? answer.text : `${Id}  ${ChangeVector}`);
}

/** @throws Failure usage for a text that is no document */
function checked(text: string): string {
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch (error) {
    throw new Failure("usage", `The document is no JSON: ${(error as Error).message}`, {
      cause: error,
    });
  }
  if (typeof document === "object" && document !== null && !Array.isArray(document)) return text;
  throw new Failure("usage", "The document must be an object, in braces");
}

function noDocument(id: string, database: string): Failure {
  return new Failure("missing", `There is no document '${id}' in '${database}'`);
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
    // The server answers a deletion of what is not there as any other.
    const { status } = await client().send(inDatabase(database(), "docs"), {
      query: { id, metadataOnly: true },
      accepts: [404],
    });
    if (status === 404) throw noDocument(id, database());
    await client().send(inDatabase(database(), "docs"), {
      method: "DELETE",
      query: { id },
      headers: expected === undefined ? {} : { "if-match": JSON.stringify(expected) },
    });
    print(options.is("json") ? JSON.stringify({ Id: id }) : `${id} deleted`);
  }
}
