/** `JSON` for scripts: between text and script values, by ECMAScript's rules (not those of stored documents). */

import { toNumber, toText } from "../language/script-operators.ts";
import { getProperty, namesIn, setProperty } from "../language/script-properties.ts";
import {
  ABSENT,
  addOwn,
  callFunction,
  isArray,
  isFunction,
  isReference,
  kinds,
  newObject,
  type Reference,
  type Run,
  recursionExceeded,
  ScriptArray,
  type ScriptFunction,
  throwError,
  type Value,
} from "../language/script-values.ts";
import { namespaceOf, newString } from "./built-in.ts";

/**
 * Levels of the host's stack for one level of nesting. A document nested as deep as one may be, 256 levels, can be read and
 * written in a function.
 */
const nestLevels = 4;

/** Returns the names in a list of names. */
function namesOf(run: Run, { items }: ScriptArray): ReadonlySet<string> {
  run.grow(items.length * 16);
  run.burn(items.length * 8);
  return new Set(items.map((item) => toText(run, item as Value)));
}

/** Writes one value; `open` are the containers being written. */
class JsonWriter {
  private readonly run: Run;
  private readonly indent: string;
  private readonly replacer: ScriptFunction | null;
  private readonly only: ReadonlySet<string> | null;
  private readonly open: Reference[] = [];

  constructor(run: Run, indent: string, replacer: Value) {
    this.run = run;
    this.indent = indent;
    this.replacer = isFunction(replacer) ? replacer : null;
    this.only = isArray(replacer) ? namesOf(run, replacer) : null;
  }

  /** JSON text, or undefined for values that JSON omits. */
  text(holder: Value, key: string, given: Value): string | undefined {
    const { run } = this;
    run.grow(64);
    run.burn(6);
    let value = given;
    if (this.replacer !== null) {
      value = callFunction(run, this.replacer, holder, [key, value]);
    }
    if (!isReference(value)) return this.primitive(value);
    switch (value.kind) {
      case kinds.function:
      case kinds.symbol:
        return undefined;
      case kinds.date:
        return Number.isNaN(value.time)
          ? "null"
          : JSON.stringify(new Date(value.time).toISOString());
      case kinds.object:
        if (value.boxed !== undefined) return this.primitive(value.boxed);
        return this.nest(value, () => this.object(value));
      case kinds.array:
        return this.nest(value, () => this.array(value));
      default:
        return "{}";
    }
  }

  private primitive(value: Value): string | undefined {
    if (value === undefined) return undefined;
    if (typeof value === "number") return Number.isFinite(value) ? String(value) : "null";
    if (typeof value === "string") {
      this.run.grow(value.length);
      this.run.burn(value.length >> 2);
    }
    return JSON.stringify(value);
  }

  private nest(node: Reference, write: () => string): string {
    const { run } = this;
    if (this.open.includes(node)) {
      throwError("TypeError", "Converting circular structure to JSON");
    }
    if (run.levelsLeft < nestLevels) throw recursionExceeded();
    run.levelsLeft -= nestLevels;
    run.burn(this.open.length);
    this.open.push(node);
    const text = write();
    this.open.pop();
    run.levelsLeft += nestLevels;
    run.grow(text.length / 4);
    return text;
  }

  private wrap(parts: string[], start: string, end: string): string {
    if (parts.length === 0) return start + end;
    if (this.indent === "") return `${start}${parts.join(",")}${end}`;
    const inner = `\n${this.indent.repeat(this.open.length)}`;
    const outer = `\n${this.indent.repeat(this.open.length - 1)}`;
    this.run.grow(parts.length * inner.length);
    return `${start}${inner}${parts.join(`,${inner}`)}${outer}${end}`;
  }

  private object(value: Value): string {
    const parts: string[] = [];
    for (const name of namesIn(this.run, value)) {
      if (this.only !== null && !this.only.has(name)) continue;
      const text = this.text(value, name, getProperty(this.run, value, name));
      if (text === undefined) continue;
      this.run.grow(name.length + 8);
      this.run.burn(4);
      parts.push(`${JSON.stringify(name)}:${this.indent === "" ? "" : " "}${text}`);
    }
    return this.wrap(parts, "{", "}");
  }

  private array(array: ScriptArray): string {
    const parts = array.items.map((item, i) => {
      const value = item === ABSENT ? undefined : (item as Value);
      return this.text(array, String(i), value) ?? "null";
    });
    return this.wrap(parts, "[", "]");
  }
}

/** JSON text of a value, or undefined. */
function jsonText(run: Run, value: Value, replacer: Value, indent: string): string | undefined {
  const text = new JsonWriter(run, indent, replacer).text(undefined, "", value);
  return text === undefined ? undefined : newString(run, text);
}

function stringify(run: Run, _self: Value, [value, replacer, space]: Value[]): Value {
  let indent = "";
  if (typeof space === "number")
    indent = " ".repeat(Math.min(10, Math.max(0, toNumber(run, space))));
  else if (typeof space === "string") indent = space.slice(0, 10);
  return jsonText(run, value, replacer, indent);
}

function parse(run: Run, _self: Value, [value, reviver]: Value[]): Value {
  const text = toText(run, value);
  run.grow(text.length * 2);
  run.burn(60 + text.length);
  let host: unknown;
  try {
    host = JSON.parse(text);
  } catch (error) {
    // The host's error captures a stack trace.
    run.burn(500);
    return throwError("SyntaxError", (error as Error).message);
  }
  const result = valueOfHost(run, host);
  return isFunction(reviver) ? revive(run, undefined, "", result, reviver) : result;
}

/** Converts the output of the host's JSON parser to script values. Own enumerable data only. */
function valueOfHost(run: Run, host: unknown): Value {
  if (typeof host !== "object" || host === null) return host as Value;
  if (run.levelsLeft < nestLevels) throw recursionExceeded();
  run.levelsLeft -= nestLevels;
  run.grow(64);
  run.burn(4);
  let result: Value;
  if (Array.isArray(host)) {
    run.grow(host.length * 8);
    result = new ScriptArray(host.map((item) => valueOfHost(run, item)));
  } else {
    result = newObject();
    for (const [key, item] of Object.entries(host)) {
      run.grow(32 + key.length);
      addOwn(result, key, valueOfHost(run, item));
    }
  }
  run.levelsLeft += nestLevels;
  return result;
}

function revive(
  run: Run,
  holder: Value,
  key: string,
  value: Value,
  reviver: ScriptFunction,
): Value {
  if (run.levelsLeft < nestLevels) throw recursionExceeded();
  run.levelsLeft -= nestLevels;
  if (isReference(value)) {
    for (const name of namesIn(run, value)) {
      const made = revive(run, value, name, getProperty(run, value, name), reviver);
      setProperty(run, value, name, made);
    }
  }
  run.burn(4);
  run.levelsLeft += nestLevels;
  return callFunction(run, reviver, holder, [key, value]);
}

export function defineJson(globals: Map<string, Value>): void {
  globals.set("JSON", namespaceOf({ stringify, parse }));
}
