/**
 * JavaScript inside queries: is it well formed, and what do projections of groups compute in it?
 *
 * The one place of this folder that knows a JavaScript parser. It runs nothing.
 *
 * Invariants:
 * - Lines count from 1 and columns from 0, as messages about scripts do.
 */
import { parse } from "acorn";

/** What is looked at of a node of a script's syntax tree; which node has which is the standard's. */
interface Node {
  readonly type: string;
  readonly argument?: unknown;
  readonly arguments?: unknown;
  readonly body?: unknown;
  readonly callee?: unknown;
  readonly computed?: unknown;
  readonly name?: unknown;
  readonly object?: unknown;
  readonly properties?: unknown;
  readonly property?: unknown;
}

/** What is wrong with a script; `place` is null when it has no single place. */
export interface ScriptFault {
  readonly place: { readonly line: number; readonly column: number } | null;
}

/** `select { … }` is checked as the statement that returns it, `update { … }` as a function's body. */
const prefixes = { select: "return ", update: "function patch()", function: "" } as const;

/** Checks the syntax of a script in braces, or of a whole function. @returns null when it is well formed. */
export function scriptFault(kind: keyof typeof prefixes, text: string): ScriptFault | null {
  try {
    const program = parseScript(prefixes[kind] + text);
    // RavenDB refuses `{ ...document }` as a projection.
    return kind === "select" && spreadsAtTop(program) ? { place: null } : null;
  } catch (error) {
    return { place: placeIn(error) };
  }
}

/** One aggregation that a script asks for: `count()`, or `sum(x => x.A.B)`. */
export type ScriptAggregate =
  | { readonly kind: "count" }
  | { readonly kind: "sum"; readonly path: readonly string[] };

/** The aggregations in a `select { … }` that is well formed. Cost: O(nodes). */
export function scriptAggregates(text: string): ScriptAggregate[] {
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

function spreadsAtTop(program: Node): boolean {
  const [statement] = program.body as unknown[];
  const object = isNode(statement) ? statement.argument : null;
  const properties = isNode(object) ? object.properties : null;
  if (!Array.isArray(properties)) return false;
  return properties.some((property) => isNode(property) && property.type === "SpreadElement");
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

/** `x.A.B` as A, B; empty for anything else. */
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
