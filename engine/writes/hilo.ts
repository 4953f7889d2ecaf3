/**
 * HiLo: ranges of numbers that clients take to make ids of their own. The highest number given out for a tag is in
 * the document `Raven/Hilo/<tag>`, `{"Max":n}`.
 *
 * Invariants:
 * - A range is durable before a client hears of it, so that no number is given twice.
 */

import { bodyTextOf } from "../document-record.ts";
import { EngineError } from "../errors.ts";
import { quoteString } from "../json/escape.ts";
import { findMember, ValueSpan } from "../json/field-access.ts";
import { scriptDocumentOf } from "../scripting/record-document.ts";
import type { Transaction } from "../transaction.ts";
import { withMetadata } from "../transaction-script-host.ts";
import { putParsed } from "./documents.ts";

const capacityMin = 32;
const capacityMax = 1_000_000;
const fastSeconds = 30;
const slowSeconds = 60;
const maxKey = quoteString("Max");
const span = new ValueSpan();

export interface HiLoRange {
  /** The first and the last number of it. */
  readonly low: number;
  readonly high: number;
}

/**
 * How many numbers a client gets that had `lastSize` of them at `lastAtMicros` (0: never): more when it used them
 * up quickly, fewer when it did not.
 */
export function hiLoCapacity(lastSize: number, lastAtMicros: number, nowMicros: number): number {
  const size = Math.max(0, lastSize);
  if (lastAtMicros === 0) return Math.max(capacityMin, size);
  const seconds = (nowMicros - lastAtMicros) / 1e6;
  if (seconds < fastSeconds) return Math.min(Math.max(capacityMin, size * 2), capacityMax);
  if (seconds > slowSeconds) return Math.max(capacityMin, Math.floor(size / 2));
  return Math.max(capacityMin, size);
}

/** Takes the next `capacity` numbers of a tag, above all given out and above `lastMax`. */
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

/** Gives back the numbers above `last` when no other range was taken since. Does nothing otherwise. */
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

/** The highest number given out; null when there is no document. @throws RecordNotResident */
function maxOf(transaction: Transaction, id: string): number | null {
  const document = transaction.find(id);
  if (document < 0) return null;
  const { bytes, start } = transaction.recordOf(document);
  const max = (JSON.parse(bodyTextOf(bytes, start)) as { Max?: unknown }).Max;
  // Beyond what can be counted nothing is left: it must not begin anew.
  if (typeof max === "number" && max > Number.MAX_SAFE_INTEGER) return Number.MAX_SAFE_INTEGER;
  return typeof max === "number" && Number.isSafeInteger(max) ? max : 0;
}

/** What else a client has put into the document stays, and so does its collection. */
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
  transaction.state.parseText(withMetadata(body, metadata));
  putParsed(transaction, id);
}

/** `body`, minified JSON of an object, with another `Max`. */
function withMax(body: string, max: number): string {
  const bytes = Buffer.from(body);
  if (findMember(bytes, 0, maxKey, span)) {
    return `${bytes.toString("utf8", 0, span.from)}${max}${bytes.toString("utf8", span.to)}`;
  }
  return body === "{}" ? `{"Max":${max}}` : `${body.slice(0, -1)},"Max":${max}}`;
}
