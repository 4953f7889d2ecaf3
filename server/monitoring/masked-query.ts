/**
 * The text of a query without what may be a part of a document: literals become `?`, and comments go. Scripts are left out from
 * their first brace on, because JavaScript cannot be masked without being parsed.
 */
const lengthMax = 2_000;

export function maskedQuery(text: string): string {
  const brace = text.indexOf("{");
  const plain = brace < 0 ? text : text.slice(0, brace);
  const masked = plain
    .slice(0, lengthMax)
    .replace(literals, (found) => (found.startsWith("/") ? " " : "?"))
    .replace(openLiteral, "?")
    .replace(/\s+/g, " ")
    .trim();
  return brace < 0 ? masked : `${masked} {…}`;
}

/** Strings, comments, and numbers that are not part of a name. */
const literals =
  /'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|`[^`]*`|\/\/[^\n]*|\/\*[\s\S]*?\*\/|(?<![\w$.])-?\d[\w.]*/g;
/** A string or comment that was cut off: nothing behind its begin is shown. */
const openLiteral = /(?:['"`]|\/\*)[\s\S]*$/;
