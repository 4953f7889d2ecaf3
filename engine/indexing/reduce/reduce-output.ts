/**
 * Reduced objects as documents: their part of a definition, the interface that stores them, and the ids of the
 * documents that refer to them. Pure; the host does the storing.
 *
 *   <collection>/<number>/<hash of the key>   a reduced object
 *   <pattern, filled in>                      { "ReduceOutputs": [ids] } in a collection of its own
 */
import { EngineError } from "../../base/errors.ts";
import { checkCollectionName } from "../../base/names.ts";
import { parseTimestamp } from "../../base/timestamp.ts";
import type { PartReader, PartWriter } from "../saved/saved-parts.ts";

type Json = Readonly<Record<string, unknown>>;

/** Where an index stores its reduced objects. */
export interface ReduceOutput {
  readonly collection: string;
  /** Distinguishes the documents of this definition from those of the previous definition. 0: not deployed yet. */
  readonly number: number;
  /**
   * Id pattern of the documents that refer to the reduced objects, `reports/{At:yyyy-MM}`; null: no such documents are
   * written.
   */
  readonly pattern: string | null;
  /** Their collection; null: `<collection>/References`. */
  readonly references: string | null;
  /** The collection of the replaced definition's documents, when it was a different one. */
  readonly formerCollection: string | null;
}

/**
 * Stores reduced objects. One for each index, for its whole life: it is notified of every object while the index is
 * built; the objects known at a snapshot are restored with it.
 */
export interface OutputSink {
  /** The object of a key has changed. `text`: JSON text; null: deleted. */
  changed(key: string, text: string | null): void;
  /** Everything is stored, and leftover documents are deleted. */
  readonly isSettled: boolean;
  /** There was no space: nothing can be stored until it wakes the indexes. */
  readonly isResting: boolean;
  /** `store` is in progress: the current state must not be saved. */
  readonly isStoring: boolean;
  /** Stores the changes. `isWhole`: all existing objects have been reported. Does not reject. */
  store(isWhole: boolean): Promise<void>;
  save(parts: PartWriter): void;
  /**
   * Restores the output of `save`. Documents stored since may belong to objects that the index no longer knows: unknown
   * documents are searched for again, and the others are `isInDoubt`.
   */
  restore(parts: PartReader): Generator<void>;
  /** Whether any document is in doubt. */
  readonly hasDoubts: boolean;
  /** Returns whether the document of this key may differ from the index's object. If so, `changed` must be called. */
  isInDoubt(key: string): boolean;
}

/**
 * Returns the reduce output of a definition (`OutputReduceToCollection` and related keys); null: none.
 * @throws EngineError index-invalid, invalid-argument for a name that is too long
 */
export function parseReduceOutput(json: Json): ReduceOutput | null {
  const collection = textOrNull(json["OutputReduceToCollection"]);
  const pattern = textOrNull(json["PatternForOutputReduceToCollectionReferences"]);
  if (pattern !== null) partsOf(pattern);
  if (collection === null) return null;
  const references = textOrNull(json["PatternReferencesCollectionName"]);
  // The longest suffix of an id after the collection; the default collection of references is shorter.
  checkCollectionName(`${collection}/${Number.MAX_SAFE_INTEGER}/${2n ** 64n - 1n}`);
  if (references !== null) checkCollectionName(references);
  return {
    collection,
    number: 0,
    pattern,
    references,
    formerCollection: null,
  };
}

function textOrNull(value: unknown): string | null {
  return typeof value === "string" && value.trim() !== "" ? value : null;
}

/** Returns whether both produce the same documents. */
export function isSameOutput(left: ReduceOutput | null, right: ReduceOutput | null): boolean {
  if (left === null || right === null) return left === right;
  return (
    left.collection === right.collection &&
    left.pattern === right.pattern &&
    left.references === right.references
  );
}

export function referencesCollection({ collection, references }: ReduceOutput): string {
  return references ?? `${collection}/References`;
}

/** A section of a pattern: text, or a field with its date format. */
type PatternPart = string | { readonly field: string; readonly format: string | null };

/** @throws EngineError index-invalid */
function partsOf(pattern: string): PatternPart[] {
  const parts: PatternPart[] = [];
  const fields = new Set<string>();
  for (const piece of pattern.split(/(\{[^{}]*\})/)) {
    if (!piece.startsWith("{")) {
      if (/[{}]/.test(piece)) throw unsupported(pattern);
      if (piece !== "") parts.push(piece);
      continue;
    }
    const colon = piece.indexOf(":");
    const field = (colon < 0 ? piece.slice(1, -1) : piece.slice(1, colon)).trim();
    if (fields.has(field)) {
      throw new EngineError(
        "index-invalid",
        `Pattern should contain unique fields only. Duplicated field: '${field}'`,
      );
    }
    fields.add(field);
    const format = colon < 0 ? "" : piece.slice(colon + 1, -1).trim();
    parts.push({ field, format: format === "" ? null : format });
  }
  if (fields.size === 0) throw unsupported(pattern);
  return parts;
}

function unsupported(pattern: string): EngineError {
  return new EngineError("index-invalid", `Provided pattern is not supported: ${pattern}`);
}

/** Returns the id that a pattern forms for a reduced object, or null if the object lacks a field of the pattern. */
export function referenceId(pattern: string, object: Json): string | null {
  let id = "";
  for (const part of partsOf(pattern)) {
    if (typeof part === "string") {
      id += part;
      continue;
    }
    const value = object[part.field];
    if (value === undefined || value === null) return null;
    id += part.format === null ? plain(value) : dateText(plain(value), part.format);
  }
  return id;
}

function plain(value: unknown): string {
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** Returns a date in a .NET format; other values are unchanged. */
function dateText(value: string, format: string): string {
  const micros = /^\d{4}-\d\d-\d\dT/.test(value) ? parseTimestamp(value) : Number.NaN;
  if (Number.isNaN(micros)) return value;
  const iso = new Date(micros / 1000).toISOString();
  const pieces: Readonly<Record<string, string>> = {
    yyyy: iso.slice(0, 4),
    yy: iso.slice(2, 4),
    MM: iso.slice(5, 7),
    dd: iso.slice(8, 10),
    HH: iso.slice(11, 13),
    mm: iso.slice(14, 16),
    ss: iso.slice(17, 19),
    fff: iso.slice(20, 23),
    M: String(Number(iso.slice(5, 7))),
    d: String(Number(iso.slice(8, 10))),
    H: String(Number(iso.slice(11, 13))),
  };
  return format.replace(/yyyy|yy|MM|M|dd|d|HH|H|mm|ss|fff/g, (word) => pieces[word] ?? word);
}
