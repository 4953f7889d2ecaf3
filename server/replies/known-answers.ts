/**
 * Answers to queries that were asked more than once. Whether one is still valid is told by its etag, which is a hash of
 * the state that the query reads: while that is the same, the same request gets the same bytes, except the time of the query.
 *
 * An answer is kept when its request comes a second time, so that requests that are not repeated cost next to nothing: of
 * those only a hash is looked at, and remembered.
 *
 * Invariants:
 * - What a request is known by contains everything that its answer depends on, besides the state: the database and its
 *   settings, the address, the text, the parameters and options.
 */
import { RecentCache } from "../../engine/base/recent-cache.ts";
import { timestampBytes, writeTimestamp } from "../../engine/base/timestamp.ts";
import type { AnsweringIndex, Database, QueryOutcome } from "../../engine/engine.ts";
import type { QueryRequest } from "./query-request.ts";

/** Bytes of all answers, and of one. */
const answersBytesMax = 4 * 1024 * 1024;
const answerBytesMax = 64 * 1024;
/** UTF-16 units of a request that may be repeated. */
const requestLengthMax = 2048;
/** Hashes of requests that came, each in the place that it says itself: a newer one replaces an older one. */
const seenMask = 0x3fff;
const seen = new Uint32Array(seenMask + 1);

const queryTime = '"LastQueryTime":"';

/** An answer, and what it is valid for. */
interface KnownAnswer {
  readonly etag: number;
  readonly body: Buffer;
  /** As in `QueryOutcome`. */
  readonly indexName: string;
  readonly indexTimestamp: number;
  readonly definitionEtag: number | undefined;
  /** Where the time of the query is written; -1: it has none. */
  readonly timeAt: number;
}

const answers = new RecentCache<KnownAnswer>(answersBytesMax);
const serials = new WeakMap<object, number>();
let nextSerial = 1;

/**
 * What a request is known by; null: it probably comes for the first time, or is too long to be remembered. `address`: the
 * query string as sent.
 */
export function requestKey(
  database: Database,
  address: string,
  { text, options }: QueryRequest,
): string | null {
  const { parametersText = "", start, pageSize, waitForNonStale, timeoutMs } = options;
  const length = text.length + address.length + (parametersText?.length ?? 0);
  if (length > requestLengthMax || !hasCome(database, text, parametersText ?? "")) return null;
  const { skipDuplicateChecking, projectionBehavior } = options;
  return (
    `${serialOf(database)} ${serialOf(database.settings)} ${start} ${pageSize} ${waitForNonStale} ${timeoutMs} ${skipDuplicateChecking} ${projectionBehavior} ` +
    `${text.length} ${address.length} ${text}${address}${parametersText}`
  );
}

/** Whether a request like this one has come before, as far as is remembered. Hot. */
function hasCome(database: Database, text: string, parametersText: string): boolean {
  const hash = hashOf(parametersText, hashOf(text, serialOf(database)));
  const place = (hash ^ (hash >>> 15)) & seenMask;
  if (seen[place] === hash) return true;
  seen[place] = hash;
  return false;
}

/** FNV-1a of a text's units, 32 bits. */
function hashOf(text: string, seed: number): number {
  let hash = seed ^ 0x811c_9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x0100_0193);
  return hash >>> 0;
}

/** A number for each open database, and for its settings as they are now: neither is the same after a change. */
function serialOf(one: object): number {
  let serial = serials.get(one);
  if (serial === undefined) {
    serial = nextSerial++;
    serials.set(one, serial);
  }
  return serial;
}

export function knownAnswer(key: string): KnownAnswer | undefined {
  return answers.get(key);
}

/** Whether a query that now has this etag, and this index if it uses one, would be answered with the same. */
export function isStillValid(
  known: KnownAnswer,
  { indexes }: Database,
  etag: number,
  index: AnsweringIndex | null,
): boolean {
  if (known.etag !== etag) return false;
  if (index === null) return true;
  const { name, indexedAtMicros } = index;
  return (
    known.indexName === name &&
    known.indexTimestamp === indexedAtMicros &&
    known.definitionEtag === indexes.definitionEtag(name)
  );
}

/** Remembers the answer to a request that has come before. */
export function rememberAnswer(
  { indexes }: Database,
  key: string,
  outcome: QueryOutcome,
  body: Buffer,
): void {
  const isKept = !outcome.isStale && outcome.timings === null && body.length <= answerBytesMax;
  if (!isKept) return;
  const found = outcome.lastQueryTime === 0 ? -1 : body.lastIndexOf(queryTime);
  const timeAt = found < 0 ? -1 : found + queryTime.length;
  const { resultEtag, indexName, indexTimestamp } = outcome;
  const definitionEtag = indexes.definitionEtag(indexName);
  const kept = Buffer.from(body);
  const answer = {
    etag: resultEtag,
    body: kept,
    indexName,
    indexTimestamp,
    definitionEtag,
    timeAt,
  };
  answers.set(key, answer, body.length);
}

/** The bytes of a known answer at this time, in microseconds since 1970. */
export function bodyAt({ body, timeAt }: KnownAnswer, nowMicros: number): Buffer {
  if (timeAt < 0) return body;
  const now = Buffer.from(body);
  writeTimestamp(now.subarray(timeAt, timeAt + timestampBytes), 0, nowMicros);
  return now;
}
