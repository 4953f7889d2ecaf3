/**
 * Translates a C# map or reduce to a script for the compiler of JavaScript indexes: `map("Users", (v_user) => …)`.
 * Where the semantics of C# differ from JavaScript (members of missing values, integer arithmetic, sequences), the
 * script calls functions of scripting/csharp/csharp-functions.ts, so that the limits and sandbox of all scripts apply.
 *
 * Invariants:
 * - The output is text, not a tree, so that it passes through the parser, the whitelist and the limits of scripts.
 */
import { csharpError, csharpRefusal, noObject, noSelect } from "./csharp-error.ts";
import { parseCSharp } from "./csharp-parser.ts";
import { sourceOf, startsElsewhere } from "./csharp-source.ts";
import type { Expression, QueryExpression, Statement } from "./csharp-tree.ts";
import { CSharpWriter } from "./csharp-writer.ts";

/** The translation of a C# text. */
export interface CSharpScript {
  readonly script: string;
  /** Names of the output fields, in order. */
  readonly names: readonly string[];
  /** Whether it produces fields with computed names. */
  readonly isDynamic: boolean;
  /** Collections whose documents it loads; null as a member: any. */
  readonly loads: readonly (string | null)[];
}

const none: ReadonlySet<string> = new Set();
/** Calls whose result is a sequence of the same objects. */
const passing: ReadonlySet<string> = new Set([
  "AsEnumerable",
  "Boost",
  "Cast",
  "Distinct",
  "ToArray",
  "ToList",
  "Where",
]);

/** @throws EngineError index-compilation, not-supported */
export function csharpMap(text: string): CSharpScript {
  const tree = parseCSharp(text);
  refuseStatements(tree);
  const names = namesOf(text, tree);
  if (startsElsewhere(tree)) throw csharpRefusal(noRoot);
  const writer = new CSharpWriter(text, false);
  const written = mapFunction(text, tree, writer);
  const { source } = writer;
  if (source === null) throw csharpRefusal(noRoot);
  const item = source.item === null ? "" : `, ${JSON.stringify(source.item)}`;
  const collections = source.collections.length === 0 ? ["@all_docs"] : source.collections;
  const maps = collections.map(
    (collection) => `${source.declaration}(${JSON.stringify(collection)}${item}, mapped);`,
  );
  return scriptOf(writer, `const mapped = ${written};\n${maps.join("\n")}`, names);
}

/** @throws EngineError index-compilation, not-supported */
export function csharpReduce(text: string): CSharpScript {
  const tree = parseCSharp(text);
  const names = namesOf(text, tree);
  const writer = new CSharpWriter(text, true);
  const script =
    tree.kind === "query" ? reduceOfQuery(tree, writer) : reduceOfCalls(text, tree, writer);
  return scriptOf(writer, script, names);
}

function scriptOf(writer: CSharpWriter, script: string, names: readonly string[]): CSharpScript {
  const { declarations, isDynamic, loads } = writer;
  return { script: declarations + script, names, isDynamic, loads };
}

// Output fields.

function namesOf(text: string, tree: Expression): string[] {
  const isEmpty = sourceOf(text, tree) !== null;
  const value = tree.kind === "query" ? selectedOf(tree) : resultOf(tree);
  const object = value === null ? null : unboosted(value);
  const names = object === null ? null : memberNames(object);
  if (names === null && !isEmpty) throw csharpRefusal(tree.kind === "query" ? noSelect : noObject);
  if (names === null || names.length === 0)
    throw csharpRefusal(`Could not extract any fields from '${text}'.`);
  return names;
}

function selectedOf(query: QueryExpression): Expression | null {
  const last = query.clauses.at(-1);
  return last?.kind === "select" ? last.value : null;
}

/** Returns the value that the last call of a chain computes for each item. */
function resultOf(tree: Expression): Expression | null {
  if (tree.kind === "query") return selectedOf(tree);
  if (tree.kind !== "call" || tree.callee.kind !== "member") return null;
  const { name, object } = tree.callee;
  if (passing.has(name)) return resultOf(object);
  const lambda = tree.args.at(-1);
  if (lambda?.kind !== "lambda") return null;
  if (name === "Select") return lambda.body.kind === "block" ? returned(lambda.body) : lambda.body;
  if (name !== "SelectMany") return null;
  return tree.args.length === 2 ? lambda.body : resultOf(lambda.body);
}

// Maps.

/** Refuses statements in the functions of a map's own chain; they are allowed in nested functions. */
function refuseStatements(tree: Expression): void {
  for (let at = tree; at.kind === "call" && at.callee.kind === "member"; at = at.callee.object) {
    if (at.args.some((arg) => arg.kind === "lambda" && arg.body.kind === "block")) {
      throw csharpRefusal(statementRefusal);
    }
  }
}

function mapFunction(text: string, tree: Expression, writer: CSharpWriter): string {
  if (tree.kind === "query" && !tree.clauses.some(({ kind }) => kind === "group")) {
    const [first, ...rest] = tree.clauses;
    if (first?.kind === "from") {
      const isSource = writer.enumerate(first.source);
      const join = rest.find(({ kind }) => kind === "join");
      // The compiler of RavenDB 7.2.7 finds its names inaccessible.
      if (join !== undefined) {
        throw csharpError(text, join.at, "join is supported in queries inside a map only");
      }
      if (isSource) return writer.itemFunction(first.name, rest);
    }
  }
  const isSelect = tree.kind === "call" && tree.callee.kind === "member";
  if (isSelect && tree.callee.name === "Select" && tree.args.length === 1) {
    const [lambda] = tree.args;
    const isOfItem = lambda?.kind === "lambda" && lambda.parameters.length === 1;
    if (isOfItem && writer.enumerate(tree.callee.object)) return writer.write(lambda, none);
  }
  return `(d0) => ${writer.write(tree, none)}`;
}

// Reduces.

function reduceOfQuery(query: QueryExpression, writer: CSharpWriter): string {
  const [first, ...clauses] = query.clauses;
  const at = clauses.findIndex(({ kind }) => kind === "group");
  const group = clauses[at];
  const isOfResults =
    first?.kind === "from" && first.source.kind === "name" && first.source.name === "results";
  if (!isOfResults || group?.kind !== "group" || group.into === null) {
    throw csharpRefusal(ungrouped);
  }
  const before = clauses.slice(0, at);
  const other = before.find(({ kind }) => kind !== "let");
  if (other !== undefined) throw csharpRefusal(ungrouped);
  const scope = new Set([first.name]);
  const functionOf = (given: Expression) =>
    `(v_${first.name}) => { ${writer.clauses([...before, { kind: "select", value: given, into: null, at: 0 }], scope, (value, inner) => `return ${writer.write(value, inner)};`)} }`;
  const isPlain = group.element.kind === "name" && group.element.name === first.name;
  const element = isPlain ? "" : `, ${functionOf(group.element)}`;
  const inner = new Set([group.into]);
  writer.setGroup(group.into);
  // There is one group, which no order changes.
  const after = clauses.slice(at + 1).filter(({ kind }) => kind !== "orderby");
  const body = writer.clauses(
    after,
    inner,
    (value, innermost) => `return ${writer.write(value, innermost)};`,
  );
  const values = `const v_${group.into} = csGroupOf(g0${element});`;
  return `groupBy(${functionOf(group.key)}).aggregate((g0) => { ${values} ${body} });`;
}

function reduceOfCalls(text: string, tree: Expression, writer: CSharpWriter): string {
  let call: Expression = tree;
  for (;;) {
    if (call.kind !== "call" || call.callee.kind !== "member") throw csharpRefusal(ungrouped);
    const { object, name } = call.callee;
    // The order of results changes no group.
    const source = name === "GroupBy" ? unordered(object) : object;
    if (source.kind === "name" && source.name === "results") {
      if (name !== "GroupBy") throw csharpRefusal(ungrouped);
      break;
    }
    call = object;
  }
  const [key, element] = call.args;
  if (key?.kind === "lambda" && key.body.kind === "block") {
    throw csharpRefusal("Could not extract group by fields");
  }
  const isKey = key?.kind === "lambda";
  if (!isKey || call.args.length > 2 || (element && element.kind !== "lambda")) {
    throw csharpError(
      text,
      call.at,
      "GroupBy must be called with functions of the key and the element",
    );
  }
  const mapped = element === undefined ? "" : `, ${writer.write(element, none)}`;
  writer.setGroup(call);
  const chain = writer.write(tree, none);
  const values = `const g1 = csGroupOf(g0${mapped});`;
  return `groupBy(${writer.write(key, none)}).aggregate((g0) => { ${values} return csFirstOrDefault(${chain}); });`;
}

const noRoot =
  "An index map must start its enumeration from 'docs', e.g. 'from item in docs.CollectionName' or " +
  "'docs.CollectionName.Select(...)'. The outer-most clause of the given map enumerates over a different source, " +
  "which cannot be compiled into an index.";

const statementRefusal =
  "Unable to cast object of type 'Microsoft.CodeAnalysis.CSharp.Syntax.BlockSyntax' to type " +
  "'Microsoft.CodeAnalysis.CSharp.Syntax.ExpressionSyntax'.";

/** Returns the object of the last `return` statement; null if the statements do not end with an object. */
function returned(block: Extract<Statement, { kind: "block" }>): Expression | null {
  const last = block.statements.findLast(({ kind }) => kind === "return");
  return last?.kind === "return" ? last.value : null;
}

/** Returns a sequence without the calls that order it. */
function unordered(node: Expression): Expression {
  const isOrdered =
    node.kind === "call" &&
    node.callee.kind === "member" &&
    /^(?:Order|Then)By(?:Descending)?$/.test(node.callee.name);
  return isOrdered ? unordered((node.callee as { object: Expression }).object) : node;
}

const ungrouped =
  "A reduce must group its results: 'from result in results group result by … into g select new { … }' or " +
  "'results.GroupBy(…).Select(g => new { … })'.";

/** Returns the value without `Boost(…)` and casts around it: `new { … }.Boost(2)`. */
function unboosted(value: Expression): Expression {
  if (value.kind === "cast") return unboosted(value.value);
  const isBoost =
    value.kind === "call" && value.callee.kind === "member" && value.callee.name === "Boost";
  return isBoost ? unboosted((value.callee as { object: Expression }).object) : value;
}

/** Returns the names of the members of an anonymous object or a dictionary; null for other expressions. */
function memberNames(value: Expression): string[] | null {
  if (value.kind === "object" && value.type === null) return value.members.map(({ name }) => name);
  if (value.kind !== "dictionary") return null;
  const keys = value.entries.map(([key]) => (key.kind === "literal" ? String(key.value) : null));
  return keys.every((key) => key !== null) ? (keys as string[]) : null;
}
