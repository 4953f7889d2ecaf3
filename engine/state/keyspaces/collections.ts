/**
 * Collections: names and the small numbers that represent them in rows. A collection is created by the first document
 * that names it, keeps that spelling, and is never removed (its number is on disk in every record).
 *
 * Number 0 is `@empty`, the collection of documents without one; it has no record.
 */

import { assert } from "../../base/assert.ts";
import { foldedName } from "../../base/case-folding.ts";
import { EngineError } from "../../base/errors.ts";
import { collectionCountMax } from "../../base/limits.ts";
import { checkCollectionName } from "../../base/names.ts";
import { recordKinds } from "../../base/record.ts";
import { EntryKeyspace } from "./entry-keyspace.ts";
import type { DeadRecordListener } from "./keyspace.ts";

export const emptyCollectionId = 0;
const emptyCollectionName = "@empty";

/** The record of a collection; its key is the lower-cased name. */
interface CollectionEntry {
  readonly id: number;
  readonly name: string;
}

/**
 * A number is assigned immediately when a transaction uses a new collection, and released when that transaction fails;
 * each transaction that uses a number without a durable or staged record writes one.
 */
export class Collections {
  readonly records: EntryKeyspace<CollectionEntry>;
  readonly #names: string[] = [emptyCollectionName];
  /** 1 where the record is durable. */
  readonly #recorded: number[] = [1];
  readonly #ids = new Map<string, number>([[emptyCollectionName, emptyCollectionId]]);
  #lastName = emptyCollectionName;
  #lastId = emptyCollectionId;

  constructor(dead: DeadRecordListener) {
    this.records = new EntryKeyspace<CollectionEntry>("collections", recordKinds.collection, dead);
    this.records.listen((_key, entry) => {
      if (entry !== undefined) this.#learn(entry);
    });
  }

  /** Returns the number of `name`, or -1 when no document ever named it. */
  find(name: string): number {
    // Neighbors in a bulk insert share a collection: the same string object, so that no character is compared.
    if (name === this.#lastName) return this.#lastId;
    const id = this.#ids.get(name) ?? this.#ids.get(foldedName(name)) ?? -1;
    if (id < 0) return id;
    this.#lastName = name;
    this.#lastId = id;
    return id;
  }

  /**
   * Returns the number of `name`, a new one if need be. @throws EngineError invalid-argument; too-large for too many
   */
  intern(name: string): number {
    const known = this.find(name);
    if (known >= 0) return known;
    checkCollectionName(name);
    const id = this.#names.length;
    if (id >= collectionCountMax) {
      throw new EngineError(
        "too-large",
        `A database has at most ${collectionCountMax} collections; '${name}' would be one more.`,
      );
    }
    this.#names.push(name);
    this.#ids.set(foldedName(name), id);
    return id;
  }

  /**
   * Releases the newest numbers that no transaction has recorded: numbers of a failed transaction. @returns whether
   * there were any.
   */
  forgetUnused(): boolean {
    let isAny = false;
    for (let id = this.#names.length - 1; id > emptyCollectionId; id--) {
      const key = foldedName(this.#names[id] as string); // id < length
      if (this.isRecorded(id) || this.records.newest(key) !== undefined) break;
      this.#names.pop();
      this.#ids.delete(key);
      isAny = true;
    }
    if (isAny) {
      this.#lastName = emptyCollectionName;
      this.#lastId = emptyCollectionId;
    }
    return isAny;
  }

  /** Returns the name in its first spelling. */
  nameOf(id: number): string {
    const name = this.#names[id];
    assert(name !== undefined, "rows name collections that exist");
    return name;
  }

  get count(): number {
    return this.#names.length;
  }

  /** Returns whether the number's record is durable. The empty collection needs none. */
  isRecorded(id: number): boolean {
    return this.#recorded[id] === 1;
  }

  /** Collections of older databases may have names that are one by the present rules: each is found by its own spelling. */
  #learn(entry: CollectionEntry): void {
    while (this.#names.length <= entry.id) this.#names.push("");
    this.#names[entry.id] = entry.name;
    this.#recorded[entry.id] = 1;
    const key = foldedName(entry.name);
    const known = this.#ids.get(key);
    if (known === undefined || known === entry.id) this.#ids.set(key, entry.id);
    else this.#ids.set(entry.name, entry.id);
  }
}
