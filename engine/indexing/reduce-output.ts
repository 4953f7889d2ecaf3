/**
 * Reduced objects as documents: what a definition says of it, who stores them, and the ids of the documents that refer to them.
 * Pure but for the reading of a definition; storing is for the host.
 *
 *   <collection>/<number>/<hash of the key>   a reduced object
 *   <pattern, filled in>                      { "ReduceOutputs": [ids] } in a collection of its own
 */
import { EngineError } from "../errors.ts";
import { checkCollectionName } from "../names.ts";
import { parseTimestamp } from "../timestamp.ts";
import type { PartReader, PartWriter } from "./saved-parts.ts";

type Json = Readonly<Record<string, unknown>>;

/** Where the reduced objects of an index go. */
export interface ReduceOutput {
  readonly collection: string;
  /** Tells the documents of this definition from those of the one before. 0: not deployed yet. */
  readonly number: number;
  /** Ids of documents that refer to the reduced objects, `reports/{At:yyyy-MM}`; null: there are none. */
  readonly pattern: string | null;
  /** Their collection; null: `<collection>/References`. */
  readonly references: string | null;
  /** Where the definition that this one replaced put its documents, when that was elsewhere. */
  readonly formerCollection: string | null;
}

/**
 * Stores reduced objects. One for each index, from its beginning: every object is told to it when the index is built, and
 * those that it knew when a snapshot was made come back with that.
 */
export interface OutputSink {
  /** The object of a key, as JSON text, is another one; null: there is none. */
  changed(key: string, text: string | null): void;
  /** Everything is stored, and documents that nobody told of are gone. */
  readonly isSettled: boolean;
  /** There was no room: nothing is to be stored until it wakes the indexes. */
  readonly isResting: boolean;
  /** It is in the middle of `store`: what it has now is no state to be saved. */
  readonly isStoring: boolean;
  /** Stores what changed. `isWhole`: every object there is was told. Does not reject. */
  store(isWhole: boolean): Promise<void>;
  save(parts: PartWriter): void;
  /**
   * Takes what `save` gave. What was stored after that may be of objects that the index knows nothing of any more: documents
   * that it does not know are looked for once more, and others are `isInDoubt`.
   */
  restore(parts: PartReader): Generator<void>;
  /** Something is in doubt. */
  readonly hasDoubts: boolean;
  /** May the document of this key be of another object than the index has? Then `changed` is to be called. */
  isInDoubt(key: string): boolean;
}

/**
 * What the keys `OutputReduceToCollection` and others of a definition say; null: nothing.
 * @throws EngineError index-invalid, invalid-argument for a name that is too long
 */
export function parseReduceOutput(json: Json): ReduceOutput | null {
  const collection = textOrNull(json["OutputReduceToCollection"]);
  const pattern = textOrNull(json["PatternForOutputReduceToCollectionReferences"]);
  if (pattern !== null) partsOf(pattern);
  if (collection === null) return null;
  const references = textOrNull(json["PatternReferencesCollectionName"]);
  // What the longest id has behind the collection; the usual collection of references is shorter.
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

/** Are the documents of both the same? */
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

/** A piece of a pattern: text, or a field with how its date is written. */
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

/** The id that a pattern gives for a reduced object, or null when the object lacks one of its fields. */
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

/** A date as a format of .NET writes it; what is none stays as it is. */
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
