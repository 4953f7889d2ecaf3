/**
 * Reads records for a scan: in batches if they must be read from disk, whole extents if most of an extent is needed,
 * and with read-ahead. It holds the fetched records until the scan has passed them: a full cache makes a scan slower,
 * but never prevents its completion.
 *
 * Hot: bench/scan.bench.ts, bench/cold.bench.ts.
 *
 * Invariants:
 * - Once a promise of `gather` or `pending` has resolved, the missing record is found, in this tick and in later ones,
 *   until another one is requested.
 * - The bytes of a row remain unchanged until the row is placed again.
 */

import { borrowed, type OwnedBytes, ownedCopy } from "../../base/memory/borrowed-bytes.ts";
import type { StoredRow } from "../../indexing/index-host.ts";
import type { RecordSource } from "../../state/store/fetched-records.ts";
import type { Store } from "../../state/store/store.ts";
import type { CommitLog, Position } from "../../storage/log/log.ts";
import { positionSegmentFactor } from "../../storage/log/log.ts";
import { Extent, newPlace, type RecordPlace } from "../../storage/segments/blocks.ts";

/** Positions of documents' records: the table, or a view of it. A length of 0: no record. */
export interface RecordTable {
  positionOf(number: number): Position;
  lengthOf(number: number): number;
  /** Returns the document of a record, if the numbers are not document numbers. */
  documentOf?(number: number): number;
}

/** Bytes of records fetched by one `gather`, or one record. */
const gatherBytesMax = 1024 * 1024;
/** Maximum number of extents held; fetched by one `gather`; read ahead. */
const heldMax = 5;
const gatheredExtentsMax = 2;
const aheadExtents = 2;
/** An extent is read whole when this share of it, or so many of its records, are needed. */
const denseShare = 1 / 8;
const denseRecords = 16;
/** Single records that are kept for their requesters. */
const singlesMax = 64;

/** Most readers fetch nothing. Nothing is added to these. */
const noExtents = new Map<number, Promise<void>>();
const noRecords = new Map<Position, OwnedBytes>();

interface Wanted {
  readonly document: number;
  readonly position: Position;
  readonly length: number;
  /** Number of its extent in the whole log. */
  readonly key: number;
}

interface Density {
  bytes: number;
  records: number;
}

export class RecordReader implements RecordSource {
  /** To be awaited after `place` returned false. */
  pending: Promise<void> | null = null;
  readonly #database: Store;
  readonly #log: CommitLog;
  readonly #extentBytes: number;
  readonly #place = newPlace();
  /** Rows that hold a block, or did. */
  readonly #rows = new Set<StoredRow>();
  /** Least recently used first. */
  readonly #held: Extent[] = [];
  #current: Extent | null = null;
  /** The extent that follows the current one in a scan. */
  #nextKey = -1;
  /** Extents being read, by their number in the whole log. */
  #coming = noExtents;
  /** Records of the present `gather` that were read individually. */
  #gathered = noRecords;
  #singles = noRecords;
  /** Incremented by each `rest`. */
  #rests = 0;

  constructor(database: Store) {
    this.#database = database;
    this.#log = database.state.log;
    this.#extentBytes = this.#log.extentBytes;
  }

  /** Sets the bytes of `row`. @returns false when they must be fetched first, which is started: see `pending`. Hot. */
  place(document: number, position: Position, length: number, row: StoredRow): boolean {
    if (this.tryPlace(position, length, row)) return true;
    this.pending = this.#fetch(document, position, length);
    return false;
  }

  /** As `place`, but starts no fetch. Hot. */
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

  /** As `CommitLog.place`, including the records held here. Valid until a `gather` without the record. */
  locate(position: Position, length: number, target: RecordPlace): boolean {
    if (!this.#find(position, length, true)) return false;
    const place = this.#place;
    target.bytes = place.bytes;
    target.start = place.start;
    target.block = place.block;
    return true;
  }

  /** Sets `#place` to the record. With `enters` the scan moves there. */
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
    place.bytes = borrowed(bytes);
    place.start = 0;
    place.block = null;
    return true;
  }

  #isIn(extent: Extent, position: Position, length: number): boolean {
    const offset = position - extent.segment.number * positionSegmentFactor;
    if (!extent.has(offset, length)) return false;
    const place = this.#place;
    place.bytes = borrowed(extent.bytes);
    place.start = offset - extent.start;
    place.block = extent;
    return true;
  }

  /** The scan has moved to another extent. */
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

  /** -1 if no extent on disk follows. */
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
    // It never fails: unreadable extents are treated as missing.
    this.#readExtent(key).catch(() => undefined);
  }

  #readExtent(key: number): Promise<void> {
    let reading = this.#coming.get(key);
    if (reading === undefined) {
      reading = this.#readAndHold(key).finally(() => this.#coming.delete(key));
      if (this.#coming === noExtents) this.#coming = new Map();
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
    if (this.#singles === noRecords) this.#singles = new Map();
    this.#singles.set(position, bytes);
    for (const oldest of this.#singles.keys()) {
      if (this.#singles.size <= singlesMax) return;
      this.#singles.delete(oldest);
    }
  }

  /** As a copy. */
  async #read(document: number, position: Position, length: number): Promise<OwnedBytes> {
    const read = this.#database.recordAt(document, position, length);
    return read instanceof Promise ? await read : ownedCopy(read);
  }

  /**
   * Fetches those of the records `numbers[from, to)` of the table that are not in memory, at least the first of them.
   * @throws EngineError record-damaged if the first missing one is damaged
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

  /** Waits for a read-ahead of the record's extent. @returns whether the record is found then */
  async #comes(table: RecordTable, number: number): Promise<boolean> {
    const position = table.positionOf(number);
    const coming = this.#coming.get(Math.floor(position / this.#extentBytes));
    if (coming === undefined) return false;
    // It may have been relocated when the read has ended.
    const length = table.lengthOf(number);
    await coming;
    return this.#find(position, length, true);
  }

  /** Returns whether the record ends after the block that is read for its extent. */
  #isLong({ position, length, key }: Wanted): boolean {
    return position + length > key * this.#extentBytes + this.#log.blockBytes;
  }

  async #gatherOne({ document, position, length }: Wanted): Promise<void> {
    const bytes = await this.#read(document, position, length);
    this.#gathered.set(position, bytes);
  }

  /** Returns the missing records, in order; drops gathered records that are not among the documents. */
  #wantedOf(table: RecordTable, numbers: Uint32Array, from: number, to: number): Wanted[] {
    const wanted: Wanted[] = [];
    const stillWanted = new Map<Position, OwnedBytes>();
    let bytes = 0;
    for (let i = from; i < to; i++) {
      const number = numbers[i] as number; // i < to
      const length = table.lengthOf(number);
      if (length === 0) continue;
      const position = table.positionOf(number);
      const known = this.#gathered.get(position);
      if (known !== undefined) stillWanted.set(position, known);
      else if (!this.#find(position, length, false)) {
        bytes += length;
        if (wanted.length > 0 && bytes > gatherBytesMax) break;
        const key = Math.floor(position / this.#extentBytes);
        const document = table.documentOf?.(number) ?? number;
        wanted.push({ document, position, length, key });
      }
    }
    this.#gathered = stillWanted;
    return wanted;
  }

  /**
   * Returns the first of the extents that are read whole; records in further such extents are removed from `wanted`,
   * and fetched by a later `gather`.
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
      // A scan that was in the previous extent will need most of this one.
      if (!isDense && this.#nextKey !== key && !dense.includes(key - 1)) continue;
      if (dense.length < gatheredExtentsMax) dense.push(key);
      else later.add(key);
    }
    if (later.size > 0) {
      wanted.splice(0, wanted.length, ...wanted.filter(({ key }) => !later.has(key)));
    }
    return dense;
  }

  /** As `rest`; rows that it placed must not be used afterward. */
  close(): void {
    this.rest();
    if (this.#rows.size === 0) return;
    for (const row of this.#rows) {
      row.block?.release();
      row.block = null;
    }
    this.#rows.clear();
  }

  /** Releases everything that it holds except the rows. It can be used again. */
  rest(): void {
    this.#rests++;
    if (this.#held.length > 0) for (const extent of this.#held.splice(0)) extent.release();
    this.#current = null;
    this.#nextKey = -1;
    if (this.#gathered.size > 0) this.#gathered.clear();
    if (this.#singles.size > 0) this.#singles.clear();
  }
}
