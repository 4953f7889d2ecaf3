/**
 * Reads records for a walk: many at once when they must come from the disk, whole extents where most of an extent is
 * wanted, and the next ones ahead while the walk is still in this one. What it has fetched it holds itself until the walk
 * has passed: a cache without any room changes how fast a walk is, not whether it ends.
 *
 * Hot: bench/query.bench.ts, bench/cold.bench.ts.
 *
 * Invariants:
 * - When a promise of `gather` or `pending` has resolved, the record that was missing is found, in this turn and in later
 *   ones, until another was asked for.
 * - The bytes under a row stay as they are until the row is placed again.
 */

import type { RecordSource } from "./fetched-records.ts";
import type { StoredRow } from "./indexing/index-host.ts";
import { Extent, newPlace, type RecordPlace } from "./log/blocks.ts";
import type { CommitLog, Position } from "./log/log.ts";
import { positionSegmentFactor } from "./log/log.ts";
import type { Store } from "./store.ts";

/** Where the records of documents are: the table, or a view of it. A length of 0: there is none. */
export interface RecordTable {
  positionOf(number: number): Position;
  lengthOf(number: number): number;
  /** When the numbers are not those of documents: whose record it is. */
  documentOf?(number: number): number;
}

/** Bytes of records that are fetched by one `gather`, or one record. */
const gatherBytesMax = 1024 * 1024;
/** Extents that are held at once; those that are fetched by one `gather`; those that are read ahead. */
const heldMax = 5;
const gatheredExtentsMax = 2;
const aheadExtents = 2;
/** An extent is read when this part of it is wanted, or so many records. */
const denseShare = 1 / 8;
const denseRecords = 16;
/** Records fetched one by one that are kept for who asked. */
const singlesMax = 64;

interface Wanted {
  readonly document: number;
  readonly position: Position;
  readonly length: number;
  /** Of its extent, in the whole log. */
  readonly key: number;
}

interface Density {
  bytes: number;
  records: number;
}

export class RecordReader implements RecordSource {
  /** What to wait for after `place` gave false. */
  pending: Promise<void> | null = null;
  readonly #database: Store;
  readonly #log: CommitLog;
  readonly #extentBytes: number;
  readonly #place = newPlace();
  /** Those that hold a block, or did. */
  readonly #rows = new Set<StoredRow>();
  /** The one that was used last comes last. */
  readonly #held: Extent[] = [];
  #current: Extent | null = null;
  /** Where a walk goes on behind the current extent. */
  #nextKey = -1;
  /** Extents that are being read, by their place in the whole log. */
  readonly #coming = new Map<number, Promise<void>>();
  /** Records of the present `gather` that were read alone. */
  #gathered = new Map<Position, Buffer>();
  readonly #singles = new Map<Position, Buffer>();
  /** Grows with each `rest`. */
  #rests = 0;

  constructor(database: Store) {
    this.#database = database;
    this.#log = database.state.log;
    this.#extentBytes = this.#log.extentBytes;
  }

  /** Sets the bytes of `row`. @returns false when they must be fetched first, which is begun: see `pending`. Hot. */
  place(document: number, position: Position, length: number, row: StoredRow): boolean {
    if (this.tryPlace(position, length, row)) return true;
    this.pending = this.#fetch(document, position, length);
    return false;
  }

  /** As `place`; nothing is begun. Hot. */
  tryPlace(position: Position, length: number, row: StoredRow): boolean {
    if (!this.#find(position, length, true)) return false;
    const place = this.#place;
    row.bytes = place.bytes;
    row.start = place.start;
    const { block } = place;
    if (row.block !== block) {
      row.block?.release();
      block?.hold();
      row.block = block;
      this.#rows.add(row);
    }
    return true;
  }

  /** As `CommitLog.place`, with what it holds itself. Good until the record is not among those that are gathered. */
  locate(position: Position, length: number, target: RecordPlace): boolean {
    if (!this.#find(position, length, true)) return false;
    const place = this.#place;
    target.bytes = place.bytes;
    target.start = place.start;
    target.block = place.block;
    return true;
  }

  /** Puts the record's place into `#place`. With `enters` the walk is there now. */
  #find(position: Position, length: number, enters: boolean): boolean {
    if (this.#current !== null && this.#isIn(this.#current, position, length)) return true;
    const place = this.#place;
    if (this.#log.place(position, length, place, true)) {
      if (enters && place.block instanceof Extent) this.#enter(place.block);
      return true;
    }
    for (const extent of this.#held) {
      if (!this.#isIn(extent, position, length)) continue;
      if (enters) this.#enter(extent);
      return true;
    }
    const bytes = this.#gathered.get(position) ?? this.#singles.get(position);
    if (bytes === undefined) return false;
    place.bytes = bytes;
    place.start = 0;
    place.block = null;
    return true;
  }

  #isIn(extent: Extent, position: Position, length: number): boolean {
    const offset = position - extent.segment.number * positionSegmentFactor;
    if (!extent.has(offset, length)) return false;
    const place = this.#place;
    place.bytes = extent.bytes;
    place.start = offset - extent.start;
    place.block = extent;
    return true;
  }

  /** The walk is in another extent now. */
  #enter(extent: Extent): void {
    if (extent === this.#current || extent.index < 0) return;
    this.#hold(extent);
    const key = this.#keyOf(extent);
    const isWalk = key === this.#nextKey;
    this.#current = extent;
    this.#nextKey = this.#keyAfter(key);
    let ahead = this.#nextKey;
    for (let count = 0; isWalk && ahead >= 0 && count < aheadExtents; count++) {
      this.#readAhead(ahead);
      ahead = this.#keyAfter(ahead);
    }
  }

  /** -1 when there is none on the disk. */
  #keyAfter(key: number): number {
    const position = this.#log.extentAfter(key * this.#extentBytes);
    return position === null ? -1 : position / this.#extentBytes;
  }

  #keyOf(extent: Extent): number {
    return (extent.segment.number * positionSegmentFactor + extent.start) / this.#extentBytes;
  }

  #hold(extent: Extent): void {
    const at = this.#held.indexOf(extent);
    if (at >= 0) this.#held.splice(at, 1);
    else extent.hold();
    this.#held.push(extent);
    if (this.#held.length <= heldMax) return;
    const oldest = this.#held.shift() as Extent; // more than heldMax
    if (oldest === this.#current) this.#current = null;
    oldest.release();
  }

  #readAhead(key: number): void {
    const position = key * this.#extentBytes;
    if (this.#coming.has(key) || this.#log.extentAt(position) !== null) return;
    if (this.#held.some((extent) => this.#keyOf(extent) === key)) return;
    // It never fails: what cannot be read is not there.
    this.#readExtent(key).catch(() => undefined);
  }

  #readExtent(key: number): Promise<void> {
    let reading = this.#coming.get(key);
    if (reading === undefined) {
      reading = this.#readAndHold(key).finally(() => this.#coming.delete(key));
      this.#coming.set(key, reading);
    }
    return reading;
  }

  async #readAndHold(key: number): Promise<void> {
    const rests = this.#rests;
    const extent = await this.#log.readExtent(key * this.#extentBytes);
    if (extent !== null && rests === this.#rests) this.#hold(extent);
  }

  async #fetch(document: number, position: Position, length: number): Promise<void> {
    const bytes = await this.#read(document, position, length);
    this.#singles.set(position, bytes);
    for (const oldest of this.#singles.keys()) {
      if (this.#singles.size <= singlesMax) return;
      this.#singles.delete(oldest);
    }
  }

  /** In bytes of its own. */
  async #read(document: number, position: Position, length: number): Promise<Buffer> {
    const read = this.#database.recordAt(document, position, length);
    return read instanceof Promise ? await read : Buffer.from(read);
  }

  /**
   * Fetches what is not in memory of the records `numbers[from, to)` of the table, of the first of them at least.
   * @throws EngineError record-damaged when that is so of the first that is missing
   */
  async gather(table: RecordTable, numbers: Uint32Array, from: number, to: number): Promise<void> {
    if (await this.#comes(table, numbers[from] as number)) return;
    const pin = this.#log.pin();
    try {
      const wanted = this.#wantedOf(table, numbers, from, to);
      const [first] = wanted;
      if (first === undefined) return;
      const dense = this.#denseOf(wanted);
      const reads = dense.map((key) => this.#readExtent(key));
      for (const one of wanted) {
        if (!dense.includes(one.key) || this.#isLong(one)) reads.push(this.#gatherOne(one));
      }
      await Promise.allSettled(reads);
      const { position, length, document } = first;
      if (this.#find(position, length, true)) return;
      this.#gathered.set(position, await this.#read(document, position, length));
    } finally {
      pin.release();
    }
  }

  /** Waits for the extent of a record that is being read ahead. @returns whether the record is there then */
  async #comes(table: RecordTable, number: number): Promise<boolean> {
    const position = table.positionOf(number);
    const coming = this.#coming.get(Math.floor(position / this.#extentBytes));
    if (coming === undefined) return false;
    // It may stand elsewhere when the read has ended.
    const length = table.lengthOf(number);
    await coming;
    return this.#find(position, length, true);
  }

  /** Does it end behind what is read of its extent? */
  #isLong({ position, length, key }: Wanted): boolean {
    return position + length > key * this.#extentBytes + this.#log.blockBytes;
  }

  async #gatherOne({ document, position, length }: Wanted): Promise<void> {
    const bytes = await this.#read(document, position, length);
    this.#gathered.set(position, bytes);
  }

  /** What is missing, in order; what was gathered before and is not among the documents is dropped. */
  #wantedOf(table: RecordTable, numbers: Uint32Array, from: number, to: number): Wanted[] {
    const wanted: Wanted[] = [];
    const kept = new Map<Position, Buffer>();
    let bytes = 0;
    for (let i = from; i < to; i++) {
      const number = numbers[i] as number; // i < to
      const length = table.lengthOf(number);
      if (length === 0) continue;
      const position = table.positionOf(number);
      const known = this.#gathered.get(position);
      if (known !== undefined) kept.set(position, known);
      else if (!this.#find(position, length, false)) {
        bytes += length;
        if (wanted.length > 0 && bytes > gatherBytesMax) break;
        const key = Math.floor(position / this.#extentBytes);
        const document = table.documentOf?.(number) ?? number;
        wanted.push({ document, position, length, key });
      }
    }
    this.#gathered = kept;
    return wanted;
  }

  /**
   * The extents that are read whole, the first ones of them; the records in others of this kind are struck from `wanted`,
   * and come with a later `gather`.
   */
  #denseOf(wanted: Wanted[]): number[] {
    const densities = new Map<number, Density>();
    for (const { key, length } of wanted) {
      const density = densities.get(key) ?? { bytes: 0, records: 0 };
      density.bytes += length;
      density.records++;
      densities.set(key, density);
    }
    const dense: number[] = [];
    const later = new Set<number>();
    for (const [key, { bytes, records }] of densities) {
      const isDense = bytes >= this.#extentBytes * denseShare || records >= denseRecords;
      // A walk that was in the extent before will want most of this one.
      if (!isDense && this.#nextKey !== key && !dense.includes(key - 1)) continue;
      if (dense.length < gatheredExtentsMax) dense.push(key);
      else later.add(key);
    }
    if (later.size > 0) {
      wanted.splice(0, wanted.length, ...wanted.filter(({ key }) => !later.has(key)));
    }
    return dense;
  }

  /** As `rest`; nobody looks at the rows that it placed any more. */
  close(): void {
    this.rest();
    for (const row of this.#rows) {
      row.block?.release();
      row.block = null;
    }
    this.#rows.clear();
  }

  /** Lets go of all that it holds but for the rows. It can be used again. */
  rest(): void {
    this.#rests++;
    for (const extent of this.#held.splice(0)) extent.release();
    this.#current = null;
    this.#nextKey = -1;
    this.#gathered.clear();
    this.#singles.clear();
  }
}
