/**
 * Change vectors: the writes of each database that a state includes. As text, entries joined by `, `:
 *
 *   A:12-SujxUHKKb0KlgkspLLr2KQ, RAFT:1-3SeHpzjGgkee3Juiea+j6A
 *   tag : number - database's hash (22 characters of base64)
 *
 * The hash identifies the database; the tag is only for human readers. A missing entry counts as 0. Knows nothing of
 * documents.
 *
 * Invariants of a parsed vector:
 * - Entries are sorted by hash, and hashes are unique.
 */
import { createHash } from "node:crypto";
import { EngineError } from "../../base/errors.ts";

/** One entry: the first `etag` writes of the database with this hash are included. */
interface ChangeVectorEntry {
  readonly tag: string;
  /** An integer from 0, below 2^53. */
  readonly etag: number;
  /** 22 characters of base64. */
  readonly hash: string;
}

export type ChangeVector = readonly ChangeVectorEntry[];

const entryPattern = /^([A-Za-z]{1,16}):(\d{1,16})-([A-Za-z0-9+/]{22})$/;

/**
 * Parses a vector; spaces around entries are ignored. Of a repeated hash the larger number is kept. `""` is the empty
 * vector.
 * @throws EngineError `invalid-argument` when the text is not a change vector.
 */
export function parseChangeVector(text: string): ChangeVector {
  if (text === "") return [];
  const entries: ChangeVectorEntry[] = [];
  for (const part of text.split(",")) {
    const match = entryPattern.exec(part.trim());
    const etag = Number(match?.[2]);
    if (match === null || !Number.isSafeInteger(etag)) {
      throw new EngineError("invalid-argument", `'${text.slice(0, 200)}' is not a change vector`);
    }
    entries.push({ tag: match[1] as string, etag, hash: match[3] as string });
  }
  return mergeChangeVectors(entries, []);
}

/** Returns the text of a vector. */
export function formatChangeVector(vector: ChangeVector): string {
  return vector.map(({ tag, etag, hash }) => `${tag}:${etag}-${hash}`).join(", ");
}

/** Returns the smallest vector that includes both: for each hash the larger number, sorted by hash. */
export function mergeChangeVectors(a: ChangeVector, b: ChangeVector): ChangeVector {
  const largest = new Map<string, ChangeVectorEntry>();
  for (const entry of [...a, ...b]) {
    const other = largest.get(entry.hash);
    if (other === undefined || entry.etag > other.etag) largest.set(entry.hash, entry);
  }
  return [...largest.values()].sort((x, y) => (x.hash < y.hash ? -1 : 1));
}

/**
 * Returns the hash that identifies a database in change vectors: 128 bits of the hash of its parts, as 22 characters.
 */
export function databaseHash(...parts: readonly (string | Uint8Array)[]): string {
  const hash = createHash("sha256");
  for (const part of parts) {
    const bytes = typeof part === "string" ? Buffer.from(part, "utf8") : part;
    // Length-prefixed, so that no two lists of parts hash the same bytes.
    hash.update(`${bytes.length}:`).update(bytes);
  }
  return hash.digest().subarray(0, 16).toString("base64").slice(0, 22);
}
