/**
 * JavaScript inside queries: syntax checks, and the aggregates that projections of groups compute.
 *
 * The only place in this folder that uses a JavaScript parser. It runs no script. A query is analyzed again for each
 * request, but its scripts are parsed once: results for valid texts are cached by text.
 *
 * Invariants:
 * - Lines count from 1 and columns from 0, as in messages about scripts.
 */
import { parse } from "acorn";
import { checkedScriptBytesMax } from "../../base/limits.ts";
import { RecentCache } from "../../base/memory/recent-cache.ts";

/** The properties read from nodes of a script's syntax tree; the ESTree standard defines which node has which. */
interface Node {
  readonly type: string;
  readonly argument?: unknown;
  readonly arguments?: unknown;
  readonly body?: unknown;
  readonly callee?: unknown;
  readonly computed?: unknown;
  readonly id?: unknown;
  readonly name?: unknown;
  readonly object?: unknown;
  readonly params?: unknown;
  readonly properties?: unknown;
  readonly property?: unknown;
}

/** An error in a script; `place` is null if the error has no single position. */
interface ScriptFault {
  readonly place: { readonly line: number; readonly column: number } | null;
}

/** `select { … }` is checked as the statement that returns it, `update { … }` as a function's body. */
const prefixes = { select: "return ", update: "function patch()", function: "" } as const;

/** Checks the syntax of a script in braces, or of a whole function. @returns null when it is valid. */
export function scriptFault(kind: "update" | "function", text: string): ScriptFault | null {
  return checked(kind, text, () => null);
}

/** The texts that were valid, with the rules that they were checked by. */
const valid = new RecentCache<true>(checkedScriptBytesMax);

/**
 * Checks a script by the parser, and then by `rule`, which depends on nothing but the tree and `names`. Faults are not
 * cached.
 */
function checked(
  kind: keyof typeof prefixes,
  text: string,
  rule: (tree: Node) => ScriptFault | null,
  names: readonly string[] = [],
): ScriptFault | null {
  const key = JSON.stringify([kind, text, ...names]);
  if (valid.get(key) !== undefined) return null;
  try {
    const fault = rule(parseScript(prefixes[kind] + text));
    if (fault === null) valid.set(key, true, 0);
    return fault;
  } catch (error) {
    return { place: placeIn(error) };
  }
}

/** Objects whose members a projection may read, besides aliases and parameters. */
const projectionRoots = ["Object", "Array", "Math", "Number", "Date", "console", "spatial"];

/**
 * Checks a `select { … }`: its syntax, and RavenDB 7.2.7's rules for it. Members may be read of `roots` (aliases of the
 * query, `$` parameters), of function parameters and of a few built-in objects, but not of variables; only names may be
 * spread; declarations may not destructure.
 * @returns null when it is valid. Cost: O(nodes).
 */
export function projectionFault(text: string, roots: readonly string[]): ScriptFault | null {
  const known = new Set([...projectionRoots, ...roots]);
  const rule = (tree: Node) => (isProjection(tree, known) ? null : { place: null });
  return checked("select", text, rule, roots);
}

/** Walks in text order. A parameter's name stays known after its function, as in the reference server. */
function isProjection(node: unknown, known: Set<string>): boolean {
  if (Array.isArray(node)) return node.every((one) => isProjection(one, known));
  if (!isNode(node)) return true;
  for (const parameter of Array.isArray(node.params) ? node.params : []) {
    if (isNode(parameter) && parameter.type === "Identifier") known.add(String(parameter.name));
  }
  const isAllowed = projectionRules[node.type]?.(node, known) ?? true;
  return isAllowed && Object.values(node).every((child) => isProjection(child, known));
}

const projectionRules: Readonly<Record<string, (node: Node, known: Set<string>) => boolean>> = {
  MemberExpression: ({ object }, known) => !isName(object) || known.has(String(object.name)),
  SpreadElement: ({ argument }) => isName(argument),
  ObjectExpression: ({ properties }) =>
    Array.isArray(properties) &&
    properties.every((one) => !isNode(one) || one.type !== "SpreadElement"),
  VariableDeclarator: ({ id }) => isName(id),
  YieldExpression: () => false,
  ImportExpression: () => false,
};

function isName(value: unknown): value is Node {
  return isNode(value) && value.type === "Identifier";
}

/** One aggregation in a script: `count()`, or `sum(x => x.A.B)`. */
type ScriptAggregate =
  | { readonly kind: "count" }
  | { readonly kind: "sum"; readonly path: readonly string[] };

const aggregates = new RecentCache<readonly ScriptAggregate[]>(checkedScriptBytesMax);

/** Returns the aggregations in a well-formed `select { … }`. Cost: O(nodes) when the text is new. */
export function scriptAggregates(text: string): readonly ScriptAggregate[] {
  const known = aggregates.get(text);
  if (known !== undefined) return known;
  const found = aggregatesIn(text);
  aggregates.set(text, found, found.length * aggregateBytes);
  return found;
}

/** Approximate memory of a cached aggregation, in bytes. */
const aggregateBytes = 256;

function aggregatesIn(text: string): ScriptAggregate[] {
  const found: ScriptAggregate[] = [];
  const open: unknown[] = [parseScript(prefixes.select + text)];
  while (open.length > 0) {
    const node = open.pop();
    if (Array.isArray(node)) open.push(...node);
    else if (isNode(node)) {
      const aggregate = aggregateOf(node);
      if (aggregate !== null) found.push(aggregate);
      open.push(...Object.values(node));
    }
  }
  return found;
}

function parseScript(text: string): Node {
  return parse(text, { ecmaVersion: "latest", allowReturnOutsideFunction: true }) as Node;
}

function placeIn(error: unknown): ScriptFault["place"] {
  if (!(error instanceof SyntaxError) || !("loc" in error)) return null;
  const { line, column } = error.loc as { line: number; column: number };
  return { line, column };
}

function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && "type" in value;
}

function aggregateOf(node: Node): ScriptAggregate | null {
  const callee = node.callee;
  if (node.type !== "CallExpression" || !isNode(callee)) return null;
  if (callee.name === "count") return { kind: "count" };
  const [mapper] = node.arguments as unknown[];
  if (callee.name !== "sum" || !isNode(mapper)) return null;
  const path = memberPath(mapper.body);
  return path.length === 0 ? null : { kind: "sum", path };
}

/** Splits `x.A.B` into A, B; empty for other expressions. */
function memberPath(value: unknown): string[] {
  const path: string[] = [];
  let node = value;
  while (isNode(node) && node.type === "MemberExpression") {
    const property = node.property;
    if (node.computed === true || !isNode(property)) return [];
    path.unshift(String(property.name));
    node = node.object;
  }
  return path;
}
