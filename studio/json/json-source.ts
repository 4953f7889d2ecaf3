/**
 * Lossless JSON: numbers keep their digits, and members their order. Used for display and saving, because
 * `JSON.parse` rounds large numbers.
 */

/** A number with its original text. */
export class JsonNumber {
  readonly digits: string;

  constructor(digits: string) {
    this.digits = digits;
  }
}

export type JsonNode = string | boolean | null | JsonNumber | JsonNode[] | JsonMembers;
/** Members in order; for duplicate names, the last one. */
export type JsonMembers = Map<string, JsonNode>;

/** A syntax error with its offset in the text. */
export class JsonError extends Error {
  readonly at: number;

  constructor(message: string, at: number) {
    super(message);
    this.at = at;
  }
}

const space = /[ \t\r\n]*/y;
const number = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON does not allow them in strings
const text = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[\da-fA-F]{4}))*"/y;
const word = /true|false|null/y;

class Parser {
  readonly #source: string;
  #at = 0;

  constructor(source: string) {
    this.#source = source;
  }

  whole(): JsonNode {
    const value = this.#value();
    if (this.#at < this.#source.length) throw this.#expected("the end");
    return value;
  }

  #value(): JsonNode {
    this.#match(space);
    const value = this.#bare();
    this.#match(space);
    return value;
  }

  #bare(): JsonNode {
    const first = this.#source[this.#at];
    if (first === "{") return this.#members();
    if (first === "[") return this.#elements();
    if (first === '"') return this.#text();
    const digits = this.#match(number);
    if (digits !== null) return new JsonNumber(digits);
    const found = this.#match(word);
    if (found !== null) return JSON.parse(found) as boolean | null;
    throw this.#expected("a value");
  }

  #text(): string {
    const found = this.#match(text);
    if (found !== null) return JSON.parse(found) as string;
    if (this.#source[this.#at] === '"')
      throw new JsonError(
        "The string is not terminated, or contains a character that must be escaped",
        this.#at,
      );
    throw this.#expected("a quoted name");
  }

  #members(): JsonMembers {
    const members: JsonMembers = new Map();
    this.#at++;
    this.#match(space);
    if (this.#takes("}")) return members;
    for (;;) {
      this.#match(space);
      const name = this.#text();
      this.#match(space);
      if (!this.#takes(":")) throw this.#expected("a colon");
      members.set(name, this.#value());
      if (this.#takes("}")) return members;
      if (!this.#takes(",")) throw this.#expected("a comma or }");
    }
  }

  #elements(): JsonNode[] {
    const elements: JsonNode[] = [];
    this.#at++;
    this.#match(space);
    if (this.#takes("]")) return elements;
    for (;;) {
      elements.push(this.#value());
      if (this.#takes("]")) return elements;
      if (!this.#takes(",")) throw this.#expected("a comma or ]");
    }
  }

  #takes(character: string): boolean {
    if (this.#source[this.#at] !== character) return false;
    this.#at++;
    return true;
  }

  #match(pattern: RegExp): string | null {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#source)?.[0] ?? null;
    if (found !== null) this.#at += found.length;
    return found;
  }

  #expected(what: string): JsonError {
    const found = this.#source[this.#at];
    const but =
      found === undefined ? "the text ends" : `found ${found === '"' ? "a quote" : found}`;
    return new JsonError(`Expected ${what}, but ${but}`, this.#at);
  }
}

/** Parses JSON. @throws JsonError */
export function parseSource(source: string): JsonNode {
  return new Parser(source).whole();
}

/** Formats a value with `indent` spaces per level; 0 for one line. */
export function printSource(node: JsonNode, indent = 4): string {
  return print(node, indent === 0 ? "" : "\n", " ".repeat(indent));
}

function print(node: JsonNode, line: string, step: string): string {
  if (node instanceof JsonNumber) return node.digits;
  const inner = line === "" ? "" : line + step;
  if (Array.isArray(node)) {
    if (node.length === 0) return "[]";
    return `[${inner}${node.map((one) => print(one, inner, step)).join(`,${inner}`)}${line}]`;
  }
  if (node instanceof Map) {
    if (node.size === 0) return "{}";
    const colon = step === "" ? ":" : ": ";
    const parts = [...node].map(
      ([name, value]) => `${JSON.stringify(name)}${colon}${print(value, inner, step)}`,
    );
    return `{${inner}${parts.join(`,${inner}`)}${line}}`;
  }
  return JSON.stringify(node);
}

/** Returns a copy of a value in which the value at a path of names and indexes is replaced. */
export function replacedAt(
  node: JsonNode,
  [name, ...rest]: readonly string[],
  value: JsonNode,
): JsonNode {
  if (name === undefined) return value;
  if (Array.isArray(node))
    return node.with(Number(name), replacedAt(node[Number(name)] ?? null, rest, value));
  if (!(node instanceof Map)) return node;
  return new Map(node).set(name, replacedAt(node.get(name) ?? null, rest, value));
}

/** Returns a member of an object. */
export function memberOf(node: JsonNode | undefined, name: string): JsonNode | undefined {
  return node instanceof Map ? node.get(name) : undefined;
}
