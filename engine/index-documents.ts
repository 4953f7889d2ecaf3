/**
 * The documents and deletions of a database as its indexes follow them: committed ones, in the order of etags. Knows
 * nothing of what indexes make of them.
 *
 * Cursors read the table as it is, so one is good for a single turn of the event loop.
 */
import type { Database } from "./database.ts";
import type { DatabaseState } from "./database-state.ts";
import { idOf } from "./document.ts";
import type { Clock, Timer } from "./environment.ts";
import type {
  CollectionEtags,
  IndexEvent,
  IndexHost,
  NumberCursor,
  RowReader,
  StoredRow,
} from "./indexing/index-host.ts";
import type { OpenIndex } from "./indexing/open-index.ts";
import type { OutputSink, ReduceOutput } from "./indexing/reduce-output.ts";
import { compareExchangeKey } from "./keyspaces/compare-exchange.ts";
import { allCollections } from "./keyspaces/document-table.ts";
import type { Shape } from "./keyspaces/shapes.ts";
import type { Tombstone } from "./keyspaces/tombstones.ts";
import {
  collectionIdNamed,
  DocumentCursor,
  metadataTextOf,
  nextTurn,
  RecordReader,
} from "./query-rows.ts";
import { ReduceOutputs } from "./reduce-outputs.ts";

const noExtra = Buffer.alloc(0);

/** Who keeps the definitions of indexes. */
export type DefinitionListener = Pick<IndexHost, "indexChanged" | "indexDropped" | "indexReplaced">;

export class IndexedDocuments implements IndexHost {
  readonly #database: Database;
  readonly #state: DatabaseState;
  readonly #clock: Clock;
  readonly #listener: DefinitionListener;
  compareExchangeChanges = 0;

  constructor(database: Database, clock: Clock, listener: DefinitionListener) {
    this.#database = database;
    this.#state = database.state;
    this.#clock = clock;
    this.#listener = listener;
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
    return {
      rowsSince: (collection, etag) => {
        const numbers = documents.byEtag(this.#idOfCollection(collection), etag + 1);
        return new DocumentCursor(documents, numbers, records);
      },
      rowsOf: (docNums) => new DocumentCursor(documents, listedNumbers(docNums), records),
    };
  }

  deletionsSince(collection: string | null, etag: number): NumberCursor {
    const tombstones = this.#state.keyspaces.tombstones.documentsSince(collection, etag);
    return new TombstoneCursor(tombstones, this.#state);
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

  monotonicMs(): number {
    return this.#clock.monotonicMs();
  }

  nowMicros(): number {
    return this.#clock.nowMicros();
  }

  yieldTurn(): Promise<void> {
    return nextTurn();
  }

  setTimer(ms: number, run: () => void): Timer {
    return this.#clock.setTimer(ms, run);
  }

  outputSink(output: ReduceOutput): OutputSink {
    return new ReduceOutputs(this.#database, output);
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
    this.#state.feed.tellIndex(type, name);
  }

  #idOfCollection(collection: string | null): number {
    return collection === null ? allCollections : collectionIdNamed(this.#state, collection);
  }
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

class TombstoneCursor implements NumberCursor {
  docNum = 0;
  etag = 0;
  readonly #tombstones: Iterator<Tombstone>;
  readonly #state: DatabaseState;

  constructor(tombstones: Iterator<Tombstone>, state: DatabaseState) {
    this.#tombstones = tombstones;
    this.#state = state;
  }

  next(): boolean {
    for (;;) {
      const step = this.#tombstones.next();
      if (step.done === true) return false;
      const docNum = this.#state.documents.lookup(step.value.id);
      if (docNum < 0) continue; // nobody ever had it under this id since the start
      this.docNum = docNum;
      this.etag = step.value.etag;
      return true;
    }
  }
}
