/**
 * The schema of a sample of documents: the fields with their types, how many documents have them, their ranges, and
 * their values.
 *
 * Invariants:
 * - Memory is bounded: fields per object, depth, distinct values and numbers per field are limited. A field that
 *   exceeds a limit states that.
 */
import { isDate } from "./fields.ts";

export type FieldType = "text" | "id" | "date" | "number" | "bool" | "null" | "list" | "object";

const fieldsMax = 200;
const depthMax = 8;
const distinctMax = 1000;
const numbersMax = 20_000;
const elementsMax = 100;
const textMax = 60;
const idLike = /^[A-Za-z][\w-]*\/[\w./-]{1,200}$/;

/** Values of one path, over all documents of the sample. */
export class FieldSample {
  /** Number of values, including null. */
  count = 0;
  readonly types = new Map<FieldType, number>();
  /** Numbers, times in milliseconds, and lengths of lists: the first ones, for a histogram. */
  readonly numbers: number[] = [];
  low = Number.POSITIVE_INFINITY;
  high = Number.NEGATIVE_INFINITY;
  /** Texts and other scalar values with their counts; the first distinct ones. */
  readonly values = new Map<string, number>();
  /** True if more distinct values exist than are counted. */
  hasMoreValues = false;
  /** Members of objects, and "[]" for elements of lists. */
  readonly fields = new Map<string, FieldSample>();
  hasMoreFields = false;

  add(value: unknown, depth = 0): void {
    const type = typeOf(value);
    this.count++;
    this.types.set(type, (this.types.get(type) ?? 0) + 1);
    if (type === "number") this.#addNumber(value as number);
    else if (type === "date") this.#addNumber(Date.parse(value as string));
    if (type === "list") {
      const elements = value as readonly unknown[];
      this.#addNumber(elements.length);
      for (const element of elements.slice(0, elementsMax)) this.#addField("[]", element, depth);
    } else if (type === "object") {
      for (const [name, inner] of Object.entries(value as object))
        if (depth > 0 || name !== "@metadata") this.#addField(name, inner, depth);
    } else if (type !== "date" && type !== "null") this.#addValue(value);
  }

  #addNumber(number: number): void {
    if (number < this.low) this.low = number;
    if (number > this.high) this.high = number;
    if (this.numbers.length < numbersMax) this.numbers.push(number);
  }

  #addValue(value: unknown): void {
    const text = String(value).slice(0, textMax);
    const known = this.values.get(text);
    if (known !== undefined || this.values.size < distinctMax)
      this.values.set(text, (known ?? 0) + 1);
    else this.hasMoreValues = true;
  }

  #addField(name: string, value: unknown, depth: number): void {
    let field = this.fields.get(name);
    if (field === undefined) {
      if (this.fields.size >= fieldsMax || depth >= depthMax) {
        this.hasMoreFields = true;
        return;
      }
      field = new FieldSample();
      this.fields.set(name, field);
    }
    field.add(value, depth + 1);
  }
}

function typeOf(value: unknown): FieldType {
  if (value === null) return "null";
  if (Array.isArray(value)) return "list";
  if (typeof value === "number") return "number";
  if (typeof value === "boolean") return "bool";
  if (typeof value !== "string") return "object";
  if (isDate(value)) return "date";
  return idLike.test(value) ? "id" : "text";
}

/** Returns the most frequent values that occur more than once. */
export function topValues({ values }: FieldSample, most: number): [text: string, count: number][] {
  const repeated = [...values].filter(([, count]) => count > 1);
  return repeated.sort(([, a], [, b]) => b - a).slice(0, most);
}

/** Returns the type of the field's numbers; null if they have several types, so that a range has no meaning. */
export function rangeType({ types }: FieldSample): "number" | "date" | "list" | null {
  const found = (["number", "date", "list"] as const).filter((type) => types.has(type));
  return found.length === 1 ? (found[0] ?? null) : null;
}

/** Returns the counts of the numbers in ranges of equal width, from the lowest to the highest number. */
export function histogram({ numbers, low, high }: FieldSample, bins: number): number[] {
  const counts = new Array<number>(bins).fill(0);
  for (const number of numbers) {
    const at = high > low ? Math.floor(((number - low) / (high - low)) * bins) : 0;
    const bin = Math.min(bins - 1, at);
    counts[bin] = (counts[bin] ?? 0) + 1;
  }
  return counts;
}

/** A field with its path, in the order of display. */
export interface SchemaRow {
  readonly name: string;
  /** As in a query: `Lines[].Product`. */
  readonly path: string;
  readonly level: number;
  readonly field: FieldSample;
  /** Number of documents or elements that could have the field. */
  readonly of: number;
}

/** Returns the fields of opened objects and lists: the most frequent first. */
export function schemaRows(
  root: FieldSample,
  isOpen: (path: string, field: FieldSample) => boolean,
  rowsMax: number,
): SchemaRow[] {
  const rows: SchemaRow[] = [];
  const add = (parent: FieldSample, of: number, path: string, level: number) => {
    const sorted = [...parent.fields].sort(([, a], [, b]) => b.count - a.count);
    for (const [name, field] of sorted) {
      if (rows.length >= rowsMax) return;
      const isElement = name === "[]";
      const inner = isElement ? `${path}[]` : path === "" ? name : `${path}.${name}`;
      // Elements are counted in all lists together.
      rows.push({ name, path: inner, level, field, of: isElement ? field.count : of });
      if (field.fields.size > 0 && isOpen(inner, field)) {
        add(field, field.types.get("object") ?? 0, inner, level + 1);
      }
    }
  };
  add(root, root.count, "", 0);
  return rows;
}
