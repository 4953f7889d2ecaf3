/**
 * Recognizes, in the text of a reduce, that its result consists only of parts of the key and sums of the values: each
 * sum of such a result is updated incrementally, without running the function. Most reduces are of this form.
 *
 *   groupBy(…).aggregate(g => ({ Name: g.key, Count: g.values.reduce((n, v) => n + v.Count, 0) }))
 *   … group r by r.Name into g select new { Name = g.Key, Count = g.Sum(x => x.Count) }
 *
 * Other reduces run their function.
 */
import type { SummedMember } from "../indexing/index-program.ts";
import { isFunctionNode, type Node } from "./language/script-parser.ts";

/** Names of members that an object keeps in the order of its text, and that mean nothing to an index. */
const plainName = /^[A-Za-z_]\w*$/;

/** The language from which a reduce was compiled. */
export type ReduceLanguage = "script" | "csharp";

/** Returns the members of the result; null: they are not all recognized. */
export function summedMembersOf(tree: Node, language: ReduceLanguage): SummedMember[] | null {
  const aggregate = aggregateOf(tree);
  if (aggregate === null) return null;
  const made = language === "script" ? objectOf(aggregate, 1) : csharpObjectOf(aggregate);
  if (made === null) return null;
  const { parameters, object } = made;
  const group = parameters[0] as string; // there is one
  const memberOf = language === "script" ? scriptMember : csharpMember;
  const members: SummedMember[] = [];
  for (const property of object.properties) {
    const named = propertyOf(property as Node);
    const member = named === null ? null : memberOf(named.name, named.value, group);
    if (member === null || members.some(({ name }) => name === member.name)) return null;
    members.push(member);
  }
  return members.some(({ isSum }) => isSum) ? members : null;
}

/** Returns the function in `groupBy(…).aggregate(…)`, which is all of the text. */
function aggregateOf(tree: Node): Node | null {
  if (tree.type !== "Program" || tree.body.length !== 1) return null;
  const [statement] = tree.body;
  if (statement?.type !== "ExpressionStatement") return null;
  const call = statement.expression;
  if (call.type !== "CallExpression" || call.arguments.length !== 1) return null;
  const { callee } = call;
  if (callee.type !== "MemberExpression" || !isNamed(callee.property, "aggregate")) return null;
  const { object } = callee;
  const isGrouped = object.type === "CallExpression" && isNamed(object.callee, "groupBy");
  return isGrouped ? (call.arguments[0] as Node) : null;
}

interface MadeObject {
  readonly parameters: readonly string[];
  readonly object: Extract<Node, { type: "ObjectExpression" }>;
}

/** Returns the object that a function of so many parameters makes, and does nothing else. */
function objectOf(node: Node, parameterCount: number): MadeObject | null {
  const made = resultOf(node, parameterCount);
  if (made === null || made.result.type !== "ObjectExpression") return null;
  return { parameters: made.parameters, object: made.result };
}

/** Returns the result of a function that consists only of a return. */
function resultOf(
  node: Node,
  parameterCount: number,
): { readonly parameters: readonly string[]; readonly result: Node } | null {
  if (!isFunctionNode(node) || node.async || node.generator) return null;
  const parameters = node.params.flatMap((one) => (one.type === "Identifier" ? [one.name] : []));
  const isFit = node.params.length === parameterCount && parameters.length === parameterCount;
  if (!isFit || new Set(parameters).size !== parameterCount) return null;
  const body = node.body as Node;
  if (body.type !== "BlockStatement") return { parameters, result: bare(body) };
  const [only, more] = body.body;
  if (only?.type !== "ReturnStatement" || more !== undefined || !only.argument) return null;
  return { parameters, result: bare(only.argument) };
}

/** As `objectOf`, of the forms that csharp-script.ts writes. */
function csharpObjectOf(node: Node): MadeObject | null {
  if (!isFunctionNode(node) || node.body.type !== "BlockStatement") return null;
  const [declared, returned, more] = node.body.body;
  if (declared?.type !== "VariableDeclaration" || declared.declarations.length !== 1) return null;
  if (returned?.type !== "ReturnStatement" || !returned.argument || more !== undefined) return null;
  const [{ id, init }] = declared.declarations as [(typeof declared.declarations)[0]];
  const [parameter] = node.params;
  if (id.type !== "Identifier" || parameter?.type !== "Identifier" || !init) return null;
  const [group, others] = argumentsOf(init, "csGroupOf") ?? [];
  if (group === undefined || others !== undefined || !isNamed(group, parameter.name)) return null;
  const result = bare(returned.argument);
  if (result.type === "ObjectExpression") return { parameters: [id.name], object: result };
  const [selected] = argumentsOf(result, "csFirstOrDefault") ?? [];
  const [list, selector] = (selected && argumentsOf(selected, "csSelect")) ?? [];
  if (list?.type !== "ArrayExpression" || selector === undefined) return null;
  const [item] = list.elements;
  if (list.elements.length !== 1 || !item || !isNamed(item, id.name)) return null;
  return objectOf(bare(selector), 1);
}

function scriptMember(name: string, value: Node, group: string): SummedMember | null {
  const path = pathOf(value, group);
  if (path !== null) return keyMember(name, path, "key");
  if (value.type !== "CallExpression" || value.arguments.length !== 2) return null;
  const [adder, start] = value.arguments as [Node, Node];
  const called = pathOf(value.callee, group);
  const isReduce = called?.length === 2 && called[0] === "values" && called[1] === "reduce";
  if (!isReduce || start.type !== "Literal" || start.value !== 0) return null;
  const added = resultOf(adder, 2);
  if (added?.result.type !== "BinaryExpression" || added.result.operator !== "+") return null;
  const [total, one] = added.parameters as [string, string];
  const { left, right } = added.result;
  const other = isNamed(left, total) ? right : isNamed(right, total) ? left : null;
  return other === null ? null : sumMember(name, pathOf(other as Node, one));
}

function csharpMember(name: string, value: Node, group: string): SummedMember | null {
  const path = csharpPathOf(value, group);
  if (path !== null) return keyMember(name, path, "Key");
  const [values, selector, more] = argumentsOf(value, "csTotal") ?? [];
  if (values === undefined || selector === undefined || more !== undefined) return null;
  const selected = isNamed(values, group) ? resultOf(bare(selector), 1) : null;
  return selected === null
    ? null
    : sumMember(name, csharpPathOf(selected.result, selected.parameters[0] as string));
}

function keyMember(name: string, path: readonly string[], key: string): SummedMember | null {
  if (path[0] !== key || path.length > 2) return null;
  return { name, isSum: false, part: path[1] ?? null };
}

/** A sum of sums has to find them under the same name. */
function sumMember(name: string, path: readonly string[] | null): SummedMember | null {
  return path?.length === 1 && path[0] === name ? { name, isSum: true } : null;
}

/** Returns the names after `root` in `root.a.b`; null for other expressions. */
function pathOf(node: Node, root: string): string[] | null {
  if (node.type !== "MemberExpression" || node.computed || node.optional) return null;
  const { object, property } = node;
  if (property.type !== "Identifier") return null;
  const before = isNamed(object, root) ? [] : pathOf(object as Node, root);
  return before === null ? null : [...before, property.name];
}

/** As `pathOf`, of `csGet(csGet(root, "a"), "b")`. */
function csharpPathOf(node: Node, root: string): string[] | null {
  const [object, name, more] = argumentsOf(node, "csGet") ?? [];
  if (object === undefined || name?.type !== "Literal" || more !== undefined) return null;
  if (typeof name.value !== "string") return null;
  const before = isNamed(object, root) ? [] : csharpPathOf(object, root);
  return before === null ? null : [...before, name.value];
}

/** Returns the arguments of a call of this function; null: it is something else. */
function argumentsOf(node: Node, name: string): readonly Node[] | null {
  const call = bare(node);
  if (call.type !== "CallExpression" || !isNamed(call.callee, name)) return null;
  return (call.arguments as Node[]).map(bare);
}

function propertyOf(node: Node): { readonly name: string; readonly value: Node } | null {
  if (node.type !== "Property" || node.computed || node.method || node.kind !== "init") return null;
  const { key } = node;
  const name = key.type === "Identifier" ? key.name : key.type === "Literal" ? key.value : null;
  if (typeof name !== "string" || !plainName.test(name) || name === "__proto__") return null;
  return { name, value: bare(node.value as Node) };
}

function isNamed(node: Node, name: string): boolean {
  return node.type === "Identifier" && node.name === name;
}

/** Without parentheses around it. */
function bare(node: Node): Node {
  return node.type === "ParenthesizedExpression" ? bare(node.expression) : node;
}
