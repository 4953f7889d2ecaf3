/**
 * `filter`: an expression -> a test of one document's bytes. Comparisons follow scripts: case-sensitive, `=` without
 * conversion, `<` with conversion, a missing field is undefined. Measured on RavenDB 7.2.7: `between` and paths with
 * `[]` are never true; a path through a missing or null object is null; `all in` is `in`, and a `null` written in a
 * list equals nothing.
 *
 * Filters that call functions other than the few supported here are run by scripting (`isSimpleFilter`).
 *
 * Hot: bench/scan.bench.ts.
 */
import { unreachable } from "../../base/assert.ts";
import { EngineError } from "../../base/errors.ts";
import { byteObjectOpen, byteQuote } from "../../base/json/bytes.ts";
import { quoteString } from "../../base/json/escape.ts";
import {
  decodeNumber,
  findMember,
  type JsonValue,
  readValue,
  skipValue,
  ValueSpan,
} from "../../base/json/field-access.ts";
import { bodyStartOf, fieldStartOf, shapeIdOf } from "../../state/documents/document-record.ts";
import type { Shape } from "../../state/documents/shapes.ts";
import {
  type ParameterValue,
  type QueryParameters,
  scalarOf,
} from "../analysis/query-parameters.ts";
import type { RowSource, StoredRow } from "../execution/row-source.ts";
import { functionNamed } from "../functions/function-table.ts";
import type { FilterCompiler, ReadValue, RowTest, Seen } from "../functions/rql-function.ts";
import type {
  Call,
  Comparison,
  ComparisonOperator,
  Expression,
  Field,
  In,
  Operand,
  Value,
} from "../syntax/ast.ts";

export type { RowTest };

/** Context of the compiler, besides the expression. */
interface FilterContext {
  readonly source: Pick<RowSource, "shapeOf" | "metadataOf">;
  readonly alias: string | null;
  readonly parameters: QueryParameters | null;
  textTest(pattern: string): (text: string) => boolean;
}

const noExtra = Buffer.alloc(0);
/** The first byte of `null`. */
const byteN = 0x6e;

/** Returns whether `compileFilter` supports every call in it, and every path starts at the query's own document. */
export function isSimpleFilter(expression: Expression, loadAliases: ReadonlySet<string>): boolean {
  switch (expression.kind) {
    case "and":
    case "or":
      return expression.operands.every((operand) => isSimpleFilter(operand, loadAliases));
    case "not":
      return isSimpleFilter(expression.operand, loadAliases);
    case "true":
      return true;
    case "call":
      return isSimpleCall(expression, loadAliases);
    case "comparison":
      return (
        isSimpleOperand(expression.left, loadAliases) &&
        expression.right.kind !== "field" &&
        expression.right.kind !== "call"
      );
    case "between":
    case "in":
      return isSimpleOperand(expression.left, loadAliases);
    default:
      return unreachable(expression);
  }
}

function isSimpleOperand(operand: Operand, loadAliases: ReadonlySet<string>): boolean {
  if (operand.kind === "call") return isSimpleCall(operand, loadAliases);
  if (operand.kind !== "field") return true;
  // Only scripts support `length` of arrays and strings, and elements by position.
  const isOfScripts = operand.path.some(({ name }) => name === "length" || /^\d+$/.test(name));
  return !isOfScripts && !loadAliases.has(operand.path[0]?.name ?? "");
}

function isSimpleCall(call: Call, loadAliases: ReadonlySet<string>): boolean {
  const compiled = compilerOf(call);
  if (compiled === null) return false;
  // It is refused when it is compiled.
  if (compiled.test === null && compiled.read === null) return true;
  return call.args.every((argument) =>
    argument.kind === "field" || argument.kind === "literal" || argument.kind === "parameter"
      ? isSimpleOperand(argument, loadAliases)
      : isSimpleFilter(argument, loadAliases),
  );
}

/** Returns the number of conditions of a filter, at least 1: its cost per row. */
export function conditionCount(expression: Expression): number {
  switch (expression.kind) {
    case "and":
    case "or": {
      let count = 0;
      for (const operand of expression.operands) count += conditionCount(operand);
      return count;
    }
    case "not":
      return conditionCount(expression.operand);
    default:
      return 1;
  }
}

/** @throws not-supported for functions that need an index. */
export function compileFilter(expression: Expression, context: FilterContext): RowTest {
  switch (expression.kind) {
    case "and":
      return compileAll(expression.operands.map((operand) => compileFilter(operand, context)));
    case "or":
      return compileAny(expression.operands.map((operand) => compileFilter(operand, context)));
    case "not": {
      const operand = compileFilter(expression.operand, context);
      return function filterNot(row, body) {
        return !operand(row, body);
      };
    }
    case "true":
      return function filterTrue() {
        return true;
      };
    case "comparison":
      return compileComparison(expression, context);
    case "between":
      return function filterBetween() {
        return false;
      };
    case "in":
      return compileIn(expression, context);
    case "call":
      return compileCondition(expression, context);
    default:
      return unreachable(expression);
  }
}

function compileAll(tests: readonly RowTest[]): RowTest {
  const [first, second] = tests as [RowTest, RowTest];
  if (tests.length === 2) {
    return function filterBoth(row, body) {
      return first(row, body) && second(row, body);
    };
  }
  return function filterAll(row, body) {
    for (let i = 0; i < tests.length; i++) if (!(tests[i] as RowTest)(row, body)) return false;
    return true;
  };
}

function compileAny(tests: readonly RowTest[]): RowTest {
  return function filterAny(row, body) {
    for (let i = 0; i < tests.length; i++) if ((tests[i] as RowTest)(row, body)) return true;
    return false;
  };
}

function compileComparison(expression: Comparison, context: FilterContext): RowTest {
  const { operator, left } = expression;
  if (expression.right.kind === "field" || expression.right.kind === "call") {
    throw new EngineError("query-invalid", "A filter compares with a value.");
  }
  const value = seenValueOf(expression.right, context);
  if (left.kind === "field") {
    const finder = finderOf(left, context);
    if (finder !== null) {
      if (typeof value === "number") return compileNumberTest(finder, operator, value);
      if (typeof value === "string" && operator === "=") return compileTextTest(finder, value);
    }
  }
  const read = compileRead(left, context);
  const compare = comparer(operator);
  return function filterComparison(row, body) {
    return compare(read(row, body), value);
  };
}

/** Returns a test on the bytes of a number; other values are compared as in a script. */
function compileNumberTest(
  finder: FieldFinder,
  operator: ComparisonOperator,
  value: number,
): RowTest {
  const compare = comparer(operator);
  const { span } = finder;
  const testNumber = numberComparer(operator);
  return function filterNumber(row, body) {
    if (!finder.find(row, body)) return compare(finder.isThroughMissing ? null : undefined, value);
    const { bytes } = row;
    const first = bytes[span.from] as number;
    if (first <= 0x39 && first !== byteQuote) {
      return testNumber(decodeNumber(bytes, span.from, skipValue(bytes, span.from)), value);
    }
    return compare(readValue(bytes, span.from, skipValue(bytes, span.from)), value);
  };
}

/** Equality with a string, compared as bytes of minified JSON text. */
function compileTextTest(finder: FieldFinder, value: string): RowTest {
  const text = quoteString(value);
  const { length } = text;
  const { span } = finder;
  const last = text[length - 2] as number;
  return function filterText(row, body) {
    if (!finder.find(row, body)) return false;
    const { bytes } = row;
    const { from } = span;
    // The byte before the closing quote differs most often, then the rest.
    if (bytes[from + length - 1] !== byteQuote || bytes[from + length - 2] !== last) return false;
    for (let i = 0; i < length; i++) if (bytes[from + i] !== text[i]) return false;
    return true;
  };
}

function compileIn(expression: In, context: FilterContext): RowTest {
  const read = compileRead(expression.left, context);
  const isNull = (value: Value) => value.kind === "literal" && value.type === "null";
  // A parameter that is an array is not expanded, and so equals nothing.
  const sought = expression.values.filter((value) => !isNull(value));
  const values = new Set(sought.map((value) => seenValueOf(value, context)));
  if (values.size === 0) return () => false;
  return function filterIn(row, body) {
    return values.has(read(row, body));
  };
}

function compileCondition(call: Call, context: FilterContext): RowTest {
  const test = compilerOf(call)?.test?.(call, {
    filter: (expression) => compileFilter(expression, context),
    read: (operand) => compileRead(operand, context),
    value: (value) => seenValueOf(value, context),
    textTest: (pattern) => context.textTest(pattern),
  });
  if (test === undefined || test === null) throw notSupported(call.name);
  return test;
}

function compilerOf({ name }: Call): FilterCompiler | null {
  const { compiled = "script" } = functionNamed(name)?.filter ?? {};
  return compiled === "script" ? null : compiled;
}

function notSupported(name: string): EngineError {
  return new EngineError(
    "not-supported",
    `'${name}' query method is not supported for this type of query`,
  );
}

function compileRead(operand: Field | Call, context: FilterContext): ReadValue {
  if (operand.kind === "call") {
    const read = compilerOf(operand)?.read ?? null;
    if (read === null) throw notSupported(operand.name);
    return read();
  }
  const path = pathOf(operand, context);
  if (path.some((part) => part.arrays > 0)) return () => undefined;
  if (path[0]?.name === "@metadata") return compileMetadataRead(path.slice(1), context);
  const finder = new FieldFinder(
    path.map((part) => part.name),
    context.source,
  );
  const { span } = finder;
  return function readField(row, body) {
    if (!finder.find(row, body)) return finder.isThroughMissing ? null : undefined;
    return readValue(row.bytes, span.from, skipValue(row.bytes, span.from));
  };
}

function compileMetadataRead(
  path: readonly { readonly name: string }[],
  context: FilterContext,
): ReadValue {
  const names = path.map((part) => quoteString(part.name));
  const span = new ValueSpan();
  return function readMetadata(row) {
    const bytes = context.source.metadataOf(row, noExtra);
    let at = 0;
    for (const name of names) {
      if (!findMember(bytes, at, name, span)) return undefined;
      at = span.from;
    }
    return readValue(bytes, at, skipValue(bytes, at));
  };
}

/** Returns the path without the query's alias. */
function pathOf(field: Field, context: FilterContext): Field["path"] {
  const isAliased =
    context.alias !== null && field.path.length > 1 && field.path[0]?.name === context.alias;
  return isAliased ? field.path.slice(1) : field.path;
}

function finderOf(field: Field, context: FilterContext): FieldFinder | null {
  const path = pathOf(field, context);
  if (path[0]?.name === "@metadata" || path.some((part) => part.arrays > 0)) return null;
  return new FieldFinder(
    path.map((part) => part.name),
    context.source,
  );
}

function seenValueOf(value: Value, context: FilterContext): Seen {
  if (value.kind === "literal") {
    const scalar = scalarOf(value);
    return typeof scalar.value === "bigint" ? Number(scalar.value) : scalar.value;
  }
  return jsonOf(context.parameters?.values.get(value.name));
}

function jsonOf(value: ParameterValue | undefined): Seen {
  if (value === undefined) return undefined;
  switch (value.type) {
    case "array":
      return value.items.map((item) => jsonOf(item) ?? null);
    case "object":
      return Object.fromEntries(
        [...value.fields].map(([name, one]) => [name, jsonOf(one) ?? null]),
      );
    case "long":
      return Number(value.value);
    default:
      return value.value;
  }
}

function numberComparer(operator: ComparisonOperator): (left: number, right: number) => boolean {
  switch (operator) {
    case "=":
      return (left, right) => left === right;
    case "!=":
      return (left, right) => left !== right;
    case "<":
      return (left, right) => left < right;
    case "<=":
      return (left, right) => left <= right;
    case ">":
      return (left, right) => left > right;
    case ">=":
      return (left, right) => left >= right;
    default:
      return unreachable(operator);
  }
}

/** JavaScript's own comparisons: `<`, `<=`, `>` and `>=` convert, as in scripts. */
function comparer(operator: ComparisonOperator): (left: Seen, right: Seen) => boolean {
  switch (operator) {
    case "=":
      return (left, right) => left === right;
    case "!=":
      return (left, right) => left !== right;
    default: {
      const compare = numberComparer(operator);
      return (left, right) => compare(primitiveOf(left) as number, primitiveOf(right) as number);
    }
  }
}

/** Returns the primitive that script operators convert an object or array to before comparing. */
function primitiveOf(value: Seen): Seen {
  if (value === null || typeof value !== "object") return value;
  if (!Array.isArray(value)) return "[object Object]";
  return (value as readonly JsonValue[])
    .map((item) => (item === null ? "" : String(primitiveOf(item))))
    .join(",");
}

/**
 * Finds the value of a path in one document after another: the first name through the field table of the document's
 * shape, whose position is cached, the others by scanning.
 */
export class FieldFinder {
  readonly span = new ValueSpan();
  /** After an unsuccessful `find`: a name before the last was missing. */
  isThroughMissing = false;
  readonly #names: readonly Buffer[];
  readonly #first: string;
  readonly #source: { shapeOf(shapeId: number): Shape };
  #shapeId = -1;
  #fieldIndex = -1;

  constructor(names: readonly string[], source: { shapeOf(shapeId: number): Shape }) {
    this.#names = names.map((name) => quoteString(name));
    this.#first = names[0] ?? "";
    this.#source = source;
  }

  /** Sets `span.from` to the start of the value. `row.start` -1: bare JSON text without a record around it. */
  find(row: StoredRow, body: number): boolean {
    const { bytes, start } = row;
    const { span } = this;
    const names = this.#names;
    const shapeId = start < 0 ? 0 : shapeIdOf(bytes, start);
    this.isThroughMissing = false;
    if (shapeId === 0) {
      if (!findMember(bytes, body, names[0] as Buffer, span)) return this.#missed(0);
    } else {
      if (shapeId !== this.#shapeId) {
        this.#shapeId = shapeId;
        this.#fieldIndex = this.#source.shapeOf(shapeId).indexByName.get(this.#first) ?? -1;
      }
      if (this.#fieldIndex < 0) return this.#missed(0);
      span.from = fieldStartOf(bytes, start, this.#fieldIndex);
    }
    for (let i = 1; i < names.length; i++) {
      const isObject = bytes[span.from] === byteObjectOpen;
      if (!isObject || !findMember(bytes, span.from, names[i] as Buffer, span)) {
        this.isThroughMissing = !isObject && bytes[span.from] === byteN;
        return false;
      }
    }
    return true;
  }

  #missed(depth: number): boolean {
    this.isThroughMissing = depth < this.#names.length - 1;
    return false;
  }
}

/** Offset of a row's JSON text. */
export function bodyOf(row: StoredRow): number {
  return row.start < 0 ? 0 : bodyStartOf(row.bytes, row.start);
}
