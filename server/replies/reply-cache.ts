/**
 * Answers to queries that were asked more than once. Whether one is still valid is told by its etag, which is a hash of
 * the state that the query reads: while that is the same, the same request gets the same bytes, except the time of the query.
 * So the body of a request that is known is not even parsed.
 *
 * An answer is kept when its request comes a second time, so that requests that are not repeated cost next to nothing: of
 * those only a hash is looked at, and remembered.
 *
 * Invariants:
 * - What a request is known by contains everything that its answer depends on, besides the state: the database and its
 *   settings, the address, the bytes of the body.
 */
import { RecentCache } from "../../engine/base/recent-cache.ts";
import { timestampBytes, writeTimestamp } from "../../engine/base/timestamp.ts";
import type { AnsweringIndex, Database, KeptQuery, QueryOutcome } from "../../engine/engine.ts";
import type { QueryRequest } from "./query-request.ts";

/** Bytes of all answers, and of one. */
const answersBytesMax = 4 * 1024 * 1024;
const answerBytesMax = 64 * 1024;
/** Bytes of an analyzed query for each character of its request, about: most of it belongs to all with the same text. */
const analysisBytes = 8;
/** Length of the address and the body of a request that may be repeated. */
const requestLengthMax = 2048;
/** Hashes of requests that came, each in the place that it says itself: a newer one replaces an older one. */
const seenMask = 0x3fff;
const seen = new Uint32Array(seenMask + 1);

const queryTime = '"LastQueryTime":"';

/** An answer, and what it is valid for. */
export interface CachedReply {
  readonly query: KeptQuery;
  readonly etag: number;
  readonly body: Buffer;
  /** As in `QueryOutcome`. */
  readonly indexName: string;
  readonly indexTimestamp: number;
  readonly definitionEtag: number | undefined;
  /** Where the time of the query is written; -1: it has none. */
  readonly timeAt: number;
}

const answers = new RecentCache<CachedReply>(answersBytesMax);
const serials = new WeakMap<object, number>();
let nextSerial = 1;

/**
 * What a request is known by; null: it probably comes for the first time, or is too long to be remembered. `address`: the
 * query string as sent. Hot.
 */
export function requestKey(database: Database, address: string, body: Buffer): string | null {
  if (body.length + address.length > requestLengthMax) return null;
  const serial = serialOf(database);
  if (!hasCome(hashOfBytes(body, hashOf(address, serial)))) return null;
  return `${serial} ${serialOf(database.settings)} ${address.length} ${address}${body.latin1Slice()}`;
}

/** Whether a request with this hash has come before, as far as is remembered. */
function hasCome(hash: number): boolean {
  const place = (hash ^ (hash >>> 15)) & seenMask;
  if (seen[place] === hash) return true;
  seen[place] = hash;
  return false;
}

/** As `hashOf`, of bytes. */
function hashOfBytes(bytes: Buffer, seed: number): number {
  let hash = seed ^ 0x811c_9dc5;
  for (let i = 0; i < bytes.length; i++) {
    hash = Math.imul(hash ^ (bytes[i] as number), 0x0100_0193); // i < length
  }
  return hash >>> 0;
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

/** The answer to a request that would get the same one now; undefined: there is none. */
export function cachedReply(database: Database, key: string): CachedReply | undefined {
  const known = answers.get(key);
  if (known === undefined) return undefined;
  const { indexes, queries } = database;
  const isSame = ({ name, indexedAtMicros }: AnsweringIndex) =>
    known.indexName === name &&
    known.indexTimestamp === indexedAtMicros &&
    known.definitionEtag === indexes.definitionEtag(name);
  return queries.isUnchanged(known.query, known.etag, isSame) ? known : undefined;
}

/** Remembers the answer to a request that has come before. */
export function cacheReply(
  { indexes, queries }: Database,
  key: string,
  { text, options }: QueryRequest,
  outcome: QueryOutcome,
  body: Buffer,
): void {
  const isKept = !outcome.isStale && outcome.timings === null && body.length <= answerBytesMax;
  const query = isKept ? queries.kept(text, options) : null;
  if (query === null) return;
  const found = outcome.lastQueryTime === 0 ? -1 : body.lastIndexOf(queryTime);
  const timeAt = found < 0 ? -1 : found + queryTime.length;
  const { resultEtag, indexName, indexTimestamp } = outcome;
  const definitionEtag = indexes.definitionEtag(indexName);
  const kept = Buffer.from(body);
  const answer = {
    query,
    etag: resultEtag,
    body: kept,
    indexName,
    indexTimestamp,
    definitionEtag,
    timeAt,
  };
  answers.set(key, answer, body.length + analysisBytes * key.length);
}

/** The bytes of a known answer at this time, in microseconds since 1970. */
export function bodyAt({ body, timeAt }: CachedReply, nowMicros: number): Buffer {
  if (timeAt < 0) return body;
  const now = Buffer.from(body);
  writeTimestamp(now.subarray(timeAt, timeAt + timestampBytes), 0, nowMicros);
  return now;
}
