/**
 * The first stage of a deployed index over time series: follows their segments, maps each separately, and passes the
 * results to a target. So an append to a long series maps one segment and not the series. A segment whose map loaded a
 * document or a compare-exchange value is mapped again when that changes.
 *
 * The host announces changes of segments while the process runs. Changes from before the start, or that are no longer
 * recorded, are found by comparison: the etags of all segments with the etag up to which this index has seen changes,
 * and the segments that it knows with the existing ones. A new index compares from etag 0. No document is read or
 * scanned for this.
 *
 * Invariants:
 * - The target has the map results of each known segment's newest processed version, and nothing of a segment whose map
 *   failed or that was deleted.
 * - Every segment that changed under an etag up to `#notedEtag` is processed or due, unless a comparison is in progress.
 */
import type { FollowedCollection } from "./collection-follower.ts";
import type { SavedDocuments } from "./columns/entry-store.ts";
import type { ItemProgress } from "./followed-index.ts";
import type { IndexErrors } from "./index-errors.ts";
import type { IndexHost, SegmentHost } from "./index-host.ts";
import type { IndexProgram } from "./index-program.ts";
import { MapOutcomes, type MapTarget } from "./map-outcomes.ts";
import { MapReferences } from "./map-references.ts";
import {
  type PartReader,
  type PartWriter,
  restoredTexts,
  savedTexts,
} from "./saved/saved-parts.ts";
import { SegmentNumbers } from "./segment-numbers.ts";
import type { MappedParts, MapStage } from "./static-map-stage.ts";

/** Maximum number of segments that a comparison collects before they are mapped. They are sorted in one call. */
const foundMax = 16_384;
/** Segments compared between two checks of the clock. */
const compareStride = 256;

/** A comparison in progress. */
interface Comparison {
  /** Segments with a higher etag are due. */
  readonly since: number;
  /**
   * The key after which the comparison continues; null: all segments are compared, and it continues with the known
   * ones.
   */
  after: string | null;
  /** The number of the known segment that is compared next. */
  known: number;
}

interface FoundSegment {
  readonly key: string;
  readonly etag: number;
}

export class SeriesMapStage implements MapStage {
  readonly mappedSources: readonly FollowedCollection[] = [];
  readonly #program: IndexProgram;
  readonly #target: MapTarget;
  readonly #segments: SegmentHost;
  readonly #references: MapReferences;
  readonly #outcomes: MapOutcomes;
  readonly #numbers = new SegmentNumbers();
  /** Keys of segments to be mapped, or removed if they are gone. */
  readonly #due = new Set<string>();
  #isTimeUp: () => boolean = () => false;
  /** Segments that the comparison has found. */
  #found: FoundSegment[] = [];
  #comparison: Comparison | null;
  /** The number of changes seen. */
  #seen: number;
  /** Changes up to this etag have been seen. */
  #notedEtag: number;
  /** The highest etag of a segment that was mapped. */
  #mappedEtag = 0;
  #changesNoted = 0;

  constructor(
    program: IndexProgram,
    target: MapTarget,
    errors: IndexErrors,
    host: IndexHost,
    segments: SegmentHost,
  ) {
    this.#program = program;
    this.#target = target;
    this.#segments = segments;
    this.#references = new MapReferences(program, host);
    this.#outcomes = new MapOutcomes(target, errors, host, this.#references);
    this.#seen = segments.follow();
    this.#notedEtag = segments.committedEtag;
    this.#comparison = { since: 0, after: "", known: 0 };
  }

  get sources(): readonly FollowedCollection[] {
    return this.#references.sources;
  }

  get items(): ItemProgress {
    return { etag: this.#notedEtag, seen: this.#comparison === null ? this.#seen : -1 };
  }

  get changeCount(): number {
    return this.#references.changeCount + this.#changesNoted;
  }

  get mapped(): MappedParts {
    const unseen = this.#segments.changeCount - this.#seen;
    return { lastEtag: this.#mappedEtag, lag: this.#due.size + this.#found.length + unseen };
  }

  get outputsPerDocumentMax(): number {
    return this.#outcomes.outputsMax;
  }

  get isSettled(): boolean {
    const { isSettled } = this.#references;
    return isSettled && this.#due.size === 0 && this.#comparison === null && !this.isBusy;
  }

  get isBusy(): boolean {
    return this.#outcomes.isUnfinished;
  }

  get isStale(): boolean {
    return !this.isSettled || this.#references.isStale || this.#seen < this.#segments.changeCount;
  }

  catchUp(isTimeUp: () => boolean): Promise<void> | null {
    this.#isTimeUp = isTimeUp;
    if (!this.#outcomes.finish(isTimeUp) || !this.#references.note(isTimeUp)) return null;
    this.#noteChanges();
    for (;;) {
      const pending = this.#mapDue(isTimeUp) ?? (this.isBusy ? null : this.#mapAgain(isTimeUp));
      if (pending !== null || isTimeUp() || this.#comparison === null) return pending;
      this.#compare(this.#comparison, isTimeUp);
    }
  }

  #noteChanges(): void {
    const { changeCount, committedEtag } = this.#segments;
    if (this.#seen === changeCount) return;
    const changed = this.#segments.changedSince(this.#seen);
    if (changed === null) {
      this.#comparison = { since: this.#comparison?.since ?? this.#notedEtag, after: "", known: 0 };
    } else {
      for (const key of changed) this.#addDue(key);
    }
    this.#seen = changeCount;
    this.#notedEtag = committedEtag;
  }

  #addDue(key: string): void {
    this.#changesNoted++;
    if (this.#isWanted(key)) this.#due.add(key);
  }

  /** Returns whether the segment is known, or is to be mapped. */
  #isWanted(key: string): boolean {
    return this.#numbers.of(key) >= 0 || this.#program.wantsSegment?.(key) === true;
  }

  /** Finds segments that are due, up to `foundMax` of them, and puts them in the order of their changes. */
  #compare(comparison: Comparison, isTimeUp: () => boolean): void {
    if (comparison.after !== null) {
      let count = 0;
      for (const { key, etag } of this.#segments.after(comparison.after)) {
        comparison.after = key;
        if (etag > comparison.since && this.#isWanted(key)) this.#found.push({ key, etag });
        if (this.#found.length >= foundMax) break;
        if (++count % compareStride === 0 && isTimeUp()) return;
      }
      const isPaused = this.#found.length >= foundMax;
      this.#found.sort((left, right) => left.etag - right.etag);
      for (const { key } of this.#found) this.#addDue(key);
      this.#found = [];
      if (!isPaused) comparison.after = null;
      return;
    }
    for (; comparison.known < this.#numbers.end; comparison.known++) {
      if (comparison.known % compareStride === compareStride - 1 && isTimeUp()) return;
      const key = this.#numbers.keyOf(comparison.known);
      if (key !== null && this.#segments.etagOf(key) === 0) this.#addDue(key);
    }
    this.#comparison = null;
    // The comparison reached its starting point: only new changes remain.
    this.#changesNoted++;
  }

  /** Maps due segments, and removes deleted ones. */
  #mapDue(isTimeUp: () => boolean): Promise<void> | null {
    for (const key of this.#due) {
      if (this.#segments.etagOf(key) === 0) this.#remove(this.#numbers.of(key));
      else {
        const pending = this.#map(this.#numbers.add(key), key, false);
        if (pending !== null) return pending;
      }
      this.#due.delete(key);
      if (isTimeUp()) return null;
    }
    return null;
  }

  /** Maps segments again whose maps loaded something that has changed. */
  #mapAgain(isTimeUp: () => boolean): Promise<void> | null {
    const { due } = this.#references;
    for (const number of due) {
      const key = this.#numbers.keyOf(number);
      if (key !== null && this.#segments.etagOf(key) !== 0) {
        const pending = this.#map(number, key, true);
        if (pending !== null) return pending;
      }
      due.delete(number);
      if (isTimeUp()) return null;
    }
    return null;
  }

  #remove(number: number): void {
    if (number < 0) return;
    this.#references.remove(number);
    this.#target.remove(number);
    this.#numbers.remove(number);
  }

  #map(number: number, key: string, isReference: boolean): Promise<void> | null {
    const name = () => this.#segments.nameOf(key);
    const input = { number, name, partName: name, isReference };
    this.#mappedEtag = Math.max(this.#mappedEtag, this.#segments.etagOf(key));
    const { mapSegment } = this.#program;
    const map = () => {
      if (mapSegment === undefined) throw new Error("the program has no map of segments");
      return mapSegment.call(this.#program, key);
    };
    return this.#outcomes.take(input, map, this.#isTimeUp);
  }

  compact(isTimeUp: () => boolean): void {
    this.#references.compact(isTimeUp);
  }

  /** Numbers of segments are its own: it refers to no document. */
  save(parts: PartWriter): readonly SavedDocuments[] {
    this.#references.save(parts);
    this.#numbers.save(parts.under("segments"));
    parts.add("dueSegments", ...savedTexts(this.#due));
    // An interrupted comparison starts over.
    parts.set("notedEtag", this.#comparison?.since ?? this.#notedEtag);
    parts.set("mappedEtag", this.#mappedEtag);
    parts.set("outputsPerDocumentMax", this.outputsPerDocumentMax);
    return [];
  }

  *restore(parts: PartReader): Generator<void> {
    yield* this.#references.restore(parts, (saved) => saved);
    yield* this.#numbers.restore(parts.under("segments"));
    for (const key of restoredTexts(parts.bytes("dueSegments"))) this.#due.add(key as string);
    this.#outcomes.outputsMax = parts.get<number>("outputsPerDocumentMax");
    this.#mappedEtag = parts.get<number>("mappedEtag");
    this.#comparison = { since: parts.get<number>("notedEtag"), after: "", known: 0 };
  }
}
