/**
 * The log of one database, on disk or in memory. In memory it only lacks the files: segments, group commit and
 * compaction are the same.
 *
 *   const log = await openLog(options);       // locks the folder; finds the newest intact snapshot of the index
 *   restore(log.snapshot?.sections);          // the owner restores the state of the snapshot, if there is one
 *   const report = await log.replay();        // owner.relocate and owner.replay for the records after it
 *   log.append(payload, length);              // from here on
 *   await log.close(() => sections);          // with a final snapshot, if there is something to save
 *
 * Files: `MANIFEST` (manifest.ts), `log/<number>.seg` (segment.ts, frame.ts), `snap/<number>.idx` (snapshot-file.ts).
 * Knows of records only their header (record.ts); their meaning is the owner's business.
 *
 * Invariants:
 * - Everything reported durable is found by `replay`, or opening fails and reports the damage.
 */
import { assert } from "../../base/assert.ts";
import type { Clock, DirectoryLock, FileSystem, Report, Timer } from "../../base/environment.ts";
import { EngineError } from "../../base/errors.ts";
import {
  backgroundBytesPerSecond,
  diskReserveBytes,
  rivalNumbers,
  sliceMs,
} from "../../base/limits.ts";
import type { BorrowedBytes, OwnedBytes } from "../../base/memory/borrowed-bytes.ts";
import { FencedFiles } from "../../base/platform/fenced-files.ts";
import type { Extent, RecordPlace } from "../segments/blocks.ts";
import { isSystemError, openingFailed } from "../segments/failed-read.ts";
import { type Segment, segmentHeaderBytes } from "../segments/segment.ts";
import type { SegmentCache } from "../segments/segment-cache.ts";
import { type Disk, SegmentStore } from "../segments/segment-store.ts";
import { type CompactionOptions, type CompactionReport, Compactor } from "./compaction.ts";
import type { DiskWrite } from "./disk-writes.ts";
import { diskFull, Health, isDiskFull } from "./health.ts";
import type {
  CommitLog,
  LogImage,
  LogListener,
  LogMetrics,
  Pin,
  Position,
  RecordOwner,
  SnapshotSection,
  SummedBytes,
} from "./log.ts";
import { positionSegmentFactor } from "./log.ts";
import type { LogCarrier } from "./log-carrier.ts";
import { findLeftovers, findSegments, highestFileNumber, openFolder } from "./log-folder.ts";
import { LogFollower } from "./log-follower.ts";
import { LogWriter } from "./log-writer.ts";
import { Recovery, type RecoveryResult } from "./recovery.ts";
import { type Damage, type ScrubReport, scrub } from "./scrub.ts";
import {
  type LoadedSnapshot,
  letGoOf,
  passingMemory,
  readSnapshotFile,
  snapshotFileName,
} from "./snapshot-file.ts";
import { Snapshots } from "./snapshots.ts";
import { SpaceGuard } from "./space-guard.ts";
import { Throttle } from "./throttle.ts";

export interface LogOptions {
  readonly files: FileSystem;
  /** Null for an in-memory log: then `files` is not used. */
  readonly folder: string | null;
  readonly clock: Clock;
  /** Random bytes for salts and for the id of a new database. */
  random(count: number): Buffer;
  readonly owner: RecordOwner;
  readonly listener: LogListener;
  /** Shared by all logs of the process. */
  readonly cache: SegmentCache;
  /** Bytes of the first segment; each next one is twice as large, up to `segmentBytesMax`. */
  readonly segmentBytesMin: number;
  readonly segmentBytesMax: number;
  /**
   * Bytes of a segment made for one transaction, larger than the next planned one, from which on it is not kept in memory
   * afterwards; 32 MiB when left out.
   */
  readonly oversizedBytesMin?: number;
  /** 16 bytes for a new database; random when left out. An existing one keeps its own. */
  readonly databaseId?: Buffer;
  /** Replication of this log; omitted if it is not replicated. */
  readonly carrier?: LogCarrier | undefined;
  /** Refuse to create a new database. */
  readonly mustExist?: boolean;
  /** See limits.ts. */
  readonly diskReserveBytes?: number;
  /** Reports to the operator that the disk is full. */
  readonly report?: Report | undefined;
  /**
   * Compact automatically, at this speed when there is no pressure, see `paceOf`. Left out: only when `compact` is
   * called.
   */
  readonly compaction?: CompactionOptions;
}

/** Lower bound, in first segments, for the live bytes of a log in pace calculations. */
const leastSegments = 16;
/** While compaction lags, writers are limited to its speed divided by this and by the brake. */
const brakeFactor = 4;
/** Milliseconds between two reports that writers are held back. */
const heldReportMs = 60_000;

/** The findings of opening. */
export interface ReplayReport {
  /** Number of replayed transactions, excluding those in the snapshot. */
  readonly transactions: number;
  /** Whether the log had been closed properly. */
  readonly wasClosed: boolean;
  /** Number of bytes of a torn tail that was truncated; they contained no acknowledged transaction. */
  readonly tornBytes: number;
  /** Damaged snapshots that were skipped. */
  readonly snapshotsIgnored: number;
}

/**
 * Opens a log, creating it when the folder is empty. Its parent folder must exist.
 * @throws EngineError database-locked, database-damaged, database-missing
 */
export async function openLog(options: LogOptions): Promise<FileLog> {
  const { folder } = options;
  if (folder === null) return new FileLog(options, null);
  const lock = await lockFolder(options.files, folder);
  try {
    const disk: Disk = { files: new FencedFiles(options.files, lock), folder, lock };
    const log = new FileLog(options, disk);
    await log.openFolder();
    return log;
  } catch (error) {
    await lock.release();
    throw openingFailed(folder, error);
  }
}

/** Creates the folder if need be, and locks it. @throws EngineError also for errors of the system */
async function lockFolder(files: FileSystem, folder: string): Promise<DirectoryLock> {
  try {
    await files.makeDirectory(folder);
    return await files.lockDirectory(folder);
  } catch (error) {
    throw openingFailed(folder, error);
  }
}

export class FileLog implements CommitLog {
  readonly #options: LogOptions;
  readonly #health = new Health();
  readonly #space: SpaceGuard;
  #store: SegmentStore;
  #writer: LogWriter | null = null;
  #loaded: LoadedSnapshot | null = null;
  #snapshotsIgnored = 0;
  /** Paths of files to remove once the log was found intact. */
  #leftovers: readonly string[] = [];
  #snapshots: Snapshots | null = null;
  #compactor: Compactor | null = null;
  #compaction: Promise<unknown> | null = null;
  #compactionTimer: Timer | null = null;
  /** Monotonic time at which that is due. */
  #compactionDueMs = Number.NEGATIVE_INFINITY;
  #compactionHolds = 0;
  /** How much writers are throttled while compaction is running, see `paceOf`. */
  #brake = 0;
  readonly #brakes: Throttle;
  /** Monotonic time of the last report that writers are held back. */
  #heldReportedAtMs = Number.NEGATIVE_INFINITY;
  /** Bytes of frames written since `#compactSoon` last examined the segments. */
  #bytesSinceLook = 0;
  /** The segment of the last `markReplaced`. */
  #replacedIn: Segment | null = null;
  #closed: Promise<void> | null = null;
  readonly #hurry = new AbortController();

  /** Use `openLog`. */
  constructor(options: LogOptions, disk: Disk | null) {
    this.#options = options;
    const reserve = options.diskReserveBytes ?? diskReserveBytes;
    this.#space = new SpaceGuard(disk, options.files, options.clock, reserve, options.report);
    const databaseId = options.databaseId ?? options.random(16);
    const { cache, clock } = options;
    const speed = options.compaction?.bytesPerSecond ?? Number.POSITIVE_INFINITY;
    this.#brakes = new Throttle(clock, speed / brakeFactor, sliceMs, true);
    this.#store = new SegmentStore(disk, databaseId, cache, this.#health, options);
  }

  /** First half of opening; see `openLog`. */
  async openFolder(): Promise<void> {
    const store = this.#store;
    assert(store.disk !== null, "only a log on disk has a folder");
    const { disk } = store;
    const manifest = await openFolder(disk, store.databaseId, this.#options.mustExist === true);
    store.databaseId = manifest.databaseId;
    store.nextNumber = manifest.nextSegmentNumber;
    store.nextSnapshotNumber = manifest.nextSnapshotNumber;
    store.snapshots = [...manifest.snapshots];
    if (disk.lock.mayHaveRival) await this.#passOverNumbers(disk);
    this.#leftovers = await findLeftovers(disk, manifest);
    store.order = await findSegments(disk, manifest);
    for (const segment of store.order) store.adopt(segment);
    for (const { number } of [...manifest.snapshots].reverse()) {
      const path = `${disk.folder}/snap/${snapshotFileName(number)}`;
      const { databaseId } = manifest;
      const identity = { databaseId, number };
      const all = () => true;
      this.#loaded = await readSnapshotFile(disk.files, path, identity, all, passingMemory);
      const sections = this.#loaded?.sections;
      if (sections !== undefined && this.#options.owner.acceptsSnapshot?.(sections) === false) {
        this.#loaded = null;
      }
      store.lastSnapshotBytes = this.#loaded?.bytes ?? 0;
      if (this.#loaded !== null) break;
      this.#snapshotsIgnored++;
      store.snapshots = store.snapshots.filter((snapshot) => snapshot.number !== number);
    }
    await this.#space.check();
  }

  /** The previous owner may be about to create files with the next numbers. */
  async #passOverNumbers(disk: Disk): Promise<void> {
    const store = this.#store;
    const segment = await highestFileNumber(disk, "log");
    const snapshot = await highestFileNumber(disk, "snap");
    store.nextNumber = Math.max(store.nextNumber, segment + 1) + rivalNumbers;
    store.nextSnapshotNumber = Math.max(store.nextSnapshotNumber, snapshot + 1) + rivalNumbers;
  }

  get databaseId(): Buffer {
    return this.#store.databaseId;
  }

  /** The sections of the newest intact snapshot, between opening and `replay`, which releases their memory. */
  get snapshot(): { readonly sections: ReadonlyMap<string, Buffer> } | null {
    return this.#loaded;
  }

  /**
   * Replays the records after the snapshot to the owner, then opens the log for `append`. Must be called once, first.
   * @throws EngineError database-damaged; then nothing on disk was changed, and the log can only be closed.
   *   disk-full when there is no space to rewrite the last segment, which is needed once after a crash.
   */
  async replay(): Promise<ReplayReport> {
    assert(this.#writer === null, "a log is replayed once");
    const { clock, owner } = this.#options;
    const cut = this.#loaded?.head ?? null;
    if (this.#loaded !== null) letGoOf(this.#loaded);
    this.#loaded = null;
    const throttle = new Throttle(clock, Number.POSITIVE_INFINITY, sliceMs);
    const found = await new Recovery(this.#store, owner, cut, throttle).run();
    // A file that a rival may have open is not written to, however properly it seems to have been closed.
    const mayHaveRival = this.#store.disk?.lock.mayHaveRival === true;
    const result = { ...found, wasClosed: found.wasClosed && !mayHaveRival };
    if (this.#store.disk !== null) {
      await this.#settleEnd(result).catch((error: unknown) => {
        throw isDiskFull(error) ? diskFull(error) : error;
      });
    }
    this.#writer = new LogWriter(
      {
        ...this.#options,
        store: this.#store,
        space: this.#space,
        slowDown: (bytes) => this.#slowDown(bytes),
      },
      {
        active: result.active,
        wasClosed: result.wasClosed,
        lastNumber: result.lastNumber,
        lastCrc: result.lastCrc,
        plannedSize: this.#plannedSize(),
      },
    );
    const isCurrent = cut !== null && result.replayedTransactions === 0;
    this.#snapshots = new Snapshots(this.#store, this.#writer, clock, isCurrent);
    this.#compactor = this.#newCompactor(this.#writer, this.#snapshots);
    this.#store.onSealed = () => this.#compactSoon();
    this.#compactSoon();
    return {
      transactions: result.replayedTransactions,
      wasClosed: result.wasClosed,
      tornBytes: result.tornBytes,
      snapshotsIgnored: this.#snapshotsIgnored,
    };
  }

  #newCompactor(writer: LogWriter, snapshots: Snapshots): Compactor {
    const { owner, clock, segmentBytesMin, segmentBytesMax } = this.#options;
    return new Compactor({
      store: this.#store,
      owner,
      clock,
      segmentBytesMax,
      leastBytes: leastSegments * segmentBytesMin,
      durableNumber: () => writer.durableNumber,
      cuts: () => snapshots.cuts(),
    });
  }

  /** Returns the bytes of the next new segment: twice the last one's. */
  #plannedSize(): number {
    const { segmentBytesMin, segmentBytesMax } = this.#options;
    const last = (this.#store.spare ?? this.#store.order.at(-1))?.size ?? segmentBytesMin / 2;
    return Math.max(segmentBytesMin, Math.min(last * 2, segmentBytesMax));
  }

  /**
   * Makes the end of the log safe to append to. A crash in here leaves files that the next recovery reads the same way.
   */
  async #settleEnd(result: RecoveryResult): Promise<void> {
    const store = this.#store;
    const { active } = result;
    if (this.#leftovers.length > 0) {
      // The manifest may be only in the system's cache, while the one on the device still lists these.
      await store.saveManifest(() => () => undefined);
      for (const path of this.#leftovers) await store.disk?.files.unlink(path);
    }
    const keptCount =
      active === null
        ? store.order.findLastIndex(isCompacted) + 1
        : store.order.indexOf(active) + 1;
    const unused = store.order.slice(keptCount);
    // A full disk may have left some of these empty.
    for (const segment of store.order.slice(0, keptCount)) segment.sealed = segment !== active;
    if (result.wasClosed && active !== null) {
      await this.#openForWriting(active);
      if (unused.length === 0) return;
      if (unused.length === 1) {
        const spare = unused[0] as Segment;
        await this.#openForWriting(spare);
        store.order = store.order.slice(0, -1);
        store.spare = spare;
        return;
      }
    }
    // Removed first: later writes may need their space.
    if (unused.length > 0) await this.#dropUnused(unused);
    if (!result.wasClosed && active !== null) await this.#rewrite(active);
  }

  async #dropUnused(unused: readonly Segment[]): Promise<void> {
    const store = this.#store;
    const before = store.order;
    await store.saveManifest(() => {
      store.order = before.slice(0, -unused.length);
      return () => {
        store.order = before;
      };
    });
    store.retire(unused);
    await store.finishRemovals();
  }

  async #openForWriting(segment: Segment): Promise<void> {
    const { disk } = this.#store;
    assert(disk !== null, "only a log on disk has files");
    await segment.file?.close();
    segment.file = null;
    segment.file = await disk.files.open(this.#store.pathOf(segment), "update");
  }

  /** Rewrites the file of `segment`, with intact frames and zeros, and replaces the old one. */
  async #rewrite(segment: Segment): Promise<void> {
    const store = this.#store;
    const { disk } = store;
    const { image } = segment;
    assert(disk !== null && image !== null, "the last segment on disk was read into memory");
    image.fill(0, segment.end);
    const path = store.pathOf(segment);
    const temporary = `${path}.${disk.lock.nonce}.tmp`;
    const file = await disk.files.open(temporary, "create");
    try {
      await file.write(image, 0, image.length, 0);
      await store.sync(file);
    } catch (error) {
      await file.close();
      throw error;
    }
    await segment.file?.close();
    segment.file = file;
    await disk.files.rename(temporary, path);
    await store.syncDirectory(`${disk.folder}/log`);
  }

  get #ready(): LogWriter {
    assert(this.#writer !== null, "a log is replayed before it is used");
    return this.#writer;
  }

  /**
   * See `CommitLog.append`. With `evenIfFull` (deletions) it may use the reserve of the device, see `diskReserveBytes`.
   * Callers that append much must await `whenUnsyncedBelow` in between.
   */
  append(
    payload: Buffer,
    length: number,
    evenIfFull = false,
    isGiven = false,
    summed: SummedBytes | null = null,
  ): Position {
    return this.#ready.append(payload, length, evenIfFull, isGiven, summed);
  }

  stop(cause: unknown): void {
    this.#health.stop(cause);
  }

  get appendedCount(): number {
    return this.#writer?.appendedCount ?? 0;
  }

  get durableCount(): number {
    return this.#writer?.durableCount ?? 0;
  }

  get unsyncedBytes(): number {
    return this.#writer?.unsyncedBytes ?? 0;
  }

  whenUnsyncedBelow(bytes: number): Promise<void> {
    return this.#ready.whenUnsyncedBelow(bytes);
  }

  get isDiskFull(): boolean {
    return this.#space.isFull();
  }

  flush(): Promise<void> {
    return this.#ready.flush();
  }

  peek(position: Position, length: number): BorrowedBytes | null {
    return this.#store.peek(position, length);
  }

  read(position: Position, length: number): Promise<OwnedBytes> {
    return this.#store.read(position, length);
  }

  place(position: Position, length: number, target: RecordPlace, isWalk = false): boolean {
    return this.#store.place(position, length, target, isWalk);
  }

  lend(position: Position, length: number, target: RecordPlace): boolean {
    return this.#store.lend(position, length, target);
  }

  extentAt(position: Position): Extent | null {
    return this.#store.extentAt(position);
  }

  readExtent(position: Position): Promise<Extent | null> {
    return this.#store.readExtent(position);
  }

  extentAfter(position: Position): Position | null {
    return this.#store.extentAfter(position);
  }

  get extentBytes(): number {
    return this.#store.cache.blocks.extentBytes;
  }

  get blockBytes(): number {
    return this.#store.cache.blocks.blockBytes;
  }

  isInMemory(): boolean {
    return this.#store.order.every((segment) => segment.image !== null);
  }

  /**
   * The record there is no longer needed. Call it once per record, when whatever supersedes it is durable; for a
   * deletion's own record too, as soon as that is durable itself. Positions in removed segments are ignored.
   */
  markDead(position: Position, length: number): void {
    const segment = this.#store.find(Math.floor(position / positionSegmentFactor));
    if (segment !== undefined) this.#addDead(segment, length);
  }

  markReplaced(position: Position, length: number): void {
    const number = Math.floor(position / positionSegmentFactor);
    let segment = this.#replacedIn;
    if (segment === null || segment.number !== number) {
      segment = this.#store.find(number) ?? null;
      if (segment === null) return;
      this.#replacedIn = segment;
    }
    segment.replacedBytes += length;
    this.#addDead(segment, length);
  }

  #addDead(segment: Segment, length: number): void {
    const wasHalfDead = segment.deadBytes * 2 >= segment.payloadBytes;
    segment.deadBytes += length;
    if (wasHalfDead || !segment.sealed) return;
    if (segment.deadBytes * 2 >= segment.payloadBytes) this.#compactSoon();
  }

  holdCompaction(): Pin {
    let isHeld = true;
    this.#compactionHolds++;
    return {
      release: () => {
        if (!isHeld) return;
        isHeld = false;
        this.#compactionHolds--;
        this.#compactSoon();
      },
    };
  }

  get isCompactionHeld(): boolean {
    return this.#compactionHolds > 0;
  }

  placeOf(position: Position): { readonly file: string; readonly offset: number } {
    const number = Math.floor(position / positionSegmentFactor);
    const segment = this.#store.find(number);
    const hasFile = segment !== undefined && this.#store.disk !== null;
    return {
      file: hasFile ? this.#store.pathOf(segment) : "",
      offset: position - number * positionSegmentFactor,
    };
  }

  /** Returns whether the segment of `position` was removed, or replaced by compaction. */
  isReplaced(position: Position): boolean {
    const segment = this.#store.find(Math.floor(position / positionSegmentFactor));
    return segment === undefined || !this.#store.order.includes(segment);
  }

  /**
   * Returns whether compaction may drop the deletion at `position`. It may only when no record that it deletes is left,
   * neither in an earlier segment nor in a snapshot. For the owner's `isLive`; at any other time the answer is no.
   */
  canDropDeletion(position: Position): boolean {
    const segment = this.#store.find(Math.floor(position / positionSegmentFactor));
    return segment !== undefined && this.#compactor?.canDrop(segment) === true;
  }

  async compact(
    options: CompactionOptions = { bytesPerSecond: Number.POSITIVE_INFINITY },
  ): Promise<CompactionReport> {
    assert(this.#compactor !== null, "a log is replayed before it is used");
    return await this.#compact(this.#compactor, options, () => false, false);
  }

  async #compact(
    compactor: Compactor,
    options: CompactionOptions,
    isHeld: () => boolean,
    isUrgent: boolean,
  ): Promise<CompactionReport> {
    // Of several waiters for the same compaction, the first continues, and the others find the next one already
    // started.
    while (this.#compaction !== null) await this.#compaction;
    const compaction = compactor.compact(options, isHeld, isUrgent);
    this.#compaction = compaction.catch(() => undefined);
    try {
      return await compaction;
    } finally {
      this.#compaction = null;
    }
  }

  async compactionEnded(): Promise<void> {
    while (this.#compaction !== null) await this.#compaction;
  }

  /**
   * Schedules compaction according to `paceOf`; a compaction scheduled for later is moved forward. Cost: O(segments).
   */
  #compactSoon(): void {
    const { compaction, clock } = this.#options;
    const compactor = this.#compactor;
    if (compaction === undefined || compactor === null || this.#closed !== null) return;
    this.#bytesSinceLook = 0;
    const pace = compactor.pace(this.#compactionHolds > 0);
    this.#brake = pace.brake;
    if (this.#compaction !== null || pace.delayMs === null || !compactor.isWorthwhile(pace)) return;
    const dueMs = clock.monotonicMs() + pace.delayMs;
    if (this.#compactionTimer !== null && this.#compactionDueMs <= dueMs) return;
    this.#compactionTimer?.cancel();
    this.#compactionDueMs = dueMs;
    this.#compactionTimer = clock.setTimer(pace.delayMs, () => {
      this.#compactionTimer = null;
      if (this.#closed !== null || this.#health.stopped !== null) return;
      this.#compactBesideTraffic(compactor, compaction, pace.delayMs === 0).catch(
        (error: unknown) => this.#health.stop(error),
      );
    });
  }

  async #compactBesideTraffic(
    compactor: Compactor,
    options: CompactionOptions,
    isUrgent: boolean,
  ): Promise<void> {
    try {
      await this.#compact(compactor, options, () => this.#compactionHolds > 0, isUrgent);
    } catch (error) {
      // Without space it is retried when more has died.
      if (error instanceof EngineError) return;
      throw error;
    }
    // The less urgent part.
    if (isUrgent) this.#compactSoon();
  }

  /** See `WriterOptions.slowDown`. */
  #slowDown(bytes: number): Promise<void> | null {
    this.#bytesSinceLook += bytes;
    if (this.#bytesSinceLook >= this.#options.segmentBytesMin) this.#compactSoon();
    if (this.#brake === 0 || this.#compaction === null) return null;
    this.#reportHeldBack();
    return this.#brakes.spend(bytes * this.#brake);
  }

  /** Tells the operator that writers are held back, once in a while. */
  #reportHeldBack(): void {
    const { clock, folder, report } = this.#options;
    const nowMs = clock.monotonicMs();
    if (folder === null || nowMs - this.#heldReportedAtMs < heldReportMs) return;
    this.#heldReportedAtMs = nowMs;
    const told = `Writers of ${folder} are held back, because they overwrite faster than compaction reclaims`;
    report?.(told, undefined, "writers-held");
  }

  async writeSnapshot(
    sections: readonly SnapshotSection[],
    bytesPerSecond = Number.POSITIVE_INFINITY,
  ): Promise<number> {
    assert(this.#snapshots !== null, "a log is replayed before it is used");
    const bytes = await this.#snapshots.write(sections, bytesPerSecond);
    // Deletions that were kept for the previous snapshot may now be dropped.
    this.#compactSoon();
    return bytes;
  }

  deletionBytesBeyondSnapshots(): number {
    const cut = Math.min(...(this.#snapshots?.cuts() ?? []));
    let bytes = 0;
    for (const { lastNumber, deadBytes, replacedBytes } of this.#store.order) {
      if (lastNumber > cut) bytes += Math.max(0, deadBytes - replacedBytes);
    }
    return bytes;
  }

  get liveBytes(): number {
    return this.#store.liveBytes();
  }

  scrub(onDamage: (damage: Damage) => void, bytesPerSecond: number): Promise<ScrubReport> {
    const { clock } = this.#options;
    return scrub(this.#store, clock, bytesPerSecond, onDamage, this.#hurry.signal);
  }

  metrics(): LogMetrics {
    const { order } = this.#store;
    let recordBytes = 0;
    let deadBytes = 0;
    for (const segment of order) {
      recordBytes += segment.payloadBytes;
      deadBytes += segment.deadBytes;
    }
    return {
      segments: order.length,
      segmentBytes: this.#store.segmentBytes(),
      imageBytes: this.#store.imageBytes(),
      recordBytes,
      deadBytes,
      snapshots: this.#store.snapshots.length,
      unsyncedBytes: this.unsyncedBytes,
      appendedBytes: this.#writer?.appendedBytes ?? 0,
    };
  }

  diskWrites(after: number): DiskWrite[] {
    return this.#store.writes.after(after);
  }

  pin(): Pin {
    return this.#store.pin();
  }

  image(): LogImage | null {
    const store = this.#store;
    if (store.disk === null) return null;
    const { durableNumber, durableCrc } = this.#ready;
    // A compacted segment occupies a position in the order even if it is empty: later commits follow the commits that
    // it represents.
    const used = store.order.filter(
      ({ kind, end }) => kind === "compacted" || end > segmentHeaderBytes,
    );
    const ranges = used.map((segment) => ({ segment, from: segmentHeaderBytes, to: segment.end }));
    const pin = store.pin();
    const throttle = new Throttle(this.#options.clock, backgroundBytesPerSecond);
    return {
      through: { number: durableNumber, crc: durableCrc },
      ranges,
      read: (range) => store.readRange(range, throttle),
      release: () => pin.release(),
    };
  }

  follow(isFromOldest: boolean): LogFollower | null {
    const store = this.#store;
    if (store.disk === null) return null;
    if (isFromOldest) return LogFollower.fromOldest(store);
    const { durableNumber, durableCrc } = this.#ready;
    return LogFollower.fromEnd(store, { number: durableNumber, crc: durableCrc });
  }

  get lastSnapshotBytes(): number {
    return this.#store.lastSnapshotBytes;
  }

  hurry(): void {
    this.#hurry.abort();
    this.#brakes.hurry();
    this.#compactor?.cancel();
    this.#snapshots?.finish().catch(() => undefined);
  }

  close(sections?: () => readonly SnapshotSection[]): Promise<void> {
    this.#closed ??= this.#close(sections);
    return this.#closed;
  }

  async #close(sections: (() => readonly SnapshotSection[]) | undefined): Promise<void> {
    this.hurry();
    try {
      this.#compactionTimer?.cancel();
      await this.compactionEnded();
      await this.#snapshots?.finish();
      if (sections !== undefined && this.#snapshots !== null && this.#health.stopped === null) {
        assert(this.appendedCount === this.durableCount, "a last snapshot holds everything");
        if (!this.#snapshots.isCurrent()) await this.#lastSnapshot(this.#snapshots, sections());
      }
      await this.#writer?.close();
    } finally {
      this.#space.close();
      await this.#store.close();
      await this.#store.disk?.lock.release();
    }
  }

  /** Everything is durable without the snapshot: if writing it fails, the next start replays more. */
  async #lastSnapshot(snapshots: Snapshots, sections: readonly SnapshotSection[]): Promise<void> {
    try {
      await snapshots.write(sections, Number.POSITIVE_INFINITY);
    } catch (error) {
      if (!(error instanceof EngineError)) throw error;
      const isOfSystem = error.code === "database-stopped" && isSystemError(error.cause);
      if (error.code !== "disk-full" && !isOfSystem) throw error;
      this.#options.report?.("The last index snapshot could not be written", error);
    }
  }
}

function isCompacted(segment: Segment): boolean {
  return segment.kind === "compacted";
}
