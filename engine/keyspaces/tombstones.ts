/**
 * Tombstones: what was deleted, in the order of etags, for whoever follows the changes of a database (indexes,
 * subscriptions, exports). The cleaner drops those that all followers have passed.
 *
 * A document that is stored again loses its tombstone: that needs no record, replay of the document does it too.
 */

import { recordKinds } from "../log/record.ts";
import { EntryKeyspace } from "./entry-keyspace.ts";
import type { DeadRecordListener } from "./keyspace.ts";

/** One deletion. `collection` is the name of the collection of the document. */
export interface Tombstone {
  readonly type: "document" | "attachment" | "revision";
  readonly id: string;
  readonly collection: string;
  readonly etag: number;
  readonly changeVector: string;
  /** Microseconds since 1970. */
  readonly lastModified: number;
}

/** Key among the values of the database: tombstones up to this etag are purged. */
export const purgedThroughKey = "tombstones-purged-through";

/** Keys sort as etags do. */
export function tombstoneKey(etag: number): string {
  return etag.toString().padStart(16, "0");
}

export class Tombstones {
  readonly records: EntryKeyspace<Tombstone>;
  /** Whoever follows changes from an etag below this one may have missed deletions. */
  purgedThrough = 0;
  /** Lower-cased id of a deleted document -> key of its tombstone. */
  readonly #byDocument = new Map<string, string>();

  constructor(dead: DeadRecordListener) {
    this.records = new EntryKeyspace<Tombstone>("tombstones", recordKinds.tombstone, dead);
    this.records.listen((key, tombstone, previous) => {
      if (previous?.type === "document") {
        const id = previous.id.toLowerCase();
        if (this.#byDocument.get(id) === key) this.#byDocument.delete(id);
      }
      if (tombstone?.type === "document") {
        this.dropDocument(tombstone.id.toLowerCase());
        this.#byDocument.set(tombstone.id.toLowerCase(), key);
      }
    });
  }

  get isEmpty(): boolean {
    return this.#byDocument.size === 0;
  }

  /** The document is stored again, or deleted once more. */
  dropDocument(lowerId: string): void {
    const key = this.#byDocument.get(lowerId);
    if (key !== undefined) this.records.drop(key);
  }

  get count(): number {
    return this.records.count;
  }

  /** Drops those up to `etag`, inclusive. What makes it durable is the value under `purgedThroughKey`. */
  purgeThrough(etag: number): void {
    this.purgedThrough = etag;
    for (const key of this.#keysThrough(etag, Number.POSITIVE_INFINITY)) this.records.drop(key);
  }

  /** The etag of the last of the first `count` tombstones that are not above `etag`; 0 when there is none. */
  nthEtagThrough(etag: number, count: number): number {
    return Number(this.#keysThrough(etag, count).at(-1) ?? 0);
  }

  /** The first keys up to an etag, `count` at most. */
  #keysThrough(etag: number, count: number): string[] {
    const end = tombstoneKey(etag);
    const keys: string[] = [];
    for (const [key] of this.records.withPrefix("")) {
      if (key > end || keys.length === count) break;
      keys.push(key);
    }
    return keys;
  }
}
