/**
 * Compiles expressions to closures. Each type of node has one function here; `compileExpression` is the table.
 *
 * Independent of statements, and of the behavior of built-ins. Hot: bench/script.bench.ts.
 *
 * Invariant: a closure costs its node's count in `weightOf`, plus its own charges.
 */

import type * as acorn from "acorn";
import { compilePattern } from "../built-ins/regular-expression.ts";
import type { Assign, Compiler, Expression, Frame } from "./script-code.ts";
import { plainSlot, readBinding, variableSlot, writeBinding } from "./script-code.ts";
import {
  add,
  arithmetic,
  type Comparison,
  compare,
  concat,
  looseEquals,
  strictEquals,
  toNumber,
  toText,
  typeOf,
} from "./script-operators.ts";
import type { Node } from "./script-parser.ts";
import {
  arrayPosition,
  callMethod,
  callValue,
  constructValue,
  copyProperties,
  deleteProperty,
  elementsOf,
  getProperty,
  hasProperty,
  literalObject,
  methodTables,
  setProperty,
} from "./script-properties.ts";
import type { Scope } from "./script-scope.ts";
import {
  ABSENT,
  getOwn,
  isFunction,
  isReference,
  kinds,
  markSet,
  newObject,
  positionOf,
  type Run,
  ScriptArray,
  ScriptFunction,
  ScriptObject,
  ScriptPattern,
  type Slot,
  throwError,
  traitsOf,
  type Value,
  wellKnown,
} from "./script-values.ts";

/** Compiles an expression node other than a function or class. */
export function compileExpression(compiler: Compiler, node: Node, scope: Scope): Expression {
  switch (node.type) {
    case "Literal":
      return compileLiteral(node);
    case "Identifier":
      return compileIdentifier(compiler, node.name, scope);
    case "ThisExpression":
      return compileThis(compiler);
    case "TemplateLiteral":
      return compileTemplate(compiler, node, scope);
    case "ArrayExpression":
      return compileArray(compiler, node, scope);
    case "ObjectExpression":
      return compileObject(compiler, node, scope);
    case "UnaryExpression":
      return compileUnary(compiler, node, scope);
    case "UpdateExpression":
      return compileUpdate(compiler, node, scope);
    case "BinaryExpression":
      return compileBinary(compiler, node, scope);
    case "LogicalExpression":
      return compileLogical(compiler, node, scope);
    case "ConditionalExpression": {
      const test = compiler.expression(node.test, scope);
      const yes = compiler.expression(node.consequent, scope);
      const no = compiler.expression(node.alternate, scope);
      return (frame) => (test(frame) ? yes(frame) : no(frame));
    }
    case "AssignmentExpression":
      return compileAssignment(compiler, node, scope);
    case "MemberExpression":
      return compileMember(compiler, node, scope);
    case "CallExpression":
      return compileCall(compiler, node, scope);
    case "NewExpression":
      return compileNew(compiler, node, scope);
    case "ChainExpression": {
      const chain = compileChain(compiler, node.expression, scope);
      return (frame) => {
        const value = chain(frame);
        return value === ABSENT ? undefined : (value as Value);
      };
    }
    case "SequenceExpression": {
      const parts = node.expressions.map((part) => compiler.expression(part, scope));
      return (frame) => {
        let value: Value;
        for (const part of parts) value = part(frame);
        return value;
      };
    }
    case "ParenthesizedExpression":
      return compiler.expression(node.expression, scope);
    default:
      // The whitelist admitted a node that this table lacks: a bug.
      throw new Error(`no code for ${node.type}`);
  }
}

function compileLiteral(node: acorn.Literal): Expression {
  if (node.regex) {
    const matcher = compilePattern(node.regex.pattern, node.regex.flags);
    return (frame) => {
      frame.run.grow(64);
      return new ScriptPattern(matcher);
    };
  }
  const value = node.value as null | boolean | number | string;
  return () => value;
}

/** Returns a name: a variable, a parameter of the query (`$x`, `args`), a built-in, or unknown (undefined). */
function compileIdentifier(compiler: Compiler, name: string, scope: Scope): Expression {
  const binding = scope.find(name);
  if (binding !== null) return readBinding(binding, scope);
  if (name === "args") return (frame) => frame.run.parameters;
  const known = compiler.globals.get(name);
  if (known !== undefined) return () => known;
  if (name.startsWith("$")) {
    const parameter = name.slice(1);
    return (frame) => getOwn(frame.run.parameters, parameter);
  }
  if (name === "undefined") return () => undefined;
  if (name === "globalThis") {
    const { globals } = compiler;
    return (frame) => globalObject(frame.run, globals);
  }
  // An unknown name: null, but `typeof` gives "undefined", and a call of it is skipped.
  return unknownName(name);
}

/** Reads a property that a script has set on `globalThis`, else null. */
function unknownName(name: string): Expression {
  const read: Expression = ({ run }) =>
    run.globalObject === null ? null : (getOwn(run.globalObject, name) ?? null);
  unknownNames.add(read);
  return read;
}

const unknownNames = new WeakSet<Expression>();

function compileThis({ globals, hasGlobalThis }: Compiler): Expression {
  if (!hasGlobalThis) return (frame) => frame.self;
  return (frame) => frame.self ?? globalObject(frame.run, globals);
}

/**
 * `globalThis` of a run: an empty object that inherits the built-ins. A property that a script sets is one of its run, and
 * replaces no built-in where that is read by its name.
 */
function globalObject(run: Run, globals: ReadonlyMap<string, Value>): ScriptObject {
  if (run.globalObject !== null) return run.globalObject;
  run.grow(128 + globals.size * 16);
  const made = newObject();
  const maker = new ScriptFunction("Object", 0, () => undefined, true);
  maker.methods = new ScriptObject([...globals.keys(), "globalThis"], false, [
    ...globals.values(),
    made,
  ]);
  traitsOf(made).maker = maker;
  // As in RavenDB 7.2.7, it cannot be stored.
  traitsOf(made).symbols = new Map([[wellKnown.toStringTag, "global"]]);
  run.globalObject = made;
  return made;
}

function compileTemplate(
  compiler: Compiler,
  node: acorn.TemplateLiteral,
  scope: Scope,
): Expression {
  const texts = node.quasis.map((quasi) => quasi.value.cooked ?? "");
  const parts = node.expressions.map((part) => compiler.expression(part, scope));
  return function template(frame) {
    const { run } = frame;
    let text = texts[0] as string;
    for (let i = 0; i < parts.length; i += 1) {
      const part = toText(run, (parts[i] as Expression)(frame));
      text = concat(run, text, part);
      text = concat(run, text, texts[i + 1] as string);
    }
    return text;
  };
}

/** Returns a list of values, with spreads and holes; `fill` appends to a list. */
function compileList(
  compiler: Compiler,
  nodes: readonly (Node | null)[],
  scope: Scope,
): (frame: Frame, list: Slot[]) => void {
  const parts = nodes.map((node) => {
    if (node === null) return (_: Frame, list: Slot[]) => void list.push(ABSENT);
    if (node.type !== "SpreadElement") {
      const value = compiler.expression(node, scope);
      return (frame: Frame, list: Slot[]) => void list.push(value(frame));
    }
    const spread = compiler.expression(node.argument, scope);
    return (frame: Frame, list: Slot[]) => {
      for (const value of elementsOf(frame.run, spread(frame))) list.push(value);
    };
  });
  return function fill(frame, list) {
    for (const part of parts) part(frame, list);
  };
}

function compileArray(compiler: Compiler, node: acorn.ArrayExpression, scope: Scope): Expression {
  const fill = compileList(compiler, node.elements, scope);
  const bytes = 64 + node.elements.length * 8;
  return function array(frame) {
    frame.run.grow(bytes);
    const items: Slot[] = [];
    fill(frame, items);
    return new ScriptArray(items);
  };
}

/** Returns the arguments of a call: always a new list, which the called function may keep. */
function compileArguments(
  compiler: Compiler,
  nodes: readonly Node[],
  scope: Scope,
): (frame: Frame) => Value[] {
  if (nodes.some((node) => node.type === "SpreadElement")) {
    const fill = compileList(compiler, nodes, scope);
    return function spreadArguments(frame) {
      const list: Slot[] = [];
      fill(frame, list);
      return list as Value[];
    };
  }
  const parts = nodes.map((node) => compiler.expression(node, scope));
  const [first, second] = parts;
  if (first === undefined) return () => [];
  if (second === undefined) return (frame) => [first(frame)];
  if (parts.length === 2) return (frame) => [first(frame), second(frame)];
  return function manyArguments(frame) {
    const list: Value[] = [];
    for (const part of parts) list.push(part(frame));
    return list;
  };
}

/** Returns the key of a member or property when it is constant, else null. */
function constantKey(node: Node, computed: boolean): string | null {
  if (!computed && node.type === "Identifier") return node.name;
  if (node.type === "Literal" && !node.regex) return String(node.value);
  return null;
}

function compileObject(compiler: Compiler, node: acorn.ObjectExpression, scope: Scope): Expression {
  const keys: string[] = [];
  const values: Expression[] = [];
  for (const property of node.properties) {
    if (property.type === "SpreadElement") return compileOpenObject(compiler, node, scope);
    const key = constantKey(property.key, property.computed);
    if (key === null || keys.includes(key)) return compileOpenObject(compiler, node, scope);
    keys.push(key);
    const value = compiler.leavesOutMissing
      ? compilePresent(compiler, property.value, scope)
      : compiler.expression(property.value, scope);
    values.push(named(value, key, property.value));
  }
  return function object(frame) {
    const slots: Slot[] = [];
    for (let i = 0; i < values.length; i += 1) slots.push((values[i] as Expression)(frame));
    return literalObject(frame.run, keys, slots);
  };
}

/**
 * Compiles a value of an object; undefined for a property of null, and for missing data of the database: see
 * `Compiler`.
 */
function compilePresent(compiler: Compiler, node: Node, scope: Scope): Expression {
  const isMember = node.type === "MemberExpression" && node.object.type !== "Super";
  if (isMember) {
    const base = compiler.expression(node.object as Node, scope);
    const constant = constantKey(node.property, node.computed);
    if (constant === null) {
      const key = compiler.expression(node.property, scope);
      return function getPresent(frame) {
        const object = base(frame);
        return object === null ? undefined : getProperty(frame.run, object, key(frame));
      };
    }
    let object: Value;
    const read = compileNamedMember(() => object, constant);
    return function getNamedPresent(frame) {
      object = base(frame);
      return object === null ? undefined : read(frame);
    };
  }
  if (node.type === "LogicalExpression" && node.operator === "&&") {
    const left = compilePresent(compiler, node.left, scope);
    const right = compilePresent(compiler, node.right, scope);
    return (frame) => {
      const value = left(frame);
      return value ? right(frame) : value;
    };
  }
  const value = compiler.expression(node, scope);
  const source = node.type === "Identifier" ? (scope.find(node.name)?.initial ?? node) : node;
  if (!mayMiss(source)) return value;
  return function getFound(frame) {
    return value(frame) ?? undefined;
  };
}

const missingReads: ReadonlySet<string> = new Set(["load", "cmpxchg", "loadCompareExchangeValue"]);

/** Returns whether null means that the database lacks the data. */
function mayMiss(node: Node): boolean {
  const { callee } = node as acorn.CallExpression;
  return (
    node.type === "CallExpression" && callee.type === "Identifier" && missingReads.has(callee.name)
  );
}

/** Returns an object literal with spreads, computed or repeated keys. */
function compileOpenObject(
  compiler: Compiler,
  node: acorn.ObjectExpression,
  scope: Scope,
): Expression {
  const parts = node.properties.map((property): Assign => {
    if (property.type === "SpreadElement") {
      const spread = compiler.expression(property.argument, scope);
      return (frame, target) => copyProperties(frame.run, target, spread(frame));
    }
    const value = compiler.expression(property.value, scope);
    const constant = constantKey(property.key, property.computed);
    const key = constant === null ? compiler.expression(property.key, scope) : () => constant;
    return (frame, target) => setProperty(frame.run, target, key(frame), value(frame));
  });
  return function openObject(frame) {
    frame.run.grow(96);
    const target = newObject();
    for (const part of parts) part(frame, target);
    return target;
  };
}

/** Returns the names an anonymous function after its assignment target. */
export function named(value: Expression, name: string, node: Node): Expression {
  const anonymous =
    node.type === "ArrowFunctionExpression" ||
    (node.type === "FunctionExpression" && !node.id) ||
    (node.type === "ClassExpression" && !node.id);
  if (!anonymous) return value;
  return (frame) => {
    const made = value(frame) as ScriptFunction;
    made.name = name;
    return made;
  };
}

function compileUnary(compiler: Compiler, node: acorn.UnaryExpression, scope: Scope): Expression {
  const { argument, operator } = node;
  if (operator === "delete") return compileDelete(compiler, argument, scope);
  const value = compiler.expression(argument, scope);
  switch (operator) {
    case "-":
      return (frame) => -toNumber(frame.run, value(frame));
    case "+":
      return (frame) => toNumber(frame.run, value(frame));
    case "!":
      return (frame) => !value(frame);
    case "~":
      return (frame) => ~toNumber(frame.run, value(frame));
    case "typeof":
      return unknownNames.has(value) ? () => "undefined" : (frame) => typeOf(value(frame));
    case "void":
      return (frame) => {
        value(frame);
        return undefined;
      };
  }
}

function compileDelete(compiler: Compiler, node: Node, scope: Scope): Expression {
  const target = node.type === "ChainExpression" ? node.expression : node;
  if (target.type !== "MemberExpression") {
    const value = compiler.expression(node, scope);
    return (frame) => {
      value(frame);
      return true;
    };
  }
  const base = compiler.expression(target.object, scope);
  const key = compileKey(compiler, target, scope);
  if (node.type === "ChainExpression") {
    return (frame) => {
      const object = base(frame);
      if (object === undefined || object === null) return true;
      return deleteProperty(frame.run, object, key(frame));
    };
  }
  return (frame) => deleteProperty(frame.run, base(frame), key(frame));
}

function compileKey(compiler: Compiler, node: acorn.MemberExpression, scope: Scope): Expression {
  const constant = constantKey(node.property, node.computed);
  if (constant !== null) return () => constant;
  return compiler.expression(node.property, scope);
}

function compileUpdate(compiler: Compiler, node: acorn.UpdateExpression, scope: Scope): Expression {
  const step = node.operator === "++" ? 1 : -1;
  if (node.prefix) {
    return compileReadWrite(
      compiler,
      node.argument,
      scope,
      (frame, old) => (typeof old === "number" ? old : toNumber(frame.run, old)) + step,
    );
  }
  const { argument } = node;
  if (argument.type === "MemberExpression") {
    const base = compiler.expression(argument.object, scope);
    const key = compileKey(compiler, argument, scope);
    return function stepMember(frame) {
      const object = base(frame);
      const name = key(frame);
      const old = toNumber(frame.run, getProperty(frame.run, object, name));
      setProperty(frame.run, object, name, old + step);
      return old;
    };
  }
  const read = compiler.expression(argument, scope);
  const write = compiler.assign(argument, scope, false);
  return function stepVariable(frame) {
    const old = toNumber(frame.run, read(frame));
    write(frame, old + step);
    return old;
  };
}

/** Computes the new value of a variable or property; ABSENT leaves it unchanged. */
type Change = (frame: Frame, old: Value) => Slot;

/** Reads a variable or property, and writes the result of `change`: `++x`, `x += 1`, `x ??= 1`. Hot. */
function compileReadWrite(
  compiler: Compiler,
  node: Node,
  scope: Scope,
  change: Change,
): Expression {
  if (node.type === "MemberExpression") {
    const base = compiler.expression(node.object, scope);
    const constant = constantKey(node.property, node.computed);
    if (constant !== null) return compileNamedChange(base, constant, change);
    const key = compiler.expression(node.property, scope);
    return function changeMember(frame) {
      const object = base(frame);
      const name = key(frame);
      const old = getProperty(frame.run, object, name);
      const value = change(frame, old);
      if (value === ABSENT) return old;
      setProperty(frame.run, object, name, value as Value);
      return value as Value;
    };
  }
  const slot = variableSlot(node, scope);
  if (slot >= 0) {
    return function changeLocal(frame) {
      const { slots } = frame;
      const old = slots[slot] as Value;
      const value = change(frame, old);
      if (value === ABSENT) return old;
      slots[slot] = value;
      return value as Value;
    };
  }
  const read = compiler.expression(node, scope);
  const write = compiler.assign(node, scope, false);
  return function changeVariable(frame) {
    const old = read(frame);
    const value = change(frame, old);
    if (value === ABSENT) return old;
    write(frame, value as Value);
    return value as Value;
  };
}

/** As `compileReadWrite`, for a property with a fixed name; caches its position by shape. */
function compileNamedChange(base: Expression, key: string, change: Change): Expression {
  let shape: string[] | null = null;
  let position = 0;
  return function changeNamed(frame) {
    const object = base(frame);
    let old: Slot = ABSENT;
    const isObject = typeof object === "object" && object !== null && object.kind === kinds.object;
    if (isObject) {
      if (object.keys !== shape) {
        const found = positionOf(object, key);
        shape = found < 0 ? null : object.keys;
        position = found;
      }
      if (shape !== null) old = object.values[position] as Slot;
    }
    if (typeof old === "symbol") old = getProperty(frame.run, object, key);
    const value = change(frame, old);
    if (value === ABSENT) return old;
    // The change may have modified the object in any way, and run this very code.
    if (isObject && object.keys === shape && object.traits === null) {
      markSet(object, position);
      object.values[position] = value;
    } else setProperty(frame.run, object, key, value as Value);
    return value as Value;
  };
}

function compileBinary(compiler: Compiler, node: acorn.BinaryExpression, scope: Scope): Expression {
  const left = compiler.expression(node.left as Node, scope);
  const right = compiler.expression(node.right, scope);
  switch (node.operator) {
    case "+":
      return compileAdd(left, right);
    case "===":
      return (frame) => strictEquals(frame.run, left(frame), right(frame));
    case "!==":
      return (frame) => !strictEquals(frame.run, left(frame), right(frame));
    case "==":
      return (frame) => looseEquals(frame.run, left(frame), right(frame));
    case "!=":
      return (frame) => !looseEquals(frame.run, left(frame), right(frame));
    case "<":
      return function less(frame) {
        const a = left(frame);
        const b = right(frame);
        if (typeof a === "number" && typeof b === "number") return a < b;
        return compare(frame.run, "<", a, b);
      };
    case "<=":
    case ">":
    case ">=": {
      const operator: Comparison = node.operator;
      return (frame) => compare(frame.run, operator, left(frame), right(frame));
    }
    case "in":
      return (frame) => hasProperty(frame.run, left(frame), right(frame));
    case "instanceof":
      return (frame) => instanceOf(left(frame), right(frame));
    default:
      return compileArithmetic(node.operator, left, right);
  }
}

function compileAdd(left: Expression, right: Expression): Expression {
  return function addition(frame) {
    const a = left(frame);
    const b = right(frame);
    if (typeof a === "number" && typeof b === "number") return a + b;
    return add(frame.run, a, b);
  };
}

function compileArithmetic(operator: string, left: Expression, right: Expression): Expression {
  if (operator === "*") {
    return function product(frame) {
      const a = left(frame);
      const b = right(frame);
      if (typeof a === "number" && typeof b === "number") return a * b;
      return toNumber(frame.run, a) * toNumber(frame.run, b);
    };
  }
  if (operator === "-") {
    return function difference(frame) {
      const a = left(frame);
      const b = right(frame);
      if (typeof a === "number" && typeof b === "number") return a - b;
      return toNumber(frame.run, a) - toNumber(frame.run, b);
    };
  }
  const operate = arithmetic[operator] as (a: number, b: number) => number;
  return function calculation(frame) {
    const a = toNumber(frame.run, left(frame));
    return operate(a, toNumber(frame.run, right(frame)));
  };
}

/** Classes by constructor name, for `instanceof`. */
const classKinds: ReadonlyMap<string, number> = new Map([
  ["Array", kinds.array],
  ["Date", kinds.date],
  ["Map", kinds.map],
  ["Set", kinds.set],
  ["RegExp", kinds.pattern],
  ["Function", kinds.function],
]);

function instanceOf(value: Value, type: Value): boolean {
  if (!isFunction(type)) {
    if (!isReference(type))
      throwError("TypeError", "Right-hand side of 'instanceof' is not an object");
    throwError("TypeError", "Right-hand side of 'instanceof' is not callable");
  }
  if (!isReference(value)) return false;
  if (!type.builtIn) return value.kind === kinds.object && value.maker === type;
  if (type.name === "Object") return value.kind !== kinds.object || value.source === null;
  const kind = classKinds.get(type.name);
  if (kind !== undefined) return value.kind === kind;
  if (value.kind !== kinds.object) return false;
  if (type.name === "Error") return value.className.endsWith("Error");
  return value.className === type.name && value.className !== "Object";
}

function compileLogical(
  compiler: Compiler,
  node: acorn.LogicalExpression,
  scope: Scope,
): Expression {
  const left = compiler.expression(node.left, scope);
  const right = compiler.expression(node.right, scope);
  switch (node.operator) {
    case "&&":
      return (frame) => {
        const value = left(frame);
        return value ? right(frame) : value;
      };
    case "||":
      return (frame) => {
        const value = left(frame);
        return value ? value : right(frame);
      };
    case "??":
      return (frame) => {
        const value = left(frame);
        return value === undefined || value === null ? right(frame) : value;
      };
  }
}

function compileAssignment(
  compiler: Compiler,
  node: acorn.AssignmentExpression,
  scope: Scope,
): Expression {
  const { left, operator } = node;
  const target = left as Node;
  const name = target.type === "Identifier" ? target.name : "";
  const right = named(compiler.expression(node.right, scope), name, node.right);
  if (operator === "=") {
    if (target.type === "MemberExpression") return compileSet(compiler, target, right, scope);
    const assign = compiler.assign(target, scope, false);
    return function assignment(frame) {
      const value = right(frame);
      assign(frame, value);
      return value;
    };
  }
  switch (operator) {
    case "&&=":
      return compileReadWrite(compiler, target, scope, (frame, old) =>
        old ? right(frame) : ABSENT,
      );
    case "||=":
      return compileReadWrite(compiler, target, scope, (frame, old) =>
        old ? ABSENT : right(frame),
      );
    case "??=":
      return compileReadWrite(compiler, target, scope, (frame, old) =>
        old === undefined || old === null ? right(frame) : ABSENT,
      );
    case "+=":
      if (node.right.type === "Literal" && typeof node.right.value === "number") {
        return compileReadWrite(compiler, target, scope, addConstant(node.right.value));
      }
      return compileReadWrite(compiler, target, scope, function addTo(frame, old) {
        const value = right(frame);
        if (typeof old === "number" && typeof value === "number") return old + value;
        return add(frame.run, old, value);
      });
    default: {
      const operate = arithmetic[operator.slice(0, -1)] as (a: number, b: number) => number;
      return compileReadWrite(compiler, target, scope, (frame, old) => {
        const a = toNumber(frame.run, old);
        return operate(a, toNumber(frame.run, right(frame)));
      });
    }
  }
}

function addConstant(term: number): Change {
  return function addToConstant(frame, old) {
    return typeof old === "number" ? old + term : add(frame.run, old, term);
  };
}

function compileSet(
  compiler: Compiler,
  target: acorn.MemberExpression,
  right: Expression,
  scope: Scope,
): Expression {
  const base = compiler.expression(target.object, scope);
  const constant = constantKey(target.property, target.computed);
  if (constant === null) {
    const key = compiler.expression(target.property, scope);
    return function setComputed(frame) {
      const object = base(frame);
      const name = key(frame);
      const value = right(frame);
      setProperty(frame.run, object, name, value);
      return value;
    };
  }
  let shape: string[] | null = null;
  let position = 0;
  return function setMember(frame) {
    const object = base(frame);
    const value = right(frame);
    if (
      typeof object === "object" &&
      object !== null &&
      object.kind === kinds.object &&
      object.traits === null
    ) {
      if (object.keys !== shape) {
        const found = positionOf(object, constant);
        shape = found < 0 ? null : object.keys;
        position = found;
      }
      if (shape !== null) {
        markSet(object, position);
        object.values[position] = value;
        return value;
      }
    }
    setProperty(frame.run, object, constant, value);
    return value;
  };
}

function compileMember(compiler: Compiler, node: acorn.MemberExpression, scope: Scope): Expression {
  const constant = constantKey(node.property, node.computed);
  const slot = plainSlot(node.object as Node, scope);
  if (constant !== null && slot >= 0) return compileLocalMember(slot, constant);
  const base = compiler.expression(node.object, scope);
  if (constant !== null) return compileNamedMember(base, constant);
  const key = compiler.expression(node.property, scope);
  return function getComputed(frame) {
    const object = base(frame);
    return getProperty(frame.run, object, key(frame));
  };
}

/** Reads a property with a fixed name; caches its position by shape. Hot. */
function compileNamedMember(base: Expression, key: string): Expression {
  let shape: string[] | null = null;
  let position = 0;
  return function getMember(frame) {
    const object = base(frame);
    if (typeof object === "object" && object !== null && object.kind === kinds.object) {
      if (object.keys !== shape) {
        const found = positionOf(object, key);
        if (found < 0) return getProperty(frame.run, object, key);
        shape = object.keys;
        position = found;
      }
      const slot = object.values[position];
      if (typeof slot !== "symbol") return slot;
    }
    return getProperty(frame.run, object, key);
  };
}

/** As `compileNamedMember`, for an object in a variable of the current frame. Hot. */
function compileLocalMember(slot: number, key: string): Expression {
  let shape: string[] | null = null;
  let position = 0;
  return function getLocalMember(frame) {
    const object = frame.slots[slot] as Value;
    if (typeof object === "object" && object !== null && object.kind === kinds.object) {
      if (object.keys !== shape) {
        const found = positionOf(object, key);
        if (found < 0) return getProperty(frame.run, object, key);
        shape = object.keys;
        position = found;
      }
      const value = object.values[position];
      if (typeof value !== "symbol") return value;
    }
    return getProperty(frame.run, object, key);
  };
}

function compileCall(compiler: Compiler, node: acorn.CallExpression, scope: Scope): Expression {
  const { callee } = node;
  const args = compileArguments(compiler, node.arguments, scope);
  if (callee.type === "MemberExpression") return compileMethodCall(compiler, callee, args, scope);
  const target = compiler.expression(callee as Node, scope);
  const name = textOf(compiler, callee);
  return function call(frame) {
    const value = target(frame);
    const list = args(frame);
    return callValue(frame.run, value, list, name);
  };
}

function compileMethodCall(
  compiler: Compiler,
  callee: acorn.MemberExpression,
  args: (frame: Frame) => Value[],
  scope: Scope,
): Expression {
  const base = compiler.expression(callee.object, scope);
  const constant = constantKey(callee.property, callee.computed);
  if (constant === null) {
    const key = compiler.expression(callee.property, scope);
    return function callComputed(frame) {
      const object = base(frame);
      const name = key(frame);
      return callMethod(frame.run, object, name, args(frame));
    };
  }
  const ofArray = arrayPosition(constant) < 0 ? methodTables.array.get(constant) : undefined;
  const ofString = methodTables.string.get(constant);
  return function callNamed(frame) {
    const object = base(frame);
    const list = args(frame);
    if (typeof object === "string" && ofString !== undefined) {
      return ofString.native(frame.run, object, list);
    }
    if (
      ofArray !== undefined &&
      typeof object === "object" &&
      object !== null &&
      object.kind === kinds.array &&
      object.extra === null &&
      object.items.length > 0
    ) {
      return ofArray.native(frame.run, object, list);
    }
    return callMethod(frame.run, object, constant, list);
  };
}

/** Returns the text of a callee, for messages. */
function textOf(compiler: Compiler, node: Node): string {
  if (node.type === "Identifier") return node.name;
  return compiler.source.slice(node.start, Math.min(node.end, node.start + 60));
}

function compileNew(compiler: Compiler, node: acorn.NewExpression, scope: Scope): Expression {
  const callee = compiler.expression(node.callee as Node, scope);
  const args = compileArguments(compiler, node.arguments, scope);
  const name = textOf(compiler, node.callee);
  return function construct(frame) {
    const target = callee(frame);
    return constructValue(frame.run, target, args(frame), name);
  };
}

type Chain = (frame: Frame) => Slot;

/** Returns a part of an optional chain: ABSENT when the chain short-circuits. */
function compileChain(compiler: Compiler, node: Node, scope: Scope): Chain {
  if (node.type === "MemberExpression") {
    const base = compileChain(compiler, node.object, scope);
    const key = compileKey(compiler, node, scope);
    const { optional } = node;
    return (frame) => {
      const object = base(frame);
      if (object === ABSENT || (optional && (object === undefined || object === null)))
        return ABSENT;
      return getProperty(frame.run, object as Value, key(frame));
    };
  }
  if (node.type !== "CallExpression") return compiler.expression(node, scope);
  const args = compileArguments(compiler, node.arguments, scope);
  const { callee, optional } = node;
  if (callee.type !== "MemberExpression") {
    const target = compileChain(compiler, callee as Node, scope);
    const name = textOf(compiler, callee);
    return (frame) => {
      const value = target(frame);
      if (value === ABSENT || (optional && (value === undefined || value === null))) return ABSENT;
      return callValue(frame.run, value as Value, args(frame), name);
    };
  }
  const base = compileChain(compiler, callee.object, scope);
  const key = compileKey(compiler, callee, scope);
  const cut = (run: Run, object: Slot, name: Value): boolean => {
    if (object === ABSENT) return true;
    if (callee.optional && (object === undefined || object === null)) return true;
    if (!optional) return false;
    const method = getProperty(run, object as Value, name);
    return method === undefined || method === null;
  };
  return (frame) => {
    const object = base(frame);
    const name = object === ABSENT ? undefined : key(frame);
    if (cut(frame.run, object, name)) return ABSENT;
    return callMethod(frame.run, object as Value, name, args(frame));
  };
}

/** Assigns to a name, member or pattern. */
export function compileAssign(
  compiler: Compiler,
  node: Node,
  scope: Scope,
  declares: boolean,
): Assign {
  switch (node.type) {
    case "Identifier": {
      const { name } = node;
      const binding = scope.find(name);
      if (binding !== null) return writeBinding(binding, scope, declares);
      return () => throwError("ReferenceError", `${name} is not defined`);
    }
    case "MemberExpression": {
      const base = compiler.expression(node.object, scope);
      const key = compileKey(compiler, node, scope);
      return (frame, value) => setProperty(frame.run, base(frame), key(frame), value);
    }
    case "AssignmentPattern": {
      const assign = compiler.assign(node.left, scope, declares);
      const fallback = compiler.expression(node.right, scope);
      return (frame, value) => assign(frame, value === undefined ? fallback(frame) : value);
    }
    case "ArrayPattern":
      return compileArrayPattern(compiler, node, scope, declares);
    case "ObjectPattern":
      return compileObjectPattern(compiler, node, scope, declares);
    default:
      throw new Error(`no code for a pattern of ${node.type}`);
  }
}

function compileArrayPattern(
  compiler: Compiler,
  node: acorn.ArrayPattern,
  scope: Scope,
  declares: boolean,
): Assign {
  const parts = node.elements.map((element) => {
    if (element === null) return null;
    const rest = element.type === "RestElement";
    const target = rest ? element.argument : element;
    return { rest, assign: compiler.assign(target, scope, declares) };
  });
  return function assignElements(frame, value) {
    const elements = elementsOf(frame.run, value);
    for (const [i, part] of parts.entries()) {
      if (part === null) continue;
      if (part.rest) part.assign(frame, new ScriptArray(elements.slice(i)));
      else part.assign(frame, elements[i]);
    }
  };
}

function compileObjectPattern(
  compiler: Compiler,
  node: acorn.ObjectPattern,
  scope: Scope,
  declares: boolean,
): Assign {
  const parts = node.properties.map((property) => {
    const rest = property.type === "RestElement";
    const target = rest ? property.argument : property.value;
    const assign = compiler.assign(target as Node, scope, declares);
    if (rest) return { key: null, assign };
    const constant = constantKey(property.key, property.computed);
    const key = constant === null ? compiler.expression(property.key, scope) : () => constant;
    return { key, assign };
  });
  return function assignProperties(frame, value) {
    const { run } = frame;
    if (value === undefined || value === null) {
      throwError("TypeError", "Cannot convert undefined or null to object");
    }
    const taken = new Set<string>();
    for (const { key, assign } of parts) {
      if (key === null) {
        const rest = newObject();
        copyProperties(run, rest, value, taken);
        assign(frame, rest);
      } else {
        const name = key(frame);
        if (isReference(name)) {
          assign(frame, getProperty(run, value, name));
          continue;
        }
        taken.add(toText(run, name));
        assign(frame, getProperty(run, value, name));
      }
    }
  };
}
