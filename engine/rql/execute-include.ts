/**
 * `include`: what a query's rows refer to, collected while they pass and fetched at the end.
 */
import { idOf } from "../document.ts";
import { quoteString } from "../json/escape.ts";
import { decodeString, findMember, skipValue, ValueSpan } from "../json/field-access.ts";
import type { AnalyzedQuery } from "./analyzed-query.ts";
import { bodyOf } from "./compile-filter.ts";
import { idsAtPath, type WaitForRecord } from "./execute-load.ts";
import type { IncludedCounters, IncludedDocument } from "./results.ts";
import { wholeDocument } from "./results-projection.ts";
import type { RowSource, StoredRow } from "./row-source.ts";

export class IncludeCollector {
  readonly #query: AnalyzedQuery;
  readonly #source: RowSource;
  /** Lower-cased id -> id as the first row had it. */
  readonly #ids = new Map<string, string>();
  readonly #counters: IncludedCounters[] = [];
  readonly #compareExchangeKeys = new Set<string>();
  readonly #revisionKeys = new Set<string>();

  constructor(query: AnalyzedQuery, source: RowSource) {
    this.#query = query;
    this.#source = source;
  }

  /** The paths as the reply lists them, or null when nothing but documents could be included and none is. */
  get pathTexts(): readonly string[] | null {
    const { paths } = this.#query.include;
    return paths.length === 0 ? null : paths.map((path) => path.text);
  }

  get counters(): readonly IncludedCounters[] | null {
    return this.#query.include.counters.length === 0 ? null : this.#counters;
  }

  get compareExchangeKeys(): readonly string[] | null {
    return this.#query.include.compareExchange.length === 0 ? null : [...this.#compareExchangeKeys];
  }

  get revisionKeys(): readonly string[] | null {
    return this.#query.include.revisions.length === 0 ? null : [...this.#revisionKeys];
  }

  /** `projected`: the row's text when something is selected; then paths are read from it. */
  addRow(row: StoredRow, projected: string | null): void {
    const { include } = this.#query;
    for (const { path, text } of include.paths) {
      const ids =
        projected === null
          ? idsAtPath(row.bytes, bodyOf(row), path)
          : [...idsAtKey(projected, text), ...idsAtPath(Buffer.from(projected), 0, path)];
      for (const id of ids)
        if (!this.#ids.has(id.toLowerCase())) this.#ids.set(id.toLowerCase(), id);
    }
    if (row.start < 0) return;
    for (const counters of include.counters) {
      const names = counters.names.length === 0 ? null : counters.names;
      const ids =
        counters.of === null || counters.of.path.length === 0
          ? [idOf(row.bytes, row.start)]
          : idsAtPath(row.bytes, bodyOf(row), counters.of.path);
      for (const documentId of ids) this.#counters.push({ documentId, names });
    }
    for (const path of include.compareExchange) {
      for (const key of idsAtPath(row.bytes, bodyOf(row), path)) this.#compareExchangeKeys.add(key);
    }
    for (const text of include.revisions) this.#revisionKeys.add(text);
  }

  /** Whole documents; missing ones are left out. */
  async finish(wait: WaitForRecord): Promise<IncludedDocument[]> {
    const documents: IncludedDocument[] = [];
    const row: StoredRow = { docNum: 0, etag: 0, bytes: Buffer.alloc(0), start: 0 };
    for (const asked of this.#ids.values()) {
      const docNum = this.#source.findDocument(asked);
      if (docNum < 0) continue;
      let isFound = this.#source.read(docNum, row);
      while (!isFound && (await wait())) isFound = this.#source.read(docNum, row);
      if (!isFound) continue;
      const id = idOf(row.bytes, row.start);
      documents.push({ id, text: wholeDocument(row, null, this.#source) });
    }
    return documents;
  }
}

/** A column whose key is the whole text of the path. */
function idsAtKey(projected: string, key: string): string[] {
  const bytes = Buffer.from(projected);
  const span = new ValueSpan();
  if (!key.includes(".") || !findMember(bytes, 0, quoteString(key), span)) return [];
  if (bytes[span.from] !== 0x22) return [];
  return [decodeString(bytes, span.from, skipValue(bytes, span.from))];
}
