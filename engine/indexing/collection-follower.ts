/**
 * Follows collections for one index: passes every stored and every deleted document to its target, in etag order, in
 * slices. Independent of how the target processes them.
 *
 * Documents whose indexed fields have not changed are skipped without being read.
 *
 * Invariants:
 * - For each source, exactly the documents up to `documentEtag` and the deletions up to `deletionEtag` are processed.
 * - Deletions are processed before documents, so that a reused document number is free.
 */
import { foldedName } from "../base/case-folding.ts";
import { recordLengthOf } from "../state/documents/document-record.ts";
import type { FieldChange } from "../state/store/changes.ts";
import type { RestoredDocuments } from "./followed-index.ts";
import type { IndexHost, RowReader, StoredRow } from "./index-host.ts";

/** One collection (null: all documents), with the progress in it. */
export interface FollowedCollection {
  readonly collection: string | null;
  documentEtag: number;
  deletionEtag: number;
}

/** The part of a `FollowedCollection` kept in snapshots. */
export type SavedProgress = Pick<FollowedCollection, "documentEtag" | "deletionEtag">;

interface DocumentTarget {
  remove(docNum: number): void;
  /**
   * Called for a new or changed document.
   * @returns a promise when something must first be read from the disk: nothing was done, and the call is repeated.
   */
  take(row: StoredRow): Promise<void> | null;
}

/** Etags, from one to another, that are passed over. */
interface SkippableRange {
  readonly from: number;
  to: number;
}

/** Maximum number of skippable ranges that a source stores; changes beyond it are processed. */
const skippableMax = 1024;

/** Bytes of documents between two checks of the clock: indexing this much full text takes less than a millisecond. */
const strideBytes = 32_768;

export class CollectionFollower {
  readonly sources: readonly FollowedCollection[];
  /** Number of documents and deletions processed. */
  changeCount = 0;
  readonly #target: DocumentTarget;
  readonly #host: IndexHost;
  readonly #reader: RowReader;
  readonly #stride: number;
  /** By source: in ascending order. */
  readonly #skippable: readonly SkippableRange[][];

  /** `stride`: documents between two checks of the clock; fewer where they are large. */
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
    this.#skippable = this.sources.map(() => []);
    this.#target = target;
    this.#host = host;
    this.#reader = host.newReader();
    this.#stride = stride;
  }

  /**
   * Must be called when a commit changed no field that the target indexes. The change is skipped if the previous
   * versions were processed by then: the values of an unprocessed version are known only from the new version.
   */
  skipChange({ from, to, previousMax }: FieldChange): void {
    for (const [i, { documentEtag }] of this.sources.entries()) {
      const ranges = this.#skippable[i] as SkippableRange[]; // one for each source
      const last = ranges.at(-1);
      if (documentEtag < previousMax) continue;
      if (last !== undefined && last.to + 1 === from) last.to = to;
      else if (ranges.length < skippableMax) ranges.push({ from, to });
    }
  }

  progress(): SavedProgress[] {
    return progressOf(this.sources);
  }

  /**
   * Continues from a snapshot: later deletions are replayed from their tombstones; documents deleted earlier are in the
   * snapshot's list of deleted documents.
   */
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
   * Processes documents and deletions until `isTimeUp` or none are left.
   * @returns a promise when a record must first be read from the disk, else null.
   */
  catchUp(isTimeUp: () => boolean): Promise<void> | null {
    for (const source of this.sources) this.#takeDeletions(source);
    for (const [i, source] of this.sources.entries()) {
      const ranges = this.#skippable[i] as SkippableRange[]; // one for each source
      const pending = this.#takeDocuments(source, ranges, isTimeUp);
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

  #takeDocuments(
    source: FollowedCollection,
    ranges: SkippableRange[],
    isTimeUp: () => boolean,
  ): Promise<void> | null {
    const { collection } = source;
    const { document } = this.#host.etagsOf(collection);
    this.#pass(source, ranges);
    if (document <= source.documentEtag) return null;
    let cursor = this.#reader.rowsSince(collection, source.documentEtag);
    let count = 0;
    let bytes = 0;
    while (cursor.next()) {
      const next = ranges[0];
      if (next !== undefined && cursor.row.etag >= next.from) {
        // There is nothing else up to this document.
        source.documentEtag = cursor.row.etag - 1;
        this.#pass(source, ranges);
        if (source.documentEtag >= cursor.row.etag) {
          cursor = this.#reader.rowsSince(collection, source.documentEtag);
          continue;
        }
      }
      const pending = this.#target.take(cursor.row);
      if (pending !== null) return pending;
      source.documentEtag = cursor.row.etag;
      this.changeCount++;
      bytes += recordLengthOf(cursor.row.bytes, cursor.row.start);
      if (++count < this.#stride && bytes < strideBytes) continue;
      if (isTimeUp()) return null;
      count = 0;
      bytes = 0;
    }
    if (cursor.pending !== null) return cursor.pending;
    source.documentEtag = Math.max(source.documentEtag, document);
    return null;
  }

  /** Passes over the ranges that begin at the next etag or before it. */
  #pass(source: FollowedCollection, ranges: SkippableRange[]): void {
    let count = 0;
    for (const { from, to } of ranges) {
      if (from > source.documentEtag + 1) break;
      count++;
      if (to <= source.documentEtag) continue;
      source.documentEtag = to;
      this.changeCount++;
    }
    if (count > 0) ranges.splice(0, count);
  }
}

export function progressOf(sources: readonly FollowedCollection[]): SavedProgress[] {
  return sources.map(({ documentEtag, deletionEtag }) => ({ documentEtag, deletionEtag }));
}

/**
 * Returns the collections that an index follows, without duplicates; a single null (all documents) when any is null.
 */
export function followedCollections(names: readonly (string | null)[]): (string | null)[] {
  if (names.includes(null)) return [null];
  const found = new Map<string, string>();
  for (const name of names) {
    if (name !== null && !found.has(foldedName(name))) found.set(foldedName(name), name);
  }
  return [...found.values()];
}
