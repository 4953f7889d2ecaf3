/**
 * Reply cache for repeated queries. A cached reply is valid while its etag, a hash of the state that the query reads, is
 * unchanged: the same request then gets the same bytes, except for the time of the query. The body of such a request is
 * not even parsed.
 *
 * A reply is cached at the second occurrence of its request, so requests that are not repeated cost next to nothing: only
 * a hash of them is computed and stored.
 * A repeated query takes 0.44 to 0.59 times the processor time of all threads (docs/measured.md).
 *
 * Invariants:
 * - The key of a request covers everything that its reply depends on besides the state: the database and its settings, the
 *   address, and the bytes of the body.
 */
import { RecentCache } from "../../engine/base/memory/recent-cache.ts";
import { timestampBytes, writeTimestamp } from "../../engine/base/timestamp.ts";
import type {
  AnsweringIndex,
  CacheableQuery,
  Database,
  QueryOutcome,
} from "../../engine/engine.ts";
import type { QueryRequest } from "./query-request.ts";

/** Maximum size of all cached replies, and of one, in bytes. */
const answersBytesMax = 4 * 1024 * 1024;
const answerBytesMax = 64 * 1024;
/** Approximate size of an analyzed query per character of its request, in bytes; requests with the same text share most of it. */
const analysisBytes = 8;
/** Maximum length of the address and the body of a cached request. */
const requestLengthMax = 2048;
/** Hashes of received requests. The slot is determined by the hash; a new hash replaces an old one. */
const seenMask = 0x3fff;
const seen = new Uint32Array(seenMask + 1);

const queryTime = '"LastQueryTime":"';

/** A reply, and the state that it is valid for. */
interface CachedReply {
  readonly query: CacheableQuery;
  readonly etag: number;
  readonly body: Buffer;
  /** As in `QueryOutcome`. */
  readonly indexName: string;
  readonly indexTimestamp: number;
  readonly definitionEtag: number | undefined;
  /** Position of the time of the query, or -1 if the reply has none. */
  readonly timeAt: number;
}

const answers = new RecentCache<CachedReply>(answersBytesMax);
const serials = new WeakMap<object, number>();
let nextSerial = 1;

/**
 * Returns the cache key of a request, or null if the request is probably the first of its kind or too long. `address` is
 * the query string as sent. Hot.
 */
export function requestKey(database: Database, address: string, body: Buffer): string | null {
  if (body.length + address.length > requestLengthMax) return null;
  const serial = serialOf(database);
  if (!hasCome(hashOfBytes(body, hashOf(address, serial)))) return null;
  return `${serial} ${serialOf(database.settings)} ${address.length} ${address}${body.latin1Slice()}`;
}

/** Returns whether a request with this hash was received before, as far as is recorded. */
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

/** Returns a number for each open database, and for its current settings; a change yields a new number. */
function serialOf(one: object): number {
  let serial = serials.get(one);
  if (serial === undefined) {
    serial = nextSerial++;
    serials.set(one, serial);
  }
  return serial;
}

/** Returns the cached reply if it is still valid, or undefined. */
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

/** Caches the reply to a request that was received before. */
export function cacheReply(
  { indexes, queries }: Database,
  key: string,
  { text, options }: QueryRequest,
  outcome: QueryOutcome,
  body: Buffer,
): void {
  const isKept = !outcome.isStale && outcome.timings === null && body.length <= answerBytesMax;
  const query = isKept ? queries.cacheable(text, options) : null;
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

/** Returns the bytes of a cached reply with the given time, in microseconds since the Unix epoch. */
export function bodyAt({ body, timeAt }: CachedReply, nowMicros: number): Buffer {
  if (timeAt < 0) return body;
  const now = Buffer.from(body);
  writeTimestamp(now.subarray(timeAt, timeAt + timestampBytes), 0, nowMicros);
  return now;
}
