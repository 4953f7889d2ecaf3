/**
 * Static analysis of a script: which fields it reads, and whether it consists of simple assignments only, which a bulk
 * patch can apply to bytes.
 *
 * It runs no script. If it cannot decide, it returns "all" or null.
 */

import { childrenOf, type Node } from "./language/script-parser.ts";
import type { CompiledScript } from "./script.ts";

/** Paths below `this` or an alias that a script reads; `whole` if it may read any field. */
interface FieldsRead {
  readonly whole: boolean;
  /** By root (`this` or the alias): paths such as `["Address", "City"]`, without method calls. */
  readonly paths: ReadonlyMap<string, readonly (readonly string[])[]>;
}

/** Returns the names of a member chain and its root, or null for expressions other than `this.a.b` or `alias.a.b`. */
function chainOf(node: Node, roots: ReadonlySet<string>): { root: string; path: string[] } | null {
  const path: string[] = [];
  let at: Node = node;
  while (at.type === "MemberExpression" || at.type === "ChainExpression") {
    if (at.type === "ChainExpression") {
      at = at.expression;
      continue;
    }
    const name = memberName(at.property as Node, at.computed);
    if (name === null) return null;
    path.unshift(name);
    at = at.object as Node;
  }
  if (at.type === "ThisExpression") return { root: "this", path };
  return at.type === "Identifier" && roots.has(at.name) ? { root: at.name, path } : null;
}

function memberName(node: Node, computed: boolean): string | null {
  if (!computed && node.type === "Identifier") return node.name;
  return node.type === "Literal" && typeof node.value === "string" ? node.value : null;
}

/**
 * Returns the fields that a script may read. A bare `this` or alias (`f(this)`, `{...o}`, `o[name]`) counts as the
 * whole document.
 */
export function fieldsRead(script: CompiledScript): FieldsRead {
  const roots = new Set(script.options.parameters ?? []);
  const paths = new Map<string, string[][]>();
  if (script.tree === null) return { whole: true, paths };
  let whole = false;
  const open: Node[] = [script.tree];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    const chain = chainOf(node, roots);
    if (chain === null) {
      open.push(...(childrenOf(node) ?? []));
      continue;
    }
    if (chain.path.length === 0) whole = true;
    else paths.set(chain.root, [...(paths.get(chain.root) ?? []), chain.path]);
  }
  return { whole, paths };
}

export type SimpleOperator = "+" | "-" | "*" | "/" | "%";

/**
 * An expression as data. A path is a property of an object inside the document; an evaluator must stop (and run the
 * script) at values other than numbers, strings, booleans and null: an object or array, or a missing value that
 * arithmetic would turn into NaN.
 */
export type SimpleExpression =
  | { readonly kind: "literal"; readonly value: null | boolean | number | string }
  | { readonly kind: "path"; readonly path: readonly string[] }
  | { readonly kind: "parameter"; readonly path: readonly string[] }
  | {
      readonly kind: "operation";
      readonly operator: SimpleOperator;
      readonly left: SimpleExpression;
      readonly right: SimpleExpression;
    };

/** `path = value`, in text order: later ones see the effects of earlier ones. */
interface SimpleUpdate {
  readonly path: readonly string[];
  readonly value: SimpleExpression;
}

/** Names with a special meaning as properties of strings and arrays, or of the document. */
const specialNames = new Set(["length", "@metadata"]);

function simplePath(node: Node, roots: ReadonlySet<string>): string[] | null {
  if (node.type === "ChainExpression") return null;
  const chain = chainOf(node, roots);
  if (chain === null || chain.path.length === 0) return null;
  return chain.path.some((name) => specialNames.has(name)) ? null : chain.path;
}

function parameterPath(node: Node): string[] | null {
  if (node.type === "Identifier") {
    return node.name.startsWith("$") && node.name.length > 1 ? [node.name.slice(1)] : null;
  }
  const chain = chainOf(node, new Set(["args"]));
  if (chain === null || chain.root !== "args" || chain.path.length !== 1) return null;
  return chain.path;
}

function simpleExpression(node: Node, roots: ReadonlySet<string>): SimpleExpression | null {
  switch (node.type) {
    case "Literal": {
      const { value } = node;
      const plain = value === null || ["boolean", "number", "string"].includes(typeof value);
      if (!plain || node.regex) return null;
      return { kind: "literal", value: value as null | boolean | number | string };
    }
    case "UnaryExpression": {
      const argument = node.argument as Node;
      if (node.operator !== "-" || argument.type !== "Literal") return null;
      return typeof argument.value === "number"
        ? { kind: "literal", value: -argument.value }
        : null;
    }
    case "ParenthesizedExpression":
      return simpleExpression(node.expression, roots);
    case "BinaryExpression": {
      const operator = operatorOf(node.operator);
      if (operator === null) return null;
      const left = simpleExpression(node.left as Node, roots);
      const right = simpleExpression(node.right, roots);
      return left === null || right === null ? null : { kind: "operation", operator, left, right };
    }
    default: {
      const parameter = parameterPath(node);
      if (parameter !== null) return { kind: "parameter", path: parameter };
      const path = simplePath(node, roots);
      return path === null ? null : { kind: "path", path };
    }
  }
}

function operatorOf(text: string): SimpleOperator | null {
  return text === "+" || text === "-" || text === "*" || text === "/" || text === "%" ? text : null;
}

function simpleUpdate(node: Node, roots: ReadonlySet<string>): SimpleUpdate | null {
  if (node.type === "UpdateExpression") {
    const path = simplePath(node.argument, roots);
    if (path === null) return null;
    const one: SimpleExpression = { kind: "literal", value: 1 };
    // `++` always results in a number, so it is a subtraction of -1: an addition might concatenate.
    const value: SimpleExpression = node.operator === "++" ? { kind: "literal", value: -1 } : one;
    return {
      path,
      value: { kind: "operation", operator: "-", left: { kind: "path", path }, right: value },
    };
  }
  if (node.type !== "AssignmentExpression") return null;
  const path = simplePath(node.left as Node, roots);
  const value = simpleExpression(node.right, roots);
  if (path === null || value === null) return null;
  if (node.operator === "=") return { path, value };
  const operator = operatorOf(node.operator.slice(0, -1));
  if (operator === null || node.operator.length !== 2) return null;
  return {
    path,
    value: { kind: "operation", operator, left: { kind: "path", path }, right: value },
  };
}

/**
 * Returns a patch as plain data if it consists of assignments to paths of the document; null otherwise. The script's
 * parameters must not include aliases other than those of the document itself.
 */
export function simpleUpdates(script: CompiledScript): readonly SimpleUpdate[] | null {
  const { tree, options } = script;
  if (tree === null || tree.type !== "Program" || (options.functions ?? []).length > 0) return null;
  const roots = new Set(options.parameters ?? []);
  // A second alias would be a different document.
  if (roots.size > 1) return null;
  const updates: SimpleUpdate[] = [];
  for (const statement of tree.body) {
    if (statement.type === "EmptyStatement") continue;
    const update =
      statement.type === "ExpressionStatement" ? simpleUpdate(statement.expression, roots) : null;
    if (update === null) return null;
    updates.push(update);
  }
  return updates;
}
