/**
 * The first stage of a deployed index: follows the collections that it maps, runs its maps, and passes the results to a
 * target. A document whose map loaded another document or a compare-exchange value is mapped again when that changes.
 *
 * Invariants:
 * - The target has the map results of each document's newest processed version, and nothing of a document whose map
 *   failed or that was deleted.
 */
import { EngineError } from "../base/errors.ts";
import {
  CollectionFollower,
  type FollowedCollection,
  followedCollections,
  progressOf,
  type SavedProgress,
} from "./collection-follower.ts";
import type { SavedDocuments } from "./entry-store.ts";
import type { RestoredDocuments } from "./followed-index.ts";
import type { IndexErrors } from "./index-errors.ts";
import type { IndexHost, RowReader, StoredRow } from "./index-host.ts";
import { type IndexProgram, type MapResult, RecordAwaited } from "./index-program.ts";
import { IndexReferences } from "./index-references.ts";
import {
  type PartReader,
  type PartWriter,
  restoredTexts,
  savedTexts,
  UnusableSnapshot,
} from "./saved-parts.ts";
import { goneStride } from "./store-column.ts";

/** Changed documents between two checks of the clock. */
const noteStride = 256;

export interface MapTarget {
  /** Replaces the results of a document. @throws EngineError when they cannot be stored */
  set(docNum: number, result: MapResult): void;
  remove(docNum: number): void;
}

export class StaticMapStage {
  readonly #program: IndexProgram;
  readonly #target: MapTarget;
  readonly #errors: IndexErrors;
  readonly #host: IndexHost;
  readonly #reader: RowReader;
  readonly #follower: CollectionFollower;
  readonly #referenced: readonly FollowedCollection[];
  readonly #references = new IndexReferences();
  readonly #compareExchange = new IndexReferences();
  /** By key of a compare-exchange value: the version that maps read. */
  readonly #versions = new Map<string, number>();
  #compareExchangeChanges: number;
  /** Documents to be mapped again because something they loaded has changed. */
  readonly #due = new Set<number>();
  /** Documents whose counters have changed. */
  readonly #changed = new Set<number>();
  /** The etag up to which changes of counters are recorded; undefined: counters are not mapped. */
  #countersNoted: number | undefined;
  outputsPerDocumentMax = 0;
  /** Number of changes to loaded documents and to counters. */
  #changesNoted = 0;

  constructor(program: IndexProgram, target: MapTarget, errors: IndexErrors, host: IndexHost) {
    this.#program = program;
    this.#target = target;
    this.#errors = errors;
    this.#host = host;
    this.#reader = host.newReader();
    this.#compareExchangeChanges = host.compareExchangeChanges;
    if (program.source === "Counters") this.#countersNoted = host.followCounters();
    const documents = {
      remove: (docNum: number) => this.#remove(docNum),
      take: (row: StoredRow) => this.#map(row, false),
    };
    const collections = followedCollections(program.collections);
    // A script may run long: the clock is checked after each.
    this.#follower = new CollectionFollower(collections, documents, host, 1);
    this.#referenced = followedCollections(program.referencedCollections).map((collection) => ({
      collection,
      documentEtag: 0,
      deletionEtag: 0,
    }));
  }

  /** The collections mapped, then those whose documents maps load. */
  get sources(): readonly FollowedCollection[] {
    return [...this.#follower.sources, ...this.#referenced];
  }

  get changeCount(): number {
    return this.#follower.changeCount + this.#changesNoted;
  }

  get mappedSources(): readonly FollowedCollection[] {
    return this.#follower.sources;
  }

  /** No document is waiting to be mapped again. */
  get isSettled(): boolean {
    return this.#due.size === 0 && this.#changed.size === 0 && !this.#isBehindCompareExchange;
  }

  /** Counter changes up to this etag are processed once it is settled; undefined: it reads no counters. */
  get counterEtag(): number | undefined {
    return this.#countersNoted;
  }

  get isStale(): boolean {
    return (
      !this.isSettled ||
      this.#isBehindCounters ||
      this.#follower.isStale ||
      this.#referenced.some((source) => this.#isBehind(source))
    );
  }

  catchUp(isTimeUp: () => boolean): Promise<void> | null {
    // Changes made before a document was mapped need no handling: the map read them.
    this.#noteCompareExchange();
    for (const source of this.#referenced) if (!this.#noteChanged(source, isTimeUp)) return null;
    this.#noteCounters();
    return (
      this.#mapAgain(this.#due, true, isTimeUp) ??
      this.#mapAgain(this.#changed, false, isTimeUp) ??
      this.#follower.catchUp(isTimeUp)
    );
  }

  get #isBehindCounters(): boolean {
    return this.#countersNoted !== undefined && this.#countersNoted < this.#host.counterEtag;
  }

  #noteCounters(): void {
    if (this.#countersNoted === undefined || !this.#isBehindCounters) return;
    const cursor = this.#host.counterChangesSince(this.#countersNoted);
    while (cursor.next()) {
      this.#changesNoted++;
      this.#changed.add(cursor.docNum);
    }
    this.#countersNoted = this.#host.counterEtag;
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
        this.#changesNoted++;
        for (const docNum of this.#compareExchange.documentsOf(key)) this.#due.add(docNum);
      }
    }
    this.#compareExchangeChanges = this.#host.compareExchangeChanges;
  }

  /** Finds the documents whose maps loaded changed documents. @returns false when the time was up before the last */
  #noteChanged(source: FollowedCollection, isTimeUp: () => boolean): boolean {
    const { collection } = source;
    const { document, deletion } = this.#host.etagsOf(collection);
    if (!this.#references.isEmpty) {
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
    this.#changesNoted++;
    for (const loader of this.#references.documentsOf(id)) this.#due.add(loader);
  }

  /**
   * Maps documents again and removes them from the set. `isReference`: because of what they loaded, not for their own
   * change.
   */
  #mapAgain(due: Set<number>, isReference: boolean, isTimeUp: () => boolean): Promise<void> | null {
    if (due.size === 0) return null;
    const cursor = this.#reader.rowsOf([...due]);
    while (cursor.next()) {
      const pending = this.#map(cursor.row, isReference);
      if (pending !== null) return pending;
      due.delete(cursor.row.docNum);
      if (isTimeUp()) return null;
    }
    if (cursor.pending !== null) return cursor.pending;
    // The rest were deleted.
    due.clear();
    return null;
  }

  #remove(docNum: number): void {
    this.#due.delete(docNum);
    this.#changed.delete(docNum);
    this.#references.remove(docNum);
    this.#compareExchange.remove(docNum);
    this.#target.remove(docNum);
  }

  #map(row: StoredRow, isReference: boolean): Promise<void> | null {
    const { docNum } = row;
    try {
      const result = this.#program.map(row);
      const attempts = result.items?.attempts ?? 1;
      if (isReference) this.#errors.mapReferenceAttempts += attempts;
      else this.#errors.mapAttempts += attempts;
      // The references of a failed map are kept too: it may succeed when they change.
      this.#references.set(docNum, result.references);
      this.#compareExchange.set(docNum, result.compareExchangeKeys);
      for (const key of result.compareExchangeKeys) {
        this.#versions.set(key, this.#host.compareExchangeVersionOf(key));
      }
      if (result.failure !== null) throw result.failure;
      for (const { item, error } of result.items?.failures ?? []) {
        this.#addError(`${this.#host.lowerIdOf(docNum)}|${item}`, error, isReference);
      }
      const count = result.entries.length + result.values.length;
      const perItem = result.items?.outputsMax ?? count;
      this.outputsPerDocumentMax = Math.max(this.outputsPerDocumentMax, perItem);
      this.#target.set(docNum, result);
    } catch (error) {
      if (error instanceof RecordAwaited) return error.wait();
      if (!(error instanceof EngineError)) throw error;
      this.#target.remove(docNum);
      this.#addError(this.#host.idOf(docNum), error, isReference);
    }
    return null;
  }

  /** Compacts dead references, a slice at a time. */
  compact(isTimeUp: () => boolean): void {
    this.#references.compact(isTimeUp);
    this.#compareExchange.compact(isTimeUp);
  }

  /** See `FollowedIndex.save`. */
  save(parts: PartWriter): readonly SavedDocuments[] {
    const due = Uint32Array.from(this.#due);
    const changed = Uint32Array.from(this.#changed);
    parts.add("due", due);
    parts.add("changed", changed);
    parts.set("follower", this.#follower.progress());
    parts.set("referenced", progressOf(this.#referenced));
    parts.set("counters", this.#countersNoted ?? null);
    parts.set("outputsPerDocumentMax", this.outputsPerDocumentMax);
    parts.add("versions", Float64Array.from(this.#versions.values()));
    parts.add("versionKeys", ...savedTexts(this.#versions.keys()));
    return [
      this.#references.save(parts.under("references")),
      this.#compareExchange.save(parts.under("compare-exchange")),
      allLive(due),
      allLive(changed),
    ];
  }

  /** @throws UnusableSnapshot when the changes since can no longer be determined. */
  *restore(parts: PartReader, documents: RestoredDocuments): Generator<void> {
    const referenced = parts.get<SavedProgress[]>("referenced");
    for (const [i, source] of this.#referenced.entries()) {
      const { documentEtag, deletionEtag } = referenced[i] as SavedProgress;
      if (deletionEtag < this.#host.deletionsPurgedThrough) {
        throw new UnusableSnapshot("deletions of documents that it loads are not known any more");
      }
      source.documentEtag = documentEtag;
      source.deletionEtag = deletionEtag;
    }
    yield* this.#references.restore(parts.under("references"), documents.documentOf);
    yield* this.#compareExchange.restore(parts.under("compare-exchange"), documents.documentOf);
    for (const saved of parts.uint32("due")) this.#due.add(documents.documentOf(saved));
    for (const saved of parts.uint32("changed")) this.#changed.add(documents.documentOf(saved));
    const versions = parts.float64("versions");
    let at = 0;
    for (const key of restoredTexts(parts.bytes("versionKeys"))) {
      this.#versions.set(key as string, versions[at++] as number);
    }
    // Versions differ for everything that changed meanwhile.
    this.#compareExchangeChanges = -1;
    this.outputsPerDocumentMax = parts.get<number>("outputsPerDocumentMax");
    const counters = parts.get<number | null>("counters");
    if (counters !== null) {
      this.#countersNoted = this.#host.followCounters();
      for (const docNum of this.#host.counterOwnersSince(counters)) this.#changed.add(docNum);
    }
    this.#follower.resume(parts.get<SavedProgress[]>("follower"), documents);
    let count = 0;
    for (const document of documents.gone) {
      this.#remove(document);
      if (++count % goneStride === 0) yield;
    }
  }

  #addError(document: string, error: EngineError, isReference: boolean): void {
    if (isReference) this.#errors.mapReferenceErrors++;
    else this.#errors.mapErrors++;
    this.#errors.add({
      atMicros: this.#host.nowMicros(),
      document,
      action: "Map",
      message: `Failed to execute mapping function on ${document}. Exception: ${error.message}`,
    });
  }
}

function allLive(documents: Uint32Array): SavedDocuments {
  return { documents, live: new Uint32Array((documents.length + 31) >>> 5).fill(0xffff_ffff) };
}
