/**
 * The documents that an operation by query goes through: those of a collection, in the order of etags, or those that an
 * index has found.
 *
 * Invariants:
 * - A document of a collection that was written after the operation began is not among them.
 */
import { allCollections } from "../keyspaces/document-table.ts";
import type { Store } from "../store/store.ts";

/** Document numbers, a batch at a time. */
export interface NumberSource {
  readonly total: number;
  /** Documents with a greater etag are skipped. */
  readonly etagMax: number;
  fill(batch: Uint32Array, limit: number): number;
  /** No document behind those that were filled in has a smaller etag; 0: they are in no order of etags. */
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
 * lost its old one. For all documents, the collection that holds clients' id ranges is left out.
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

  /** `etagMin`: where it goes on; 0: at the beginning. */
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

  /** Is nothing of the batch, which is in the order of etags, to be left out? */
  #takesAll(batch: Uint32Array, count: number): boolean {
    if (count === 0 || this.#leftOut >= 0 || this.#toSkip > 0 || this.#toTake < count) return false;
    const { documents } = this.#database.state;
    return documents.etagOf(batch[count - 1] as number) <= this.etagMax;
  }
}
