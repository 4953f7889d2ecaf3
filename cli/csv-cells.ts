/** Cells of CSV as members of JSON documents, for the command line and for the page: nothing here is of Node. */

export interface Cell {
  readonly value: string;
  readonly isQuoted: boolean;
}

/** Members of an object whose values are JSON already. */
export class Members {
  readonly #members = new Map<string, Members | string>();

  /** A path through what is no object keeps its dots. */
  add([first = "", ...rest]: readonly string[], value: string): void {
    const inner = this.#members.get(first) ?? new Members();
    if (rest.length === 0 || !(inner instanceof Members)) {
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

/** A cell as JSON. `isText`: always a text. */
export function spellingOf({ value, isQuoted }: Cell, isText: boolean): string {
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
