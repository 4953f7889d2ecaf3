/**
 * The elements of compiled code: frames of variables, and closures over them. Types and small helpers that the
 * compiler's parts share.
 *
 * It knows nothing of syntax.
 */

import type { Node } from "./script-parser.ts";
import type { Binding, Scope } from "./script-scope.ts";
import { ABSENT, type Run, type Slot, throwError, type Value } from "./script-values.ts";

/** The variables of one call, or of one iteration of a loop. ABSENT: not initialized yet. */
export class Frame {
  readonly slots: Slot[];
  readonly parent: Frame | null;
  readonly run: Run;
  /** `this`. */
  readonly self: Value;

  constructor(slots: Slot[], parent: Frame | null, run: Run, self: Value) {
    this.slots = slots;
    this.parent = parent;
    this.run = run;
    this.self = self;
  }
}

export type Expression = (frame: Frame) => Value;
/** Assigns to a variable, property or pattern. */
export type Assign = (frame: Frame, value: Value) => void;

/** How a statement completed. `Run.result` and `Run.label` hold the details. */
export const completions = { normal: 0, break: 1, continue: 2, return: 3 } as const;
export type Completion = (typeof completions)[keyof typeof completions];
export type Statement = (frame: Frame) => Completion;

/** The interface between the parts of the compiler. */
export interface Compiler {
  /**
   * Whether, as in maps of indexes, a property of null, and missing results of `load` or `cmpxchg`, are null but
   * produce no term: as values of an object they are undefined. [measured on RavenDB 7.2.7]
   */
  readonly leavesOutMissing: boolean;
  /** In projections, `this` is `globalThis` where a function is called without an object. [measured on RavenDB 7.2.7] */
  readonly hasGlobalThis: boolean;
  readonly source: string;
  /** Built-ins and constants by name. */
  readonly globals: ReadonlyMap<string, Value>;
  expression(node: Node, scope: Scope): Expression;
  statement(node: Node, scope: Scope, labels: readonly string[]): Statement;
  /** `declares`: initializes a variable, which may be a constant. */
  assign(node: Node, scope: Scope, declares: boolean): Assign;
  scopeOf(node: Node): Scope;
  /**
   * Creates the functions declared in a scope and resets its variables to uninitialized; null when there is nothing to
   * do.
   */
  entry(scope: Scope): ((frame: Frame) => void) | null;
  /** Returns a source position in the form of `Run.at`. */
  place(offset: number): number;
}

/** Charges for one statement. Hot. @throws EngineError script-failed */
export function tick(run: Run, at: number, weight: number): void {
  run.at = at;
  run.stepsLeft -= 1;
  run.workLeft -= weight;
  if (run.stepsLeft < 0 || run.workLeft < 0) run.payStretch();
}

/** Returns the slot of an expression that is just a variable of the current frame and needs no check; else -1. */
export function plainSlot(node: Node, scope: Scope): number {
  if (node.type !== "Identifier") return -1;
  const binding = scope.find(node.name);
  if (binding === null || binding.checked || scope.hopsTo(binding) !== 0) return -1;
  return binding.slot;
}

/** As `plainSlot`, for a variable that is assignable. */
export function variableSlot(node: Node, scope: Scope): number {
  const slot = plainSlot(node, scope);
  if (slot < 0 || node.type !== "Identifier") return -1;
  return scope.find(node.name)?.kind === "const" ? -1 : slot;
}

function frameAt(frame: Frame, hops: number): Frame {
  let at = frame;
  for (let i = 0; i < hops; i += 1) at = at.parent as Frame;
  return at;
}

/** Reads a variable. Hot: separate closures for the nearest frames. */
export function readBinding(binding: Binding, scope: Scope): Expression {
  const { slot, name } = binding;
  const hops = scope.hopsTo(binding);
  if (binding.checked) {
    return function readChecked(frame) {
      const value = frameAt(frame, hops).slots[slot];
      if (value === ABSENT) throwError("ReferenceError", `${name} has not been initialized`);
      return value as Value;
    };
  }
  if (hops === 0) {
    return function readLocal(frame) {
      return frame.slots[slot] as Value;
    };
  }
  if (hops === 1) {
    return function readOuter(frame) {
      return (frame.parent as Frame).slots[slot] as Value;
    };
  }
  return function readFar(frame) {
    return frameAt(frame, hops).slots[slot] as Value;
  };
}

/** Writes a variable; a constant only when `declares`. */
export function writeBinding(binding: Binding, scope: Scope, declares: boolean): Assign {
  const { slot, name } = binding;
  const hops = scope.hopsTo(binding);
  if (!declares && binding.kind === "const") {
    return () => throwError("TypeError", "Assignment to constant variable.");
  }
  if (!declares && binding.checked) {
    return function writeChecked(frame, value) {
      const { slots } = frameAt(frame, hops);
      if (slots[slot] === ABSENT) {
        throwError("ReferenceError", `${name} has not been initialized`);
      }
      slots[slot] = value;
    };
  }
  if (hops === 0) {
    return function writeLocal(frame, value) {
      frame.slots[slot] = value;
    };
  }
  return function writeFar(frame, value) {
    frameAt(frame, hops).slots[slot] = value;
  };
}
