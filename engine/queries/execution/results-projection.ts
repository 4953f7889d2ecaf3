/**
 * The rows of a reply: whole documents composed of stored bytes, or objects of projected fields whose values are copied
 * from the text. Script results are produced elsewhere; they get their metadata here.
 *
 * Independent of the source of the rows and of their order.
 */
import { unreachable } from "../../base/assert.ts";
import { EngineError } from "../../base/errors.ts";
import { byteArrayOpen } from "../../base/json/bytes.ts";
import { quoteString } from "../../base/json/escape.ts";
import {
  decodeString,
  findMember,
  firstElement,
  nextElement,
  skipValue,
  ValueSpan,
} from "../../base/json/field-access.ts";
import { JsonText } from "../../base/json/json-text.ts";
import { formatTimestamp } from "../../base/timestamp.ts";
import { isDateText, timeMember } from "../../indexing/dates/date-members.ts";
import { normalDate, parseInstant } from "../../indexing/dates/date-terms.ts";
import {
  eachText,
  type FieldStep,
  fieldStep,
  isLength,
  memberText,
  pathText,
  type TextMember,
} from "../../indexing/fields/path-text.ts";
import { DocumentChunks } from "../../state/documents/document-chunks.ts";
import {
  bodyLengthOf,
  documentFlagsOf,
  idOf,
  lastModifiedOf,
} from "../../state/documents/document-record.ts";
import { flagsText } from "../../state/documents/document-text.ts";
import type { AnalyzedQuery, ProjectedField, ProjectedValue } from "../analysis/analyzed-query.ts";
import { jsonText } from "../analysis/query-parameters.ts";
import { bodyOf, FieldFinder } from "../conditions/compile-filter.ts";
import type { PathPart } from "../syntax/ast.ts";
import type { ProjectionBehavior } from "./results.ts";
import type {
  GroupOutputs,
  LoadedValue,
  RowSource,
  StoredFields,
  StoredRow,
} from "./row-source.ts";

/** The text of `@index-score` when the reply reports it, and of the members that follow it (`@spatial`). */
export type ReportedScore = number | string;

/** A row with everything that its projection reads. */
export interface RowParts {
  readonly row: StoredRow;
  readonly loaded: ReadonlyMap<string, LoadedValue>;
  readonly score: ReportedScore | null;
  /** JSON text of an object: the stored fields of the row's entry. */
  readonly stored: string | null;
  /** Columns that are series queries appear as `seriesMark`s; otherwise they are left out. */
  readonly hasSeries?: boolean;
}

/** Returns the placeholder of a series query's column in a row's text: JSON text never contains these characters. */
function seriesMark(position: number): string {
  return `\u0000${position}\u0000`;
}

/** Returns a row's text split at its `seriesMark`s: texts at even places, positions at odd ones. */
export function splitAtSeries(text: string): string[] {
  return text.split("\u0000");
}

/** JSON text of a value; null if the value does not exist. */
type TextOf = (parts: RowParts) => string | null;

const noExtra = Buffer.alloc(0);
/** Bytes of a document's `@metadata`, about. */
const metadataBytes = 256;
const metadataText = '"@metadata":';
const metadataKey = Buffer.from(metadataText);
const metadataOpen = `${metadataText}{`;
const groupMetadata = '"@metadata":{"@change-vector":null}}';
const projectedGroupMetadata = '"@metadata":{"@projection":true,"@change-vector":null}}';

/** Returns a whole document with its `@metadata` at the end. */
export function wholeDocument(
  row: StoredRow,
  score: ReportedScore | null,
  source: RowSource,
): Buffer {
  const text = new JsonText(bodyLengthOf(row.bytes, row.start) + metadataBytes);
  addWholeDocument(row, score, source, text);
  return text.bytes;
}

/** As `wholeDocument`, added to `text`. */
export function addWholeDocument(
  row: StoredRow,
  score: ReportedScore | null,
  source: RowSource,
  text: JsonText,
): void {
  source.addDocument(row, scoreMember(score), text);
}

function scoreMember(score: ReportedScore | null): Buffer {
  return score === null ? noExtra : Buffer.from(`"@index-score":${score},`);
}

/** As `wholeDocument`, for large documents: a list of chunks, not concatenated. */
export function largeDocument(
  row: StoredRow,
  score: ReportedScore | null,
  source: RowSource,
): DocumentChunks {
  const metadata = Buffer.concat([metadataKey, source.metadataOf(row, scoreMember(score))]);
  return new DocumentChunks(row.bytes, row.start, metadata);
}

/** Returns the `"@metadata":{…}}` that ends a projected row, closing brace of the row included. */
export function projectionMetadata(parts: RowParts, source: RowSource): string {
  const { row, score } = parts;
  if (row.start < 0) return projectedGroupMetadata;
  const flags = documentFlagsOf(row.bytes, row.start);
  return (
    `"@metadata":{"@projection":true,"@change-vector":${JSON.stringify(source.changeVectorOf(row))}` +
    (flags === 0 ? "" : `,"@flags":"${flagsText(flags)}"`) +
    `,"@id":${JSON.stringify(idOf(row.bytes, row.start))}` +
    (score === null ? "" : `,"@index-score":${score}`) +
    `,"@last-modified":"${formatTimestamp(lastModifiedOf(row.bytes, row.start))}"}}`
  );
}

/** Returns a whole reduced object, without a projection. */
export function wholeGroup(text: string): string {
  return withMetadata(text, groupMetadata);
}

/**
 * `object` with `metadata` (from `projectionMetadata`) as its last member. Members that a script set under `@metadata`
 * precede the others in it.
 */
export function withMetadata(object: string, metadata: string): string {
  if (object.includes(metadataText)) {
    const { "@metadata": own, ...rest } = JSON.parse(object) as { "@metadata"?: object };
    if (own !== null && typeof own === "object" && !Array.isArray(own)) {
      const { "@id": _id, ...kept } = own as { "@id"?: string };
      const members = JSON.stringify(kept).slice(1, -1);
      const merged = members === "" ? metadata : metadata.replace("{", `{${members},`);
      return withMetadata(JSON.stringify(rest), merged);
    }
  }
  return `${object.slice(0, -1)}${object === "{}" ? "" : ","}${metadata}`;
}

/** As `projectionMetadata`, for a row whose columns are all stored fields: no document was read. */
export function indexedMetadata(lowerId: string): string {
  return `"@metadata":{"@projection":true,"@change-vector":null,"@id":${JSON.stringify(lowerId)}}}`;
}

/** Returns a whole document's text with `@index-score` in its metadata. */
export function withScore(document: string, score: ReportedScore): string {
  const at = document.lastIndexOf(metadataOpen) + metadataOpen.length;
  return `${document.slice(0, at)}"@index-score":${score},${document.slice(at)}`;
}

/** Returns a whole document nested in another one: of the derived metadata only `@id` is kept. */
function nestedDocument(document: string): string {
  const at = document.lastIndexOf(metadataOpen);
  const metadata = JSON.parse(document.slice(at + metadataText.length, -1)) as object;
  return `${document.slice(0, at)}${metadataText}${JSON.stringify(storedMetadata(metadata))}}`;
}

const derivedKeys = new Set(["@change-vector", "@last-modified", "@flags", "@index-score"]);

function storedMetadata(metadata: object): object {
  return Object.fromEntries(Object.entries(metadata).filter(([key]) => !derivedKeys.has(key)));
}

/** Builds the objects of `select a, b.c as x, …`, without metadata. */
export class FieldProjector {
  readonly #keys: readonly string[];
  readonly #values: readonly TextOf[];
  /** By column: the name of its stored field; empty when the query selects no stored field. */
  readonly #storedNames: readonly (string | null)[];
  /** Whether all columns of the last object were stored fields. */
  isFromIndex = false;
  readonly #onlyIndex: boolean;

  /** `indexName`: null for a scan, which always reads documents. */
  constructor(
    query: AnalyzedQuery,
    source: RowSource,
    outputs: GroupOutputs | null,
    stored: StoredFields | null,
    behavior: ProjectionBehavior = "Default",
    indexName: string | null = null,
  ) {
    const { projection } = query;
    const fields: readonly ProjectedField[] = projection.kind === "fields" ? projection.fields : [];
    this.#keys = fields.map((field) => `${JSON.stringify(field.key)}:`);
    const kept = behavior.startsWith("FromDocument") ? null : stored;
    const names = fields.map(({ value }) => storedName(value, query.source.alias, kept));
    const hasStored = names.some((name) => name !== null);
    const isReduced = outputs !== null;
    this.#onlyIndex = !isReduced && indexName !== null && behavior.startsWith("FromIndex");
    this.#storedNames = hasStored || this.#onlyIndex ? names : [];
    if (this.#onlyIndex) {
      this.#values = fields.map(({ key }) => () => {
        if (behavior === "FromIndex") return null;
        throw notInIndex(key, indexName ?? "");
      });
      return;
    }
    const mustHave = !isReduced && behavior === "FromDocumentOrThrow";
    const leavesOut = hasStored || mustHave;
    this.#values = fields.map((field) => {
      const value = compileColumn(field, query, source, outputs, leavesOut);
      if (!mustHave) return value;
      return (parts) => {
        const text = value(parts);
        if (text === null) throw notInDocument(field.key);
        return text;
      };
    });
  }

  project(parts: RowParts): string {
    if (this.#storedNames.length > 0) return this.#projectStored(parts);
    let text = "{";
    for (let i = 0; i < this.#values.length; i++) {
      const value = (this.#values[i] as TextOf)(parts);
      if (value === null) continue;
      text += text.length === 1 ? "" : ",";
      text += this.#keys[i] as string;
      text += value;
    }
    return `${text}}`;
  }

  /** Stored fields take precedence over the document's; a value that neither contains is omitted. */
  #projectStored(parts: RowParts): string {
    const bytes = Buffer.from(parts.stored ?? "{}");
    const span = new ValueSpan();
    const members: string[] = [];
    this.isFromIndex = true;
    for (const [i, name] of this.#storedNames.entries()) {
      let value: string | null = null;
      if (name !== null && findMember(bytes, 0, quoteString(name), span)) {
        value = storedValueText(bytes, span.from);
      } else {
        this.isFromIndex = this.#onlyIndex;
        value = (this.#values[i] as TextOf)(parts);
      }
      if (value !== null) members.push(`${this.#keys[i]}${value}`);
    }
    return `{${members.join(",")}}`;
  }
}

function notInIndex(field: string, index: string): EngineError {
  return new EngineError(
    "query-invalid",
    `Could not extract field '${field}' from index '${index}', because index does not contain such a field or field value is not stored within index.`,
  );
}

function notInDocument(field: string): EngineError {
  return new EngineError(
    "query-invalid",
    `Could not extract field '${field}' from document, because document does not contain such a field.`,
  );
}

/** Returns the name of the stored field for a column, or null. */
function storedName(
  value: ProjectedValue,
  alias: string | null,
  stored: StoredFields | null,
): string | null {
  if (stored === null || value.kind !== "path") return null;
  if (value.root !== null && value.root !== alias) return null;
  const name = value.path.map((part) => part.name).join(".");
  return stored.has(name) ? name : null;
}

/** Returns a stored value as a column shows it: numbers and booleans become strings, as in RavenDB 7.2.7. */
function storedValueText(bytes: Buffer, at: number): string {
  if (bytes[at] === byteArrayOpen) {
    const items: string[] = [];
    for (let i = firstElement(bytes, at); i >= 0; i = nextElement(bytes, skipValue(bytes, i))) {
      items.push(storedValueText(bytes, i));
    }
    return `[${items.join(",")}]`;
  }
  const text = bytes.toString("utf8", at, skipValue(bytes, at));
  return /^["{n]/.test(text) ? text : `"${text}"`;
}

/** `leavesOut`: a missing path omits its column. */
export function compileColumn(
  field: ProjectedField,
  query: AnalyzedQuery,
  source: RowSource,
  outputs: GroupOutputs | null,
  leavesOut = false,
): TextOf {
  const { value } = field;
  const alias = query.source.alias;
  switch (value.kind) {
    case "path":
      if (value.root !== null && value.root !== alias) {
        return compileLoaded(value.root, field.key, query, value.path);
      }
      return compilePath(field.key, value, source, outputs, leavesOut || value.root !== null);
    case "whole": {
      const name = value.alias;
      if (name === alias) return (parts) => wholeText(parts, source);
      return compileLoaded(name, field.key, query, []);
    }
    case "constant": {
      const text = value.value.type === "boolean" ? "null" : jsonText(value.value);
      return () => text;
    }
    case "id":
      return (parts) =>
        parts.row.start < 0 ? "null" : JSON.stringify(idOf(parts.row.bytes, parts.row.start));
    case "group-key":
      return compileGroupKey(outputs);
    case "count":
      return compileMember("Count", source);
    case "sum":
      return compileMember(value.field.name, source);
    case "counter":
      return compileCounter(value, source);
    case "series": {
      const mark = seriesMark(value.position);
      return ({ hasSeries }) => (hasSeries === true ? mark : null);
    }
    case "compare-exchange":
      return compileCompareExchange(value.key, query, source, outputs);
    case "call":
      // A call beside other columns is part of the projection's script; on its own it is no field.
      return () => "null";
    default:
      return unreachable(value);
  }
}

function wholeText(parts: RowParts, source: RowSource): string {
  if (parts.row.start < 0) return parts.row.bytes.toString();
  return nestedDocument(wholeDocument(parts.row, null, source).toString());
}

function compileGroupKey(outputs: GroupOutputs | null): TextOf {
  const names = outputs?.keyNames ?? [];
  const spans = names.map((name) => ({ name, quoted: quoteString(name) }));
  const span = new ValueSpan();
  const textOf = (bytes: Buffer, quoted: Buffer) =>
    findMember(bytes, 0, quoted, span) ? bytes.toString("utf8", span.from, span.to) : "null";
  if (spans.length === 1) {
    const only = spans[0] as { readonly quoted: Buffer };
    return (parts) => textOf(parts.row.bytes, only.quoted);
  }
  return (parts) => {
    const members = spans.map(
      ({ name, quoted }) => `${JSON.stringify(name)}:${textOf(parts.row.bytes, quoted)}`,
    );
    return `{${members.join(",")}}`;
  };
}

/** Returns a member of a reduced object. */
function compileMember(name: string, source: RowSource): TextOf {
  const finder = new FieldFinder([name], source);
  return (parts) => textAt(finder, parts.row) ?? "null";
}

function textAt(finder: FieldFinder, row: StoredRow): string | null {
  if (!finder.find(row, bodyOf(row))) return null;
  const { from } = finder.span;
  return normalDate(row.bytes.toString("utf8", from, skipValue(row.bytes, from)));
}

/**
 * Returns a path into the document. A missing value is, without an alias, null or the value of a field named as the
 * column; with an alias the key is omitted.
 */
function compilePath(
  key: string,
  value: Extract<ProjectedValue, { kind: "path" }>,
  source: RowSource,
  outputs: GroupOutputs | null,
  isAliased: boolean,
): TextOf {
  if (outputs !== null) return compileMember(value.name, source);
  const hasPosition = value.path.some(({ name }) => /^\d+$/.test(name));
  const missing = isAliased ? (hasPosition ? "[]" : null) : "null";
  if (value.path[0]?.name === "@metadata")
    return compileMetadataPath(value.path.slice(1), missing, source);
  if (value.path.some((part) => part.arrays > 0))
    return compileEachPath(value.path, isAliased, source);
  const finder = new FieldFinder(
    value.path.map((part) => part.name),
    source,
  );
  const fallback = isAliased ? null : new FieldFinder([key], source);
  const first = new FieldFinder([value.path[0]?.name ?? ""], source);
  const rest = stepsOf(value.path.slice(1));
  return (parts) => {
    const text = textAt(finder, parts.row) ?? textBelow(first, rest, parts.row);
    if (text !== null) return text;
    return (fallback === null ? null : textAt(fallback, parts.row)) ?? missing;
  };
}

function stepsOf(path: readonly PathPart[]): FieldStep[] {
  return path.map(({ name, arrays }) => fieldStep(name, arrays > 0));
}

/** Reads the value at the rest of a path below the value of its first name, or null. */
function textBelow(first: FieldFinder, rest: readonly FieldStep[], row: StoredRow): string | null {
  if (rest.length === 0 || !first.find(row, bodyOf(row))) return null;
  return pathText(row.bytes, first.span.from, rest, 0, columnMember);
}

/**
 * The members of texts in columns. Members of days are null, and, unlike in an index, a member that a date or time span
 * lacks is an error.
 */
const columnMember: TextMember = (bytes, at, steps, depth) => {
  const text = decodeString(bytes, at, skipValue(bytes, at));
  const isDay = text.length === 10 && parseInstant(text) !== null;
  const isDate = !isDay && isDateText(text);
  if (isLength(steps, depth)) return isDate ? null : String(text.length);
  if (!isDate) return null;
  const { text: name } = steps[depth] as FieldStep;
  const member = depth === steps.length - 1 ? memberText(timeMember(text, name), name) : null;
  if (member === null) {
    throw new EngineError("invalid-operation", `The ${name} property was not found`);
  }
  return member;
};

function compileMetadataPath(
  path: readonly PathPart[],
  missing: string | null,
  source: RowSource,
): TextOf {
  const names = path.map((part) => quoteString(part.name));
  const span = new ValueSpan();
  if (path[0]?.name === "@id" || path[0]?.name === "@change-vector") return () => missing;
  if (path.length === 0) {
    return (parts) => {
      const metadata = JSON.parse(source.metadataOf(parts.row, noExtra).toString()) as object;
      const { "@id": _id, ...rest } = storedMetadata(metadata) as { "@id"?: string };
      return JSON.stringify(rest);
    };
  }
  return (parts) => {
    const bytes = source.metadataOf(parts.row, noExtra);
    let at = 0;
    for (const name of names) {
      if (!findMember(bytes, at, name, span)) return missing;
      at = span.from;
    }
    return bytes.toString("utf8", at, skipValue(bytes, at));
  };
}

/** `Lines[].Product`: a list with the value of each element, null where it is missing. */
function compileEachPath(path: readonly PathPart[], isAliased: boolean, source: RowSource): TextOf {
  const [first, ...rest] = path as [PathPart, ...PathPart[]];
  const steps = stepsOf(rest);
  const finder = new FieldFinder([first.name], source);
  const missing = isAliased ? "[]" : "null";
  return (parts) => {
    if (!finder.find(parts.row, bodyOf(parts.row))) return missing;
    const { bytes } = parts.row;
    const at = finder.span.from;
    if (first.arrays > 0) {
      if (bytes[at] !== byteArrayOpen) return missing;
      return `[${eachText(bytes, at, steps, 0, columnMember).join(",")}]`;
    }
    const text = pathText(bytes, at, steps, 0, columnMember);
    if (text === null) return missing;
    // The array is not at the expected place: with an alias, the value is in a list.
    return isAliased && !text.startsWith("[") ? `[${text}]` : text;
  };
}

/**
 * Returns a loaded document, or the value at a path in it; when missing, the key is omitted, as with the query's own
 * alias. For an array of documents, the list of their values. On RavenDB 7.2.7 columns see only documents loaded by a
 * path of the row itself.
 */
function compileLoaded(
  root: string,
  key: string,
  query: AnalyzedQuery,
  path: readonly PathPart[],
): TextOf {
  const step = query.load.find((one) => one.alias === root);
  const isOwn =
    step?.source.kind === "path" &&
    (step.source.root === null || step.source.root === query.source.alias);
  const isId = path[0]?.name === "@metadata" && path[1]?.name === "@id";
  // For columns, the metadata of a loaded document has no `@id`.
  if (!isOwn || isId) return () => null;
  const steps = stepsOf(path);
  const textOf = (loaded: string) =>
    steps.length === 0
      ? nestedDocument(loaded)
      : pathText(Buffer.from(loaded), 0, steps, 0, columnMember);
  return (parts) => {
    const loaded = parts.loaded.get(root) ?? null;
    if (loaded === null) return null;
    if (typeof loaded === "string") return textOf(loaded);
    if (!step.isArray) throw severalValues(key);
    const values = loaded.flatMap((one) => (one === null ? [] : [textOf(one)]));
    const present = values.filter((value) => value !== null && value !== "[]");
    return `[${present.map((value) => (value?.startsWith("[") ? value.slice(1, -1) : value)).join(",")}]`;
  };
}

/** Returns the error for several documents under an alias that is not an array. */
export function severalValues(key: string): EngineError {
  return new EngineError(
    "not-supported",
    `Attempted to read multiple values in field ${key}, but it isn't an array and should have only a single value, did you forget '[]' ?`,
  );
}

function compileCounter(
  value: Extract<ProjectedValue, { kind: "counter" }>,
  source: RowSource,
): TextOf {
  const { name, isRaw } = value;
  return (parts) => {
    const id = idOf(parts.row.bytes, parts.row.start);
    if (isRaw) return source.rawCounterOf(id, name) ?? "{}";
    return source.counterOf(id, name)?.toString() ?? "null";
  };
}

function compileCompareExchange(
  key: ProjectedValue,
  query: AnalyzedQuery,
  source: RowSource,
  outputs: GroupOutputs | null,
): TextOf {
  const keyText = compileColumn({ key: "", value: key }, query, source, outputs);
  return (parts) => {
    const text = keyText(parts);
    if (text === null || !text.startsWith('"')) return "null";
    return source.compareExchangeOf(JSON.parse(text) as string) ?? "null";
  };
}
