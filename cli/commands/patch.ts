/** `jackdaw patch`: changes all documents that a query finds, and waits for it. */
import { inDatabase } from "../client.ts";
import type { Surroundings } from "../command.ts";
import { waitForOperation } from "../operations.ts";
import { parametersOf } from "./query.ts";

export async function run(surroundings: Surroundings): Promise<void> {
  const { arguments: given, client, database, options, print } = surroundings;
  const [text = ""] = given;
  const query = { Query: text, QueryParameters: parametersOf(options.all("parameter")) };
  const test = options.text("dry-run");
  if (test !== undefined) {
    const tried = await client().json(inDatabase(database(), "queries/test"), {
      method: "PATCH",
      query: { id: test },
      body: { Query: query },
    });
    const { Status, OriginalDocument, ModifiedDocument } = tried as Record<string, unknown>;
    if (options.is("json")) print(JSON.stringify(tried));
    else for (const line of changes(OriginalDocument, ModifiedDocument)) print(line);
    if (!options.is("json")) print(`${String(Status)} (nothing was stored)`);
    return;
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
