/** Completion of queries: keywords, collections, indexes, and fields of the queried collection. */
import { rqlKeywords, rqlMethods } from "../../../engine/queries/syntax/words.ts";
import { get } from "../../base/client.ts";

export interface Suggestion {
  readonly label: string;
  readonly type: string;
  readonly detail?: string;
  /** Help, shown beside the list. */
  readonly info?: string;
}

const fields = new Map<string, Promise<readonly Suggestion[]>>();

/** Clears the cached fields, which may have changed. */
export function forgetFields(): void {
  fields.clear();
}

/** @param word the typed part with the path to it @param before the text before it */
export async function complete(base: string, word: string, before: string): Promise<Suggestion[]> {
  if (/\bfrom\s+index\s+['"]?$/i.test(before)) return await indexes(base);
  if (/\bfrom\s+$/i.test(before)) return await collections(base);
  const found = await fieldsAt(base, word, before);
  if (word.includes(".")) return [...found];
  const words = rqlKeywords.map((label): Suggestion => ({ label, type: "keyword" }));
  const functions = rqlMethods.map((label): Suggestion => ({ label, type: "function" }));
  return [...found, ...words, ...functions];
}

/** Returns the fields at the path of a word, of the collection that a query names. */
export async function fieldsAt(
  base: string,
  word: string,
  query: string,
): Promise<readonly Suggestion[]> {
  const collection = /\bfrom\s+(?:index\s+)?'?([\w@-]+)'?/i.exec(query)?.[1];
  return collection === undefined ? [] : await fieldsOf(base, collection, parentOf(word));
}

function parentOf(word: string): string {
  return word.slice(0, Math.max(0, word.lastIndexOf(".")));
}

async function collections(base: string): Promise<Suggestion[]> {
  const { body } = await get<{ Collections: Record<string, number> }>(`${base}/collections/stats`);
  const found = Object.keys(body.Collections).map((label) => ({ label, type: "class" }));
  return [...found, { label: "index", type: "keyword" }];
}

async function indexes(base: string): Promise<Suggestion[]> {
  const { body } = await get<{ Results: readonly string[] }>(`${base}/indexes?namesOnly=true`);
  return body.Results.map((name) => ({ label: `'${name}'`, type: "class" }));
}

function fieldsOf(
  base: string,
  collection: string,
  parent: string,
): Promise<readonly Suggestion[]> {
  const query = new URLSearchParams({ collection, prefix: parent });
  const path = `${base}/studio/collections/fields?${query}`;
  let found = fields.get(path);
  if (found === undefined) {
    found = get<Record<string, string>>(path).then(
      ({ body }) =>
        Object.entries(body).map(([label, detail]) => ({ label, type: "property", detail })),
      () => [],
    );
    fields.set(path, found);
  }
  return found;
}
