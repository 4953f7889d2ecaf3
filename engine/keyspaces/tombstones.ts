/**
 * Tombstones: what was deleted, in the order of etags, for whoever follows the changes of a database (indexes,
 * subscriptions, exports). The cleaner drops those that all followers have passed.
 *
 * A document that is stored again in its collection loses its tombstone: that needs no record, replay of the document
 * does it too.
 */

import { recordKinds } from "../log/record.ts";
import { EntryKeyspace } from "./entry-keyspace.ts";
import type { DeadRecordListener } from "./keyspace.ts";

/** One deletion. `collection` is the name of the collection of the document. */
export interface Tombstone {
  readonly type: "document" | "attachment" | "revision";
  readonly id: string;
  /** Of a revision: its own etag. */
  readonly revision?: number;
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
  /**
   * Those that are purged stay until `dropPurged`, which takes some at a time. While the log is replayed they go at once,
   * so that they are never all in memory.
   */
  dropsLater = false;
  /** Lower-cased id of a deleted document -> key of its tombstone. */
  readonly #byDocument = new Map<string, string>();
  /** What the tombstone of an attachment is of -> its key. */
  readonly #byAttachment = new Map<string, string>();
  /** Lower-cased collection -> the etag of the last document that was deleted from it. */
  readonly #newest = new Map<string, number>();
  #newestOfAll = 0;

  /** `forgotten`: hears of the lower-cased id of each document whose tombstone is gone. */
  constructor(dead: DeadRecordListener, forgotten: (id: string) => void) {
    this.records = new EntryKeyspace<Tombstone>("tombstones", recordKinds.tombstone, dead);
    this.records.listen((key, tombstone, previous) => {
      if (previous?.type === "document") {
        const id = previous.id.toLowerCase();
        if (this.#byDocument.get(id) === key) {
          this.#byDocument.delete(id);
          forgotten(id);
        }
      }
      if (previous?.type === "attachment" && this.#byAttachment.get(previous.id) === key) {
        this.#byAttachment.delete(previous.id);
      }
      if (tombstone?.type === "attachment") this.#byAttachment.set(tombstone.id, key);
      if (tombstone?.type === "document") {
        this.dropDocument(tombstone.id.toLowerCase(), tombstone.collection);
        this.#byDocument.set(tombstone.id.toLowerCase(), key);
        this.#note(tombstone);
      }
    });
  }

  /** The etag of the newest deletion from a collection (null: any), as far as tombstones tell; 0 for none. */
  newestEtagOf(collection: string | null): number {
    if (collection === null) return this.#newestOfAll;
    return this.#newest.get(collection.toLowerCase()) ?? 0;
  }

  /** Tombstones of documents of a collection (null: any) with a greater etag, in the order of etags. */
  *documentsSince(collection: string | null, etag: number): Generator<Tombstone> {
    const lower = collection?.toLowerCase();
    for (const [, tombstone] of this.records.from(tombstoneKey(etag + 1))) {
      if (tombstone.type !== "document") continue;
      if (lower === undefined || tombstone.collection.toLowerCase() === lower) yield tombstone;
    }
  }

  #note({ collection, etag }: Tombstone): void {
    const lower = collection.toLowerCase();
    if (etag > (this.#newest.get(lower) ?? 0)) this.#newest.set(lower, etag);
    if (etag > this.#newestOfAll) this.#newestOfAll = etag;
  }

  /** Is the deletion of the document with this lower-cased id still remembered? */
  hasDocument(lowerId: string): boolean {
    return this.#byDocument.has(lowerId);
  }

  /** The key of the tombstone of an attachment, by what it is of; undefined: there is none. */
  keyOfAttachment(id: string): string | undefined {
    return this.#byAttachment.get(id);
  }

  get isEmpty(): boolean {
    return this.#byDocument.size === 0;
  }

  /**
   * The document is stored again, or deleted once more, in this collection. A tombstone of another collection stays:
   * only it tells the followers of that one.
   */
  dropDocument(lowerId: string, collection: string): void {
    const key = this.#byDocument.get(lowerId);
    if (key === undefined) return;
    const tombstone = this.records.get(key);
    if (tombstone?.collection.toLowerCase() !== collection.toLowerCase()) return;
    this.records.drop(key);
  }

  get count(): number {
    return this.records.count;
  }

  /**
   * Nobody needs those up to `etag`, inclusive. What makes it durable is the value under `purgedThroughKey`.
   * @returns how many were dropped: none while `dropsLater`.
   */
  purgeThrough(etag: number): number {
    this.purgedThrough = etag;
    return this.dropsLater ? 0 : this.dropPurged(Number.POSITIVE_INFINITY);
  }

  /** Drops the first of those that nobody needs, `count` at most. @returns how many; fewer when it was all of them. */
  dropPurged(count: number): number {
    const keys = this.#keysThrough(this.purgedThrough, count);
    for (const key of keys) this.records.drop(key);
    return keys.length;
  }

  /** The etag of the last tombstone that is not above `etag` and not purged; 0 when there is none. */
  lastEtagThrough(etag: number): number {
    for (const [key] of this.records.rangeDown("", tombstoneKey(etag))) {
      const last = Number(key);
      return last > this.purgedThrough ? last : 0;
    }
    return 0;
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
