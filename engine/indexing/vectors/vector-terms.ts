/**
 * Vectors as terms of a field, under a kind of their own: from the fields of documents in automatic indexes, and from
 * `{"$vector": value}`, which createVector makes in the maps of deployed ones.
 *
 * Invariants:
 * - All vectors of a column have the length of its first one: others are left out.
 */
import { EngineError } from "../../base/errors.ts";
import { byteArrayOpen, byteObjectOpen } from "../../base/json/bytes.ts";
import {
  findMember,
  firstElement,
  nextElement,
  skipValue,
  ValueSpan,
} from "../../base/json/field-access.ts";
import type { FieldColumn } from "../columns/field-column.ts";
import { firstTerm, vectorKind } from "../columns/term-dictionary.ts";
import type { VectorSource } from "../definitions/index-definition.ts";
import { type FieldStep, fieldStep } from "../fields/path-text.ts";
import { acceptedVectors, dimensionsOf, type VectorForm } from "./vector-form.ts";

const opening = '{"$vector":';

/** Adds the vectors of the object that begins at `at` to the column's current entry. */
export type VectorReader = (column: FieldColumn, bytes: Buffer, at: number) => void;

export function vectorReader({ path, form }: VectorSource): VectorReader {
  const steps = path.map(({ name, arrays }) => fieldStep(name, arrays > 0));
  return function addDocumentVectors(column, bytes, at) {
    addAt(column, form, bytes, at, steps, 0);
  };
}

function addAt(
  column: FieldColumn,
  form: VectorForm,
  bytes: Buffer,
  at: number,
  steps: readonly FieldStep[],
  depth: number,
): void {
  const step = steps[depth];
  if (step === undefined) {
    const value = JSON.parse(bytes.toString("utf8", at, skipValue(bytes, at))) as unknown;
    addVectors(column, acceptedVectors(value, form));
    return;
  }
  if (bytes[at] === byteArrayOpen) {
    for (let i = firstElement(bytes, at); i >= 0; i = nextElement(bytes, skipValue(bytes, i))) {
      addAt(column, form, bytes, i, steps, depth);
    }
    return;
  }
  const span = new ValueSpan();
  if (bytes[at] !== byteObjectOpen || !findMember(bytes, at, step.name, span)) return;
  addAt(column, form, bytes, span.from, steps, depth + 1);
}

/** Returns the length of a column's vectors, in bytes; 0 if the column has no vectors. */
export function vectorLengthOf({ dictionary }: FieldColumn): number {
  const hasVectors = dictionary.count > firstTerm && dictionary.kindOf(firstTerm) === vectorKind;
  return hasVectors ? dictionary.lengthOf(firstTerm) : 0;
}

function addVectors(column: FieldColumn, vectors: readonly Buffer[]): void {
  for (const bytes of vectors) {
    const length = vectorLengthOf(column);
    if (bytes.length === 0 || (length > 0 && bytes.length !== length)) continue;
    column.add(column.dictionary.intern(vectorKind, bytes, bytes.length, Number.NaN));
  }
}

/** Returns whether the JSON text of a field's value is of vectors. */
export function isVectorText(text: string): boolean {
  return text.startsWith(opening);
}

function valueIn(text: string): unknown {
  return (JSON.parse(text) as { readonly $vector?: unknown }).$vector;
}

/** Adds the vectors to the column's current entry. */
export function addVectorText(column: FieldColumn, text: string, form: VectorForm): void {
  addVectors(column, acceptedVectors(valueIn(text), form));
}

/** @param dimensions the configured number of dimensions of the field; null: any. @throws EngineError json-invalid */
export function checkVectorText(
  text: string,
  name: string,
  form: VectorForm,
  dimensions: number | null,
): void {
  if (dimensions === null) return;
  for (const { length } of acceptedVectors(valueIn(text), form)) {
    const found = dimensionsOf(length, form.stored);
    const wanted = form.stored === "Binary" ? (dimensions + 7) >>> 3 : dimensions;
    if (found === wanted) continue;
    throw new EngineError(
      "json-invalid",
      `Attempted to index embedding with ${found} dimensions, but field ${name} already contains indexed embedding with ` +
        `${wanted} dimensions, or was explicitly configured for embeddings with ${wanted} dimensions.`,
    );
  }
}
