/**
 * The first stage of a deployed index over documents or their counters: follows the collections that it maps, runs its
 * maps, and passes the results to a target. A document whose map loaded another document or a compare-exchange value is
 * mapped again when that changes.
 *
 * Invariants:
 * - The target has the map results of each document's newest processed version, and nothing of a document whose map
 *   failed or that was deleted.
 */
import {
  CollectionFollower,
  type FollowedCollection,
  followedCollections,
  type SavedProgress,
} from "./collection-follower.ts";
import type { SavedDocuments } from "./columns/entry-store.ts";
import { goneStride } from "./columns/store-column.ts";
import type { ItemProgress, RestoredDocuments } from "./followed-index.ts";
import type { IndexErrors } from "./index-errors.ts";
import type { IndexHost, RowReader, StoredRow } from "./index-host.ts";
import type { IndexProgram } from "./index-program.ts";
import { MapOutcomes, type MapTarget } from "./map-outcomes.ts";
import { allLive, MapReferences } from "./map-references.ts";
import type { PartReader, PartWriter } from "./saved/saved-parts.ts";

/** The progress of a stage that maps parts of documents by themselves. */
export interface MappedParts {
  /** The highest etag of a part that was mapped. */
  readonly lastEtag: number;
  /** How many are known to be waiting. */
  readonly lag: number;
}

/** The first stage of a deployed index, whatever it maps. */
export interface MapStage {
  /** The mapped collections, then the collections whose documents maps load. */
  readonly sources: readonly FollowedCollection[];
  /** The first of these. */
  readonly mappedSources: readonly FollowedCollection[];
  /** Its progress in changes of counters or series; undefined: it maps documents. */
  readonly items: ItemProgress | undefined;
  /** Omitted: it maps documents as a whole. */
  readonly mapped?: MappedParts;
  readonly changeCount: number;
  readonly outputsPerDocumentMax: number;
  /** Nothing is waiting to be mapped again. */
  readonly isSettled: boolean;
  readonly isStale: boolean;
  /** Results of an input are left to be passed on: the stage cannot be saved. */
  readonly isBusy: boolean;
  catchUp(isTimeUp: () => boolean): Promise<void> | null;
  /** Compacts its state, a slice at a time. */
  compact(isTimeUp: () => boolean): void;
  /** See `FollowedIndex.save`. */
  save(parts: PartWriter): readonly SavedDocuments[];
  /** @throws UnusableSnapshot when the changes since can no longer be determined. */
  restore(parts: PartReader, documents: RestoredDocuments): Generator<void>;
}

export class StaticMapStage implements MapStage {
  readonly #program: IndexProgram;
  readonly #target: MapTarget;
  readonly #host: IndexHost;
  readonly #reader: RowReader;
  readonly #follower: CollectionFollower;
  readonly #references: MapReferences;
  readonly #outcomes: MapOutcomes;
  /** Documents whose counters have changed. */
  readonly #changed = new Set<number>();
  /** The etag up to which changes of counters are recorded; undefined: counters are not mapped. */
  #countersNoted: number | undefined;
  /** Number of changes to counters. */
  #changesNoted = 0;
  #isTimeUp: () => boolean = () => false;

  constructor(program: IndexProgram, target: MapTarget, errors: IndexErrors, host: IndexHost) {
    this.#program = program;
    this.#target = target;
    this.#host = host;
    this.#reader = host.newReader();
    this.#references = new MapReferences(program, host);
    this.#outcomes = new MapOutcomes(target, errors, host, this.#references);
    if (program.source === "Counters") this.#countersNoted = host.followCounters();
    const documents = {
      remove: (docNum: number) => this.#remove(docNum),
      take: (row: StoredRow) => this.#map(row, false),
    };
    const collections = followedCollections(program.collections);
    // A script may run long: the clock is checked after each.
    this.#follower = new CollectionFollower(collections, documents, host, 1);
  }

  get sources(): readonly FollowedCollection[] {
    return [...this.#follower.sources, ...this.#references.sources];
  }

  get changeCount(): number {
    return this.#follower.changeCount + this.#references.changeCount + this.#changesNoted;
  }

  get mappedSources(): readonly FollowedCollection[] {
    return this.#follower.sources;
  }

  get outputsPerDocumentMax(): number {
    return this.#outcomes.outputsMax;
  }

  get isSettled(): boolean {
    return this.#references.isSettled && this.#changed.size === 0 && !this.isBusy;
  }

  /** Changes up to this are processed once it is settled. */
  get items(): ItemProgress | undefined {
    const noted = this.#countersNoted;
    return noted === undefined ? undefined : { etag: noted, seen: noted };
  }

  get isStale(): boolean {
    return (
      this.#references.isStale ||
      this.#changed.size > 0 ||
      this.#isBehindCounters ||
      this.#follower.isStale ||
      this.isBusy
    );
  }

  get isBusy(): boolean {
    return this.#outcomes.isUnfinished;
  }

  catchUp(isTimeUp: () => boolean): Promise<void> | null {
    this.#isTimeUp = isTimeUp;
    if (!this.#outcomes.finish(isTimeUp) || !this.#references.note(isTimeUp)) return null;
    this.#noteCounters();
    const pending =
      this.#mapAgain(this.#references.due, true, isTimeUp) ??
      (this.isBusy ? null : this.#mapAgain(this.#changed, false, isTimeUp));
    return pending !== null || this.isBusy ? pending : this.#follower.catchUp(isTimeUp);
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

  /**
   * Maps documents again and removes them from the set. `isReference`: because of the documents that they loaded, not
   * because of their own change.
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
    this.#changed.delete(docNum);
    this.#references.remove(docNum);
    this.#target.remove(docNum);
  }

  #map(row: StoredRow, isReference: boolean): Promise<void> | null {
    const { docNum } = row;
    const input = {
      number: docNum,
      name: () => this.#host.idOf(docNum),
      partName: (part: string) => `${this.#host.lowerIdOf(docNum)}|${part}`,
      isReference,
    };
    return this.#outcomes.take(input, () => this.#program.map(row), this.#isTimeUp);
  }

  compact(isTimeUp: () => boolean): void {
    this.#references.compact(isTimeUp);
  }

  save(parts: PartWriter): readonly SavedDocuments[] {
    const changed = Uint32Array.from(this.#changed);
    parts.add("changed", changed);
    parts.set("follower", this.#follower.progress());
    parts.set("counters", this.#countersNoted ?? null);
    parts.set("outputsPerDocumentMax", this.outputsPerDocumentMax);
    return [...this.#references.save(parts), allLive(changed)];
  }

  *restore(parts: PartReader, documents: RestoredDocuments): Generator<void> {
    yield* this.#references.restore(parts, documents.documentOf);
    for (const saved of parts.uint32("changed")) this.#changed.add(documents.documentOf(saved));
    this.#outcomes.outputsMax = parts.get<number>("outputsPerDocumentMax");
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
}
