/**
 * The segments of one log, their order and their files. Creates, lists, reads and removes them; knows nothing of
 * commits. With `disk` null it does so without files.
 *
 * Invariants:
 * - The manifest on the device lists exactly `order`, then the spare, as of the last change that resolved.
 * - A segment that is no longer listed stays readable while a pin that is older than its removal is held.
 */
import { assert } from "../../base/assert.ts";
import type { DirectoryLock, Environment, FileHandle, FileSystem } from "../../base/environment.ts";
import { EngineError } from "../../base/errors.ts";
import {
  type BorrowedBytes,
  borrowed,
  type OwnedBytes,
  ownedCopy,
} from "../../base/memory/borrowed-bytes.ts";
import { verifyRecord } from "../../base/record.ts";
import { recordLookups } from "../../base/record-lookups.ts";
import { syncLatency } from "../../base/scheduling/latency-counts.ts";
import { DiskWrites } from "../log/disk-writes.ts";
import { type Health, isDiskFull } from "../log/health.ts";
import { type Pin, type Position, positionSegmentFactor } from "../log/log.ts";
import type { LogFollower, LogRange } from "../log/log-follower.ts";
import { type Manifest, type ManifestSnapshot, writeManifest } from "../log/manifest.ts";
import type { Throttle } from "../log/throttle.ts";
import { Extent, newPlace, type RecordPlace } from "./blocks.ts";
import { triedRead } from "./failed-read.ts";
import { poisonedAfterTick } from "./image-pool.ts";
import {
  encodeSegmentHeader,
  Segment,
  type SegmentKind,
  segmentFileName,
  segmentHeaderBytes,
} from "./segment.ts";
import type { SegmentCache } from "./segment-cache.ts";

/** The folder of a log. */
export interface Disk {
  /** Its operations check that the folder's lock is still held. */
  readonly files: FileSystem;
  readonly folder: string;
  readonly lock: DirectoryLock;
}

/** Handles of sealed segments that stay open for reading. */
const openFilesMax = 256;
const fillBytes = 1024 * 1024;
const rangeReadBytes = 256 * 1024;
const zeros = Buffer.alloc(fillBytes);

/** Changes the lists that the manifest is written from. @returns its undo. */
type ManifestChange = () => () => void;

interface Retired {
  readonly segment: Segment;
  readonly generation: number;
}

export class SegmentStore {
  readonly disk: Disk | null;
  databaseId: Buffer;
  readonly cache: SegmentCache;
  readonly health: Health;
  /** In commit order, without the spare. */
  order: Segment[] = [];
  /** Created ahead of need; the next one in order. */
  spare: Segment | null = null;
  nextNumber = 1;
  nextSnapshotNumber = 1;
  snapshots: ManifestSnapshot[] = [];
  /** Bytes of the last snapshot file that was read or written; an estimate for the others. */
  lastSnapshotBytes = 0;
  /** A snapshot is being written that is not listed yet. */
  isSnapshotComing = false;
  /** The newest writes to its files. */
  readonly writes = new DiskWrites();
  /** Followers that copy the log elsewhere. */
  readonly followers = new Set<LogFollower>();
  /** Called when another segment becomes eligible for compaction. */
  onSealed: (() => void) | null = null;
  readonly #environment: Pick<Environment, "clock" | "random">;
  readonly #byNumber = new Map<number, Segment>();
  readonly #pins = new Map<symbol, number>();
  readonly #retired: Retired[] = [];
  readonly #openForReading = new Set<Segment>();
  /** Scratch value of `peek`. */
  readonly #place = newPlace();
  #generation = 0;
  #isClosed = false;
  #manifestSaved: Promise<void> = Promise.resolve();
  #removals: Promise<void> = Promise.resolve();

  constructor(
    disk: Disk | null,
    databaseId: Buffer,
    cache: SegmentCache,
    health: Health,
    environment: Pick<Environment, "clock" | "random">,
  ) {
    this.disk = disk;
    this.databaseId = databaseId;
    this.cache = cache;
    this.health = health;
    this.#environment = environment;
  }

  find(number: number): Segment | undefined {
    return this.#byNumber.get(number);
  }

  pathOf(segment: Segment): string {
    assert(this.disk !== null, "only a log on disk has paths");
    return `${this.disk.folder}/log/${segmentFileName(segment.number)}`;
  }

  /** Creates a segment without image, immediately visible to readers; `prepare` creates its file. */
  newSegment(kind: SegmentKind, size: number): Segment {
    const number = this.nextNumber++;
    const segment = new Segment({ number, kind, salt: this.#newSalt(), size });
    this.#byNumber.set(number, segment);
    return segment;
  }

  /** Adds a segment that recovery found. */
  adopt(segment: Segment): void {
    assert(!this.#byNumber.has(segment.number), "segment numbers are unique");
    this.#byNumber.set(segment.number, segment);
  }

  /** Lists `segment` after all others. @returns the undo */
  append(segment: Segment): () => void {
    this.order = [...this.order, segment];
    for (const follower of this.followers) follower.added(segment);
    return () => {
      for (const follower of this.followers) follower.dropped(segment);
      this.order = this.order.filter((other) => other !== segment);
    };
  }

  /** Forgets a segment without durable content. */
  drop(segment: Segment): void {
    this.#byNumber.delete(segment.number);
    for (const follower of this.followers) follower.dropped(segment);
    this.cache.remove(segment);
    if (this.spare === segment) this.spare = null;
    this.order = this.order.filter((other) => other !== segment);
  }

  /**
   * Creates the file of a log segment: header and zeros, synced; then runs `list` and writes the manifest.
   * @throws errors of the disk; if it is full, no file is left.
   */
  prepare(segment: Segment, list: ManifestChange): Promise<void> {
    segment.ready ??= this.#prepare(segment, list);
    return segment.ready;
  }

  async #prepare(segment: Segment, list: ManifestChange): Promise<void> {
    if (this.disk === null) {
      list();
      return;
    }
    const header = Buffer.alloc(segmentHeaderBytes);
    encodeSegmentHeader(header, { ...segment, databaseId: this.databaseId });
    segment.file = await this.createFile(segment, async (file) => {
      await file.write(header, 0, header.length, 0);
      for (let at = segmentHeaderBytes; at < segment.size; at += fillBytes) {
        await file.write(zeros, 0, Math.min(fillBytes, segment.size - at), at);
      }
    });
    try {
      await this.saveManifest(list);
    } catch (error) {
      // After any other failure the manifest on the device may list it.
      if (isDiskFull(error)) await this.removeFile(segment);
      throw error;
    }
  }

  /** Creates the file of `segment`, calls `fill`, and syncs file and folder. Leaves no file when the disk is full. */
  async createFile(
    segment: Segment,
    fill: (file: FileHandle) => Promise<void>,
  ): Promise<FileHandle> {
    assert(this.disk !== null, "only a log on disk has files");
    const { files, folder } = this.disk;
    const path = this.pathOf(segment);
    let file: FileHandle | undefined;
    try {
      file = await files.open(path, "create");
      await fill(file);
      await this.sync(file);
      await this.syncDirectory(`${folder}/log`);
      return file;
    } catch (error) {
      await file?.close();
      if (!isDiskFull(error)) throw this.health.stop(error);
      if (file !== undefined) await files.unlink(path);
      throw error;
    }
  }

  /** @throws EngineError database-stopped when fsync fails; it is never retried. */
  async sync(file: FileHandle): Promise<void> {
    this.health.check();
    const fromMs = performance.now();
    try {
      await file.sync();
      syncLatency.add(performance.now() - fromMs);
    } catch (error) {
      throw this.health.stop(error);
    }
  }

  async syncDirectory(path: string): Promise<void> {
    assert(this.disk !== null, "only a log on disk has folders");
    this.health.check();
    try {
      await this.disk.files.syncDirectory(path);
    } catch (error) {
      throw this.health.stop(error);
    }
  }

  /**
   * Runs `change` on the list of segments or snapshots, then writes the manifest. One at a time.
   * @throws the disk's error when it is full (the change is undone), else EngineError database-stopped.
   */
  saveManifest(change: ManifestChange): Promise<void> {
    const saved = this.#manifestSaved.then(() => this.#saveManifest(change));
    this.#manifestSaved = saved.catch(() => undefined);
    return saved;
  }

  async #saveManifest(change: ManifestChange): Promise<void> {
    this.health.check();
    assert(!this.#isClosed, "a log that let go of its folder writes nothing there");
    const undo = change();
    if (this.disk === null) return;
    try {
      const { files, folder, lock } = this.disk;
      await writeManifest(files, folder, lock.nonce, this.manifest());
    } catch (error) {
      if (!isDiskFull(error)) throw this.health.stop(error);
      undo();
      throw error;
    }
  }

  manifest(): Manifest {
    const listed = this.spare === null ? this.order : [...this.order, this.spare];
    return {
      databaseId: this.databaseId,
      nextSegmentNumber: this.nextNumber,
      nextSnapshotNumber: this.nextSnapshotNumber,
      segments: listed.map((segment) => ({
        number: segment.number,
        kind: segment.kind,
        firstNumber: segment.firstNumber,
        size: segment.size,
        lastNumber: segment.kind === "compacted" ? segment.lastNumber : 0,
        lastCrc: segment.kind === "compacted" ? segment.lastCrc : 0,
        cleanThrough: segment.cleanThrough,
        deadBytesAtBirth: segment.deadBytesAtBirth,
      })),
      snapshots: this.snapshots,
    };
  }

  /** See `CommitLog.place`. */
  place(position: Position, length: number, target: RecordPlace, isWalk = false): boolean {
    const number = Math.floor(position / positionSegmentFactor);
    const segment = this.#byNumber.get(number);
    if (segment === undefined) return false;
    // An integer of 31 bits, and no double: the fields that it is kept in are of one kind then.
    const start = (position - number * positionSegmentFactor) | 0;
    const { image } = segment;
    if (image === null) {
      const isFound = this.cache.place(segment, start, length, target, isWalk);
      if (isFound) recordLookups.found++;
      else recordLookups.missed++;
      return isFound;
    }
    recordLookups.found++;
    this.cache.touch(segment);
    segment.deferredCopies?.finish(start, start + length);
    target.bytes = borrowed(image);
    target.start = start;
    target.block = segment.imageBlock;
    return true;
  }

  /** See `CommitLog.extentAt`. */
  extentAt(position: Position): Extent | null {
    const number = Math.floor(position / positionSegmentFactor);
    const segment = this.#byNumber.get(number);
    if (segment === undefined) return null;
    return this.cache.extentAt(segment, position - number * positionSegmentFactor);
  }

  /** See `CommitLog.extentAfter`. */
  extentAfter(position: Position): Position | null {
    const number = Math.floor(position / positionSegmentFactor);
    const segment = this.#byNumber.get(number);
    if (segment === undefined) return null;
    const { extentBytes } = this.cache.blocks;
    const offset = position - number * positionSegmentFactor;
    const start = (Math.floor(offset / extentBytes) + 1) * extentBytes;
    if (start < segment.end) return number * positionSegmentFactor + start;
    const at = this.order.indexOf(segment);
    const next = at < 0 ? undefined : this.order[at + 1];
    return next === undefined || next.image !== null ? null : next.number * positionSegmentFactor;
  }

  /** See `CommitLog.peek`. */
  peek(position: Position, length: number): BorrowedBytes | null {
    const place = this.#place;
    if (!this.lend(position, length, place)) return null;
    return place.bytes.subarray(place.start, place.start + length);
  }

  /** See `CommitLog.lend`. */
  lend(position: Position, length: number, target: RecordPlace): boolean {
    if (!this.place(position, length, target)) return false;
    if (this.cache.images.poisons) {
      target.bytes = poisonedAfterTick(target.bytes.subarray(target.start, target.start + length));
      target.start = 0;
      target.block = null;
    }
    return true;
  }

  /** Estimated bytes of all snapshot files. */
  snapshotBytes(): number {
    const count = this.snapshots.length + (this.isSnapshotComing ? 1 : 0);
    return count * this.lastSnapshotBytes;
  }

  /** Returns the bytes of all segments, listed or not yet removed. */
  segmentBytes(): number {
    let bytes = 0;
    for (const segment of this.#byNumber.values()) bytes += segment.size;
    return bytes;
  }

  /** Returns the bytes of durable records that are still needed. */
  liveBytes(): number {
    let bytes = 0;
    for (const segment of this.order) bytes += segment.payloadBytes - segment.deadBytes;
    return bytes;
  }

  /** Returns the bytes of durable records that are no longer needed. */
  deadBytes(): number {
    let bytes = 0;
    for (const segment of this.order) bytes += segment.deadBytes;
    return bytes;
  }

  /** Returns the bytes of the images of segments that are in memory now. */
  imageBytes(): number {
    let bytes = 0;
    for (const segment of this.#byNumber.values()) bytes += segment.image?.length ?? 0;
    return bytes;
  }

  /** See `CommitLog.read`. */
  async read(position: Position, length: number): Promise<OwnedBytes> {
    const inMemory = this.peek(position, length);
    if (inMemory !== null) return ownedCopy(inMemory);
    const number = Math.floor(position / positionSegmentFactor);
    const start = position - number * positionSegmentFactor;
    const segment = this.#byNumber.get(number);
    if (segment === undefined) {
      throw new EngineError("record-damaged", `There is no segment ${number} in the log.`);
    }
    const bytes = Buffer.from(new ArrayBuffer(length));
    const count = await this.readFrom(segment, bytes, start);
    if (count === length && verifyRecord(bytes, 0, length)) {
      if (this.#keeps(segment)) this.cache.addSingle(segment, start, bytes, 0, length);
      return bytes;
    }
    segment.compared.forget();
    throw new EngineError(
      "record-damaged",
      `The record at byte ${start} of ${this.pathOf(segment)} is damaged.`,
      { details: { position, length } },
    );
  }

  /**
   * Copies of the bytes of a range, each valid until the next one. The caller keeps the segment.
   * @throws EngineError read-failed, record-damaged
   */
  async *readRange({ segment, from, to }: LogRange, throttle?: Throttle): AsyncGenerator<Buffer> {
    const memory = Buffer.allocUnsafe(Math.min(rangeReadBytes, to - from));
    for (let at = from; at < to; ) {
      const bytes = memory.subarray(0, Math.min(memory.length, to - at));
      const { image } = segment;
      const count =
        image === null
          ? await this.readFrom(segment, bytes, at)
          : image.copy(bytes, 0, at, at + bytes.length);
      if (count < bytes.length) {
        throw new EngineError(
          "record-damaged",
          `${this.pathOf(segment)} ends at byte ${at + count}.`,
        );
      }
      yield bytes;
      at += count;
      await throttle?.spend(count);
    }
  }

  /** See `CommitLog.readExtent`. */
  readExtent(position: Position): Promise<Extent | null> {
    const number = Math.floor(position / positionSegmentFactor);
    const segment = this.#byNumber.get(number);
    if (segment === undefined || segment.image !== null) return Promise.resolve(null);
    const { extentBytes } = this.cache.blocks;
    const index = Math.floor((position - number * positionSegmentFactor) / extentBytes);
    if (index * extentBytes >= segment.end) return Promise.resolve(null);
    const known = segment.extents[index];
    if (known) return Promise.resolve(known);
    let read = segment.extentReads.get(index);
    if (read === undefined) {
      read = this.#readExtent(segment, index).finally(() => segment.extentReads.delete(index));
      segment.extentReads.set(index, read);
    }
    return read;
  }

  /** The pin keeps compaction from removing the file before it is open. */
  async #readExtent(segment: Segment, index: number): Promise<Extent | null> {
    const { blocks } = this.cache;
    const start = index * blocks.extentBytes;
    const length = Math.min(blocks.blockBytes, segment.end - start);
    const memory = blocks.take();
    const nowMs = this.#environment.clock.monotonicMs();
    const extent = new Extent(segment, index, start, length, memory, blocks, nowMs);
    const pin = this.pin();
    try {
      const count = await this.readFrom(segment, memory.subarray(0, length), start);
      if (count === length) {
        if (this.#keeps(segment)) this.cache.addExtent(extent);
        else extent.leave();
        return extent;
      }
    } catch {
      // Readers then read their records individually, and get the error.
    } finally {
      pin.release();
    }
    segment.compared.forget();
    extent.leave();
    return null;
  }

  /** Returns whether data read from the segment may be cached: whether it is sealed and still in the log. */
  #keeps(segment: Segment): boolean {
    return !this.#isClosed && segment.sealed && this.#byNumber.get(segment.number) === segment;
  }

  /**
   * Fills `target` from byte `start` of the file. @returns bytes read; 0 when the file does not exist.
   * @throws EngineError read-failed when the system cannot read it now, database-stopped
   */
  async readFrom(segment: Segment, target: Buffer, start: number): Promise<number> {
    segment.readers++;
    try {
      return await triedRead(this.pathOf(segment), 0, async () => {
        const file = await this.#openForReads(segment);
        return await file.read(target, 0, target.length, start);
      });
    } finally {
      segment.readers--;
      if (segment.closeAfterRead && segment.readers === 0) this.#closeFile(segment);
    }
  }

  /** Closes the handle once no read is in progress: the number of a closed descriptor may soon mean another file. */
  #closeFile(segment: Segment): void {
    segment.closeAfterRead = segment.readers > 0;
    const file = segment.file;
    if (segment.closeAfterRead || file === null) return;
    segment.file = null;
    file.close().catch(() => undefined);
  }

  async #openForReads(segment: Segment): Promise<FileHandle> {
    if (segment.file !== null) return segment.file;
    assert(this.disk !== null, "the image of an in-memory segment is always there");
    if (this.#isClosed) throw new EngineError("database-stopped", "The database is closed.");
    segment.opening ??= this.disk.files.open(this.pathOf(segment), "read");
    try {
      segment.file = await segment.opening;
    } finally {
      segment.opening = null;
    }
    this.keepOpen(segment);
    return segment.file;
  }

  /** Counts the handle of a sealed segment among the open ones, and closes the handle opened longest ago. */
  keepOpen(segment: Segment): void {
    this.#openForReading.add(segment);
    if (this.#openForReading.size <= openFilesMax) return;
    for (const oldest of this.#openForReading) {
      this.#openForReading.delete(oldest);
      // The handle of a segment that is being written stays open.
      if (oldest.sealed) this.#closeFile(oldest);
      return;
    }
  }

  pin(): Pin {
    const key = Symbol("pin");
    this.#pins.set(key, this.#generation);
    return {
      release: () => {
        if (this.#pins.delete(key)) this.removeRetired();
      },
    };
  }

  /** Removes segments that are no longer listed, as soon as no older pin is held and no follower needs them. */
  retire(segments: readonly Segment[]): void {
    this.#generation++;
    for (const segment of segments) {
      this.#retired.push({ segment, generation: this.#generation });
      for (const follower of [...this.followers]) follower.replaced(segment);
    }
    this.removeRetired();
  }

  removeRetired(): void {
    let oldestPin = Number.POSITIVE_INFINITY;
    for (const generation of this.#pins.values()) oldestPin = Math.min(oldestPin, generation);
    for (const retired of this.#retired.splice(0)) {
      if (retired.generation > oldestPin || this.#isFollowed(retired.segment)) {
        this.#retired.push(retired);
        continue;
      }
      this.#byNumber.delete(retired.segment.number);
      const { image, imageBlock } = retired.segment;
      this.cache.remove(retired.segment);
      if (image !== null && imageBlock === null) this.cache.images.releaseImage(image);
      this.#removals = this.#removals.then(() => this.removeFile(retired.segment));
    }
  }

  #isFollowed(segment: Segment): boolean {
    for (const follower of this.followers) if (follower.needs(segment)) return true;
    return false;
  }

  /** Waits for files that are being removed. */
  finishRemovals(): Promise<void> {
    return this.#removals;
  }

  /** Errors are ignored: the file is not listed, and the next recovery removes it. */
  async removeFile(segment: Segment): Promise<void> {
    if (this.disk === null) return;
    this.#openForReading.delete(segment);
    this.#closeFile(segment);
    try {
      await this.disk.files.unlink(this.pathOf(segment));
    } catch {}
  }

  /** Waits for operations in progress, closes all files and releases the memory. */
  async close(): Promise<void> {
    await this.#manifestSaved;
    await this.#removals;
    this.#isClosed = true;
    for (const segment of this.#byNumber.values()) {
      const file = segment.file;
      segment.file = null;
      this.cache.remove(segment);
      await file?.close().catch(() => undefined);
    }
    this.#openForReading.clear();
  }

  #newSalt(): number {
    return (this.#environment.random(4).readUInt32LE(0) | 1) >>> 0;
  }
}
