/**
 * Patches that consist only of assignments to top-level properties, executed on the bytes of records: values are read
 * in place, new values are spliced in, and no document is parsed or printed.
 *
 * The result equals that of running the script. If that is not certain, the outcome is "unsure" and nothing is changed:
 * values other than numbers, strings, booleans and null, a missing property, a sum of text and number, a result that is
 * not finite.
 *
 * Hot: bench/patch.bench.ts.
 *
 * Invariants:
 * - A document patched here has the same text as after the script (test/engine/patching/byte-patch.test.ts).
 */

import { quoteString } from "../base/json/escape.ts";
import { decodeNumber, decodeString, findMember, ValueSpan } from "../base/json/field-access.ts";
import { sealRecord } from "../base/record.ts";
import type { CompiledScript } from "../scripting/script.ts";
import {
  type SimpleExpression,
  type SimpleOperator,
  simpleUpdates,
} from "../scripting/script-reading.ts";
import { stringText } from "../scripting/values/value-text.ts";
import { idOf } from "../state/documents/document-record.ts";
import type { Shape } from "../state/documents/shapes.ts";
import type { Transaction } from "../state/store/transaction.ts";
import { positionSegmentFactor } from "../storage/log/log.ts";
import { newPlace } from "../storage/segments/blocks.ts";
import { keptFlags } from "../writes/documents.ts";
import { compileNumbers, type NumberProgram } from "./number-program.ts";
import { RecordPatch } from "./record-patch.ts";
import { RecordRun } from "./record-run.ts";
import { ValueTexts } from "./value-texts.ts";

/** A value of an expression; undefined: the result of the script is not certain. */
type Scalar = null | boolean | number | string;
type Evaluate = (row: PatchedRow) => Scalar | undefined;

export type BytePatchOutcome = "patched" | "unchanged" | "unsure";

/** Documents of a batch to patch: from `at`, below `end`. */
export interface PatchRange {
  readonly batch: Uint32Array;
  at: number;
  end: number;
  /** Documents with a greater etag are skipped. */
  readonly etagMax: number;
  /** Documents that were visited and not skipped. */
  count: number;
}

/** The document being patched, and the values assigned so far, by target number. */
interface PatchedRow {
  readonly record: RecordPatch;
  readonly assigned: (Scalar | undefined)[];
}

/** The patch for documents of one shape. */
interface ShapePlan {
  readonly shape: Shape;
  /** The assignments in the order of the text: the target of each, and its value. */
  readonly targets: readonly number[];
  readonly values: readonly Evaluate[];
  /** Targets in field order: the field of each, and its target number. */
  readonly fields: readonly number[];
  readonly fieldTargets: readonly number[];
  /** An equivalent program for rows whose inputs are all numbers; null: there are other expressions. */
  readonly numbers: NumberProgram | null;
}

/**
 * Compiles a patch to operations on bytes; null when the script is more than simple assignments.
 * @param parametersText JSON text of the parameters object.
 */
export function compileBytePatch(script: CompiledScript, parametersText: string): BytePatch | null {
  const updates = simpleUpdates(script);
  if (updates === null || updates.length === 0) return null;
  if (updates.some(({ path }) => path.length !== 1)) return null;
  const parameters = JSON.parse(parametersText) as Record<string, unknown>;
  const assignments = updates.map(({ path, value }) => ({ name: path[0] as string, value }));
  if (!assignments.every(({ value }) => isKnown(value, parameters))) return null;
  return new BytePatch(assignments, parameters);
}

/** Returns whether all parameters in it are scalars. */
function isKnown(expression: SimpleExpression, parameters: Record<string, unknown>): boolean {
  switch (expression.kind) {
    case "operation":
      return isKnown(expression.left, parameters) && isKnown(expression.right, parameters);
    case "parameter":
      return isScalar(parameters[expression.path[0] ?? ""]) && expression.path.length === 1;
    default:
      return true;
  }
}

function isScalar(value: unknown): value is Scalar {
  return value === null || ["boolean", "number", "string"].includes(typeof value);
}

interface Assignment {
  readonly name: string;
  readonly value: SimpleExpression;
}

export class BytePatch {
  readonly #assignments: readonly Assignment[];
  readonly #parameters: Readonly<Record<string, unknown>>;
  /** Distinct names of the assigned properties: nothing else of a document is changed. */
  readonly names: readonly string[];
  /** The greatest etag that the documents changed by `run` had before; the caller resets it to 0. */
  previousMax = 0;
  readonly #plans = new Map<number, ShapePlan | null>();
  /** The plan used last: most documents of a collection have the same shape. */
  #plan: ShapePlan | null = null;
  readonly #record = new RecordPatch();
  readonly #run = new RecordRun();
  readonly #row: PatchedRow;
  readonly #texts = new ValueTexts();
  /** The segment last read; valid until the next tick of the event loop. */
  #segment: Buffer | null = null;
  #segmentStart = Number.NaN;
  readonly #place = newPlace();
  constructor(assignments: readonly Assignment[], parameters: Readonly<Record<string, unknown>>) {
    this.#assignments = assignments;
    this.#parameters = parameters;
    this.names = [...new Set(assignments.map(({ name }) => name))];
    const assigned: (Scalar | undefined)[] = this.names.map(() => undefined);
    this.#row = { record: this.#record, assigned };
  }

  /**
   * Patches documents of a range that this transaction has not written yet, in order; stops at its end or before the
   * first one for which the script must run. Hot.
   */
  run(transaction: Transaction, range: PatchRange): void {
    const { documents } = transaction.state;
    const { batch, etagMax } = range;
    this.#segment = null;
    this.#run.forget();
    for (; range.at < range.end; range.at++) {
      const document = batch[range.at] as number; // at < end
      const etag = documents.newestEtag(document);
      if (etag > etagMax) continue;
      if (etag > 0 && this.#apply(transaction, document) === "unsure") break;
      range.count++;
      if (etag > this.previousMax) this.previousMax = etag;
    }
    this.#run.flush(transaction, this.#texts.bytes);
  }

  /**
   * Patches an existing document that this transaction has not written yet.
   * @returns "unsure" when nothing was done and the script must run.
   */
  apply(transaction: Transaction, document: number): BytePatchOutcome {
    this.#segment = null;
    this.#run.forget();
    const outcome = this.#apply(transaction, document);
    this.#run.flush(transaction, this.#texts.bytes);
    return outcome;
  }

  #apply(transaction: Transaction, document: number): BytePatchOutcome {
    if (!this.#open(transaction, document)) return "unsure";
    const record = this.#record;
    const plan = this.#planOf(transaction);
    if (plan === null) return "unsure";
    const { numbers } = plan;
    if (numbers !== null && this.#evaluateNumbers(plan, numbers)) {
      if (!this.#spellNumbers(plan, numbers)) return "unsure";
    } else {
      if (!evaluateAll(plan, this.#row)) return "unsure";
      if (!this.#spell(plan)) return "unsure";
    }
    if (record.patches.count === 0) return "unchanged";
    this.#write(transaction, document, plan.shape);
    return "patched";
  }

  /** @returns false when its bytes are not in memory */
  #open(transaction: Transaction, document: number): boolean {
    const { documents, committedEtag } = transaction.state;
    const position = documents.newestPosition(document);
    const start = position - this.#segmentStart;
    // The bytes of a staged record may not be copied yet (storage/segments/deferred-copies.ts).
    const isThere = this.#segment !== null && documents.newestEtag(document) <= committedEtag;
    if (this.#segment !== null && isThere && start >= 0 && start < positionSegmentFactor) {
      this.#record.open(this.#segment, start | 0);
      return true;
    }
    const place = this.#place;
    if (!transaction.place(position, documents.newestLength(document), place)) return false;
    this.#record.open(place.bytes, place.start);
    // In the image of a whole segment the next records are found by their positions alone.
    this.#segmentStart = position - place.start;
    const isImage = place.block?.isImage ?? place.start > 0;
    this.#segment = isImage ? place.bytes : null;
    return true;
  }

  /** Returns the plan for the opened record; null when the script must run. */
  #planOf(transaction: Transaction): ShapePlan | null {
    const { shapeId, flags, vectorLength, collectionId } = this.#record;
    const { keyspaces, shapes } = transaction.state;
    if (shapeId === 0 || (flags & ~keptFlags) !== 0) return null;
    // Change vectors to merge and revisions to store are left to the general write path.
    if (vectorLength > 0 || keyspaces.clusterCount > 0) return null;
    if (keyspaces.revisionRules.of(collectionId) !== null) return null;
    if (this.#plan !== null && this.#plan.shape.id === shapeId) return this.#plan;
    let plan = this.#plans.get(shapeId);
    if (plan === undefined) {
      plan = this.#planFor(shapes.get(shapeId));
      this.#plans.set(shapeId, plan);
    }
    this.#plan = plan;
    return plan;
  }

  /** @returns false when an input is not a number, or a result is not finite. Hot. */
  #evaluateNumbers(plan: ShapePlan, program: NumberProgram): boolean {
    const record = this.#record;
    const { bytes } = record;
    const { inputs, registers } = program;
    for (let k = 0; k < inputs.length; k++) {
      const field = inputs[k] as number;
      const from = record.valueStart(field);
      if (kindOf(bytes, from) !== kinds.number) return false;
      registers[k] = decodeNumber(bytes, from, record.valueEnd(field, plan.shape));
    }
    return program.run();
  }

  /** `#spell` for the results of `#evaluateNumbers`. Hot. */
  #spellNumbers(plan: ShapePlan, program: NumberProgram): boolean {
    const record = this.#record;
    const { patches, bytes } = record;
    patches.isAscii = true;
    if (this.#run.count === 0) this.#texts.length = 0;
    const { fields, fieldTargets, shape } = plan;
    const { registers, results, before } = program;
    for (let i = 0; i < fields.length; i++) {
      const field = fields[i] as number;
      const target = fieldTargets[i] as number;
      const value = registers[results[target] as number] as number;
      const from = record.valueStart(field);
      const to = record.valueEnd(field, shape);
      const kind = kindOf(bytes, from);
      if (kind === kinds.other) return false;
      if (kind === kinds.number) {
        const known = before[target] as number;
        const old = known < 0 ? decodeNumber(bytes, from, to) : (registers[known] as number);
        if (isSameNumber(old, value)) continue;
      }
      const textFrom = this.#texts.length;
      this.#texts.addNumber(value, kind === kinds.number && isSpelledAsDouble(bytes, from, to));
      record.replace(field, from, to, textFrom, this.#texts.length);
    }
    patches.source = this.#texts.bytes;
    return true;
  }

  /** Adds the texts of changed values to the patches. @returns false when one is not certain. Hot. */
  #spell(plan: ShapePlan): boolean {
    const record = this.#record;
    const { patches, bytes } = record;
    patches.isAscii = true;
    if (this.#run.count === 0) this.#texts.length = 0;
    const { fields, fieldTargets, shape } = plan;
    for (let i = 0; i < fields.length; i++) {
      const field = fields[i] as number;
      const value = this.#row.assigned[fieldTargets[i] as number] as Scalar;
      const from = record.valueStart(field);
      const to = record.valueEnd(field, shape);
      const kind = kindOf(bytes, from);
      if (kind === kinds.other) return false;
      if (isSame(bytes, from, to, kind, value)) continue;
      const textFrom = this.#texts.length;
      const isDouble = kind === kinds.number && isSpelledAsDouble(bytes, from, to);
      if (!this.#texts.add(value, isDouble)) patches.isAscii = false;
      record.replace(field, from, to, textFrom, this.#texts.length);
    }
    patches.source = this.#texts.bytes;
    return true;
  }

  #write(transaction: Transaction, document: number, shape: Shape): void {
    const { state, scratch } = transaction;
    const record = this.#record;
    if (transaction.isUnwatched && record.isOverwrite) {
      this.#addToRun(transaction, document);
      return;
    }
    this.#run.flush(transaction, this.#texts.bytes);
    const { collectionId, flags } = record;
    const length = record.patchedLength(shape);
    const at = scratch.reserve(length);
    const etag = transaction.nextEtag();
    record.write(scratch.bytes, at, length, shape, etag, state.nextModified());
    sealRecord(scratch.bytes, at);
    transaction.stageDocument(document, etag, length, collectionId, flags);
    if (transaction.isUnwatched) return;
    transaction.changed({
      kind: "document",
      type: "Put",
      id: idOf(record.bytes, record.start),
      collectionId,
      etag,
      changeVector: state.changeVectorAt(etag),
    });
  }

  /** Adds the record to the run that is written together. */
  #addToRun(transaction: Transaction, document: number): void {
    const { bytes, start, length, patches } = this.#record;
    const run = this.#run;
    if (!run.takes(bytes)) {
      // The texts of this one stay in place until the next.
      run.flush(transaction, this.#texts.bytes);
    }
    run.add(document, bytes, start, length);
    for (let k = 0; k < patches.count; k++) {
      run.replace(
        this.#record.replacedAt(k) - start,
        patches.froms[k] as number,
        patches.tos[k] as number,
      );
    }
  }

  /** Null: documents of this shape need the script. */
  #planFor(shape: Shape): ShapePlan | null {
    const indexes: number[] = [];
    for (const name of this.names) {
      const index = shape.indexByName.get(name);
      // The script would rewrite a key that is spelled with escapes.
      if (index === undefined || shape.nameLengths[index] !== quotedBytes(name)) return null;
      indexes.push(index);
    }
    const values: Evaluate[] = [];
    for (const { value } of this.#assignments) {
      const evaluate = this.#compile(value, shape);
      if (evaluate === null) return null;
      values.push(evaluate);
    }
    const order = indexes.map((_, target) => target);
    order.sort((left, right) => (indexes[left] as number) - (indexes[right] as number));
    const targets = this.#assignments.map(({ name }) => this.names.indexOf(name));
    const numbers = compileNumbers({
      values: this.#assignments.map(({ value }) => value),
      targets,
      targetFields: indexes,
      parameters: this.#parameters,
      fieldOf: (name) => shape.indexByName.get(name),
    });
    return {
      shape,
      values,
      targets,
      fields: order.map((target) => indexes[target] as number),
      fieldTargets: order,
      numbers,
    };
  }

  /** Null: the shape lacks a property that is read. */
  #compile(expression: SimpleExpression, shape: Shape): Evaluate | null {
    switch (expression.kind) {
      case "literal": {
        const { value } = expression;
        return () => value;
      }
      case "parameter": {
        const value = this.#parameters[expression.path[0] ?? ""] as Scalar;
        return () => value;
      }
      case "path":
        return this.#compilePath(expression.path, shape);
      case "operation": {
        const left = this.#compile(expression.left, shape);
        const right = this.#compile(expression.right, shape);
        if (left === null || right === null) return null;
        return operation(expression.operator, left, right);
      }
    }
  }

  #compilePath(path: readonly string[], shape: Shape): Evaluate | null {
    const [first = "", ...rest] = path;
    const index = shape.indexByName.get(first);
    if (index === undefined) return null;
    const target = this.names.indexOf(first);
    if (rest.length > 0) return target >= 0 ? null : memberOf(index, rest);
    return function evaluateField(row) {
      const assigned = target < 0 ? undefined : row.assigned[target];
      if (assigned !== undefined) return assigned;
      const { record } = row;
      return scalarAt(record.bytes, record.valueStart(index), record.valueEnd(index, shape));
    };
  }
}

function memberOf(index: number, names: readonly string[]): Evaluate {
  const keys = names.map((name) => quoteString(name));
  const span = new ValueSpan();
  return function evaluateMember(row) {
    const { bytes } = row.record;
    let at = row.record.valueStart(index);
    for (const key of keys) {
      if (!findMember(bytes, at, key, span)) return undefined;
      at = span.from;
    }
    return scalarAt(bytes, span.from, span.to);
  };
}

/** Evaluates the assignments in order. @returns false when a value is not certain. Hot. */
function evaluateAll(plan: ShapePlan, row: PatchedRow): boolean {
  const { targets, values } = plan;
  for (let i = 0; i < row.assigned.length; i++) row.assigned[i] = undefined;
  for (let i = 0; i < values.length; i++) {
    const value = (values[i] as Evaluate)(row);
    if (value === undefined) return false;
    if (typeof value === "number" && !Number.isFinite(value)) return false;
    row.assigned[targets[i] as number] = value;
  }
  return true;
}

/** Returns arithmetic on two numbers, or concatenation of two texts; other operands are left to the script. */
function operation(operator: SimpleOperator, left: Evaluate, right: Evaluate): Evaluate {
  switch (operator) {
    case "+":
      return function evaluateSum(row) {
        const a = left(row);
        const b = right(row);
        if (typeof a === "number" && typeof b === "number") return a + b;
        return typeof a === "string" && typeof b === "string" ? a + b : undefined;
      };
    case "-":
      return function evaluateDifference(row) {
        const a = left(row);
        const b = right(row);
        return typeof a === "number" && typeof b === "number" ? a - b : undefined;
      };
    case "*":
      return function evaluateProduct(row) {
        const a = left(row);
        const b = right(row);
        return typeof a === "number" && typeof b === "number" ? a * b : undefined;
      };
    case "/":
      return function evaluateQuotient(row) {
        const a = left(row);
        const b = right(row);
        return typeof a === "number" && typeof b === "number" ? a / b : undefined;
      };
    case "%":
      return function evaluateRemainder(row) {
        const a = left(row);
        const b = right(row);
        return typeof a === "number" && typeof b === "number" ? a % b : undefined;
      };
  }
}

/** Returns the value `[from, to)`; undefined for objects and arrays. */
function scalarAt(bytes: Buffer, from: number, to: number): Scalar | undefined {
  switch (kindOf(bytes, from)) {
    case kinds.number:
      return decodeNumber(bytes, from, to);
    case kinds.string:
      return decodeString(bytes, from, to);
    case kinds.word:
      return bytes[from] === 0x74 ? true : bytes[from] === 0x66 ? false : null;
    default:
      return undefined;
  }
}

/** Returns whether the stored value equals `value`. Then its spelling is kept. */
function isSame(bytes: Buffer, from: number, to: number, kind: number, value: Scalar): boolean {
  if (typeof value === "number") {
    return kind === kinds.number && isSameNumber(decodeNumber(bytes, from, to), value);
  }
  if (typeof value === "string") {
    return kind === kinds.string && decodeString(bytes, from, to) === value;
  }
  return kind === kinds.word && scalarAt(bytes, from, to) === value;
}

function quotedBytes(name: string): number {
  return Buffer.byteLength(stringText(name));
}

/** Type of a value, by its first byte. */
const kinds = { number: 0, string: 1, word: 2, other: 3 } as const;

function kindOf(bytes: Buffer, at: number): number {
  const first = bytes[at] as number;
  if (first === 0x22) return kinds.string;
  if (first === 0x7b || first === 0x5b) return kinds.other;
  return first === 0x74 || first === 0x66 || first === 0x6e ? kinds.word : kinds.number;
}

/** Negative zero is always rewritten, as the script does. */
function isSameNumber(old: number, value: number): boolean {
  return old === value && (value !== 0 || 1 / value > 0);
}

function isSpelledAsDouble(bytes: Buffer, from: number, to: number): boolean {
  for (let at = from; at < to; at++) {
    const byte = bytes[at] as number;
    if (byte === 0x2e || byte === 0x65 || byte === 0x45) return true;
  }
  return false;
}
