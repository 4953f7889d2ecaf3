/**
 * `where` of a series query -> a test of entries. Measured on RavenDB 7.2.7: values are compared without conversion;
 * values of different types are unequal, and ordering them is an error of the query, found when an entry meets it.
 *
 * Invariants:
 * - A test awaits nothing: values of the documents that tags name were read before (`LoadedTag`).
 */
import { unreachable } from "../../base/assert.ts";
import { EngineError } from "../../base/errors.ts";
import { type QueryParameters, scalarOf } from "../analysis/query-parameters.ts";
import type {
  Argument,
  Between,
  Comparison,
  ComparisonOperator,
  Expression,
  Field,
  In,
  Operand,
  Value,
} from "../syntax/ast.ts";
import { fieldText } from "../syntax/print.ts";
import { argumentText, type SeriesFunction } from "./analyze-series.ts";
import { parseSeriesTime } from "./time-period.ts";

/** A scalar; an object or array is `composite`. */
export type EntryValue = string | number | boolean | null | typeof composite;

/** A value that equals nothing: an object, an array, a whole document. */
export const composite = Symbol("object");

/**
 * Values of the document named by an entry's tag, by slot of `SeriesFilter.loadedPaths`; undefined if a value does not
 * exist.
 */
export interface LoadedTag {
  readonly id: string;
  readonly values: readonly (EntryValue | undefined)[];
  /** JSON text of the value that groups the entries. */
  readonly keyText: string | null;
}

/** The entry that is tested. */
export interface TestedEntry {
  /** Milliseconds since 1970, offset included. */
  time: number;
  tag: string | null;
  /** Values of the entry, from `start` (inclusive) to `end` (exclusive). */
  values: Float64Array;
  start: number;
  end: number;
  /** Null if the entry has no tag or the document does not exist. */
  loaded: LoadedTag | null;
  /** Its values are rollup values. */
  isRollup: boolean;
}

/** A document as an argument. Its bytes need to be valid only while the call begins. */
export interface SeriesDocument {
  readonly id: string;
  readonly bytes: Buffer;
  /** Offset of its body. */
  readonly at: number;
}

export type SeriesArgument =
  | { readonly kind: "value"; readonly value: EntryValue }
  | { readonly kind: "document"; readonly document: SeriesDocument };

/** Access to the arguments of a declared function. */
export interface ArgumentReader {
  /** Returns the value at a path in argument number `position`. @throws query-invalid for a path into a scalar */
  read(position: number, path: readonly string[], shown: string): EntryValue;
}

type Read = (entry: TestedEntry) => EntryValue;
type Test = (entry: TestedEntry) => boolean;

export class SeriesFilter {
  /** Paths into the documents that tags name. */
  readonly loadedPaths: (readonly string[])[] = [];
  readonly #function: SeriesFunction;
  readonly #parameters: QueryParameters | null;
  readonly #test: Test | null;
  /** Arguments, by slot. */
  readonly #arguments: { readonly position: number; readonly field: Field; value: EntryValue }[] =
    [];
  #valueNames: readonly string[] = [];

  constructor(series: SeriesFunction, parameters: QueryParameters | null) {
    this.#function = series;
    this.#parameters = parameters;
    this.#test = series.where === null ? null : this.#compile(series.where);
  }

  /** Called before the entries of a series: evaluates the constant parts. */
  begin(valueNames: readonly string[], argumentReader: ArgumentReader): void {
    this.#valueNames = valueNames;
    for (const one of this.#arguments) {
      const path = one.field.path.slice(1).map(({ name }) => name);
      one.value = argumentReader.read(one.position, path, fieldText(one.field));
    }
  }

  /** @throws query-invalid */
  passes(entry: TestedEntry): boolean {
    return this.#test === null || this.#test(entry);
  }

  #compile(node: Expression): Test {
    switch (node.kind) {
      case "and": {
        const tests = node.operands.map((operand) => this.#compile(operand));
        return (entry) => tests.every((test) => test(entry));
      }
      case "or": {
        const tests = node.operands.map((operand) => this.#compile(operand));
        return (entry) => tests.some((test) => test(entry));
      }
      case "not": {
        const test = this.#compile(node.operand);
        return (entry) => !test(entry);
      }
      case "comparison":
        return this.#comparison(node);
      case "between":
        return this.#between(node);
      case "in":
        return this.#in(node);
      case "true":
      case "call":
        throw this.#invalid(`Unsupported expression '${argumentText(node)}'`);
      default:
        return unreachable(node);
    }
  }

  #comparison(node: Comparison): Test {
    const { operator } = node;
    const left = this.#operand(node.left);
    const right = this.#operand(node.right);
    const failed = (a: EntryValue, b: EntryValue) =>
      this.#failed("expression", node, `, got : left '${shown(a)}', right '${shown(b)}'`);
    if (isTimestamp(node.left) || isTimestamp(node.right)) {
      const isLeft = isTimestamp(node.left);
      const other = isTimestamp(isLeft ? node.right : node.left) ? null : isLeft ? right : left;
      return (entry) => {
        const given = other === null ? entry.time : other(entry);
        const time = typeof given === "string" ? (parseSeriesTime(given)?.ms ?? null) : given;
        if (typeof time !== "number" || (other !== null && typeof given !== "string")) {
          throw failed(left(entry), right(entry));
        }
        return isLeft ? order(operator, entry.time - time) : order(operator, time - entry.time);
      };
    }
    return (entry) => {
      const a = left(entry);
      const b = right(entry);
      if (operator === "=") return isEqual(a, b);
      if (operator === "!=") return !isEqual(a, b);
      if (typeof a === "number" && typeof b === "number") return order(operator, a - b || 0);
      if (typeof a === "string" && typeof b === "string") {
        return order(operator, a < b ? -1 : a > b ? 1 : 0);
      }
      if (a === null || b === null) {
        // RavenDB orders a missing text before every other, and no other missing value.
        if (typeof a === "string") return order(operator, 1);
        return typeof b === "string" && order(operator, -1);
      }
      throw failed(a, b);
    };
  }

  #between(node: Between): Test {
    const [value, low, high] = [node.left, node.low, node.high].map((one) =>
      this.#operand(one),
    ) as [Read, Read, Read];
    return (entry) => {
      const given = value(entry);
      const [from, to] = [low(entry), high(entry)];
      if (given === null || from === null || to === null) return false;
      const areNumbers =
        typeof given === "number" && typeof from === "number" && typeof to === "number";
      if (!areNumbers || isTimestamp(node.left)) throw this.#failed("BetweenExpression", node, "");
      return given >= from && given <= to;
    };
  }

  #in(node: In): Test {
    const value = this.#operand(node.left);
    const values = node.values.map((one) => this.#operand(one));
    return (entry) => {
      const given = value(entry);
      if (given === null) return false;
      for (const read of values) {
        const one = read(entry);
        if (one === null) continue;
        if (typeof one !== typeof given || one === composite || isTimestamp(node.left)) {
          const where = ` on : source '${shown(given)}', value '${shown(one)}'`;
          throw this.#failed("InExpression", node, where);
        }
        if (one === given) return true;
      }
      return false;
    };
  }

  #operand(node: Operand): Read {
    if (node.kind === "field") return this.#field(node);
    if (node.kind === "call") throw this.#invalid(`Unsupported expression '${argumentText(node)}'`);
    const value = this.#constant(node);
    return () => value;
  }

  #constant(node: Value): EntryValue {
    const value =
      node.kind === "literal" ? scalarOf(node) : (this.#parameters?.values.get(node.name) ?? null);
    if (value === null) return null;
    if (value.type === "array" || value.type === "object") return composite;
    return value.type === "long" ? Number(value.value) : value.value;
  }

  #field(node: Field): Read {
    const [root = "", ...path] = node.path.map(({ name }) => name);
    const { loadAlias, parameters } = this.#function;
    switch (root.toLowerCase()) {
      case "value":
        return this.#plain(node, path, (entry) => entry.values[entry.start] as number);
      case "values":
        return this.#valueAt(node, path);
      case "tag":
        return this.#plain(node, path, (entry) => entry.tag);
      case "timestamp":
        return this.#plain(node, path, (entry) => entry.time);
    }
    if (root === loadAlias) return this.#loaded(path);
    const position = parameters?.indexOf(root) ?? -1;
    if (position >= 0) {
      const slot = { position, field: node, value: null as EntryValue };
      this.#arguments.push(slot);
      return () => slot.value;
    }
    return (entry) => {
      // RavenDB treats a value that an entry does not have as an unknown name.
      const at = path.length === 0 ? this.#valueNames.indexOf(root) : -1;
      if (at >= 0 && entry.start + at < entry.end) return entry.values[entry.start + at] as number;
      throw this.#unknown(node, root);
    };
  }

  #plain(node: Field, path: readonly string[], read: Read): Read {
    if (path.length === 0) return read;
    return () => {
      throw this.#invalid(`Failed to evaluate expression '${argumentText(node)}'`);
    };
  }

  #valueAt(node: Field, path: readonly string[]): Read {
    if (path.length === 0) return () => composite;
    const index = /^\d{1,9}$/.test(path[0] ?? "") ? Number(path[0]) : -1;
    if (index < 0 || path.length > 1) return this.#plain(node, path, () => null);
    return ({ values, start, end }) =>
      start + index < end ? (values[start + index] as number) : null;
  }

  #loaded(path: readonly string[]): Read {
    if (path.length === 0) return ({ loaded }) => (loaded === null ? null : composite);
    const slot = this.loadedPaths.push(path) - 1;
    const text = path.join(".");
    return ({ loaded }) => {
      if (loaded === null) return null;
      const value = loaded.values[slot];
      if (value !== undefined) return value;
      throw this.#invalid(
        `Unable to get the value of '${text}' from document '${loaded.id}'. Document '${loaded.id}' does not have a ` +
          `property named '${path.at(-1)}'.`,
      );
    };
  }

  #unknown(node: Field, root: string): EngineError {
    const { name, parameters } = this.#function;
    const what = parameters === null ? "no arguments were" : "no matching argument was";
    return this.#invalid(
      `Unable to get the value of '${argumentText(node)}'. '${root}' is unknown, and ${what} provided to time series ` +
        `function '${name}'.`,
    );
  }

  #failed(what: string, node: Argument, where: string): EngineError {
    return this.#invalid(
      `Time series function '${this.#function.name}' failed to execute ${what} '${argumentText(node)}'${where}`,
    );
  }

  #invalid(complaint: string): EngineError {
    return new EngineError("query-invalid", complaint);
  }
}

function isTimestamp(node: Operand): boolean {
  return node.kind === "field" && fieldText(node).toLowerCase() === "timestamp";
}

function isEqual(a: EntryValue, b: EntryValue): boolean {
  return a === b && a !== composite;
}

function order(operator: ComparisonOperator, difference: number): boolean {
  switch (operator) {
    case "=":
      return difference === 0;
    case "!=":
      return difference !== 0;
    case "<":
      return difference < 0;
    case "<=":
      return difference <= 0;
    case ">":
      return difference > 0;
    case ">=":
      return difference >= 0;
    default:
      return unreachable(operator);
  }
}

function shown(value: EntryValue): string {
  if (value === null) return "";
  return typeof value === "symbol" ? "object" : String(value);
}
