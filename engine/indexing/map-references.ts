/**
 * The documents and compare-exchange values that the maps of an index read besides their input. When one of these
 * changes, the inputs whose maps read it are due to be mapped again. Inputs are numbers: of documents, or of segments.
 *
 * Invariants:
 * - Every input that read a document or value with a later, noted change is in `due`.
 */
import {
  type FollowedCollection,
  followedCollections,
  progressOf,
  type SavedProgress,
} from "./collection-follower.ts";
import type { SavedDocuments } from "./columns/entry-store.ts";
import type { IndexHost } from "./index-host.ts";
import type { IndexProgram, MapResult } from "./index-program.ts";
import { IndexReferences } from "./index-references.ts";
import {
  type PartReader,
  type PartWriter,
  restoredTexts,
  savedTexts,
  UnusableSnapshot,
} from "./saved/saved-parts.ts";

/** Changed documents between two checks of the clock. */
const noteStride = 256;

export class MapReferences {
  /** The collections whose documents maps load. */
  readonly sources: readonly FollowedCollection[];
  /** Inputs to be mapped again. */
  readonly due = new Set<number>();
  /** The number of changes noted. */
  changeCount = 0;
  readonly #host: IndexHost;
  readonly #documents = new IndexReferences();
  readonly #compareExchange = new IndexReferences();
  /** By key of a compare-exchange value: the version that maps read. */
  readonly #versions = new Map<string, number>();
  #compareExchangeChanges: number;

  constructor(program: IndexProgram, host: IndexHost) {
    this.#host = host;
    this.#compareExchangeChanges = host.compareExchangeChanges;
    this.sources = followedCollections(program.referencedCollections).map((collection) => ({
      collection,
      documentEtag: 0,
      deletionEtag: 0,
    }));
  }

  /** Nothing is due, nor are there changes of compare-exchange values to be noted. */
  get isSettled(): boolean {
    return this.due.size === 0 && !this.#isBehindCompareExchange;
  }

  get isStale(): boolean {
    return !this.isSettled || this.sources.some((source) => this.#isBehind(source));
  }

  /** Replaces the references of an input. */
  set(input: number, { references, compareExchangeKeys }: MapResult): void {
    this.#documents.set(input, references);
    this.#compareExchange.set(input, compareExchangeKeys);
    for (const key of compareExchangeKeys) {
      this.#versions.set(key, this.#host.compareExchangeVersionOf(key));
    }
  }

  remove(input: number): void {
    this.due.delete(input);
    this.#documents.remove(input);
    this.#compareExchange.remove(input);
  }

  /**
   * Notes the changes since the previous call. Changes made before an input was mapped need no handling: the map read
   * them.
   * @returns false if the time was up before the last
   */
  note(isTimeUp: () => boolean): boolean {
    this.#noteCompareExchange();
    return this.sources.every((source) => this.#noteChanged(source, isTimeUp));
  }

  /** Compacts dead references, a slice at a time. */
  compact(isTimeUp: () => boolean): void {
    this.#documents.compact(isTimeUp);
    this.#compareExchange.compact(isTimeUp);
  }

  /** @returns its references to inputs */
  save(parts: PartWriter): SavedDocuments[] {
    const due = Uint32Array.from(this.due);
    parts.add("due", due);
    parts.set("referenced", progressOf(this.sources));
    parts.add("versions", Float64Array.from(this.#versions.values()));
    parts.add("versionKeys", ...savedTexts(this.#versions.keys()));
    return [
      this.#documents.save(parts.under("references")),
      this.#compareExchange.save(parts.under("compare-exchange")),
      allLive(due),
    ];
  }

  /** @throws UnusableSnapshot when the changes since can no longer be determined. */
  *restore(parts: PartReader, inputOf: (saved: number) => number): Generator<void> {
    const referenced = parts.get<SavedProgress[]>("referenced");
    for (const [i, source] of this.sources.entries()) {
      const { documentEtag, deletionEtag } = referenced[i] as SavedProgress;
      if (deletionEtag < this.#host.deletionsPurgedThrough) {
        throw new UnusableSnapshot("deletions of documents that it loads are no longer recorded");
      }
      source.documentEtag = documentEtag;
      source.deletionEtag = deletionEtag;
    }
    yield* this.#documents.restore(parts.under("references"), inputOf);
    yield* this.#compareExchange.restore(parts.under("compare-exchange"), inputOf);
    for (const saved of parts.uint32("due")) this.due.add(inputOf(saved));
    const versions = parts.float64("versions");
    let at = 0;
    for (const key of restoredTexts(parts.bytes("versionKeys"))) {
      this.#versions.set(key as string, versions[at++] as number);
    }
    // Versions identify everything that changed in the meantime.
    this.#compareExchangeChanges = -1;
  }

  #isBehind({ collection, documentEtag, deletionEtag }: FollowedCollection): boolean {
    const { document, deletion } = this.#host.etagsOf(collection);
    return document > documentEtag || deletion > deletionEtag;
  }

  get #isBehindCompareExchange(): boolean {
    const hasChanged = this.#host.compareExchangeChanges !== this.#compareExchangeChanges;
    return hasChanged && !this.#compareExchange.isEmpty;
  }

  #noteCompareExchange(): void {
    if (this.#isBehindCompareExchange) {
      for (const key of this.#compareExchange.names()) {
        const version = this.#host.compareExchangeVersionOf(key);
        if (version === this.#versions.get(key)) continue;
        this.#versions.set(key, version);
        this.changeCount++;
        for (const input of this.#compareExchange.documentsOf(key)) this.due.add(input);
      }
    }
    this.#compareExchangeChanges = this.#host.compareExchangeChanges;
  }

  #noteChanged(source: FollowedCollection, isTimeUp: () => boolean): boolean {
    const { collection } = source;
    const { document, deletion } = this.#host.etagsOf(collection);
    if (!this.#documents.isEmpty) {
      const deletions = this.#host.deletionsSince(collection, source.deletionEtag);
      while (deletions.next()) this.#noteLoaders(deletions.lowerId);
      source.deletionEtag = deletion;
      const documents = this.#host.numbersSince(collection, source.documentEtag);
      for (let count = 1; documents.next(); count++) {
        this.#noteLoaders(this.#host.lowerIdOf(documents.docNum));
        source.documentEtag = documents.etag;
        if (count % noteStride === 0 && isTimeUp()) return false;
      }
    }
    source.documentEtag = Math.max(source.documentEtag, document);
    source.deletionEtag = deletion;
    return true;
  }

  #noteLoaders(id: string): void {
    this.changeCount++;
    for (const loader of this.#documents.documentsOf(id)) this.due.add(loader);
  }
}

/** Numbers as a part of a snapshot, all of them in use. */
export function allLive(documents: Uint32Array): SavedDocuments {
  return { documents, live: new Uint32Array((documents.length + 31) >>> 5).fill(0xffff_ffff) };
}
