/**
 * The documents that an operation by query visits: the documents of a collection in etag order, or the results of an
 * index.
 *
 * Invariants:
 * - A document of a collection that was written after the operation began is not among them.
 */
import { allCollections } from "../../state/keyspaces/document-table.ts";
import type { Store } from "../../state/store/store.ts";

/** Document numbers, a batch at a time. */
export interface NumberSource {
  readonly total: number;
  /** Documents with a greater etag are skipped. */
  readonly etagMax: number;
  fill(batch: Uint32Array, limit: number): number;
  /** Lower bound of the etags that follow the documents filled in so far; 0 if the source is not in etag order. */
  readonly nextEtag: number;
}

/** Documents found beforehand. */
export class ListSource implements NumberSource {
  readonly total: number;
  readonly etagMax: number;
  readonly nextEtag = 0;
  readonly #numbers: Uint32Array;
  #at = 0;

  constructor(numbers: Uint32Array, etagMax: number) {
    this.#numbers = numbers;
    this.total = numbers.length;
    this.etagMax = etagMax;
  }

  fill(batch: Uint32Array, limit: number): number {
    const part = this.#numbers.subarray(this.#at, this.#at + limit);
    batch.set(part);
    this.#at += part.length;
    return part.length;
  }
}

/**
 * A collection in etag order as of the start: documents written later have a greater etag, and a rewritten document has
 * lost its old one. The collection of all documents excludes the documents that store clients' id ranges.
 */
export class CollectionSource implements NumberSource {
  readonly total: number;
  readonly etagMax: number;
  readonly #database: Store;
  readonly #cursor: { fill(batch: Uint32Array, limit: number): number };
  readonly #leftOut: number;
  #toSkip: number;
  #toTake: number;
  nextEtag: number;

  /** `etagMin`: etag to resume at; 0 to start at the beginning. */
  constructor(
    database: Store,
    collection: number,
    etagMax: number,
    skip: number,
    take: number,
    etagMin = 0,
  ) {
    const { documents, keyspaces } = database.state;
    this.#database = database;
    this.etagMax = etagMax;
    this.#cursor = documents.byEtag(collection, etagMin);
    this.nextEtag = etagMin;
    this.#leftOut = collection === allCollections ? keyspaces.collections.find("@hilo") : -1;
    const count =
      collection === allCollections
        ? documents.documentCount - documents.countOfCollection(this.#leftOut)
        : documents.countOfCollection(collection);
    this.total = Math.max(0, Math.min(take, count - skip));
    this.#toSkip = skip;
    this.#toTake = take;
  }

  fill(batch: Uint32Array, limit: number): number {
    const count = this.#fill(batch, limit);
    if (count === 0) return 0;
    const last = batch[count - 1] as number; // count > 0
    this.nextEtag = this.#database.state.documents.etagOf(last) + 1;
    return count;
  }

  #fill(batch: Uint32Array, limit: number): number {
    const { documents } = this.#database.state;
    for (;;) {
      const count = this.#cursor.fill(batch, limit);
      if (this.#takesAll(batch, count)) {
        this.#toTake -= count;
        return count;
      }
      let kept = 0;
      for (let i = 0; i < count && this.#toTake > 0; i++) {
        const document = batch[i] as number; // i < count
        if (documents.etagOf(document) > this.etagMax) return kept;
        if (this.#leftOut >= 0 && documents.collectionOf(document) === this.#leftOut) continue;
        if (this.#toSkip > 0) {
          this.#toSkip--;
          continue;
        }
        this.#toTake--;
        batch[kept++] = document;
      }
      if (kept > 0 || count < limit || this.#toTake === 0) return kept;
    }
  }

  /** Returns whether every document of the batch, which is in etag order, is included. */
  #takesAll(batch: Uint32Array, count: number): boolean {
    if (count === 0 || this.#leftOut >= 0 || this.#toSkip > 0 || this.#toTake < count) return false;
    const { documents } = this.#database.state;
    return documents.etagOf(batch[count - 1] as number) <= this.etagMax;
  }
}
