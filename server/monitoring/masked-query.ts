/**
 * Masks the text of a query, which may contain parts of documents: literals become `?`, and comments are removed. The text is
 * cut at the first brace, because scripts cannot be masked without parsing JavaScript.
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
/** An unterminated string or comment: the text after its beginning is removed. */
const openLiteral = /(?:['"`]|\/\*)[\s\S]*$/;
