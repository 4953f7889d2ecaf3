/** `load`: reads the documents that a row refers to, each under its alias, as whole texts. */

import { byteArrayOpen, byteQuote } from "../../base/json/bytes.ts";
import { quoteString } from "../../base/json/escape.ts";
import {
  decodeString,
  findMember,
  firstElement,
  nextElement,
  skipValue,
  ValueSpan,
} from "../../base/json/field-access.ts";
import type { Steps } from "../../base/scheduling/steps.ts";
import type { WorkBudget } from "../../base/scheduling/work-budget.ts";
import type { AnalyzedQuery, LoadStep } from "../analysis/analyzed-query.ts";
import { bodyOf } from "../conditions/compile-filter.ts";
import type { PathPart } from "../syntax/ast.ts";
import { wholeDocument } from "./results-projection.ts";
import type { LoadedValue, ParameterValue, RowSource, StoredRow } from "./row-source.ts";

/** Memory overhead of a loaded document besides its text, in bytes. */
const loadedBytes = 256;
/** The documents of rows that load none. */
export const noLoaded: ReadonlyMap<string, LoadedValue> = new Map();

export class RowLoader {
  readonly #steps: readonly LoadStep[];
  readonly #alias: string | null;
  readonly #source: RowSource;
  readonly #budget: WorkBudget;
  readonly #row: StoredRow = { docNum: 0, etag: 0, bytes: Buffer.alloc(0), start: 0, block: null };
  /** Bytes held for the documents of the last row. */
  #heldBytes = 0;

  constructor(query: AnalyzedQuery, source: RowSource, budget: WorkBudget) {
    this.#steps = query.load;
    this.#alias = query.source.alias;
    this.#source = source;
    this.#budget = budget;
  }

  /** @throws EngineError work-limit, memory-full when a row's references exceed the quota */
  *load(row: StoredRow): Steps<ReadonlyMap<string, LoadedValue>> {
    const loaded = new Map<string, LoadedValue>();
    const budget = this.#budget;
    budget.release(this.#heldBytes);
    this.#heldBytes = 0;
    for (const step of this.#steps) {
      const documents: (string | null)[] = [];
      for (const id of this.#idsOf(step, row, loaded)) {
        const text = yield* documentText(id, this.#source, this.#row);
        documents.push(text);
        const bytes = 2 * (text?.length ?? 0) + loadedBytes;
        budget.hold(bytes);
        this.#heldBytes += bytes;
        budget.tick(bytes >>> 4);
        if (budget.isDue) yield budget.pause();
      }
      // Several documents under a plain alias: reading it throws.
      const isList = step.isArray || documents.length > 1;
      loaded.set(step.alias, isList ? documents : (documents[0] ?? null));
    }
    return loaded;
  }

  #idsOf(step: LoadStep, row: StoredRow, loaded: ReadonlyMap<string, LoadedValue>): string[] {
    const { source } = step;
    if (source.kind === "constant") return textsOf(source.value);
    // Documents that a path names more than once are loaded once; ids that differ by case only count as two.
    return [...new Set(this.#idsAt(source, row, loaded))];
  }

  #idsAt(
    source: Extract<LoadStep["source"], { readonly kind: "path" }>,
    row: StoredRow,
    loaded: ReadonlyMap<string, LoadedValue>,
  ): string[] {
    if (source.root === null || source.root === this.#alias) {
      return idsAtPath(row.bytes, bodyOf(row), source.path);
    }
    const from = loaded.get(source.root);
    const texts = typeof from === "string" ? [from] : (from ?? []);
    return texts.flatMap((text) =>
      text === null ? [] : idsAtPath(Buffer.from(text), 0, source.path),
    );
  }
}

function textsOf(value: ParameterValue): string[] {
  if (value.type === "string") return [value.value];
  return value.type === "array" ? value.items.flatMap(textsOf) : [];
}

/**
 * Returns the strings at a path; for an array at its end, each of its strings. As in RavenDB 7.2.7, the path traverses
 * arrays with or without `[]`, and the strings of an array with `[]` are included even if the path continues.
 */
export function idsAtPath(bytes: Buffer, at: number, path: readonly PathPart[]): string[] {
  const ids: string[] = [];
  addIdsAtPath(bytes, at, path, 0, ids);
  return ids;
}

function addIdsAtPath(
  bytes: Buffer,
  at: number,
  path: readonly PathPart[],
  depth: number,
  ids: string[],
): void {
  if (bytes[at] === byteArrayOpen) {
    const isEnd = depth === path.length;
    const areIds = isEnd || (depth > 0 && (path[depth - 1]?.arrays ?? 0) > 0);
    for (let i = firstElement(bytes, at); i >= 0; ) {
      const to = skipValue(bytes, i);
      if (bytes[i] !== byteQuote) {
        if (!isEnd) addIdsAtPath(bytes, i, path, depth, ids);
      } else if (areIds) ids.push(decodeString(bytes, i, to));
      i = nextElement(bytes, to);
    }
    return;
  }
  const part = path[depth];
  if (part === undefined) {
    if (bytes[at] === byteQuote) ids.push(decodeString(bytes, at, skipValue(bytes, at)));
    return;
  }
  const found = new ValueSpan();
  if (!findMember(bytes, at, quoteString(part.name), found)) return;
  addIdsAtPath(bytes, found.from, path, depth + 1, ids);
}

/** Returns the whole text of the document with this id, or null. */
function* documentText(id: string, source: RowSource, row: StoredRow): Steps<string | null> {
  const docNum = source.findDocument(id);
  if (docNum < 0 || !(yield* readRecord(docNum, source, row))) return null;
  return wholeDocument(row, null, source).toString();
}

/**
 * Points `row` at a document's record, after waiting for the disk if necessary. @returns false if the document does not
 * exist
 */
export function* readRecord(docNum: number, source: RowSource, row: StoredRow): Steps<boolean> {
  while (!source.read(docNum, row)) {
    const pending = source.pending();
    if (pending === null) return false;
    yield pending;
  }
  return true;
}
