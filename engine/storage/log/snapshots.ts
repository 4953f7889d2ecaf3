/**
 * Writes snapshots of the index and retains the newest, and the previous one in case the newer is damaged, unless one
 * of them is large relative to the log. Without snapshots, the whole log is replayed: that takes longer and produces
 * the same result.
 *
 * Invariants:
 * - A snapshot is listed only once it is on the device under its final name.
 */
import { assert } from "../../base/assert.ts";
import type { Clock } from "../../base/environment.ts";
import { segmentHeaderBytes } from "../segments/segment.ts";
import type { Disk, SegmentStore } from "../segments/segment-store.ts";
import { diskFull, isDiskFull } from "./health.ts";
import type { SnapshotSection } from "./log.ts";
import type { LogWriter } from "./log-writer.ts";
import {
  type SnapshotCut,
  type SnapshotSegment,
  snapshotFileName,
  writeSnapshotFile,
} from "./snapshot-file.ts";
import { Throttle } from "./throttle.ts";

/** Two are kept while each has at most this share of the log's live bytes, or is small. */
const keptShare = 1 / 8;
const smallBytes = 1024 * 1024;
/**
 * Minimum share of the process's time: deletions are retained until the next snapshot, and use more space the longer it
 * takes.
 */
const timeShare = 0.25;

export class Snapshots {
  readonly #store: SegmentStore;
  readonly #writer: LogWriter;
  readonly #clock: Clock;
  /** The cut of the snapshot being written. */
  #cut: SnapshotCut | null = null;
  #throttle: Throttle | null = null;
  #underWay: Promise<unknown> = Promise.resolve();
  /** Durable transactions since opening that are in the newest snapshot; -1 when earlier ones are missing in it. */
  #transactionCount: number;

  constructor(store: SegmentStore, writer: LogWriter, clock: Clock, isCurrent: boolean) {
    this.#transactionCount = isCurrent ? 0 : -1;
    this.#store = store;
    this.#writer = writer;
    this.#clock = clock;
  }

  /** Returns the last frames of all snapshots that recovery might use. */
  cuts(): number[] {
    const cuts = this.#store.snapshots.map((snapshot) => snapshot.throughNumber);
    if (this.#cut !== null) cuts.push(this.#cut.throughNumber);
    return cuts;
  }

  /** Returns whether the newest snapshot contains everything durable. */
  isCurrent(): boolean {
    return this.#transactionCount === this.#writer.durableCount;
  }

  /** See `FileLog.writeSnapshot`. @returns bytes of the file. */
  async write(sections: readonly SnapshotSection[], bytesPerSecond: number): Promise<number> {
    const { disk } = this.#store;
    if (disk === null) return 0;
    assert(this.#cut === null, "one snapshot at a time");
    this.#store.health.check();
    const cut = this.#takeCut();
    this.#cut = cut;
    const { durableCount } = this.#writer;
    this.#store.isSnapshotComing = true;
    try {
      this.#throttle = new Throttle(this.#clock, bytesPerSecond);
      this.#throttle.timeShare = timeShare;
      const writing = this.#write(disk, cut, sections, this.#throttle);
      this.#underWay = writing.catch(() => undefined);
      const bytes = await writing;
      this.#transactionCount = durableCount;
      return bytes;
    } finally {
      this.#cut = null;
      this.#store.isSnapshotComing = false;
    }
  }

  /** Speeds up a snapshot in progress; resolves when none is being written. */
  async finish(): Promise<void> {
    this.#throttle?.hurry();
    await this.#underWay;
    // The caller's `write` completes in the same tick or before.
    await Promise.resolve();
  }

  /** Returns the present state of the log, as reported to the owner. */
  #takeCut(): SnapshotCut {
    const segments: SnapshotSegment[] = [];
    for (const segment of this.#store.order) {
      // Recovery relocates the records of an unfinished compaction again.
      if (!segment.settled) continue;
      if (segment.kind === "log" && segment.end === segmentHeaderBytes) continue;
      const { number, end, payloadBytes, deadBytes, lastNumber, lastCrc } = segment;
      const extentSums = [...segment.extentSums];
      segments.push({ number, end, payloadBytes, deadBytes, lastNumber, lastCrc, extentSums });
    }
    const { durableNumber, durableCrc } = this.#writer;
    return { throughNumber: durableNumber, throughCrc: durableCrc, segments };
  }

  async #write(
    disk: Disk,
    cut: SnapshotCut,
    sections: readonly SnapshotSection[],
    throttle: Throttle,
  ): Promise<number> {
    const store = this.#store;
    const number = store.nextSnapshotNumber++;
    const folder = `${disk.folder}/snap`;
    const path = `${folder}/${snapshotFileName(number)}`;
    const temporary = `${path}.tmp`;
    const startMs = this.#clock.monotonicMs();
    try {
      // The folder may have been removed.
      await disk.files.makeDirectory(folder);
      const bytes = await this.#writeFile(disk, temporary, number, cut, sections, throttle);
      const most = Math.max(bytes, store.lastSnapshotBytes);
      store.lastSnapshotBytes = bytes;
      const file = `snap/${snapshotFileName(number)}`;
      const durationMs = this.#clock.monotonicMs() - startMs;
      store.writes.add("rewrite", file, bytes, bytes, this.#clock.nowMicros(), durationMs);
      await disk.files.rename(temporary, path);
      await store.syncDirectory(folder);
      const old = await this.#list(number, cut.throughNumber, most);
      for (const name of old) await disk.files.unlink(`${folder}/${name}`).catch(() => undefined);
      return bytes;
    } catch (error) {
      if (!isDiskFull(error)) throw store.health.stop(error);
      for (const name of [temporary, path]) await disk.files.unlink(name).catch(() => undefined);
      throw diskFull(error);
    }
  }

  async #writeFile(
    disk: Disk,
    path: string,
    number: number,
    cut: SnapshotCut,
    sections: readonly SnapshotSection[],
    throttle: Throttle,
  ): Promise<number> {
    const file = await disk.files.open(path, "create");
    try {
      const { databaseId } = this.#store;
      return await writeSnapshotFile(file, { databaseId, number }, cut, sections, throttle);
    } finally {
      await file.close();
    }
  }

  /**
   * `bytes`: size of the larger of it and the previous one. @returns the names of the snapshots that are no longer
   * listed.
   */
  async #list(number: number, throughNumber: number, bytes: number): Promise<string[]> {
    const store = this.#store;
    const before = store.snapshots;
    const bytesMax = Math.max(smallBytes, keptShare * store.liveBytes());
    const keptCount = bytes <= bytesMax ? 2 : 1;
    const after = [...before, { number, throughNumber }].slice(-keptCount);
    await store.saveManifest(() => {
      store.snapshots = after;
      return () => {
        store.snapshots = before;
      };
    });
    const gone = before.filter((snapshot) => !after.includes(snapshot));
    return gone.map((snapshot) => snapshotFileName(snapshot.number));
  }
}
