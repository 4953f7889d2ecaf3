/** `jackdaw patch`: changes all documents that a query finds, and waits for it; or shows what would change. */
import { inDatabase } from "../client.ts";
import type { Surroundings } from "../command.ts";
import { Failure } from "../failure.ts";
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
    const { total } = await matching(surroundings, query, 0);
    const answer = await ask(streams, `${total} documents match now. Patch them? [y/N] `);
    if (!/^y(es)?$/i.test(answer)) throw new Failure("failed", "Nothing was changed");
  }
  const started = (await client().json(inDatabase(database(), "queries"), {
    method: "PATCH",
    query: { maxOpsPerSec: options.text("max-per-second") },
    body: { Query: query },
  })) as { OperationId: number };
  const { Result } = await waitForOperation(surroundings, database(), started.OperationId);
  print(
    options.is("json") ? JSON.stringify(Result) : `${Number(Result?.["Total"] ?? 0)} documents`,
  );
}

interface Tried {
  readonly Id: string;
  readonly Status: string;
  readonly Changes: readonly string[];
}

/** Runs the script on the first documents that the query finds, or on one. Stores nothing. */
async function tryOut(surroundings: Surroundings, query: PatchQuery): Promise<void> {
  const { client, database, options, print } = surroundings;
  const one = options.text("id");
  const sample = numberOr(options.text("sample"), sampleDefault, "--sample");
  const { ids, total } =
    one === undefined ? await matching(surroundings, query, sample) : { ids: [one], total: 1 };
  const tried: Tried[] = [];
  for (const id of ids) {
    const path = inDatabase(database(), "queries/test");
    const reply = await client().json(path, {
      method: "PATCH",
      query: { id },
      body: { Query: query },
    });
    const { Status, OriginalDocument, ModifiedDocument } = reply as Record<string, unknown>;
    tried.push({
      Id: id,
      Status: String(Status),
      Changes: changes(OriginalDocument, ModifiedDocument),
    });
  }
  if (options.is("json")) {
    print(JSON.stringify({ Matching: total, Tried: tried }));
    return;
  }
  for (const { Id, Status, Changes } of tried) {
    print(`${Id}: ${Status}`);
    for (const line of Changes) print(`  ${line}`);
  }
  const changed = tried.filter(({ Changes }) => Changes.length > 0).length;
  print(
    `${total} documents match; of ${tried.length} tried, ${changed} would change. Nothing was stored`,
  );
}

/** The first documents that are found, and how many there are. */
async function matching(
  { client, database }: Surroundings,
  { Query, QueryParameters }: PatchQuery,
  PageSize: number,
): Promise<{ ids: string[]; total: number }> {
  const reply = await client().json(inDatabase(database(), "queries"), {
    method: "POST",
    body: { Query: withoutUpdate(Query), QueryParameters, PageSize, WaitForNonStaleResults: true },
  });
  const { Results, TotalResults } = reply as {
    Results: { "@metadata": { "@id": string } }[];
    TotalResults: number;
  };
  return { ids: Results.map((row) => row["@metadata"]["@id"]), total: TotalResults };
}

/** The top-level properties that differ: `- Name: 1`, `+ Name: 2`. */
export function changes(before: unknown, after: unknown): string[] {
  const one = (before ?? {}) as Record<string, unknown>;
  const other = (after ?? {}) as Record<string, unknown>;
  const names = [...new Set([...Object.keys(one), ...Object.keys(other)])];
  return names.flatMap((name) => {
    const [was, is] = [JSON.stringify(one[name]), JSON.stringify(other[name])];
    if (name === "@metadata" || was === is) return [];
    return [
      ...(was === undefined ? [] : [`- ${name}: ${was}`]),
      ...(is === undefined ? [] : [`+ ${name}: ${is}`]),
    ];
  });
}
