/**
 * HiLo: ranges of numbers from which clients generate ids. The highest number allocated for a tag is in the document
 * `Raven/Hilo/<tag>`, `{"Max":n}`.
 *
 * Invariants:
 * - A range is durable before it is returned to a client, so that no number is allocated twice.
 */

import { EngineError } from "../base/errors.ts";
import { quoteString } from "../base/json/escape.ts";
import { findMember, ValueSpan } from "../base/json/field-access.ts";
import { withMetadata } from "../patching/transaction-script-host.ts";
import { scriptDocumentOf } from "../scripting/values/record-document.ts";
import { bodyTextOf } from "../state/documents/document-record.ts";
import type { Transaction } from "../state/store/transaction.ts";
import { putParsed } from "../writes/documents.ts";

const capacityMin = 32;
const capacityMax = 1_000_000;
const fastSeconds = 30;
const slowSeconds = 60;
const maxKey = quoteString("Max");

interface HiLoRange {
  /** Its first and last number, inclusive. */
  readonly low: number;
  readonly high: number;
}

/**
 * Returns the size of the next range for a client whose last range had `lastSize` numbers and was acquired at
 * `lastAtMicros` (0: never): larger if it was used up quickly, smaller if slowly.
 */
export function hiLoCapacity(lastSize: number, lastAtMicros: number, nowMicros: number): number {
  const size = Math.max(0, lastSize);
  if (lastAtMicros === 0) return Math.max(capacityMin, size);
  const seconds = (nowMicros - lastAtMicros) / 1e6;
  if (seconds < fastSeconds) return Math.min(Math.max(capacityMin, size * 2), capacityMax);
  if (seconds > slowSeconds) return Math.max(capacityMin, Math.floor(size / 2));
  return Math.max(capacityMin, size);
}

/** Allocates the next `capacity` numbers of a tag, above all allocated ones and above `lastMax`. */
export function nextHiLoRange(
  transaction: Transaction,
  tag: string,
  capacity: number,
  lastMax: number,
): HiLoRange {
  const id = idOf(tag);
  const low = Math.max(maxOf(transaction, id) ?? 0, lastMax) + 1;
  const high = low + capacity - 1;
  if (!Number.isSafeInteger(high)) {
    throw new EngineError("invalid-operation", `The numbers of '${tag}' are used up.`);
  }
  putMax(transaction, id, high);
  return { low, high };
}

/** Returns the numbers above `last` to the tag, if no other range was allocated since; otherwise does nothing. */
export function returnHiLoRange(
  transaction: Transaction,
  tag: string,
  end: number,
  last: number,
): void {
  const id = idOf(tag);
  if (maxOf(transaction, id) === end && last <= end) putMax(transaction, id, last);
}

function idOf(tag: string): string {
  return `Raven/Hilo/${tag}`;
}

/** Returns the highest allocated number; null when there is no document. @throws RecordNotResident */
function maxOf(transaction: Transaction, id: string): number | null {
  const document = transaction.find(id);
  if (document < 0) return null;
  const { bytes, start } = transaction.recordOf(document);
  const max = (JSON.parse(bodyTextOf(bytes, start)) as { Max?: unknown }).Max;
  // A number beyond the safe range means that all are used up: allocation must not restart.
  if (typeof max === "number" && max > Number.MAX_SAFE_INTEGER) return Number.MAX_SAFE_INTEGER;
  return typeof max === "number" && Number.isSafeInteger(max) ? max : 0;
}

/** Other fields of the document are kept, and so is its collection. */
function putMax(transaction: Transaction, id: string, max: number): void {
  const document = transaction.find(id);
  let body = `{"Max":${max}}`;
  let metadata: string | null = '{"@collection":"@hilo"}';
  if (document >= 0) {
    const { bytes, start } = transaction.recordOf(document);
    const stored = scriptDocumentOf(transaction.state, bytes, start);
    body = withMax(stored.bodyText(), max);
    metadata = stored.metadataText();
  }
  putParsed(transaction, id, transaction.state.parseText(withMetadata(body, metadata)));
}

/** `body`, minified JSON of an object, with another `Max`. */
function withMax(body: string, max: number): string {
  const bytes = Buffer.from(body);
  const span = new ValueSpan();
  if (findMember(bytes, 0, maxKey, span)) {
    return `${bytes.toString("utf8", 0, span.from)}${max}${bytes.toString("utf8", span.to)}`;
  }
  return body === "{}" ? `{"Max":${max}}` : `${body.slice(0, -1)},"Max":${max}}`;
}
