/**
 * A slow, simple model of the parser: minifies JSON text by the same rules, recursively, over
 * strings.
 */

const token = /\s*("(?:[^"\\]|\\.)*"|[^\s"[\]{},:]+|[[\]{},:])\s*/y;

/** A string token in stored form. */
function storedString(text: string): string {
  const value = (JSON.parse(text) as string).replace(/\p{Surrogate}/gu, "\ufffd");
  const short: Record<string, string> = {
    "\b": "\\b",
    "\t": "\\t",
    "\n": "\\n",
    "\f": "\\f",
    "\r": "\\r",
    '"': '\\"',
    "\\": "\\\\",
  };
  let stored = "";
  for (const character of value) {
    const code = character.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0");
    stored += short[character] ?? (character < " " ? `\\u${code}` : character);
  }
  return `"${stored}"`;
}

/** Members of an object in stored form: each key's last value, at its last position. */
type Members = Map<string, string>;

class Reader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  next(): string {
    token.lastIndex = this.#at;
    const match = token.exec(this.#text);
    if (match === null) throw new Error(`no token at ${this.#at}`);
    this.#at = token.lastIndex;
    return match[1] as string;
  }

  /** The minified value; calls `onMembers` for the outermost object. */
  value(first: string, onMembers?: (members: Members) => void): string {
    if (first.startsWith('"')) return storedString(first);
    if (first === "[") {
      const items: string[] = [];
      for (let item = this.next(); item !== "]"; item = this.next()) {
        if (item !== ",") items.push(this.value(item));
      }
      return `[${items.join(",")}]`;
    }
    if (first === "{") {
      const members: Members = new Map();
      for (let key = this.next(); key !== "}"; key = this.next()) {
        if (key === ",") continue;
        this.next();
        const name = storedString(key);
        members.delete(name);
        members.set(name, this.value(this.next()));
      }
      onMembers?.(members);
      return `{${[...members].map(([name, value]) => `${name}:${value}`).join(",")}}`;
    }
    if (/^[-\d]/.test(first) && !Number.isFinite(Number(first))) throw new Error("out of range");
    return first === "-0" ? "0" : first;
  }
}

/**
 * The stored form of `text`, which JSON.parse must accept. @throws if it contains a number out of
 * range.
 */
export function slowMinify(text: string): string {
  JSON.parse(text);
  const reader = new Reader(text);
  return reader.value(reader.next());
}

/** The members of a document in stored form, `@metadata` included. */
export function slowMembers(text: string): Members {
  JSON.parse(text);
  const reader = new Reader(text);
  let found: Members = new Map();
  reader.value(reader.next(), (members) => {
    found = members;
  });
  return found;
}
