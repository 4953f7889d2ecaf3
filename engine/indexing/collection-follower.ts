/**
 * Follows collections for one index: tells its target of every document that was stored and every one that was deleted, in
 * the order of etags, in slices. What the target makes of a document it does not know.
 *
 * Invariants:
 * - Of each source all documents up to `documentEtag` and deletions up to `deletionEtag` are taken in, and none after.
 * - Deletions come before documents: a number that was given to another id is then free.
 */
import type { RestoredDocuments } from "./followed-index.ts";
import type { IndexHost, RowReader, StoredRow } from "./index-host.ts";

/** One collection, null: all documents; and how far it is taken in. */
export interface FollowedCollection {
  readonly collection: string | null;
  documentEtag: number;
  deletionEtag: number;
}

/** What a snapshot keeps of a `FollowedCollection`. */
export type SavedProgress = Pick<FollowedCollection, "documentEtag" | "deletionEtag">;

export interface DocumentTarget {
  remove(docNum: number): void;
  /**
   * A document is new or has changed.
   * @returns a promise when something must be read from the disk first: then nothing was done, and it is asked again.
   */
  take(row: StoredRow): Promise<void> | null;
}

export class CollectionFollower {
  readonly sources: readonly FollowedCollection[];
  /** Documents and deletions that were taken in. */
  changeCount = 0;
  readonly #target: DocumentTarget;
  readonly #host: IndexHost;
  readonly #reader: RowReader;
  readonly #stride: number;

  /** `stride`: documents between two looks at the clock. */
  constructor(
    collections: readonly (string | null)[],
    target: DocumentTarget,
    host: IndexHost,
    stride: number,
  ) {
    this.sources = collections.map((collection) => ({
      collection,
      documentEtag: 0,
      deletionEtag: 0,
    }));
    this.#target = target;
    this.#host = host;
    this.#reader = host.newReader();
    this.#stride = stride;
  }

  progress(): SavedProgress[] {
    return progressOf(this.sources);
  }

  /** Goes on from what was restored: deletions that came later are known, those before are among the documents that are gone. */
  resume(progress: readonly SavedProgress[], { deletionEtagOf }: RestoredDocuments): void {
    for (const [i, source] of this.sources.entries()) {
      source.documentEtag = (progress[i] as SavedProgress).documentEtag;
      source.deletionEtag = deletionEtagOf(source.collection);
    }
  }

  get isStale(): boolean {
    for (const source of this.sources) {
      const { document, deletion } = this.#host.etagsOf(source.collection);
      if (document > source.documentEtag || deletion > source.deletionEtag) return true;
    }
    return false;
  }

  /**
   * Takes in documents and deletions until `isTimeUp` or there are no more.
   * @returns a promise when a record must be read from the disk first, else null.
   */
  catchUp(isTimeUp: () => boolean): Promise<void> | null {
    for (const source of this.sources) this.#takeDeletions(source);
    for (const source of this.sources) {
      const pending = this.#takeDocuments(source, isTimeUp);
      if (pending !== null || isTimeUp()) return pending;
    }
    return null;
  }

  #takeDeletions(source: FollowedCollection): void {
    const { collection } = source;
    const { deletion } = this.#host.etagsOf(collection);
    if (deletion <= source.deletionEtag) return;
    const cursor = this.#host.deletionsSince(collection, source.deletionEtag);
    while (cursor.next()) {
      this.changeCount++;
      if (cursor.docNum >= 0) this.#target.remove(cursor.docNum);
    }
    source.deletionEtag = deletion;
  }

  #takeDocuments(source: FollowedCollection, isTimeUp: () => boolean): Promise<void> | null {
    const { collection } = source;
    const { document } = this.#host.etagsOf(collection);
    if (document <= source.documentEtag) return null;
    const cursor = this.#reader.rowsSince(collection, source.documentEtag);
    let count = 0;
    while (cursor.next()) {
      const pending = this.#target.take(cursor.row);
      if (pending !== null) return pending;
      source.documentEtag = cursor.row.etag;
      this.changeCount++;
      if (++count % this.#stride === 0 && isTimeUp()) return null;
    }
    if (cursor.pending !== null) return cursor.pending;
    source.documentEtag = Math.max(source.documentEtag, document);
    return null;
  }
}

export function progressOf(sources: readonly FollowedCollection[]): SavedProgress[] {
  return sources.map(({ documentEtag, deletionEtag }) => ({ documentEtag, deletionEtag }));
}

/** The names of collections as an index follows them: each once, null for all when any of them is null. */
export function followedCollections(names: readonly (string | null)[]): (string | null)[] {
  if (names.includes(null)) return [null];
  const found = new Map<string, string>();
  for (const name of names) {
    if (name !== null && !found.has(name.toLowerCase())) found.set(name.toLowerCase(), name);
  }
  return [...found.values()];
}
