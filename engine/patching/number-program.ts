/**
 * Arithmetic over the numbers of a record, as steps over registers: without calls, and without boxing numbers. Knows
 * nothing of bytes: the caller loads the numbers of `inputs` into the first registers.
 *
 *   registers (f64): number of each input | constants | result of each step
 *   steps (i32):     operator | left | right | operator | ...
 *
 * Hot: bench/patch.bench.ts.
 *
 * Invariants:
 * - When every input is a number, the result equals the script's (test/engine/patching/byte-patch.test.ts).
 */
import type { SimpleExpression, SimpleOperator } from "../scripting/script-reading.ts";

const operators: Readonly<Record<SimpleOperator, number>> = {
  "+": 0,
  "-": 1,
  "*": 2,
  "/": 3,
  "%": 4,
};
const wordsPerStep = 3;

/** Assignments in text order to properties given by number, with name resolution. */
interface NumberAssignments {
  readonly values: readonly SimpleExpression[];
  /** The target of each value. */
  readonly targets: readonly number[];
  /** The field of each target. */
  readonly targetFields: readonly number[];
  readonly parameters: Readonly<Record<string, unknown>>;
  /** Returns the field of a top-level property; undefined if it does not exist. */
  fieldOf(name: string): number | undefined;
}

export class NumberProgram {
  /** Fields whose numbers must be in the first registers before `run`. */
  readonly inputs: readonly number[];
  readonly registers: Float64Array;
  /** By target: the register of its value after `run`, and the register of its number before it, or -1. */
  readonly results: readonly number[];
  readonly before: readonly number[];
  readonly #steps: Int32Array;
  /** The register of the first step. */
  readonly #first: number;
  /** Registers of all assigned values. */
  readonly #assigned: readonly number[];

  /** Use `compileNumbers`. */
  constructor(draft: Draft, assigned: readonly number[], targets: readonly number[]) {
    const { inputs, constants, steps } = draft;
    this.inputs = inputs;
    this.#first = inputs.length + constants.length;
    this.#steps = Int32Array.from(steps);
    this.registers = new Float64Array(this.#first + steps.length / wordsPerStep);
    this.registers.set(constants, inputs.length);
    this.#assigned = assigned;
    this.results = draft.targetFields.map(
      (_, target) => assigned[targets.lastIndexOf(target)] as number, // each target is assigned
    );
    this.before = draft.targetFields.map((field) => inputs.indexOf(field));
  }

  /** Computes all registers. @returns false when an assigned value is not finite. Hot. */
  run(): boolean {
    const { registers } = this;
    const steps = this.#steps;
    let result = this.#first;
    for (let at = 0; at < steps.length; at += wordsPerStep) {
      const left = registers[steps[at + 1] as number] as number;
      const right = registers[steps[at + 2] as number] as number;
      registers[result++] = computed(steps[at] as number, left, right);
    }
    const assigned = this.#assigned;
    for (let k = 0; k < assigned.length; k++) {
      const value = registers[assigned[k] as number] as number;
      if (value - value !== 0) return false;
    }
    return true;
  }
}

function computed(operator: number, left: number, right: number): number {
  switch (operator) {
    case 0:
      return left + right;
    case 1:
      return left - right;
    case 2:
      return left * right;
    case 3:
      return left / right;
    default:
      return left % right;
  }
}

/** A program under construction. */
interface Draft {
  readonly inputs: number[];
  readonly constants: number[];
  readonly steps: number[];
  readonly targetFields: readonly number[];
}

/** Returns the program for assignments that are pure arithmetic; null if one uses values other than numbers. */
export function compileNumbers(assignments: NumberAssignments): NumberProgram | null {
  const { values, targets, targetFields } = assignments;
  const draft: Draft = { inputs: [], constants: [], steps: [], targetFields };
  if (!values.every((value) => gather(value, assignments, draft))) return null;
  const maker = new StepMaker(assignments, draft);
  const assigned = values.map((value, k) => {
    const register = maker.add(value);
    maker.current.set(targetFields[targets[k] as number] as number, register);
    return register;
  });
  return new NumberProgram(draft, assigned, targets);
}

/** Collects inputs and constants. @returns false unless it is arithmetic over numbers of top-level properties. */
function gather(value: SimpleExpression, assignments: NumberAssignments, draft: Draft): boolean {
  switch (value.kind) {
    case "literal":
    case "parameter": {
      const constant = constantOf(value, assignments);
      if (typeof constant !== "number") return false;
      if (!draft.constants.some((known) => Object.is(known, constant)))
        draft.constants.push(constant);
      return true;
    }
    case "path": {
      const field = assignments.fieldOf(value.path[0] ?? "");
      if (field === undefined || value.path.length > 1) return false;
      if (!draft.inputs.includes(field)) draft.inputs.push(field);
      return true;
    }
    case "operation":
      return gather(value.left, assignments, draft) && gather(value.right, assignments, draft);
  }
}

function constantOf(
  value: Extract<SimpleExpression, { kind: "literal" | "parameter" }>,
  { parameters }: NumberAssignments,
): unknown {
  return value.kind === "literal" ? value.value : parameters[value.path[0] ?? ""];
}

class StepMaker {
  /** The registers of the fields assigned so far. */
  readonly current = new Map<number, number>();
  readonly #assignments: NumberAssignments;
  readonly #draft: Draft;

  constructor(assignments: NumberAssignments, draft: Draft) {
    this.#assignments = assignments;
    this.#draft = draft;
  }

  /** @returns the register of the value. */
  add(value: SimpleExpression): number {
    const { inputs, constants, steps } = this.#draft;
    switch (value.kind) {
      case "literal":
      case "parameter": {
        const constant = constantOf(value, this.#assignments);
        return inputs.length + constants.findIndex((known) => Object.is(known, constant));
      }
      case "path": {
        const field = this.#assignments.fieldOf(value.path[0] ?? "") as number; // gathered
        return this.current.get(field) ?? inputs.indexOf(field);
      }
      case "operation": {
        const left = this.add(value.left);
        const right = this.add(value.right);
        steps.push(operators[value.operator], left, right);
        return inputs.length + constants.length + steps.length / wordsPerStep - 1;
      }
    }
  }
}
