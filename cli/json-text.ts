/**
 * Splits JSON text without converting values, so that documents keep the text of their numbers and the order of their
 * keys: JavaScript numbers cannot represent `9007199254740993` or `1.0`. The input must be valid JSON.
 */

/** A member of an object, or an element of an array, which has an empty name. */
export interface JsonMember {
  readonly name: string;
  readonly text: string;
}

/** The original JSON text of a number, object or array, as a table cell. */
export class RawJson {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  get isNumber(): boolean {
    return /^[-\d]/.test(this.text);
  }

  toString(): string {
    return this.text;
  }
}

/** Returns the members of an object or the elements of an array; none for other values. */
export function jsonMembers(text: string): JsonMember[] {
  const found: JsonMember[] = [];
  let at = skipSpaces(text, 0);
  const open = text[at];
  if (open !== "{" && open !== "[") return found;
  at = skipSpaces(text, at + 1);
  while (at < text.length && text[at] !== "}" && text[at] !== "]") {
    let name = "";
    if (open === "{") {
      const end = stringEnd(text, at);
      name = JSON.parse(text.slice(at, end)) as string;
      at = skipSpaces(text, skipSpaces(text, end) + 1);
    }
    const end = valueEnd(text, at);
    found.push({ name, text: text.slice(at, end) });
    at = skipSpaces(text, end);
    if (text[at] === ",") at = skipSpaces(text, at + 1);
  }
  return found;
}

/** Returns the text of a member; the last one of duplicate names, like JSON.parse. */
export function jsonMember(text: string, name: string): string | undefined {
  return jsonMembers(text).findLast((piece) => piece.name === name)?.text;
}

/** Returns a value for a table cell: raw text for numbers, objects and arrays; parsed otherwise. */
export function cellOf(text: string): unknown {
  return /^[-\d{[]/.test(text) ? new RawJson(text) : JSON.parse(text);
}

/** Returns an object of members, whose values are JSON text. */
export function objectText(members: readonly JsonMember[]): string {
  return `{${members.map(({ name, text }) => `${JSON.stringify(name)}:${text}`).join(",")}}`;
}

/** Sets `@collection` in the metadata of a document, without changing other text. */
export function inCollection(text: string, collection: string): string {
  const members = jsonMembers(text);
  const metadata = members.findLast(({ name }) => name === "@metadata")?.text ?? "{}";
  const others = jsonMembers(metadata).filter(({ name }) => name !== "@collection");
  const own = { name: "@collection", text: JSON.stringify(collection) };
  return objectText([
    ...members.filter(({ name }) => name !== "@metadata"),
    { name: "@metadata", text: objectText([...others, own]) },
  ]);
}

const tokens = /"[^"\\]*(?:\\.[^"\\]*)*"|[^\s"{}[\],:]+|[{}[\],:]/gs;

/** Formats a value over several lines, indented by two spaces per level. */
export function indented(text: string): string {
  const pieces: string[] = [];
  let depth = 0;
  let last = "";
  const line = () => `\n${"  ".repeat(depth)}`;
  for (const [token] of text.matchAll(tokens)) {
    const closes = token === "}" || token === "]";
    const isEmpty = closes && (last === "{" || last === "[");
    if (closes) depth--;
    if (last === "," || ((last === "{" || last === "[") && !isEmpty) || (closes && !isEmpty)) {
      pieces.push(line());
    }
    pieces.push(token === ":" ? ": " : token);
    if (token === "{" || token === "[") depth++;
    last = token;
  }
  return pieces.join("");
}

function skipSpaces(text: string, from: number): number {
  let at = from;
  while (text.charCodeAt(at) <= 32) at++;
  return at;
}

function stringEnd(text: string, from: number): number {
  let at = text.indexOf('"', from + 1);
  while (at >= 0 && isEscaped(text, at)) at = text.indexOf('"', at + 1);
  return at + 1;
}

function isEscaped(text: string, at: number): boolean {
  let from = at;
  while (text[from - 1] === "\\") from--;
  return (at - from) % 2 === 1;
}

function valueEnd(text: string, from: number): number {
  if (text[from] === '"') return stringEnd(text, from);
  let at = from;
  for (let depth = 0; at < text.length; at++) {
    const sign = text[at];
    if (sign === '"') at = stringEnd(text, at) - 1;
    else if (sign === "{" || sign === "[") depth++;
    else if (sign === "}" || sign === "]") {
      if (depth <= 1) return depth === 1 ? at + 1 : at;
      depth--;
    } else if (depth === 0 && (sign === "," || text.charCodeAt(at) <= 32)) return at;
  }
  return at;
}
