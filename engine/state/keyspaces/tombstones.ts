/**
 * Tombstones: deletions, in etag order, for the followers of a database's changes (indexes, subscriptions, exports).
 * The purge removes tombstones that all followers have passed.
 *
 * A document stored again in its collection loses its tombstone. That needs no record, as replaying the document does
 * the same.
 */

import { foldedName, lowerCased } from "../../base/case-folding.ts";
import { recordKinds } from "../../base/record.ts";
import { EntryKeyspace, numberKey } from "./entry-keyspace.ts";
import type { DeadRecordListener } from "./keyspace.ts";

/** One deletion. `collection` is the name of the document's collection. */
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

/** Key of one tombstone. */
export const tombstoneKey = numberKey;

export class Tombstones {
  readonly records: EntryKeyspace<Tombstone>;
  /** A follower that starts at an etag below this one may have missed deletions. */
  purgedThrough = 0;
  /**
   * If set, purged tombstones stay until `dropPurged`, which removes some at a time. During replay they are removed
   * immediately, so that they are never all in memory.
   */
  dropsLater = false;
  /** Lower-cased id of a deleted document -> key of its tombstone. */
  readonly #byDocument = new Map<string, string>();
  /** Id of an attachment's tombstone -> its key. */
  readonly #byAttachment = new Map<string, string>();
  /** Lower-cased collection -> etag of the last document deleted from it. */
  readonly #newest = new Map<string, number>();
  /** A collection as in a tombstone, and lower-cased: neighbors are mostly of the same. */
  #collection = "";
  #lowerCollection = "";
  #newestOfAll = 0;

  /** `forgotten` is called with the lower-cased id of each document whose tombstone is removed. */
  constructor(dead: DeadRecordListener, forgotten: (id: string) => void) {
    this.records = new EntryKeyspace<Tombstone>("tombstones", recordKinds.tombstone, dead);
    this.records.listen((key, tombstone, previous) => {
      if (previous?.type === "document") {
        const id = lowerCased(previous.id);
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
        const id = lowerCased(tombstone.id);
        this.dropDocument(id, tombstone.collection);
        this.#byDocument.set(id, key);
        this.#note(tombstone);
      }
    });
  }

  /** Returns the etag of the newest deletion from a collection (null: any), as far as tombstones show; 0 for none. */
  newestEtagOf(collection: string | null): number {
    if (collection === null) return this.#newestOfAll;
    return this.#newest.get(foldedName(collection)) ?? 0;
  }

  /** Tombstones of documents of a collection (null: any) with a greater etag, in etag order. */
  *documentsSince(collection: string | null, etag: number): Generator<Tombstone> {
    const lower = collection === null ? null : foldedName(collection);
    for (const [, tombstone] of this.records.from(tombstoneKey(etag + 1))) {
      if (tombstone.type !== "document") continue;
      if (lower === null || foldedName(tombstone.collection) === lower) yield tombstone;
    }
  }

  #note({ collection, etag }: Tombstone): void {
    if (collection !== this.#collection) {
      this.#collection = collection;
      this.#lowerCollection = foldedName(collection);
    }
    const lower = this.#lowerCollection;
    if (etag > (this.#newest.get(lower) ?? 0)) this.#newest.set(lower, etag);
    if (etag > this.#newestOfAll) this.#newestOfAll = etag;
  }

  /** Returns whether the document with this lower-cased id has a tombstone. */
  hasDocument(lowerId: string): boolean {
    return this.#byDocument.has(lowerId);
  }

  /** Returns the key of an attachment's tombstone, by its id; undefined if it does not exist. */
  keyOfAttachment(id: string): string | undefined {
    return this.#byAttachment.get(id);
  }

  get isEmpty(): boolean {
    return this.#byDocument.size === 0;
  }

  /**
   * The document is stored again, or deleted again, in this collection. A tombstone of another collection stays:
   * readers that follow that collection need it.
   */
  dropDocument(lowerId: string, collection: string): void {
    const key = this.#byDocument.get(lowerId);
    if (key === undefined) return;
    const tombstone = this.records.get(key);
    if (tombstone === undefined || foldedName(tombstone.collection) !== foldedName(collection))
      return;
    this.records.drop(key);
  }

  get count(): number {
    return this.records.count;
  }

  /**
   * Marks the tombstones up to `etag`, inclusive, as purged. The value under `purgedThroughKey` makes this durable.
   * @returns how many were removed: none while `dropsLater`.
   */
  purgeThrough(etag: number): number {
    this.purgedThrough = etag;
    return this.dropsLater ? 0 : this.dropPurged(Number.POSITIVE_INFINITY);
  }

  /**
   * Removes the oldest purged tombstones, at most `count`. @param passed the etag that all followers of this node have
   * reached: another node, which decides what is purged, does not know them. @returns the number removed; fewer than
   * `count` if none remains.
   */
  dropPurged(count: number, passed = Number.POSITIVE_INFINITY): number {
    const keys = this.#keysThrough(Math.min(this.purgedThrough, passed), count);
    for (const key of keys) this.records.drop(key);
    return keys.length;
  }

  /** Returns the etag of the last tombstone at or below `etag` that is not purged; 0 if no such tombstone exists. */
  lastEtagThrough(etag: number): number {
    for (const [key] of this.records.rangeDown("", tombstoneKey(etag))) {
      const last = Number(key);
      return last > this.purgedThrough ? last : 0;
    }
    return 0;
  }

  /** Returns the first keys up to an etag, `count` at most. */
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
