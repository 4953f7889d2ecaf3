/** Completion of patches: RQL before the update clause; in it, fields of the document and functions with their help. */
import { scriptFunctions } from "../editor/script-functions.ts";
import { complete, fieldsAt, type Suggestion } from "./query/query-completion.ts";

const updateClause = /\bupdate\s*\{/i;
const aliasPattern = /\bfrom\s+(?:index\s+)?(?:'[^']*'|[\w@-]+)\s+as\s+([A-Za-z_$][\w$]*)/i;

/** @param word the typed part with the path to it @param before the text before it */
export async function completePatch(
  base: string,
  word: string,
  before: string,
): Promise<readonly Suggestion[]> {
  const clause = updateClause.exec(before);
  if (clause === null) return await complete(base, word, before);
  if (isInTextOrComment(before.slice(clause.index))) return [];
  const query = before.slice(0, clause.index);
  const alias = aliasPattern.exec(query)?.[1];
  const dot = word.indexOf(".");
  if (dot < 0)
    return [
      { label: "this", type: "keyword", detail: "the document" },
      ...(alias === undefined ? [] : [{ label: alias, type: "keyword", detail: "the document" }]),
      ...functionsIn(""),
    ];
  const first = word.slice(0, dot);
  if (first !== "this" && first !== alias) return functionsIn(`${first}.`);
  return await fieldsAt(base, word.slice(dot + 1), query);
}

/** Returns the functions of a namespace such as `spatial.`, or, for "", all with the namespace in their name. */
function functionsIn(namespace: string): Suggestion[] {
  return scriptFunctions
    .filter(({ name }) => name.startsWith(namespace))
    .map(({ name, parameters, help }) => ({
      label: name.slice(namespace.length),
      type: "function",
      detail: parameters,
      info: help,
    }));
}

/** Returns whether the last line of a script ends in a text or in a comment. */
function isInTextOrComment(script: string): boolean {
  const line = script.slice(script.lastIndexOf("\n") + 1);
  const bare = line.replace(/'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`/g, "");
  return /\/\/|['"`]/.test(bare);
}
