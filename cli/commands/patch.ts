/**
 * `jackdaw patch`: patches all documents that match a query and waits for completion, or shows the changes of a dry
 * run.
 */
import { inDatabase } from "../client.ts";
import type { CommandContext } from "../command.ts";
import { Failure } from "../failure.ts";
import { jsonMember, jsonMembers } from "../json-text.ts";
import { waitForOperation } from "../operations.ts";
import { countText } from "../output.ts";
import { askQuestion, isInteractive } from "../question.ts";
import { withoutUpdate } from "../update-clause.ts";
import { numberOr } from "../values.ts";
import { parametersOf } from "./query.ts";

const sampleDefault = 5;

interface PatchQuery {
  readonly Query: string;
  readonly QueryParameters: Readonly<Record<string, unknown>>;
}

export async function run(context: CommandContext): Promise<void> {
  const { arguments: given, client, database, options, print, streams } = context;
  const [text = ""] = given;
  const query = { Query: text, QueryParameters: parametersOf(options.all("parameter")) };
  if (options.is("dry-run")) {
    await dryRun(context, query);
    return;
  }
  if (!options.is("yes")) {
    const total = countText(await matching(context, query));
    if (!isInteractive(streams)) {
      throw new Failure(
        "usage",
        `${total} documents match and would be patched; add --yes to confirm, or --dry-run to see the changes`,
      );
    }
    const answer = await askQuestion(streams, `${total} documents match now. Patch them? [y/N] `);
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
  const { Result, Reached } = await waitForOperation(context, database(), started.OperationId);
  if (options.is("json")) print(JSON.stringify(Result));
  else {
    print(
      `changed ${countText(Reached?.Changed ?? 0)} of ${countText(Reached?.Total ?? 0)} documents`,
    );
    if (options.is("undo"))
      print(`'jackdaw operation undo ${started.OperationId} -d ${database()}' restores them`);
  }
}

/** Result of a dry run. */
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

/** Maximum number of failing documents printed. */
const shownErrors = 10;

/** Runs the script on all matching documents, or on one document, without storing. */
async function dryRun(context: CommandContext, query: PatchQuery): Promise<void> {
  const { client, database, options, print } = context;
  const one = options.text("id");
  if (one !== undefined) {
    await dryRunOne(context, query, one);
    return;
  }
  withoutUpdate(query.Query); // rejects a query without `update`
  const sample = numberOr(options.text("sample"), sampleDefault, "--sample");
  const started = (await client().json(inDatabase(database(), "queries/dry-run"), {
    method: "PATCH",
    query: { sample, maxOpsPerSec: options.text("max-per-second") },
    body: { Query: query },
  })) as { OperationId: number };
  const { Result } = await waitForOperation(context, database(), started.OperationId);
  if (options.is("json")) {
    print(JSON.stringify(Result));
    return;
  }
  const { Total, WouldChange, Unchanged, WouldFail, Errors, Samples } = Result as unknown as DryRun;
  for (const { Id, Before, After } of Samples) {
    print(`${Id}: would change`);
    if (Before === null || After === null) print("  (too long; use --id to show it)");
    else for (const line of changes(Before, After)) print(`  ${line}`);
  }
  for (const { Id, Message } of Errors.slice(0, shownErrors))
    print(`${Id}: would fail: ${Message.split("\n")[0]}`);
  print(
    `${WouldChange} of ${Total} documents would change, ${Unchanged} are unchanged, ${WouldFail} would fail. Nothing was stored`,
  );
}

/** Runs the script on one document without storing. */
async function dryRunOne(
  { client, database, options, print }: CommandContext,
  query: PatchQuery,
  id: string,
): Promise<void> {
  const { text } = await client().send(inDatabase(database(), "queries/test"), {
    method: "PATCH",
    query: { id },
    body: { Query: query },
  });
  const { Status } = JSON.parse(text) as { Status: string };
  const Changes = changes(
    jsonMember(text, "OriginalDocument"),
    jsonMember(text, "ModifiedDocument"),
  );
  if (options.is("json")) {
    print(JSON.stringify({ Matching: 1, Tried: [{ Id: id, Status, Changes }] }));
    return;
  }
  print(`${id}: ${Status}`);
  for (const line of Changes) print(`  ${line}`);
  print("Nothing was stored");
}

/** Returns the number of matching documents. */
async function matching(
  { client, database }: CommandContext,
  { Query, QueryParameters }: PatchQuery,
): Promise<number> {
  const text = withoutUpdate(Query);
  const body = { Query: text, QueryParameters, PageSize: 0, WaitForNonStaleResults: true };
  const path = inDatabase(database(), "queries");
  const reply = await client().json(path, { method: "POST", body });
  return (reply as { TotalResults: number }).TotalResults;
}

/** Returns the differing top-level properties as lines: `- Name: 1`, `+ Name: 2`. */
export function changes(before = "{}", after = "{}"): string[] {
  const members = (text: string) => new Map(jsonMembers(text).map((one) => [one.name, one.text]));
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
