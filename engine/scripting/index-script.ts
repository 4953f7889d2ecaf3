/**
 * Analyzes the texts of a deployed index: the maps and the reduce they declare, and, without running them, the fields
 * they output and the collections whose documents they load.
 */
import { foldedName } from "../base/case-folding.ts";
import { EngineError } from "../base/errors.ts";
import type { MapSource } from "../indexing/index-program.ts";
import { declarationsOf, type IndexScriptHost } from "./index-functions.ts";
import {
  childrenOf,
  type FunctionNode,
  isFunctionNode,
  type Node,
} from "./language/script-parser.ts";
import { isFunction, type ScriptFunction } from "./language/script-values.ts";
import type { CompiledScript } from "./script.ts";

/** One map of documents, or of their counters or time series. `collection` null: all collections. */
export interface IndexMap {
  readonly source: MapSource;
  readonly collection: string | null;
  /** The name of the mapped counters or series; null: all. */
  readonly item: string | null;
  readonly map: ScriptFunction;
}

export interface IndexReduce {
  readonly groupBy: ScriptFunction;
  readonly aggregate: ScriptFunction;
}

/** Returns the maps that a text declares. @throws EngineError index-creation, not-supported, and as `run` */
export function indexMapsOf(
  name: string,
  number: number,
  script: CompiledScript,
  host: IndexScriptHost,
): IndexMap[] {
  const { maps } = declarationsOf(script.run({ host }).run);
  if (maps.length === 0) {
    throw new EngineError(
      "index-creation",
      `JavaScript index ${name} doesn't contain any map functions`,
    );
  }
  return maps.map(({ source, collection, item, map }) => {
    const what = `JavaScript index ${name} map function #${number}`;
    if (typeof collection !== "string") {
      throw new EngineError("index-creation", `${what} collection name isn't a string`);
    }
    if (item !== undefined && typeof item !== "string") {
      const kind = source === "timeSeries" ? "TimeSeries" : "counter";
      throw new EngineError("index-creation", `${what} ${kind} name isn't a string`);
    }
    if (!isFunction(map)) {
      const type = source === "documents" ? "FunctionInstance" : "Function";
      throw new EngineError("index-creation", `${what} method property isn't a '${type}'`);
    }
    const isAll = foldedName(collection) === "@all_docs";
    return {
      source: mapSources[source],
      collection: isAll ? null : collection,
      item: item ?? null,
      map,
    };
  });
}

const mapSources = {
  documents: "Documents",
  counters: "Counters",
  timeSeries: "TimeSeries",
} as const;

/** Returns the reduce that a text declares. @throws EngineError index-creation, argument-null, and as `run` */
export function indexReduceOf(
  name: string,
  script: CompiledScript,
  host: IndexScriptHost,
): IndexReduce {
  const [reduce, more] = declarationsOf(script.run({ host }).run).reduces;
  if (reduce === undefined || more !== undefined) {
    throw new EngineError(
      "index-creation",
      `JavaScript index ${name}: the reduce must be groupBy(x => …).aggregate(g => …)`,
    );
  }
  const { groupBy, aggregate } = reduce;
  if (!isFunction(groupBy) || !isFunction(aggregate)) {
    const missing = isFunction(groupBy) ? "reduce" : "key";
    throw new EngineError(
      "argument-null",
      `JavaScript index ${name}: groupBy and aggregate must be called with functions. (Parameter '${missing}')`,
    );
  }
  return { groupBy, aggregate };
}

/** The static properties of a text. */
interface IndexReading {
  /** Names of the fields of its entries; null when known only at run time. */
  readonly fields: ReadonlySet<string> | null;
  /** Collections whose documents it loads; null as a member: any. */
  readonly loads: ReadonlySet<string | null>;
}

/**
 * Analyzes the calls of `map` or `aggregate` in a text.
 * @throws EngineError index-compilation, not-supported, invalid-operation
 */
export function readIndexText(name: string, tree: Node, method: "map" | "aggregate"): IndexReading {
  const loads = new Set<string | null>();
  let fields: Set<string> | null = new Set();
  let isDynamic = false;
  visit(tree, (node) => {
    if (node.type === "Property" && keyOf(node) === "$name") isDynamic = true;
    if (node.type !== "CallExpression") return;
    const plain = node.callee.type === "Identifier" ? node.callee.name : "";
    if (plain === "createField") isDynamic = true;
    if (plain === "load") loads.add(loadedCollection(node.arguments as Node[]));
    // `map(…)` and `counters.map(…)`, but not the array method; `groupBy(…).aggregate(…)`.
    const isDeclaration =
      method === "map"
        ? plain === method || isItemMap(node.callee)
        : plain === "" && calleeName(node.callee) === method;
    const declared = isDeclaration ? (node.arguments.at(-1) as Node | undefined) : undefined;
    if (declared === undefined) return;
    const found = isFunctionNode(declared) ? returnedFields(name, declared) : null;
    fields = found === null || fields === null ? null : new Set([...fields, ...found]);
  });
  return { fields: isDynamic || (fields as Set<string> | null)?.size === 0 ? null : fields, loads };
}

/** Returns the field in `x => x.Field` of `groupBy`, if it is the whole key; null otherwise. */
export function groupedField(tree: Node): string | null {
  let name: string | null = null;
  visit(tree, (node) => {
    const isGroupBy =
      node.type === "CallExpression" &&
      node.callee.type === "Identifier" &&
      node.callee.name === "groupBy";
    const key = isGroupBy ? (node.arguments[0] as Node | undefined) : undefined;
    const value = key?.type === "ArrowFunctionExpression" ? key.body : undefined;
    if (value?.type !== "MemberExpression" || value.computed) return;
    if (value.property.type === "Identifier") name = value.property.name;
  });
  return name;
}

function visit(root: Node, look: (node: Node) => void): void {
  const open: Node[] = [root];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    look(node);
    open.push(...(childrenOf(node) ?? []));
  }
}

/** `f` of `f(…)` and of `x.f(…)`. */
function calleeName(callee: Node): string {
  if (callee.type === "Identifier") return callee.name;
  if (callee.type !== "MemberExpression" || callee.computed) return "";
  return callee.property.type === "Identifier" ? callee.property.name : "";
}

/** `counters.map` and `timeSeries.map`. */
function isItemMap(callee: Node): boolean {
  if (callee.type !== "MemberExpression" || calleeName(callee) !== "map") return false;
  const { object } = callee;
  return object.type === "Identifier" && /^(?:counters|timeSeries)$/.test(object.name);
}

function loadedCollection(args: readonly Node[]): string | null {
  if (args.length !== 2) {
    throw new EngineError(
      "index-compilation",
      "load method is expecting two arguments, the first should be the document and the second should be the " +
        `collection. e.g. load(u.Product,'Products') but was invoked with ${args.length} arguments.`,
    );
  }
  const [, collection] = args as [Node, Node];
  const isName = collection.type === "Literal" && typeof collection.value === "string";
  if (!isName) return null;
  const text = String(collection.value);
  return foldedName(text) === "@all_docs" ? null : text;
}

/**
 * Returns the fields of a function's result, or null when they cannot be determined. @throws EngineError
 * invalid-operation
 */
function returnedFields(name: string, node: FunctionNode): ReadonlySet<string> | null {
  if (node.body.type !== "BlockStatement") return fieldsOfValue(name, node.body as Node);
  let fields: ReadonlySet<string> | null = null;
  let isKnown = true;
  for (const value of returnedValues(node.body)) {
    const found = value === null ? null : fieldsOfValue(name, value);
    if (found === null) isKnown = false;
    else if (fields === null) fields = found;
    else requireSame(name, fields, found);
  }
  return isKnown ? fields : null;
}

/** Returns the values of the `return` statements of a function, without those of nested functions. */
function returnedValues(body: Node): (Node | null)[] {
  const found: (Node | null)[] = [];
  const open: Node[] = [body];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (node.type === "ReturnStatement") found.unshift((node.argument as Node | null) ?? null);
    else for (const child of childrenOf(node) ?? []) if (!isFunctionNode(child)) open.push(child);
  }
  return found;
}

function fieldsOfValue(name: string, value: Node): ReadonlySet<string> | null {
  switch (value.type) {
    case "ObjectExpression":
      return keysOf(value.properties as Node[]);
    case "ConditionalExpression":
      return bothFields(name, value.consequent as Node, value.alternate as Node);
    case "ParenthesizedExpression":
      return fieldsOfValue(name, value.expression as Node);
    case "CallExpression": {
      const isBoost = value.callee.type === "Identifier" && value.callee.name === "boost";
      if (isBoost && value.arguments.length > 0) {
        return fieldsOfValue(name, value.arguments[0] as Node);
      }
      const callback = value.arguments[0] as Node | undefined;
      const isMap = calleeName(value.callee) === "map" && value.callee.type === "MemberExpression";
      if (!isMap || callback === undefined || !isFunctionNode(callback)) return null;
      return returnedFields(name, callback);
    }
    default:
      return null;
  }
}

function bothFields(name: string, left: Node, right: Node): ReadonlySet<string> | null {
  const first = fieldsOfValue(name, left);
  const second = fieldsOfValue(name, right);
  if (first === null || second === null) return null;
  requireSame(name, first, second);
  return first;
}

function keysOf(properties: readonly Node[]): ReadonlySet<string> | null {
  const keys = new Set<string>();
  for (const property of properties) {
    const key = keyOf(property);
    if (key === null) return null;
    keys.add(key);
  }
  return keys;
}

function keyOf(property: Node): string | null {
  if (property.type !== "Property" || property.computed) return null;
  const { key } = property;
  if (key.type === "Identifier") return key.name;
  return key.type === "Literal" ? String(key.value) : null;
}

function requireSame(name: string, left: ReadonlySet<string>, right: ReadonlySet<string>): void {
  if (left.size === right.size && [...left].every((key) => right.has(key))) return;
  throw new EngineError(
    "invalid-operation",
    `Index ${name} contains different return structure from different code paths, ` +
      `expected properties: ${[...left].join(", ")} but also got:${[...right].join(", ")}`,
  );
}
