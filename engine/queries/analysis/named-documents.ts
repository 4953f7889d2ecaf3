/** Documents that a query names and reads before it looks into an index: facet setups and lists of stop words. */
import { lowerCased } from "../../base/case-folding.ts";
import { EngineError } from "../../base/errors.ts";
import { namedDocumentBytesMax } from "../../base/limits.ts";
import type { Steps } from "../../base/scheduling/steps.ts";
import { bodyLengthOf, bodyTextOf } from "../../state/documents/document-record.ts";
import type { RowSource, StoredRow } from "../execution/row-source.ts";
import type { Condition } from "./analyzed-query.ts";
import { operandsOf } from "./meaning-of.ts";
import { parseQueryParameters } from "./query-parameters.ts";

type Documents = Pick<RowSource, "findDocument" | "read" | "pending">;

const noBytes = Buffer.alloc(0);

/**
 * Returns the JSON text of a document; null if the document does not exist. @throws work-limit if the document is large
 */
export function* documentText(id: string, source: Documents): Steps<string | null> {
  const row: StoredRow = { docNum: 0, etag: 0, bytes: noBytes, start: 0, block: null };
  for (;;) {
    const docNum = source.findDocument(id);
    if (docNum >= 0 && source.read(docNum, row)) break;
    const pending = docNum < 0 ? null : source.pending();
    if (pending === null) return null;
    yield pending;
  }
  const length = bodyLengthOf(row.bytes, row.start);
  if (length <= namedDocumentBytesMax) return bodyTextOf(row.bytes, row.start);
  throw new EngineError(
    "work-limit",
    `The document '${id}' has ${length} bytes, more than the limit of ${namedDocumentBytesMax} for facet setups and stop words.`,
  );
}

/** Returns whether a condition may name stop words documents. */
export function namesStopWords(where: Condition | null): boolean {
  if (where === null) return false;
  return where.kind === "more-like-this" || operandsOf(where).some(namesStopWords);
}

/**
 * Returns the words of all stop words documents that a condition names, in lower case, by id. @throws invalid-operation
 */
export function* stopWordsIn(
  where: Condition | null,
  source: Documents,
): Steps<ReadonlyMap<string, ReadonlySet<string>>> {
  const words = new Map<string, ReadonlySet<string>>();
  const open: Condition[] = where === null ? [] : [where];
  for (let condition = open.pop(); condition !== undefined; condition = open.pop()) {
    open.push(...operandsOf(condition));
    if (condition.kind !== "more-like-this") continue;
    const { stopWordsId: id } = condition;
    if (id !== null && !words.has(id)) words.set(id, yield* stopWordsOf(id, source));
  }
  return words;
}

function* stopWordsOf(id: string, source: Documents): Steps<ReadonlySet<string>> {
  const text = yield* documentText(id, source);
  if (text === null) {
    throw new EngineError("invalid-operation", `Stop words document ${id} could not be found`);
  }
  const list = parseQueryParameters(text).values.get("StopWords");
  const items = list?.type === "array" ? list.items : [];
  return new Set(items.flatMap((item) => (item.type === "string" ? [lowerCased(item.value)] : [])));
}
