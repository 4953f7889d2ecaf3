/** Parsing and formatting of RQL on the query page. */

/** Matches comments, strings, and all other text. */
const segments =
  /\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|'(?:[^'\\]|\\.)*'?|"(?:[^"\\]|\\.)*"?|`(?:[^`\\]|\\.)*`?/g;
/** Keywords that begin a line. */
const clauses =
  /\s*\b(declare|from|group\s+by|where|order\s+by|load|filter|select|update|include|limit)\b/gi;

/** Replaces comments and strings with spaces. */
function bareText(text: string): string {
  return text.replace(segments, (piece) => piece.replace(/[^\n]/g, " "));
}

/** Returns the names after `$`. */
export function parametersOf(text: string): string[] {
  return [
    ...new Set([...bareText(text).matchAll(/\$([A-Za-z_]\w*)/g)].map(([, name]) => name as string)),
  ];
}

export function isUpdate(text: string): boolean {
  return /\bupdate\s*\{/i.test(bareText(text));
}

/**
 * Puts each clause on a separate line, with `and` and `or` of `where` and `filter` indented. Scripts and strings are
 * unchanged.
 */
export function formatted(text: string): string {
  const bare = bareText(text);
  const cuts: { readonly at: number; readonly to: number; readonly word: string }[] = [];
  const depths = depthsOf(bare);
  let isCondition = false;
  for (const found of bare.matchAll(new RegExp(`${clauses.source}|\\s+\\b(and|or)\\b`, "gi"))) {
    const word = (found[1] ?? found[2] ?? "").toLowerCase().replace(/\s+/, " ");
    const to = found.index + found[0].length;
    const at = to - (found[1] ?? found[2] ?? "").length;
    if (depths[at] !== 0) continue;
    if (found[2] !== undefined) {
      if (isCondition && !isBetween(bare.slice(0, at))) cuts.push({ at, to, word: `  ${word}` });
      continue;
    }
    isCondition = word === "where" || word === "filter";
    if (isDot(bare, at)) continue;
    cuts.push({ at, to, word });
  }
  let result = "";
  let last = 0;
  for (const { at, to, word } of cuts) {
    const before = text.slice(last, at).trimEnd();
    result += result === "" && before.trim() === "" ? "" : `${before}\n`;
    result += word;
    last = to;
  }
  return (result + text.slice(last)).trim();
}

/** Returns the nesting depth of each character in parentheses and braces. */
function depthsOf(bare: string): Uint16Array {
  const depths = new Uint16Array(bare.length);
  let depth = 0;
  for (let at = 0; at < bare.length; at++) {
    const one = bare[at] as string;
    if (")}]".includes(one)) depth = Math.max(0, depth - 1);
    depths[at] = depth;
    if ("({[".includes(one)) depth++;
  }
  return depths;
}

/** Returns true if the next `and` belongs to a `between`. */
function isBetween(before: string): boolean {
  return /\bbetween\s+\S+$/i.test(before.trimEnd());
}

/** Returns true for a member access such as `o.from`. */
function isDot(bare: string, at: number): boolean {
  return bare[at - 1] === "." || bare[at - 1] === "$";
}
