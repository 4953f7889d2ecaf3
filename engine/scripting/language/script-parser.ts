/**
 * Script text to a checked syntax tree: acorn parses it (strict mode, fixed language version), and a whitelist of node
 * kinds refuses everything that the compiler does not support.
 *
 * Independent of the functions that a script may call, and of its execution.
 *
 * Invariants:
 * - every node of a checked tree is of a kind that `childrenOf` lists;
 * - no function of a checked tree is nested deeper than `treeDepthMax`, so compiling and running it cannot overflow the
 *   host's stack.
 */

import type * as acorn from "acorn";
import { type Node as AcornNode, getLineInfo, type Options, parse, parseExpressionAt } from "acorn";
import { EngineError } from "../../base/errors.ts";
import { compilePattern } from "../built-ins/regular-expression.ts";

/** Maximum UTF-16 units of a script. */
const scriptLengthMax = 1024 * 1024;
/** Maximum nesting of nodes in one function. */
const treeDepthMax = 300;
/** Maximum nesting of functions. */
const functionDepthMax = 20;

/** Any node of a checked tree. */
export type Node = acorn.AnyNode;
export type FunctionNode =
  | acorn.FunctionDeclaration
  | acorn.FunctionExpression
  | acorn.ArrowFunctionExpression
  | acorn.AnonymousFunctionDeclaration;

const options: Options = {
  ecmaVersion: 2023,
  // Strict, as in the reference; import and export are refused by the whitelist.
  sourceType: "module",
  allowReturnOutsideFunction: true,
  allowAwaitOutsideFunction: false,
};

/** Line and column of an offset, from 1. */
export function positionOfOffset(source: string, offset: number): { line: number; column: number } {
  const { line, column } = getLineInfo(source, Math.max(0, Math.min(offset, source.length)));
  return { line, column: column + 1 };
}

/** Returns an error in a script's text, with its position. */
export function syntaxError(source: string, offset: number, reason: string): EngineError {
  const { line, column } = positionOfOffset(source, offset);
  return new EngineError(
    "script-syntax",
    `Failed to parse: \n${source}\nAt Line : ${line}, Column : ${column}: ${reason}`,
    { details: { line, column, reason } },
  );
}

/** Parses a function body. @throws EngineError script-syntax */
export function parseBody(source: string): acorn.Program {
  const tree = guarded(source, () => parse(source, options));
  check(source, tree);
  return tree;
}

/** Parses one expression that is the whole text. @throws EngineError script-syntax */
export function parseWholeExpression(source: string): acorn.Expression {
  const tree = guarded(source, () => {
    const expression = parseExpressionAt(source, 0, options);
    const rest = source
      .slice(expression.end)
      .replace(/\/\*[\s\S]*?\*\/|\/\/[^\n]*/g, "")
      .trim();
    if (rest !== "" && rest !== ";") {
      throw syntaxError(source, expression.end, `Unexpected text '${rest.slice(0, 20)}'`);
    }
    return expression;
  });
  check(source, tree);
  return tree;
}

function guarded<T>(source: string, read: () => T): T {
  if (source.length > scriptLengthMax) {
    throw new EngineError(
      "script-syntax",
      `A script is longer than ${scriptLengthMax} characters.`,
    );
  }
  try {
    return read();
  } catch (error) {
    if (error instanceof EngineError) throw error;
    if (error instanceof RangeError) throw syntaxError(source, 0, "It is nested too deeply");
    const { pos, message } = error as SyntaxError & { pos?: number };
    throw syntaxError(source, pos ?? 0, message.replace(/ \(\d+:\d+\)$/, ""));
  }
}

/** Checks every node under `root`, without recursion. */
function check(source: string, root: AcornNode): void {
  const open: { node: Node; depth: number; functions: number }[] = [
    { node: root as Node, depth: 0, functions: 0 },
  ];
  for (let entry = open.pop(); entry !== undefined; entry = open.pop()) {
    const { node } = entry;
    const reason = refusal(node);
    if (reason !== null) throw syntaxError(source, node.start, reason);
    const isFunction = isFunctionNode(node);
    const depth = isFunction ? 0 : entry.depth + 1;
    const functions = entry.functions + (isFunction ? 1 : 0);
    if (depth > treeDepthMax || functions > functionDepthMax) {
      throw syntaxError(source, node.start, "It is nested too deeply");
    }
    const children = childrenOf(node);
    if (node.type === "ImportExpression") {
      throw new EngineError(
        "invalid-operation",
        "Module loading has been disabled, you need to enable it in engine options",
      );
    }
    if (children === null) throw syntaxError(source, node.start, `${node.type} is not supported`);
    for (const child of children) open.push({ node: child, depth, functions });
  }
}

export function isFunctionNode(node: Node): node is FunctionNode {
  return (
    node.type === "FunctionDeclaration" ||
    node.type === "FunctionExpression" ||
    node.type === "ArrowFunctionExpression"
  );
}

/** Why a node of a known kind is refused, or null. */
function refusal(node: Node): string | null {
  switch (node.type) {
    case "FunctionDeclaration":
    case "FunctionExpression":
    case "ArrowFunctionExpression":
      if (node.async) return "Async functions are not supported";
      return node.generator ? "Generators are not supported" : null;
    case "ForOfStatement":
      return node.await ? "Async loops are not supported" : null;
    case "Property":
      return node.kind === "init" ? null : "Getters and setters are not supported";
    case "MethodDefinition":
      if (node.kind === "get" || node.kind === "set")
        return "Getters and setters are not supported";
      return node.key.type === "PrivateIdentifier" ? "Private names are not supported" : null;
    case "PropertyDefinition":
      if (node.static) return "Static fields are not supported";
      return node.key.type === "PrivateIdentifier" ? "Private names are not supported" : null;
    case "ClassDeclaration":
    case "ClassExpression":
      return node.superClass ? "Classes that extend others are not supported" : null;
    case "Literal":
      return literalRefusal(node);
    default:
      return null;
  }
}

function literalRefusal(node: acorn.Literal): string | null {
  if (node.bigint !== undefined && node.bigint !== null) return "BigInt is not supported";
  if (!node.regex) return null;
  try {
    compilePattern(node.regex.pattern, node.regex.flags);
    return null;
  } catch (error) {
    return (error as Error).message;
  }
}

type Children = (Node | null | undefined)[];

/**
 * Returns the children of a node that are expressions, patterns or statements (not the names of properties and labels),
 * in text order; null for a kind that scripts may not use. THE whitelist.
 */
export function childrenOf(node: Node): Node[] | null {
  const children = statementChildren(node) ?? expressionChildren(node);
  return children === null ? null : children.filter((child): child is Node => !!child);
}

function statementChildren(node: Node): Children | null {
  switch (node.type) {
    case "Program":
    case "BlockStatement":
      return node.body;
    case "ExpressionStatement":
      return [node.expression];
    case "EmptyStatement":
    case "DebuggerStatement":
    case "BreakStatement":
    case "ContinueStatement":
      return [];
    case "ReturnStatement":
    case "ThrowStatement":
      return [node.argument];
    case "LabeledStatement":
      return [node.body];
    case "IfStatement":
      return [node.test, node.consequent, node.alternate];
    case "SwitchStatement":
      return [node.discriminant, ...node.cases];
    case "SwitchCase":
      return [node.test, ...node.consequent];
    case "TryStatement":
      return [node.block, node.handler, node.finalizer];
    case "CatchClause":
      return [node.param, node.body];
    case "WhileStatement":
      return [node.test, node.body];
    case "DoWhileStatement":
      return [node.body, node.test];
    case "ForStatement":
      return [node.init, node.test, node.update, node.body];
    case "ForInStatement":
    case "ForOfStatement":
      return [node.left, node.right, node.body];
    case "FunctionDeclaration":
      return [node.id, ...node.params, node.body];
    case "VariableDeclaration":
      return node.declarations;
    case "VariableDeclarator":
      return [node.id, node.init];
    case "ClassDeclaration":
      return [node.id, node.body];
    default:
      return null;
  }
}

function expressionChildren(node: Node): Children | null {
  switch (node.type) {
    case "Identifier":
    case "Literal":
    case "ThisExpression":
    case "TemplateElement":
      return [];
    case "ArrayExpression":
    case "ArrayPattern":
      return node.elements;
    case "ObjectExpression":
    case "ObjectPattern":
      return node.properties;
    case "Property":
      return node.computed ? [node.key, node.value] : [node.value];
    case "FunctionExpression":
    case "ArrowFunctionExpression":
      return [...node.params, node.body];
    case "UnaryExpression":
    case "UpdateExpression":
    case "SpreadElement":
    case "RestElement":
      return [node.argument];
    case "BinaryExpression":
    case "LogicalExpression":
    case "AssignmentExpression":
    case "AssignmentPattern":
      return node.left.type === "PrivateIdentifier" ? null : [node.left, node.right];
    case "MemberExpression":
      if (node.property.type === "PrivateIdentifier" || node.object.type === "Super") return null;
      return node.computed ? [node.object, node.property] : [node.object];
    case "ConditionalExpression":
      return [node.test, node.consequent, node.alternate];
    case "CallExpression":
    case "NewExpression":
      return [node.callee, ...node.arguments];
    case "SequenceExpression":
      return node.expressions;
    case "ChainExpression":
    case "ParenthesizedExpression":
      return [node.expression];
    case "TemplateLiteral":
      return [...node.expressions, ...node.quasis];
    case "ClassExpression":
      return [node.body];
    case "ClassBody":
      return node.body;
    case "MethodDefinition":
    case "PropertyDefinition":
      return node.computed ? [node.key, node.value] : [node.value];
    default:
      return null;
  }
}

/**
 * Returns the number of expressions under a node, without those of nested functions: the maximum cost of one statement.
 */
export function weightOf(root: Node): number {
  let weight = 0;
  const open: Node[] = [root];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    weight += 1;
    if (isFunctionNode(node) && node !== root) continue;
    for (const child of childrenOf(node) ?? []) open.push(child);
  }
  return weight;
}

/** Nesting depth of the nodes under a node, without those of nested functions. */
export function depthOf(root: Node): number {
  let deepest = 0;
  const open: { node: Node; depth: number }[] = [{ node: root, depth: 1 }];
  for (let entry = open.pop(); entry !== undefined; entry = open.pop()) {
    if (entry.depth > deepest) deepest = entry.depth;
    if (isFunctionNode(entry.node) && entry.node !== root) continue;
    for (const node of childrenOf(entry.node) ?? []) open.push({ node, depth: entry.depth + 1 });
  }
  return deepest;
}
