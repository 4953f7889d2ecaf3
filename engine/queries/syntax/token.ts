/**
 * Token kinds and reserved words.
 *
 * RQL has no keyword tokens: `from`, `in` or `desc` are words, and only their position makes them keywords. The few
 * words below can never begin an unquoted path or be an alias.
 */

export interface Token {
  readonly kind: TokenKind;
  /** As written, unless the kind specifies otherwise. */
  readonly text: string;
  /** Of the first character, in UTF-16 units from the start of the query. */
  readonly offset: number;
  /** One past the last character. */
  readonly end: number;
}

export type TokenKind =
  | "word" // a letter, `_` or `@`, then letters, digits, `_`, `-`
  | "string" // 'x' or "x"; `text` is its value: without quotes, escapes resolved
  | "long" // digits, optionally with a sign; `text` is without `_`
  | "double" // digits and one point
  | "parameter" // $name; `text` is the name
  | "punctuation" // ( ) [ ] { } , . * and the comparison operators
  | "unknown" // a character or number that matches no other kind
  | "end";

/** Words that cannot begin an unquoted path or be an alias; compared in lower case. */
export const reservedWords: ReadonlySet<string> = new Set([
  "as",
  "select",
  "where",
  "load",
  "group",
  "order",
  "include",
  "update",
  "offset",
  "limit",
  "scale",
]);
