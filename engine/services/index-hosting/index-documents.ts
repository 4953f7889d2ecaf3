/**
 * The documents and deletions of a database as its indexes follow them: committed ones, in etag order. Knows nothing of
 * index contents.
 *
 * Cursors read the current state of the table, so each is valid only within one tick of the event loop.
 */

import { foldedName, lowerCased } from "../../base/case-folding.ts";
import type { Clock, Timer } from "../../base/environment.ts";
import { nextSlice } from "../../base/scheduling/time-slices.ts";
import type { FollowedCollection } from "../../indexing/collection-follower.ts";
import type {
  CollectionEtags,
  DeletionCursor,
  IndexHost,
  NumberCursor,
  RowReader,
  SegmentHost,
  StoredRow,
} from "../../indexing/index-host.ts";
import type { MapSource } from "../../indexing/index-program.ts";
import type { OpenIndex } from "../../indexing/open-index.ts";
import type { OutputSink, ReduceOutput } from "../../indexing/reduce/reduce-output.ts";
import type { PresentDocuments } from "../../indexing/saved/saved-documents.ts";
import {
  collectionIdNamed,
  DocumentCursor,
  metadataTextOf,
  newRow,
} from "../../queries/rows/query-rows.ts";
import { RecordReader } from "../../queries/rows/record-reader.ts";
import { idOf } from "../../state/documents/document-record.ts";
import type { Shape } from "../../state/documents/shapes.ts";
import { compareExchangeKey } from "../../state/keyspaces/compare-exchange.ts";
import { allCollections } from "../../state/keyspaces/document-table.ts";
import { segmentName } from "../../state/keyspaces/time-series/time-series.ts";
import type { Tombstone } from "../../state/keyspaces/tombstones.ts";
import type { IndexEvent } from "../../state/store/changes.ts";
import type { DatabaseState } from "../../state/store/database-state.ts";
import type { Store } from "../../state/store/store.ts";
import { ReduceOutputs } from "./output-documents.ts";

const noExtra = Buffer.alloc(0);

/** Persists the definitions of indexes. */
interface DefinitionListener
  extends Pick<IndexHost, "indexChanged" | "indexDropped" | "indexReplaced"> {
  /** An index has made progress. */
  indexAdvanced(name: string): void;
  /** Indexes may have work to do. */
  wake(): void;
}

export class IndexedDocuments implements IndexHost {
  readonly #database: Store;
  readonly #state: DatabaseState;
  readonly #clock: Clock;
  readonly #listener: DefinitionListener;
  compareExchangeChanges = 0;
  readonly segments: SegmentHost;

  constructor(database: Store, clock: Clock, listener: DefinitionListener) {
    this.#database = database;
    this.#state = database.state;
    this.#clock = clock;
    this.#listener = listener;
    this.segments = segmentHost(this.#state);
    this.#state.keyspaces.compareExchange.listen(() => {
      this.compareExchangeChanges++;
    });
  }

  setting(name: string): unknown {
    const settings = (this.#database.settings["Settings"] ?? {}) as Record<string, unknown>;
    return settings[name];
  }

  shapeOf(shapeId: number): Shape {
    return this.#state.shapes.get(shapeId);
  }

  etagsOf(collection: string | null): CollectionEtags {
    const { documents, keyspaces } = this.#state;
    return {
      document: documents.newestEtagOf(this.#idOfCollection(collection)),
      deletion: keyspaces.tombstones.newestEtagOf(collection),
    };
  }

  newReader(): RowReader {
    const { documents } = this.#state;
    const records = new RecordReader(this.#database);
    const row = newRow();
    return {
      rowsSince: (collection, etag) => {
        const numbers = documents.byEtag(this.#idOfCollection(collection), etag + 1);
        return new DocumentCursor(documents, numbers, records, row);
      },
      rowsOf: (docNums) => new DocumentCursor(documents, listedNumbers(docNums), records, row),
    };
  }

  deletionsSince(collection: string | null, etag: number): DeletionCursor {
    const tombstones = this.#state.keyspaces.tombstones.documentsSince(collection, etag);
    return new TombstoneCursor(tombstones, this.#state);
  }

  /** Returns the current documents, for an index with this progress in its collections. */
  presentTo(followed: readonly FollowedCollection[]): PresentDocuments {
    const { documents, keyspaces } = this.#state;
    const ofAll = followed.find(({ collection }) => collection === null);
    const etags = new Map(
      followed.map(({ collection, documentEtag }) => [
        collection === null ? undefined : foldedName(collection),
        documentEtag,
      ]),
    );
    const byId = new Map<number, number>();
    const processedUpTo = (collection: number): number => {
      const name = foldedName(keyspaces.collections.nameOf(collection));
      const etag = ofAll?.documentEtag ?? etags.get(name) ?? 0;
      byId.set(collection, etag);
      return etag;
    };
    const batch = new Uint32Array(1);
    return {
      processedThrough: Math.min(...followed.map(({ documentEtag }) => documentEtag)),
      etagOf: (docNum) => documents.etagOf(docNum),
      numberOf: (etag) => {
        if (documents.byEtag(allCollections, etag).fill(batch, 1) === 0) return -1;
        const docNum = batch[0] as number; // filled
        return documents.etagOf(docNum) === etag ? docNum : -1;
      },
      isProcessed: (docNum, etag) => {
        const collection = documents.collectionOf(docNum);
        return etag <= (byId.get(collection) ?? processedUpTo(collection));
      },
    };
  }

  get deletionsPurgedThrough(): number {
    return this.#state.keyspaces.tombstones.purgedThrough;
  }

  numbersSince(collection: string | null, etag: number): NumberCursor {
    const { documents } = this.#state;
    const numbers = documents.byEtag(this.#idOfCollection(collection), etag + 1);
    const batch = new Uint32Array(1);
    const cursor: NumberCursor = {
      docNum: 0,
      etag: 0,
      next() {
        if (numbers.fill(batch, 1) === 0) return false;
        cursor.docNum = batch[0] as number; // filled
        cursor.etag = documents.etagOf(cursor.docNum);
        return true;
      },
    };
    return cursor;
  }

  countSince(collection: string | null, etag: number): number {
    const { documents } = this.#state;
    const cursor = documents.byEtag(this.#idOfCollection(collection), etag + 1);
    const batch = new Uint32Array(4096);
    for (let total = 0; ; ) {
      const count = cursor.fill(batch, batch.length);
      total += count;
      if (count < batch.length) return total;
    }
  }

  metadataOf(row: StoredRow): Buffer {
    return metadataTextOf(this.#state, row, noExtra);
  }

  idOf(docNum: number): string {
    const { documents } = this.#state;
    const length = documents.lengthOf(docNum);
    const record = length === 0 ? null : this.#state.log.peek(documents.positionOf(docNum), length);
    return record === null ? documents.lowerIdOf(docNum) : idOf(record, 0);
  }

  lowerIdOf(docNum: number): string {
    return this.#state.documents.lowerIdOf(docNum);
  }

  compareExchangeVersionOf(key: string): number {
    return this.#state.keyspaces.compareExchange.get(compareExchangeKey(key))?.index ?? 0;
  }

  itemChangesOf(source: MapSource): number {
    if (source === "Counters") return this.counterEtag;
    return source === "TimeSeries" ? this.segments.changeCount : 0;
  }

  followCounters(): number {
    this.#state.keyspaces.counterOwners.changes.follow(this.#state.committedEtag);
    return this.counterEtag;
  }

  get counterEtag(): number {
    return this.#state.keyspaces.counterOwners.changes.newest;
  }

  counterChangesSince(etag: number): NumberCursor {
    const { documents, keyspaces } = this.#state;
    const changes = keyspaces.counterOwners.changes.since(etag);
    const cursor: NumberCursor = {
      docNum: 0,
      etag,
      next() {
        for (let step = changes.next(); step.done !== true; step = changes.next()) {
          const docNum = documents.lookup(step.value.id);
          if (docNum < 0) continue;
          cursor.docNum = docNum;
          cursor.etag = step.value.etag;
          return true;
        }
        return false;
      },
    };
    return cursor;
  }

  *counterOwnersSince(etag: number): Generator<number> {
    const { documents, keyspaces } = this.#state;
    let last = "";
    for (const [key] of keyspaces.counters.withPrefix("")) {
      if ((keyspaces.counters.entry(key)?.etag ?? 0) <= etag) continue;
      const id = key.slice(0, key.indexOf("\u0000"));
      const docNum = id === last ? -1 : documents.lookup(id);
      last = id;
      if (docNum >= 0) yield docNum;
    }
  }

  monotonicMs(): number {
    return this.#clock.monotonicMs();
  }

  get isFollowing(): boolean {
    return this.#database.isFollowing;
  }

  nowMicros(): number {
    return this.#clock.nowMicros();
  }

  yieldSlice(): Promise<void> {
    return nextSlice();
  }

  report(message: string, cause: unknown): void {
    this.#database.report(message, cause);
  }

  setTimer(ms: number, run: () => void, isAwaited?: boolean): Timer {
    return this.#clock.setTimer(ms, run, isAwaited);
  }

  outputSink(output: ReduceOutput, isScript: boolean): OutputSink {
    return new ReduceOutputs(this.#database, output, isScript, () => this.#listener.wake());
  }

  indexChanged(index: OpenIndex): void {
    this.#listener.indexChanged(index);
  }

  indexDropped(name: string): void {
    this.#listener.indexDropped(name);
  }

  indexReplaced(name: string, index: OpenIndex): void {
    this.#listener.indexReplaced(name, index);
  }

  indexEvent(type: IndexEvent, name: string): void {
    if (type === "BatchCompleted") this.#listener.indexAdvanced(name);
    this.#state.feed.notifyIndex(type, name);
  }

  #idOfCollection(collection: string | null): number {
    return collection === null ? allCollections : collectionIdNamed(this.#state, collection);
  }
}

function segmentHost(state: DatabaseState): SegmentHost {
  const { segmentChanges, timeSeriesSegments } = state.keyspaces;
  return {
    follow: () => segmentChanges.follow(),
    get changeCount() {
      return segmentChanges.count;
    },
    changedSince: (seen) => segmentChanges.since(seen),
    get committedEtag() {
      return state.committedEtag;
    },
    *after(key) {
      const cursor = timeSeriesSegments.view().cursor({ lower: key });
      while (cursor.next()) {
        if (cursor.key !== key) yield { key: cursor.key, etag: cursor.value.etag };
      }
    },
    etagOf: (key) => timeSeriesSegments.entry(key)?.etag ?? 0,
    nameOf: (key) => segmentName(key, timeSeriesSegments.get(key)?.first),
  };
}

function listedNumbers(docNums: readonly number[]) {
  let at = 0;
  return {
    fill(batch: Uint32Array, limit: number) {
      const count = Math.min(limit, docNums.length - at);
      for (let i = 0; i < count; i++) batch[i] = docNums[at++] as number; // at < length
      return count;
    },
  };
}

class TombstoneCursor implements DeletionCursor {
  docNum = -1;
  lowerId = "";
  etag = 0;
  readonly #tombstones: Iterator<Tombstone>;
  readonly #state: DatabaseState;

  constructor(tombstones: Iterator<Tombstone>, state: DatabaseState) {
    this.#tombstones = tombstones;
    this.#state = state;
  }

  next(): boolean {
    const step = this.#tombstones.next();
    if (step.done === true) return false;
    this.lowerId = lowerCased(step.value.id);
    this.docNum = this.#state.documents.lookup(step.value.id);
    this.etag = step.value.etag;
    return true;
  }
}
