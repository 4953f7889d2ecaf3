/** `jackdaw patch`: changes all documents that a query finds, and waits for it; or shows what would change. */
import { inDatabase } from "../client.ts";
import type { Surroundings } from "../command.ts";
import { Failure } from "../failure.ts";
import { pieceOf, piecesOf } from "../json-pieces.ts";
import { waitForOperation } from "../operations.ts";
import { ask, canAsk } from "../question.ts";
import { withoutUpdate } from "../update-clause.ts";
import { numberOr } from "../values.ts";
import { parametersOf } from "./query.ts";

const sampleDefault = 5;

interface PatchQuery {
  readonly Query: string;
  readonly QueryParameters: Readonly<Record<string, unknown>>;
}

export async function run(surroundings: Surroundings): Promise<void> {
  const { arguments: given, client, database, options, print, streams } = surroundings;
  const [text = ""] = given;
  const query = { Query: text, QueryParameters: parametersOf(options.all("parameter")) };
  if (options.is("dry-run")) {
    await tryOut(surroundings, query);
    return;
  }
  if (!options.is("yes") && canAsk(streams)) {
    const total = await matching(surroundings, query);
    const answer = await ask(streams, `${total} documents match now. Patch them? [y/N] `);
    if (!/^y(es)?$/i.test(answer)) throw new Failure("failed", "Nothing was changed");
  }
  const started = (await client().json(inDatabase(database(), "queries"), {
    method: "PATCH",
    query: {
      maxOpsPerSec: options.text("max-per-second"),
      undo: options.is("undo") ? "true" : undefined,
    },
    body: { Query: query },
  })) as { OperationId: number };
  const { Result } = await waitForOperation(surroundings, database(), started.OperationId);
  if (options.is("json")) print(JSON.stringify(Result));
  else {
    print(`${Number(Result?.["Total"] ?? 0)} documents`);
    if (options.is("undo"))
      print(`'jackdaw operation undo ${started.OperationId} -d ${database()}' puts them back`);
  }
}

/** What a dry run has found. */
interface DryRun {
  readonly Total: number;
  readonly WouldChange: number;
  readonly Unchanged: number;
  readonly WouldFail: number;
  readonly Errors: readonly { readonly Id: string; readonly Message: string }[];
  readonly Samples: readonly {
    readonly Id: string;
    readonly Before: string | null;
    readonly After: string | null;
  }[];
}

/** Documents on which the script fails, of which the reason is printed. */
const shownErrors = 10;

/** Runs the script on all documents that the query finds, or on one. Stores nothing. */
async function tryOut(surroundings: Surroundings, query: PatchQuery): Promise<void> {
  const { client, database, options, print } = surroundings;
  const one = options.text("id");
  if (one !== undefined) {
    await tryOne(surroundings, query, one);
    return;
  }
  withoutUpdate(query.Query); // refuses a text that is no patch
  const sample = numberOr(options.text("sample"), sampleDefault, "--sample");
  const started = (await client().json(inDatabase(database(), "queries/dry-run"), {
    method: "PATCH",
    query: { sample, maxOpsPerSec: options.text("max-per-second") },
    body: { Query: query },
  })) as { OperationId: number };
  const { Result } = await waitForOperation(surroundings, database(), started.OperationId);
  if (options.is("json")) {
    print(JSON.stringify(Result));
    return;
  }
  const { Total, WouldChange, Unchanged, WouldFail, Errors, Samples } = Result as unknown as DryRun;
  for (const { Id, Before, After } of Samples) {
    print(`${Id}: would change`);
    if (Before === null || After === null) print("  (long: --id shows it)");
    else for (const line of changes(Before, After)) print(`  ${line}`);
  }
  for (const { Id, Message } of Errors.slice(0, shownErrors))
    print(`${Id}: would fail: ${Message.split("\n")[0]}`);
  print(
    `${WouldChange} of ${Total} documents would change, ${Unchanged} are right already, ${WouldFail} would fail. Nothing was stored`,
  );
}

/** Runs the script on one document. */
async function tryOne(
  { client, database, options, print }: Surroundings,
  query: PatchQuery,
  id: string,
): Promise<void> {
  const { text } = await client().send(inDatabase(database(), "queries/test"), {
    method: "PATCH",
    query: { id },
    body: { Query: query },
  });
  const { Status } = JSON.parse(text) as { Status: string };
  const Changes = changes(pieceOf(text, "OriginalDocument"), pieceOf(text, "ModifiedDocument"));
  if (options.is("json")) {
    print(JSON.stringify({ Matching: 1, Tried: [{ Id: id, Status, Changes }] }));
    return;
  }
  print(`${id}: ${Status}`);
  for (const line of Changes) print(`  ${line}`);
  print("Nothing was stored");
}

/** How many documents are found. */
async function matching(
  { client, database }: Surroundings,
  { Query, QueryParameters }: PatchQuery,
): Promise<number> {
  const text = withoutUpdate(Query);
  const body = { Query: text, QueryParameters, PageSize: 0, WaitForNonStaleResults: true };
  const path = inDatabase(database(), "queries");
  const reply = await client().json(path, { method: "POST", body });
  return (reply as { TotalResults: number }).TotalResults;
}

/** The top-level properties that differ: `- Name: 1`, `+ Name: 2`. */
export function changes(before = "{}", after = "{}"): string[] {
  const members = (text: string) => new Map(piecesOf(text).map((one) => [one.name, one.text]));
  const [one, other] = [members(before), members(after)];
  return [...new Set([...one.keys(), ...other.keys()])].flatMap((name) => {
    const [was, is] = [one.get(name), other.get(name)];
    if (name === "@metadata" || was === is) return [];
    return [
      ...(was === undefined ? [] : [`- ${name}: ${was}`]),
      ...(is === undefined ? [] : [`+ ${name}: ${is}`]),
    ];
  });
}
