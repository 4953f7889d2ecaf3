/** `jackdaw get`, `put` and `delete`: documents by id. */
import { text as textOf } from "node:stream/consumers";
import { inDatabase } from "../client.ts";
import type { CommandContext } from "../command.ts";
import { Failure } from "../failure.ts";
import { readInput } from "../input-file.ts";
import { inCollection, indented } from "../json-text.ts";

export async function run(context: CommandContext): Promise<void> {
  const { command } = context;
  if (command.name === "get") await get(context);
  else if (command.name === "put") await put(context);
  else await remove(context);
}

async function get({
  arguments: ids,
  client,
  database,
  options,
  print,
}: CommandContext): Promise<void> {
  for (const id of ids) {
    const answer = await client().send(inDatabase(database(), "docs"), {
      query: { id },
      accepts: [404],
    });
    if (answer.status === 404) throw noDocument(id, database());
    // The reply is not parsed, so that numbers keep their stored text.
    const found = /^\{"Results":\[(.*)\],"Includes":/s.exec(answer.text)?.[1] ?? "";
    print(options.is("json") ? found : indented(found));
  }
}

async function put(context: CommandContext): Promise<void> {
  const { arguments: given, client, database, options, print } = context;
  const [id = "", path] = given;
  const text =
    path === undefined || path === "-"
      ? await textOf(context.streams.input)
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

/** Checks that a text is a JSON object. @throws Failure usage */
function checked(text: string): string {
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch (error) {
    throw new Failure("usage", `The document is not valid JSON: ${(error as Error).message}`, {
      cause: error,
    });
  }
  if (typeof document === "object" && document !== null && !Array.isArray(document)) return text;
  throw new Failure("usage", "The document must be a JSON object");
}

function noDocument(id: string, database: string): Failure {
  return new Failure("missing", `Document '${id}' does not exist in '${database}'`);
}

async function remove({
  arguments: ids,
  client,
  database,
  options,
  print,
}: CommandContext): Promise<void> {
  const expected = options.text("if-match");
  for (const id of ids) {
    // The server reports no error when it deletes a missing document.
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
