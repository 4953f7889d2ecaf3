/**
 * The background tasks of an open database: purging tombstones that every follower has passed, writing index snapshots,
 * sorting new ids, scrubbing files for damage. (Compaction is started by the log itself.)
 *
 * Has no knowledge of the meaning of records; each task is a few calls to the components that do.
 *
 * Invariants:
 * - A task never overlaps itself, and does not run when nothing has changed since its last run.
 * - After `close` no task begins; once it has resolved, none is running.
 * - A tombstone purge is logged as one value, so that replay without the tombstones produces the same state.
 */

import type { Clock } from "../../base/environment.ts";
import {
  restLogBytes,
  restLookMs,
  scrubBytesPerSecond,
  scrubIntervalMs,
  settleOrderDelayMs,
  sliceMs,
  snapshotIntervalMs,
  snapshotLogBytes,
  tombstoneCleanupIntervalMs,
  tombstonesDueCount,
  tombstonesPerPurge,
  tombstonesPerStep,
  tombstonesRetryMs,
} from "../../base/limits.ts";
import { BackgroundTask } from "../../base/scheduling/background-task.ts";
import { nextSlice } from "../../base/scheduling/time-slices.ts";
import { numbersPerTombstone } from "../../state/keyspaces/keyspace-table.ts";
import { purgedThroughKey } from "../../state/keyspaces/tombstones.ts";
import type { DamageList } from "../../state/store/damage-list.ts";
import type { DatabaseState } from "../../state/store/database-state.ts";
import type { Transaction } from "../../state/store/transaction.ts";
import type { BlobStore } from "../../storage/log/blob-store.ts";
import type { CommitLog } from "../../storage/log/log.ts";
import type { Damage } from "../../storage/log/scrub.ts";
import { Throttle } from "../../storage/log/throttle.ts";

/** Limits the bytes written for index snapshots of a large database to at most half the bytes written to its log. */
const logBytesPerSnapshotByte = 2;
/**
 * Factor of that threshold while an operation replaces many records: the view of a snapshot would retain the replaced
 * records, which costs the operation more than writing the snapshot, and the snapshot would soon be outdated.
 */
const heldLogShare = 4;

/** Deletion records that a new snapshot would make obsolete: the bytes from which on it is worth writing. */
const deletionBytesMin = 1024 * 1024;
const liveBytesPerDeletionByte = 5;
const snapshotBytesPerDeletionByte = 2;
/**
 * The same threshold at rest: deletions use space not only on disk but also in the images of segments that compaction
 * wrote.
 */
const liveBytesPerDeletionByteAtRest = 16;
/** At rest, the snapshot is rewritten when the last one is this many times as large as a new one would be. */
const largerSnapshot = 1.25;
/** Bytes of new log between two checks of them. */
const lookBytes = 256 * 1024;

/** Share of the process's time for dropping tombstones: while they exist, their documents' numbers stay in use. */
const dropShare = 0.25;

/** Number of deleted documents that are examined in one tick of the event loop: about a millisecond. */
const numbersPerSlice = 1024;

/** The interface of a database for its maintenance. */
interface MaintenanceHost {
  readonly state: DatabaseState;
  readonly log: CommitLog;
  readonly blobs: BlobStore;
  readonly clock: Clock;
  readonly damages: DamageList;
  readonly isInMemory: boolean;
  /** Returns whether another node leads and so decides which tombstones are purged. */
  isFollowing(): boolean;
  write(change: (transaction: Transaction) => void, options: { isDeletion: true }): Promise<void>;
  writeSnapshot(): Promise<void>;
  /** A task failed for a reason other than a full disk or the closing of the database. */
  failed(error: unknown): void;
}

/** A reader of changes in etag order. @returns the etag up to which it needs no tombstones. */
type Follower = () => number;

/** When tasks run, and how fast. Tests override some of them. */
export interface MaintenanceOptions {
  readonly tombstoneCleanupIntervalMs?: number;
  readonly tombstonesDueCount?: number;
  readonly snapshotIntervalMs?: number;
  readonly snapshotLogBytes?: number;
  readonly scrubIntervalMs?: number;
}

export class Maintenance {
  readonly #host: MaintenanceHost;
  readonly #options: Required<MaintenanceOptions>;
  readonly #followers = new Set<Follower>();
  readonly #ending = new AbortController();
  readonly #tombstones: BackgroundTask;
  readonly #snapshot: BackgroundTask;
  readonly #order: BackgroundTask;
  readonly #scrub: BackgroundTask;
  readonly #rest: BackgroundTask;
  #newLogBytes = 0;
  /** Bytes of new log since the last check for rest, and whether the database was busy at that check. */
  #restLogBytes = 0;
  #wasAtWork = false;
  /** `#newLogBytes` at the last check of `#isSnapshotInTheWay`. */
  #lookedAtBytes = 0;
  /** Number of tombstones that the last run retained because a follower had not passed them. */
  #leftTombstones = 0;

  /** `hasChanges`: the log has records that no snapshot covers. */
  constructor(host: MaintenanceHost, hasChanges: boolean, options: MaintenanceOptions = {}) {
    this.#host = host;
    this.#options = {
      tombstoneCleanupIntervalMs,
      tombstonesDueCount,
      snapshotIntervalMs,
      snapshotLogBytes,
      scrubIntervalMs,
      ...options,
    };
    const newTask = (run: () => Promise<void>): BackgroundTask =>
      new BackgroundTask(host.clock, run, (error) => host.failed(error));
    this.#tombstones = newTask(async () => {
      await this.cleanTombstones();
      this.#armTombstones();
    });
    this.#snapshot = newTask(() => this.#writeSnapshot());
    this.#order = newTask(() => this.#settleOrder());
    this.#scrub = newTask(async () => {
      await this.scrub();
      this.#armScrub();
    });
    this.#rest = newTask(() => this.#lookForRest());
    this.#armTombstones();
    this.#armScrub();
    if (hasChanges) this.#armSnapshot();
  }

  /** Tombstones are kept until every follower has passed them. @returns a function that removes the follower. */
  follow(follower: Follower): () => void {
    this.#followers.add(follower);
    return () => this.#followers.delete(follower);
  }

  /** From the database: a transaction of this many bytes became visible. Cost: a few comparisons. */
  committed(logBytes: number, hasNewDocuments: boolean): void {
    this.#newLogBytes += logBytes;
    this.#restLogBytes += logBytes;
    this.#armTombstones();
    this.#armSnapshot();
    this.#rest.armIn(restLookMs);
    if (hasNewDocuments) this.#order.armIn(settleOrderDelayMs);
  }

  /** Purges the tombstones that all followers have passed, in steps. @returns how many were removed. */
  async cleanTombstones(): Promise<number> {
    const { tombstones } = this.#host.state.keyspaces;
    const before = tombstones.count;
    while (!this.#ending.signal.aborted) {
      const passed = this.#host.isFollowing() ? 0 : this.#passedByAll();
      const through = tombstones.lastEtagThrough(passed);
      if (through > 0) await this.#purgeThrough(through);
      await this.#dropPurged();
      // Tombstones that arrived during the run wait until a purge is worth a commit.
      if (through === 0 || tombstones.count < tombstonesPerPurge) break;
    }
    this.#leftTombstones = tombstones.count;
    return Math.max(0, before - tombstones.count);
  }

  async #purgeThrough(etag: number): Promise<void> {
    await this.#host.write(
      (transaction) => transaction.putEntry(transaction.keyspaces.values, purgedThroughKey, etag),
      { isDeletion: true },
    );
  }

  async #dropPurged(): Promise<void> {
    const { state, clock } = this.#host;
    const { tombstones } = state.keyspaces;
    const throttle = new Throttle(clock, Number.POSITIVE_INFINITY);
    throttle.timeShare = dropShare;
    while (!this.#ending.signal.aborted) {
      const count = tombstones.dropPurged(tombstonesPerStep, this.#passedByAll());
      state.documents.reclaim(numbersPerTombstone * count);
      if (count < tombstonesPerStep) return;
      if (throttle.isDue()) await throttle.yield();
    }
  }

  /** Scrubs all sealed segments and all attachments; damage is listed in `damages`. */
  async scrub(): Promise<void> {
    const { log, state, blobs, clock } = this.#host;
    const { signal } = this.#ending;
    const found: Damage[] = [];
    await log.scrub((damage) => found.push(damage), scrubBytesPerSecond);
    if (signal.aborted) return;
    const throttle = new Throttle(clock, scrubBytesPerSecond);
    signal.addEventListener("abort", () => throttle.hurry(), { once: true });
    const hashes = await blobs.findDamaged(async (bytes) => {
      await throttle.spend(bytes);
      return !signal.aborted;
    });
    if (signal.aborted) return;
    await this.#host.damages.replace(state, found, hashes, throttle);
  }

  /** Ends all tasks: none starts from now on, and running ones end soon. */
  async close(): Promise<void> {
    this.#ending.abort();
    this.#host.log.hurry();
    const tasks = [this.#tombstones, this.#snapshot, this.#order, this.#scrub, this.#rest];
    await Promise.all(tasks.map((task) => task.close()));
  }

  /** Returns the etag up to which no follower needs a tombstone. Only durable changes count as passed. */
  #passedByAll(): number {
    let passed = this.#host.state.committedEtag;
    for (const follower of this.#followers) passed = Math.min(passed, follower());
    return passed;
  }

  /** Many new tombstones trigger a purge immediately; retained tombstones are retried soon, the others on the timer. */
  #armTombstones(): void {
    const { count } = this.#host.state.keyspaces.tombstones;
    const { tombstonesDueCount: dueCount, tombstoneCleanupIntervalMs: ms } = this.#options;
    if (count === 0) return;
    if (count - this.#leftTombstones >= dueCount) this.#tombstones.runSoon();
    else this.#tombstones.armIn(count >= dueCount ? Math.min(ms, tombstonesRetryMs) : ms);
  }

  #armScrub(): void {
    if (!this.#host.isInMemory) this.#scrub.armIn(this.#options.scrubIntervalMs);
  }

  #armSnapshot(): void {
    if (this.#host.isInMemory) return;
    const { log } = this.#host;
    const usualBytes = Math.max(
      this.#options.snapshotLogBytes,
      logBytesPerSnapshotByte * log.lastSnapshotBytes,
    );
    const dueBytes = usualBytes * (log.isCompactionHeld ? heldLogShare : 1);
    if (this.#newLogBytes >= dueBytes || this.#isSnapshotInTheWay()) this.#snapshot.runSoon();
    else this.#snapshot.armIn(this.#options.snapshotIntervalMs);
  }

  /** Returns whether deletions that are retained for the last snapshot use more space than a new snapshot would. */
  #isSnapshotInTheWay(): boolean {
    if (this.#newLogBytes - this.#lookedAtBytes < lookBytes) return false;
    this.#lookedAtBytes = this.#newLogBytes;
    const { log } = this.#host;
    const mayTake = Math.max(
      deletionBytesMin,
      log.liveBytes / liveBytesPerDeletionByte,
      log.lastSnapshotBytes / snapshotBytesPerDeletionByte,
    );
    return log.deletionBytesBeyondSnapshots() > mayTake;
  }

  /** Reschedules itself while the database is being written to; tidies up once the writes have stopped. */
  async #lookForRest(): Promise<void> {
    const isAtWork = this.#restLogBytes > restLogBytes;
    this.#restLogBytes = 0;
    if (isAtWork) this.#rest.armIn(restLookMs);
    else if (this.#wasAtWork) await this.#comeToRest();
    this.#wasAtWork = isAtWork;
  }

  /**
   * Cleans up after a flood of writes: tombstones, document numbers, and a snapshot that is much larger than a new one
   * would be, or keeps many deletions in the log. Without further writes, nothing else would do it for long.
   */
  async #comeToRest(): Promise<void> {
    const { state, log, isInMemory } = this.#host;
    const { documents, keyspaces } = state;
    if (keyspaces.tombstones.count >= tombstonesPerPurge) await this.cleanTombstones();
    await this.#reclaimNumbers();
    if (isInMemory) return;
    // Two snapshots are kept, and the older one keeps deletions in the log too.
    for (let round = 0; round < 2 && !this.#ending.signal.aborted; round++) {
      const snapshotBytes = documents.memoryBytes() + keyspaces.snapshotBytes();
      const isLarge = log.lastSnapshotBytes > largerSnapshot * snapshotBytes + deletionBytesMin;
      const mayStay = Math.max(deletionBytesMin, log.liveBytes / liveBytesPerDeletionByteAtRest);
      if (!isLarge && log.deletionBytesBeyondSnapshots() <= mayStay) return;
      this.#snapshot.disarm();
      await this.#writeSnapshot();
    }
  }

  async #writeSnapshot(): Promise<void> {
    this.#newLogBytes = 0;
    this.#lookedAtBytes = 0;
    await this.#host.writeSnapshot();
  }

  /** Sorts new ids, a slice at a time, while no write is waiting. */
  async #settleOrder(): Promise<void> {
    const { documents } = this.#host.state;
    while (!this.#ending.signal.aborted && documents.stagedCount === 0) {
      if (documents.settleOrder(sliceMs)) {
        await this.#reclaimNumbers();
        return;
      }
      await nextSlice();
    }
    this.#order.armIn(settleOrderDelayMs);
  }

  /** Frees the numbers of deleted documents as far as possible, for as long as that makes progress. */
  async #reclaimNumbers(): Promise<void> {
    const { documents } = this.#host.state;
    for (let pending = documents.pendingNumberCount; pending > 0; ) {
      for (let left = 2 * pending; left > 0; left -= numbersPerSlice) {
        if (this.#ending.signal.aborted) return;
        documents.reclaim(numbersPerSlice);
        await nextSlice();
      }
      if (documents.pendingNumberCount >= pending) return;
      pending = documents.pendingNumberCount;
    }
  }
}
