/**
 * Compiles statements to closures that return their completion. Every statement first charges a step and its weight, so
 * no code runs without fuel; a block of one statement is free, as in the reference.
 *
 * Independent of expressions, and of the behavior of built-ins.
 *
 * Invariants:
 * - `catch` and `finally` only see values thrown by scripts: exhausted fuel, memory or depth, and errors of the host,
 *   bypass them;
 * - a loop charges for every iteration, whatever its body is.
 */

import type * as acorn from "acorn";
import { named } from "./compile-expressions.ts";
import {
  type Assign,
  type Compiler,
  type Completion,
  completions,
  type Expression,
  Frame,
  plainSlot,
  type Statement,
  tick,
} from "./script-code.ts";
import { strictEquals } from "./script-operators.ts";
import { type Node, weightOf } from "./script-parser.ts";
import { elementsOf, namesIn } from "./script-properties.ts";
import type { Scope } from "./script-scope.ts";
import { type Run, ScriptThrow, type Value } from "./script-values.ts";

const { normal } = completions;

export function compileStatement(
  compiler: Compiler,
  node: Node,
  scope: Scope,
  labels: readonly string[],
): Statement {
  const at = compiler.place(node.start);
  switch (node.type) {
    case "ExpressionStatement": {
      const expression = compileEffect(compiler, node.expression, scope);
      const weight = weightOf(node);
      return function expressionStatement(frame) {
        tick(frame.run, at, weight);
        expression(frame);
        return normal;
      };
    }
    case "VariableDeclaration":
      return compileDeclaration(compiler, node, scope);
    case "ReturnStatement":
      return compileReturn(compiler, node, scope);
    case "IfStatement":
      return compileIf(compiler, node, scope);
    case "BlockStatement":
      return compileBlock(compiler, node, scope);
    case "ForStatement":
      return compileFor(compiler, node, labels);
    case "ForOfStatement":
    case "ForInStatement":
      return compileForEach(compiler, node, labels);
    case "WhileStatement":
    case "DoWhileStatement":
      return compileWhile(compiler, node, scope, labels);
    case "BreakStatement":
    case "ContinueStatement": {
      const label = node.label?.name ?? null;
      const completion = node.type === "BreakStatement" ? completions.break : completions.continue;
      return (frame) => {
        tick(frame.run, at, 1);
        frame.run.label = label;
        return completion;
      };
    }
    case "ThrowStatement": {
      const value = compiler.expression(node.argument, scope);
      const weight = weightOf(node);
      const place = compiler.place(node.argument.start);
      return (frame) => {
        tick(frame.run, at, weight);
        const thrown = value(frame);
        frame.run.at = place;
        throw new ScriptThrow(thrown);
      };
    }
    case "TryStatement":
      return compileTry(compiler, node, scope);
    case "SwitchStatement":
      return compileSwitch(compiler, node, scope, labels);
    case "LabeledStatement":
      return compileLabeled(compiler, node, scope, labels);
    case "FunctionDeclaration":
    case "EmptyStatement":
    case "DebuggerStatement":
      return (frame) => {
        tick(frame.run, at, 1);
        return normal;
      };
    case "ClassDeclaration": {
      const made = compiler.expression(node, scope);
      const assign = compiler.assign(node.id as Node, scope, true);
      return (frame) => {
        tick(frame.run, at, 8);
        assign(frame, made(frame));
        return normal;
      };
    }
    default:
      throw new Error(`no code for ${node.type}`);
  }
}

/** Returns an expression whose value is unused: `x++` may then be compiled as `++x`. */
function compileEffect(compiler: Compiler, node: Node, scope: Scope): Expression {
  if (node.type !== "UpdateExpression") return compiler.expression(node, scope);
  return compiler.expression({ ...node, prefix: true }, scope);
}

function compileDeclaration(
  compiler: Compiler,
  node: acorn.VariableDeclaration,
  scope: Scope,
): Statement {
  const at = compiler.place(node.start);
  const weight = weightOf(node);
  const parts: { assign: Assign; value: Expression }[] = [];
  for (const { id, init } of node.declarations) {
    // `var x;` leaves the variable unchanged; `let x;` in a loop resets it.
    if (!init && node.kind === "var") continue;
    const value = init ? compiler.expression(init, scope) : () => undefined;
    const name = id.type === "Identifier" ? id.name : "";
    parts.push({
      assign: compiler.assign(id, scope, true),
      value: init ? named(value, name, init) : value,
    });
  }
  const [only] = parts;
  if (parts.length === 1 && only !== undefined) {
    const { assign, value } = only;
    return function declaration(frame) {
      tick(frame.run, at, weight);
      assign(frame, value(frame));
      return normal;
    };
  }
  return function declarations(frame) {
    tick(frame.run, at, weight);
    for (const part of parts) part.assign(frame, part.value(frame));
    return normal;
  };
}

function compileReturn(compiler: Compiler, node: acorn.ReturnStatement, scope: Scope): Statement {
  const at = compiler.place(node.start);
  const weight = weightOf(node);
  const value = node.argument ? compiler.expression(node.argument, scope) : () => undefined;
  return function returnStatement(frame) {
    tick(frame.run, at, weight);
    frame.run.result = value(frame);
    return completions.return;
  };
}

function compileIf(compiler: Compiler, node: acorn.IfStatement, scope: Scope): Statement {
  const at = compiler.place(node.start);
  const weight = weightOf(node.test) + 1;
  const test = compiler.expression(node.test, scope);
  const yes = compiler.statement(node.consequent, scope, []);
  const no = node.alternate ? compiler.statement(node.alternate, scope, []) : () => normal;
  return function ifStatement(frame) {
    tick(frame.run, at, weight);
    return test(frame) ? yes(frame) : no(frame);
  };
}

/** Runs statements in order, until one does not complete normally. */
export function compileSequence(
  compiler: Compiler,
  nodes: readonly Node[],
  scope: Scope,
): Statement {
  const parts = nodes.map((node) => compiler.statement(node, scope, []));
  const [first, second] = parts;
  if (first !== undefined && parts.length === 1) return first;
  if (first !== undefined && second !== undefined && parts.length === 2) {
    return function pair(frame) {
      const completion = first(frame);
      return completion === normal ? second(frame) : completion;
    };
  }
  return function sequence(frame) {
    for (let i = 0; i < parts.length; i += 1) {
      const completion = (parts[i] as Statement)(frame);
      if (completion !== normal) return completion;
    }
    return normal;
  };
}

function compileBlock(compiler: Compiler, node: acorn.BlockStatement, outer: Scope): Statement {
  const scope = compiler.scopeOf(node);
  const at = compiler.place(node.start);
  const body = compileSequence(compiler, node.body, scope);
  const inside = withEntry(compiler, scope, body);
  if (node.body.length === 1 && scope.bindings.size === 0 && outer !== scope) return inside;
  return function block(frame) {
    tick(frame.run, at, 1);
    return inside(frame);
  };
}

/** Returns the code of a scope: in a new frame if needed, with its functions created first. */
function withEntry(compiler: Compiler, scope: Scope, body: Statement): Statement {
  const entry = compiler.entry(scope);
  if (scope.ownFrame) {
    return function framed(frame) {
      const inner = newFrame(frame, scope);
      if (entry !== null) entry(inner);
      return body(inner);
    };
  }
  if (entry === null) return body;
  return function entered(frame) {
    entry(frame);
    return body(frame);
  };
}

function newFrame(frame: Frame, scope: Scope): Frame {
  frame.run.grow(64 + scope.slotCount * 8);
  return new Frame(new Array(scope.slotCount).fill(undefined), frame, frame.run, frame.self);
}

/** Returns whether a `break` or `continue` without label, or with one of the loop's, targets this loop. */
function isMine(run: Run, labels: readonly string[]): boolean {
  return run.label === null || labels.includes(run.label);
}

/** Returns the continuation of a loop after its body: null to go on, or the completion to end with. */
function afterBody(run: Run, completion: Completion, labels: readonly string[]): Completion | null {
  if (completion === normal) return null;
  if (completion === completions.return || !isMine(run, labels)) return completion;
  run.label = null;
  return completion === completions.break ? normal : null;
}

function compileFor(
  compiler: Compiler,
  node: acorn.ForStatement,
  labels: readonly string[],
): Statement {
  const scope = compiler.scopeOf(node);
  const at = compiler.place(node.start);
  const init = compileInit(compiler, node.init ?? null, scope);
  const test = node.test ? compiler.expression(node.test, scope) : () => true;
  const update = node.update ? compileEffect(compiler, node.update, scope) : () => undefined;
  const weight = 1 + weightOf(node.test ?? node.body) + weightOf(node.update ?? node.body);
  const body = compiler.statement(node.body, scope, []);
  const fresh = scope.ownFrame;
  const entry = compiler.entry(scope);
  return function forLoop(outside) {
    const { run } = outside;
    tick(run, at, weight);
    let frame = fresh ? newFrame(outside, scope) : outside;
    if (entry !== null) entry(frame);
    init(frame);
    while (test(frame)) {
      run.workLeft -= weight;
      const end = afterBody(run, body(frame), labels);
      if (end !== null) return end;
      if (fresh) {
        // Each iteration has its own variables, which closures created in it capture.
        run.grow(64 + scope.slotCount * 8);
        frame = new Frame(frame.slots.slice(), outside, run, frame.self);
      }
      update(frame);
      if (run.workLeft < 0) run.burn(1);
    }
    return normal;
  };
}

function compileInit(compiler: Compiler, init: Node | null, scope: Scope): (frame: Frame) => void {
  if (init === null) return () => undefined;
  if (init.type === "VariableDeclaration") return compiler.statement(init, scope, []);
  return compiler.expression(init, scope);
}

function compileForEach(
  compiler: Compiler,
  node: acorn.ForOfStatement | acorn.ForInStatement,
  labels: readonly string[],
): Statement {
  const scope = compiler.scopeOf(node);
  const at = compiler.place(node.start);
  const { left } = node;
  const declares = left.type === "VariableDeclaration";
  const target: Node = declares ? (left.declarations[0] as acorn.VariableDeclarator).id : left;
  const assign = compiler.assign(target, scope, declares);
  const source = compiler.expression(node.right, scope);
  const weight = 2 + weightOf(target);
  const startWeight = 1 + weightOf(node.right);
  const body = compiler.statement(node.body, scope, []);
  const fresh = scope.ownFrame;
  const entry = compiler.entry(scope);
  const isOf = node.type === "ForOfStatement";
  const list: (run: Run, value: Value) => Value[] = isOf ? elementsOf : namesIn;
  const slot = isOf && !fresh && entry === null ? plainSlot(target, scope) : -1;
  if (slot >= 0) return compileForOf({ at, startWeight, weight, slot, source, body, labels });
  return function forEach(outside) {
    const { run } = outside;
    tick(run, at, startWeight);
    const elements = list(run, source(fresh ? newFrame(outside, scope) : outside));
    for (let i = 0; i < elements.length; i += 1) {
      run.burn(weight);
      const frame = fresh ? newFrame(outside, scope) : outside;
      if (entry !== null) entry(frame);
      assign(frame, elements[i]);
      const end = afterBody(run, body(frame), labels);
      if (end !== null) return end;
    }
    return normal;
  };
}

/** A loop that assigns elements to a variable of the current frame, one after another. */
interface ForOf {
  readonly at: number;
  readonly startWeight: number;
  readonly weight: number;
  readonly slot: number;
  readonly source: Expression;
  readonly body: Statement;
  readonly labels: readonly string[];
}

function compileForOf(loop: ForOf): Statement {
  const { at, startWeight, weight, slot, source, body, labels } = loop;
  return function forOf(frame) {
    const { run } = frame;
    tick(run, at, startWeight);
    const elements = elementsOf(run, source(frame));
    const { slots } = frame;
    for (let i = 0; i < elements.length; i += 1) {
      run.burn(weight);
      slots[slot] = elements[i];
      const completion = body(frame);
      if (completion === normal) continue;
      const end = afterBody(run, completion, labels);
      if (end !== null) return end;
    }
    return normal;
  };
}

function compileWhile(
  compiler: Compiler,
  node: acorn.WhileStatement | acorn.DoWhileStatement,
  scope: Scope,
  labels: readonly string[],
): Statement {
  const at = compiler.place(node.start);
  const test = compiler.expression(node.test, scope);
  const body = compiler.statement(node.body, scope, []);
  const weight = 1 + weightOf(node.test);
  const first = node.type === "DoWhileStatement";
  return function whileLoop(frame) {
    const { run } = frame;
    tick(run, at, weight);
    let unconditional = first;
    while (unconditional || test(frame)) {
      unconditional = false;
      run.burn(weight);
      const end = afterBody(run, body(frame), labels);
      if (end !== null) return end;
    }
    return normal;
  };
}

function compileLabeled(
  compiler: Compiler,
  node: acorn.LabeledStatement,
  scope: Scope,
  labels: readonly string[],
): Statement {
  const mine = [...labels, node.label.name];
  const body = compiler.statement(node.body, scope, mine);
  const { name } = node.label;
  return function labeled(frame) {
    const completion = body(frame);
    if (completion !== completions.break || frame.run.label !== name) return completion;
    frame.run.label = null;
    return normal;
  };
}

function compileSwitch(
  compiler: Compiler,
  node: acorn.SwitchStatement,
  outer: Scope,
  labels: readonly string[],
): Statement {
  const scope = compiler.scopeOf(node);
  const at = compiler.place(node.start);
  const value = compiler.expression(node.discriminant, outer);
  const tests = node.cases.map(({ test }) => (test ? compiler.expression(test, scope) : null));
  const bodies = node.cases.map(({ consequent }) => compileSequence(compiler, consequent, scope));
  const weight =
    weightOf(node.discriminant) +
    node.cases.reduce((sum, { test }) => sum + (test ? weightOf(test) : 0), 1);
  const fallback = tests.indexOf(null);
  const choose = (frame: Frame, found: Value): number => {
    for (const [i, test] of tests.entries()) {
      if (test !== null && strictEquals(frame.run, found, test(frame))) return i;
    }
    return fallback;
  };
  const entry = compiler.entry(scope);
  return function switchStatement(outside) {
    const { run } = outside;
    tick(run, at, weight);
    const found = value(outside);
    const frame = scope.ownFrame ? newFrame(outside, scope) : outside;
    if (entry !== null) entry(frame);
    const start = choose(frame, found);
    for (let i = start; i >= 0 && i < bodies.length; i += 1) {
      const completion = (bodies[i] as Statement)(frame);
      if (completion === normal) continue;
      if (completion !== completions.break || !isMine(run, labels)) return completion;
      run.label = null;
      return normal;
    }
    return normal;
  };
}

function compileTry(compiler: Compiler, node: acorn.TryStatement, scope: Scope): Statement {
  const at = compiler.place(node.start);
  const block = compiler.statement(node.block, scope, []);
  const handler = node.handler ? compileCatch(compiler, node.handler) : null;
  const finalizer = node.finalizer ? compiler.statement(node.finalizer, scope, []) : null;
  return function tryStatement(frame) {
    const { run } = frame;
    tick(run, at, 1);
    const { depthLeft, levelsLeft } = run;
    let completion: Completion = normal;
    let thrown: ScriptThrow | null = null;
    try {
      completion = block(frame);
    } catch (error) {
      thrown = caught(run, error, depthLeft, levelsLeft);
    }
    if (thrown !== null && handler !== null) {
      const { value } = thrown;
      thrown = null;
      try {
        completion = handler(frame, value);
      } catch (error) {
        thrown = caught(run, error, depthLeft, levelsLeft);
      }
    }
    if (finalizer !== null) {
      const { result, label } = run;
      const last = finalizer(frame);
      if (last !== normal) return last;
      run.result = result;
      run.label = label;
    }
    if (thrown !== null) throw thrown;
    return completion;
  };
}

/** Returns a value thrown by a script, with the depth counters restored; any other error is rethrown. */
function caught(run: Run, error: unknown, depthLeft: number, levelsLeft: number): ScriptThrow {
  if (!(error instanceof ScriptThrow)) throw error;
  run.depthLeft = depthLeft;
  run.levelsLeft = levelsLeft;
  run.burn(20);
  return error;
}

function compileCatch(
  compiler: Compiler,
  node: acorn.CatchClause,
): (frame: Frame, value: Value) => Completion {
  const scope = compiler.scopeOf(node);
  const assign = node.param ? compiler.assign(node.param, scope, true) : null;
  const body = compiler.statement(node.body, scope, []);
  return function handle(outside, value) {
    const frame = scope.ownFrame ? newFrame(outside, scope) : outside;
    if (assign !== null) assign(frame, value);
    return body(frame);
  };
}
