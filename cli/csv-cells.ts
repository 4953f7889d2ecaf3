/**
 * Converts CSV cells to members of JSON documents. Used by the command line and by the studio, so it does not depend
 * on Node.
 */

export interface Cell {
  readonly value: string;
  readonly isQuoted: boolean;
}

/** Builder of a JSON object whose values are already JSON text. */
export class JsonBuilder {
  readonly #members = new Map<string, JsonBuilder | string>();

  /** Adds a value at a path. If an inner name of the path is not an object, the path becomes one name with dots. */
  add([first = "", ...rest]: readonly string[], value: string): void {
    const inner = this.#members.get(first) ?? new JsonBuilder();
    if (rest.length === 0 || !(inner instanceof JsonBuilder)) {
      this.#members.set([first, ...rest].join("."), value);
      return;
    }
    this.#members.set(first, inner);
    inner.add(rest, value);
  }

  toString(): string {
    const members = [...this.#members].map(([name, value]) => `${JSON.stringify(name)}:${value}`);
    return `{${members.join(",")}}`;
  }
}

const numberPattern = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;

/** Returns a cell as JSON; with `isText`, always as a string. */
export function cellJson({ value, isQuoted }: Cell, isText: boolean): string {
  if (isText) return JSON.stringify(value);
  if (isQuoted) return isStructure(value) ? value : JSON.stringify(value);
  const word = value.toLowerCase();
  if (word === "true" || word === "false" || word === "null") return word;
  return numberPattern.test(value) ? value : JSON.stringify(value);
}

function isStructure(value: string): boolean {
  if (!/^[[{]/.test(value)) return false;
  try {
    JSON.parse(value);
    return true;
  } catch {
    return false;
  }
}
