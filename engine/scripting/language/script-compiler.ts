/**
 * Compiles checked trees to functions: frames, parameters, classes, and the compiler interface that the parts share.
 *
 * Independent of the purpose of a script (script.ts) and of the behavior of built-ins.
 *
 * Invariant: every call charges a step, a level of depth, and the levels that its code may nest on the host's stack
 * (`depthOf`); depth and levels are restored on return.
 */

import type * as acorn from "acorn";
import { compileAssign, compileExpression } from "./compile-expressions.ts";
import { compileSequence, compileStatement } from "./compile-statements.ts";
import {
  type Assign,
  type Compiler,
  completions,
  type Expression,
  Frame,
  type Statement,
} from "./script-code.ts";
import {
  depthOf,
  type FunctionNode,
  isFunctionNode,
  type Node,
  weightOf,
} from "./script-parser.ts";
import { setProperty } from "./script-properties.ts";
import { analyze, Scope, type Scopes } from "./script-scope.ts";
import {
  ABSENT,
  newObject,
  type Run,
  recursionExceeded,
  ScriptArray,
  ScriptFunction,
  ScriptObject,
  type Slot,
  throwError,
  traitsOf,
  type Value,
} from "./script-values.ts";

/** Levels of a call on the host's stack, besides those of its code. */
const callLevels = 4;

/** Compiles the trees of one script: declared functions first, then its main code, in one root scope. */
export class ScriptCompiler implements Compiler {
  readonly leavesOutMissing: boolean;
  readonly hasGlobalThis: boolean;
  source = "";
  readonly globals: ReadonlyMap<string, Value>;
  readonly root = new Scope(null, true, false);
  private readonly scopes: Scopes = new Map();
  private prelude = false;

  /** For the last two, see `Compiler`. */
  constructor(
    globals: ReadonlyMap<string, Value>,
    parameters: readonly string[],
    leavesOutMissing = false,
    hasGlobalThis = false,
  ) {
    this.leavesOutMissing = leavesOutMissing;
    this.hasGlobalThis = hasGlobalThis;
    this.globals = globals;
    for (const name of parameters) this.root.declare(name, "parameter", 0);
  }

  /** Analyzes the scopes of a tree. All trees are added before any is compiled. */
  add(source: string, tree: Node): void {
    for (const [node, scope] of analyze(source, tree, this.root)) this.scopes.set(node, scope);
  }

  /** Sets the source of the code compiled next; positions in a prelude are encoded as negative numbers. */
  use(source: string, prelude: boolean): void {
    this.source = source;
    this.prelude = prelude;
  }

  place(offset: number): number {
    return this.prelude ? -1 - offset : offset;
  }

  scopeOf(node: Node): Scope {
    const scope = this.scopes.get(node);
    if (scope === undefined) throw new Error(`no scope for ${node.type}`);
    return scope;
  }

  expression(node: Node, scope: Scope): Expression {
    if (isFunctionNode(node)) return this.function(node, scope);
    if (node.type === "ClassDeclaration" || node.type === "ClassExpression") {
      return this.class(node, scope);
    }
    return compileExpression(this, node, scope);
  }

  statement(node: Node, scope: Scope, labels: readonly string[]): Statement {
    return compileStatement(this, node, scope, labels);
  }

  assign(node: Node, scope: Scope, declares: boolean): Assign {
    return compileAssign(this, node, scope, declares);
  }

  sequence(nodes: readonly Node[], scope: Scope): Statement {
    return compileSequence(this, nodes, scope);
  }

  entry(scope: Scope): ((frame: Frame) => void) | null {
    const checked: number[] = [];
    for (const binding of scope.bindings.values()) if (binding.checked) checked.push(binding.slot);
    const made = scope.functions.map((node) => ({
      value: this.function(node, scope),
      slot: scope.find(node.id.name)?.slot ?? 0,
    }));
    if (checked.length === 0 && made.length === 0) return null;
    return function enter(frame) {
      for (const slot of checked) frame.slots[slot] = ABSENT;
      for (const { value, slot } of made) frame.slots[slot] = value(frame);
    };
  }

  private function(node: FunctionNode, outer: Scope): Expression {
    const scope = this.scopeOf(node);
    const code: FunctionCode = {
      name: node.type === "ArrowFunctionExpression" ? "" : (node.id?.name ?? ""),
      arrow: node.type === "ArrowFunctionExpression",
      length: node.params.filter((parameter) => parameter.type === "Identifier").length,
      scope,
      parameters: this.parameters(node, scope),
      selfSlot: selfSlot(node, scope),
      argumentsSlot: scope.usesArguments ? (scope.bindings.get("arguments")?.slot ?? -1) : -1,
      levels: depthOf(node) + callLevels,
      weight: 4,
      at: this.place(node.body.start),
      ...this.body(node, scope),
    };
    if (outer === scope) throw new Error("a function has a scope of its own");
    return (frame) => {
      frame.run.grow(96);
      return makeFunction(code, frame);
    };
  }

  /** Returns the assignments of the parameters; null when all are plain names, which are in their slots already. */
  private parameters(node: FunctionNode, scope: Scope): Assign[] | null {
    if (node.params.every((parameter) => parameter.type === "Identifier")) return null;
    return node.params.map((parameter) => {
      const rest = parameter.type === "RestElement";
      return this.assign(rest ? parameter.argument : parameter, scope, true);
    });
  }

  private body(
    node: FunctionNode,
    scope: Scope,
  ): Pick<FunctionCode, "statement" | "value" | "rest"> {
    const last = node.params.at(-1);
    const rest = last?.type === "RestElement" ? node.params.length - 1 : -1;
    const entry = this.entry(scope);
    const block = node.body.type === "BlockStatement";
    const only = node.body.type === "BlockStatement" ? onlyReturn(node.body) : node.body;
    if (only !== null && entry === null) {
      const value = this.expression(only, scope);
      const steps = block ? 2 : 1;
      const place = this.place(only.start);
      return { statement: null, value: paid(value, place, weightOf(only), steps), rest };
    }
    const { body } = node.body as acorn.BlockStatement;
    const sequence = body.length === 0 ? () => completions.normal : this.sequence(body, scope);
    if (entry === null) return { statement: sequence, value: null, rest };
    const statement: Statement = (frame) => {
      entry(frame);
      return sequence(frame);
    };
    return { statement, value: null, rest };
  }

  private class(node: acorn.Class, scope: Scope): Expression {
    const members = node.body.body.flatMap((member) => {
      if (member.type !== "MethodDefinition" || member.kind === "constructor") return [];
      const key = this.memberKey(member, scope);
      return [{ key, isStatic: member.static, value: this.expression(member.value, scope) }];
    });
    const fields = node.body.body.flatMap((member) => {
      if (member.type !== "PropertyDefinition") return [];
      const value = member.value ? this.expression(member.value, scope) : () => undefined;
      return [{ key: this.memberKey(member, scope), value }];
    });
    const found = node.body.body.find(
      (member) => member.type === "MethodDefinition" && member.kind === "constructor",
    ) as acorn.MethodDefinition | undefined;
    const maker = found ? this.expression(found.value, scope) : null;
    const name = node.id?.name ?? "";
    return (frame) => {
      frame.run.grow(256);
      const make = maker === null ? null : (maker(frame) as ScriptFunction);
      const type = new ScriptFunction(name, make?.length ?? 0, refuseCall, false);
      type.methods = newObject();
      for (const { key, isStatic, value } of members) {
        setProperty(frame.run, isStatic ? type : type.methods, key(frame), value(frame));
      }
      type.construct = (run, _self, args) => {
        const made = newInstance(run, type);
        const inner = new Frame(frame.slots, frame.parent, run, made);
        for (const { key, value } of fields) setProperty(run, made, key(inner), value(inner));
        if (make !== null) make.native(run, made, args);
        return made;
      };
      return type;
    };
  }

  private memberKey(
    member: acorn.MethodDefinition | acorn.PropertyDefinition,
    scope: Scope,
  ): Expression {
    const { key } = member;
    if (member.computed) return this.expression(key as Node, scope);
    const text = key.type === "Identifier" ? key.name : String((key as acorn.Literal).value);
    return () => text;
  }
}

function refuseCall(): never {
  return throwError("TypeError", "Class constructor cannot be invoked without 'new'");
}

function newInstance(run: Run, type: ScriptFunction): ScriptObject {
  run.grow(96);
  const made = new ScriptObject([], false, []);
  traitsOf(made).maker = type;
  return made;
}

/** Returns the slot for the name of a named function expression, or -1. */
function selfSlot(node: FunctionNode, scope: Scope): number {
  if (node.type !== "FunctionExpression" || !node.id) return -1;
  const binding = scope.bindings.get(node.id.name);
  return binding?.kind === "function" ? binding.slot : -1;
}

/** Returns the expression of a body that consists of `return expression`, or null. */
function onlyReturn(block: acorn.BlockStatement): acorn.Expression | null {
  const [only] = block.body;
  if (block.body.length !== 1 || only?.type !== "ReturnStatement") return null;
  return only.argument ?? null;
}

/** Returns an expression that is an entire function body: it charges as a statement. */
function paid(value: Expression, at: number, weight: number, steps: number): Expression {
  return function body(frame) {
    const { run } = frame;
    run.at = at;
    run.stepsLeft -= steps;
    run.workLeft -= weight;
    if (run.stepsLeft < 0 || run.workLeft < 0) run.payStretch();
    return value(frame);
  };
}

/** The code of a function's text: shared by all functions created from it. */
interface FunctionCode {
  readonly name: string;
  readonly arrow: boolean;
  readonly length: number;
  readonly scope: Scope;
  readonly parameters: Assign[] | null;
  /** Position of the rest parameter, or -1. */
  readonly rest: number;
  readonly selfSlot: number;
  readonly argumentsSlot: number;
  readonly levels: number;
  readonly weight: number;
  readonly at: number;
  /** Exactly one of the two is set. */
  readonly statement: Statement | null;
  readonly value: Expression | null;
}

function makeFunction(code: FunctionCode, frame: Frame): ScriptFunction {
  const made = new ScriptFunction(code.name, code.length, call, false);
  function call(run: Run, self: Value, args: Value[]): Value {
    const { levels } = code;
    if (run.depthLeft <= 0 || run.levelsLeft < levels) throw recursionExceeded();
    run.depthLeft -= 1;
    run.levelsLeft -= levels;
    run.bytesLeft -= 64;
    // A block counts as a statement; an expression is charged by `paid`.
    if (code.value === null) {
      run.stepsLeft -= 1;
      if (run.stepsLeft < 0) run.payStretch();
    }
    const inner = enterFunction(code, made, frame, run, self, args);
    let result: Value;
    if (code.value !== null) result = code.value(inner);
    else if ((code.statement as Statement)(inner) === completions.return) {
      result = run.result;
      run.result = undefined;
    }
    run.depthLeft += 1;
    run.levelsLeft += levels;
    return result;
  }
  if (!code.arrow) {
    made.construct = (run, _self, args) => {
      const instance = newInstance(run, made);
      const result = call(run, instance, args);
      return typeof result === "object" && result !== null ? result : instance;
    };
  }
  return made;
}

/** Returns the frame of a call. Plain parameters use the argument list directly. Hot. */
function enterFunction(
  code: FunctionCode,
  callee: ScriptFunction,
  outer: Frame,
  run: Run,
  self: Value,
  args: Value[],
): Frame {
  const { scope, parameters, argumentsSlot } = code;
  run.burn(code.weight + scope.slotCount / 4);
  const passed = argumentsSlot >= 0 ? args.slice() : args;
  let slots: Slot[] = args;
  if (parameters !== null) slots = [];
  else if (slots.length > code.length) slots.length = code.length;
  while (slots.length < scope.slotCount) slots.push(undefined);
  const frame = new Frame(slots, outer, run, code.arrow ? outer.self : self);
  if (argumentsSlot >= 0) slots[argumentsSlot] = new ScriptArray(passed);
  if (code.selfSlot >= 0) slots[code.selfSlot] = callee;
  if (parameters !== null) {
    for (const [i, assign] of parameters.entries()) {
      assign(frame, i === code.rest ? new ScriptArray(passed.slice(i)) : passed[i]);
    }
  }
  return frame;
}
