/**
 * Saves the contents of one database's indexes to files, so that indexing resumes where it was after a restart: one
 * snapshot for each index (storage/log/snapshot-file.ts) in the folder `indexes`. Snapshots are not part of the log: when one
 * is missing, damaged, or made by another definition or version, the index is rebuilt from the documents.
 *
 * A snapshot is written in the background when the work since the last one is several times the work of writing it,
 * after an interval when there was less, and when the database is closed.
 *
 * Invariants:
 * - A snapshot under its final name is complete and on the device.
 * - A restored index holds its saved entries of the documents that have not changed since, and its saved progress; it
 *   continues from there.
 * - A partly restored index is not visible to queries.
 */

import { foldedName } from "../../base/case-folding.ts";
import type { Clock, FileSystem, Report } from "../../base/environment.ts";
import { backgroundBytesPerSecond, sliceMs, snapshotIntervalMs } from "../../base/limits.ts";
import { processMemory } from "../../base/memory/memory-budget.ts";
import { BackgroundTask } from "../../base/scheduling/background-task.ts";
import type { FollowedCollection } from "../../indexing/collection-follower.ts";
import { replacementPrefix } from "../../indexing/index-set.ts";
import type { OpenIndex } from "../../indexing/open-index.ts";
import { documentEtags, FoundDocuments } from "../../indexing/saved/saved-documents.ts";
import { PartReader, PartWriter, UnusableSnapshot } from "../../indexing/saved/saved-parts.ts";
import type { Store } from "../../state/store/store.ts";
import type { SnapshotSection } from "../../storage/log/log.ts";
import {
  readSnapshotFile,
  snapshotFileName,
  writeSnapshotFile,
} from "../../storage/log/snapshot-file.ts";
import { Throttle } from "../../storage/log/throttle.ts";
import type { IndexedDocuments } from "./index-documents.ts";

/** Incremented when entries are computed or stored differently: all indexes are then rebuilt. */
const entriesVersion = 5;
/** The most indexing work that a crash can lose, as a multiple of the work of writing a snapshot. */
const workFactor = 5;
/** See `IndexSnapshotsOptions`. */
const defaultWorkMsMin = 250;
/** Approximate milliseconds to write a byte. */
const writingMsPerByte = 2e-6;
const retryMs = 1_000;
const documentsSection = "documents";
const fileNamePattern = /^\d{10}\.idx$/;

/** The header of a snapshot. */
interface IndexHead {
  readonly entriesVersion: number;
  readonly name: string;
  readonly fingerprint: string;
  /** The collections it maps, with its progress in each. */
  readonly followed: readonly FollowedCollection[];
  readonly hasCaughtUp: boolean;
  readonly indexedAtMicros: number;
  readonly indexingMs: number;
  /** Of `PartWriter`. */
  readonly values: Readonly<Record<string, unknown>>;
}

/** The newest snapshot of an index. */
interface Saved {
  /** Number of the file. */
  readonly number: number;
  /** Monotonic clock. */
  readonly atMs: number;
  readonly bytes: number;
  /** The index's values at the time of the snapshot. */
  readonly changeCount: number;
  readonly indexingMs: number;
  /** Its progress in every source it reads. */
  readonly sources: readonly FollowedCollection[];
}

export interface IndexSnapshotsOptions {
  /** Milliseconds from a change until a snapshot is written, however small the change. */
  readonly intervalMs?: number;
  /** Milliseconds of indexing below which no snapshot is written. */
  readonly workMsMin?: number;
}

export class IndexSnapshots {
  readonly #database: Store;
  readonly #documents: IndexedDocuments;
  readonly #clock: Clock;
  readonly #files: FileSystem;
  readonly #folder: string;
  readonly #report: Report;
  readonly #intervalMs: number;
  readonly #workMsMin: number;
  readonly #saved = new Map<OpenIndex, Saved>();
  readonly #task: BackgroundTask;
  readonly #openedMs: number;
  #throttle: Throttle | null = null;
  #nextNumber = 1;
  /** Whether snapshots existed when the database was opened. */
  #hadFiles = false;
  #isClosed = false;
  /** Resolves when all snapshots found at the start are read. */
  #restored: Promise<void> | null = null;
  /** Pending removals of files. */
  #removals: Promise<void> = Promise.resolve();
  readonly #indexes: () => readonly OpenIndex[];

  constructor(
    database: Store,
    documents: IndexedDocuments,
    place: { readonly files: FileSystem; readonly folder: string },
    indexes: () => readonly OpenIndex[],
    options: IndexSnapshotsOptions = {},
  ) {
    this.#database = database;
    this.#documents = documents;
    this.#clock = database.clock;
    this.#openedMs = database.clock.monotonicMs();
    this.#files = place.files;
    this.#folder = `${place.folder}/indexes`;
    this.#report = database.report;
    this.#indexes = indexes;
    this.#intervalMs = options.intervalMs ?? snapshotIntervalMs;
    this.#workMsMin = options.workMsMin ?? defaultWorkMsMin;
    this.#task = new BackgroundTask(
      this.#clock,
      () => this.#saveDue(),
      (error) => this.#report(`Index snapshots of database '${database.name}' failed`, error),
    );
  }

  /** Returns the size of an index's newest snapshot in bytes, or 0. */
  bytesOf(index: OpenIndex): number {
    return this.#saved.get(index)?.bytes ?? 0;
  }

  /** Null when every index is restored. */
  get restored(): Promise<void> | null {
    return this.#restored;
  }

  /**
   * Restores these indexes, which are empty, from their snapshots. An index is `isRestoring` until its snapshot is
   * read. `done` is called for each index when it can continue.
   */
  restore(indexes: readonly OpenIndex[], done: () => void): void {
    for (const index of indexes) index.isRestoring = true;
    const restoring = this.#restoreAll(indexes, done).finally(() => {
      for (const index of indexes) index.isRestoring = false;
      this.#restored = null;
      done();
    });
    this.#restored = restoring.catch((error: unknown) =>
      this.#report(`Indexes of database '${this.#database.name}' are rebuilt`, error),
    );
  }

  /** Called when the index has made progress; schedules a snapshot. Cost: a few comparisons. */
  advanced(index: OpenIndex): void {
    if (this.#isClosed) return;
    if (this.#isWorthIt(index)) this.#task.runSoon();
    else if (this.#hasChanged(index)) this.#task.armIn(this.#intervalMs);
  }

  /** Removes the files of dropped indexes. */
  prune(): void {
    const indexes = new Set(this.#indexes());
    for (const [index, { number }] of this.#saved) {
      if (indexes.has(index)) continue;
      this.#saved.delete(index);
      this.#remove(number);
    }
  }

  /**
   * Returns the collections whose documents the maps of an index load, with the progress recorded in its newest
   * snapshot: after a crash, later deletions must be reported again.
   */
  deletionEtagsOf(index: OpenIndex): readonly FollowedCollection[] {
    return this.#saved.get(index)?.sources.slice(index.index.followed.length) ?? [];
  }

  /** Writes the outstanding snapshots, and nothing afterward. The indexes must be idle. */
  async close(isWhole: boolean): Promise<void> {
    this.#isClosed = true;
    this.#throttle?.hurry();
    await this.#task.close();
    await this.#restored;
    if (isWhole) {
      for (const index of this.#indexes()) {
        if (this.#hasChanged(index)) await this.#save(index, Number.POSITIVE_INFINITY);
      }
    }
    await this.#removals;
  }

  #hasChanged(index: OpenIndex): boolean {
    if (index.isRestoring || index.failure !== null || index.invalidity !== null) return false;
    const saved = this.#saved.get(index);
    const { changeCount, sources } = index.index;
    if (saved === undefined) return changeCount > 0;
    return (
      changeCount !== saved.changeCount ||
      sources.some(
        ({ documentEtag, deletionEtag }, i) =>
          documentEtag !== saved.sources[i]?.documentEtag ||
          deletionEtag !== saved.sources[i]?.deletionEtag,
      )
    );
  }

  /** Returns whether a crash would lose more work than writing a snapshot costs. */
  #isWorthIt(index: OpenIndex): boolean {
    const { indexingMs = 0, bytes = 0 } = this.#saved.get(index) ?? {};
    const worthMs = Math.max(this.#workMsMin, workFactor * bytes * writingMsPerByte);
    return index.indexingMs - indexingMs >= worthMs;
  }

  /** Saves only the indexes that are due: one busy index does not cause all others to be written. */
  async #saveDue(): Promise<void> {
    let nextMs = Number.POSITIVE_INFINITY;
    for (const index of this.#indexes()) {
      if (this.#isClosed) return;
      if (!this.#hasChanged(index)) continue;
      const savedMs = this.#saved.get(index)?.atMs ?? this.#openedMs;
      const waitMs = savedMs + this.#intervalMs - this.#clock.monotonicMs();
      if (waitMs > 0 && !this.#isWorthIt(index)) nextMs = Math.min(nextMs, waitMs);
      else if (index.index.isBusy === true) nextMs = Math.min(nextMs, retryMs);
      else await this.#save(index, backgroundBytesPerSecond);
    }
    if (nextMs < Number.POSITIVE_INFINITY) this.#task.armIn(nextMs);
  }

  /** On a full disk or a device error no snapshot is written; the existing one stays. */
  async #save(index: OpenIndex, bytesPerSecond: number): Promise<void> {
    if (this.#database.isDiskFull || index.index.isBusy === true) return;
    const number = this.#nextNumber++;
    const path = this.#pathOf(number);
    const temporary = `${path}.tmp`;
    const { head, sections, saved } = this.#capture(index, number);
    const throttle = new Throttle(this.#clock, bytesPerSecond);
    this.#throttle = throttle;
    if (this.#isClosed) throttle.hurry();
    try {
      await this.#files.makeDirectory(this.#folder);
      const file = await this.#files.open(temporary, "create");
      let bytes: number;
      try {
        const identity = { databaseId: this.#database.databaseId, number };
        bytes = await writeSnapshotFile(file, identity, head, sections, throttle);
      } finally {
        await file.close();
      }
      await this.#files.rename(temporary, path);
      await this.#files.syncDirectory(this.#folder);
      const before = this.#saved.get(index);
      this.#saved.set(index, { ...saved, bytes });
      if (before !== undefined) this.#remove(before.number);
      // The index may have been dropped during the write.
      this.prune();
    } catch (error) {
      for (const name of [temporary, path]) await this.#files.unlink(name).catch(() => undefined);
      if ((error as { code?: unknown }).code === "ENOSPC") return;
      this.#report(`The snapshot of index '${index.name}' could not be written`, error);
    }
  }

  /** Returns the contents of a snapshot, as of now. */
  #capture(
    index: OpenIndex,
    number: number,
  ): { head: IndexHead; sections: SnapshotSection[]; saved: Saved } {
    const writer = new PartWriter();
    const named = index.index.save(writer);
    const { name, fingerprint, hasCaughtUp, indexedAtMicros, indexingMs } = index;
    const head: IndexHead = {
      entriesVersion,
      name,
      fingerprint,
      followed: copied(index.index.followed),
      hasCaughtUp,
      indexedAtMicros,
      indexingMs,
      values: writer.values,
    };
    const { documents } = this.#database.state;
    const etags = documentEtags(named, (docNum) => documents.etagOf(docNum));
    const sections = [...writer.sections, { name: documentsSection, parts: etags }];
    const { changeCount, sources } = index.index;
    const atMs = this.#clock.monotonicMs();
    const saved = { number, atMs, bytes: 0, changeCount, indexingMs, sources: copied(sources) };
    return { head, sections, saved };
  }

  async #restoreAll(indexes: readonly OpenIndex[], done: () => void): Promise<void> {
    const known = new Map(indexes.map((index) => [keyOf(index.name, index.fingerprint), index]));
    for (const number of await this.#findFiles()) {
      if (this.#isClosed) return;
      const index = await this.#restoreFrom(number, known);
      if (index === null) {
        this.#remove(number);
        continue;
      }
      known.delete(keyOf(index.name, index.fingerprint));
      index.isRestoring = false;
      done();
    }
    if (this.#hadFiles) {
      for (const index of known.values()) {
        this.#report(
          `Index '${index.name}' of database '${this.#database.name}' has no usable snapshot and is rebuilt`,
        );
      }
    }
  }

  /** Numbers of the files, newest first; incomplete files are removed. */
  async #findFiles(): Promise<number[]> {
    if (!(await this.#files.exists(this.#folder))) return [];
    const numbers: number[] = [];
    for (const name of await this.#files.list(this.#folder)) {
      if (fileNamePattern.test(name)) numbers.push(Number.parseInt(name, 10));
      else await this.#files.unlink(`${this.#folder}/${name}`).catch(() => undefined);
    }
    numbers.sort((left, right) => right - left);
    this.#nextNumber = (numbers[0] ?? 0) + 1;
    this.#hadFiles = numbers.length > 0;
    return numbers;
  }

  /** @returns the index restored from the file; null when the file belongs to none of these or is unusable */
  async #restoreFrom(
    number: number,
    known: ReadonlyMap<string, OpenIndex>,
  ): Promise<OpenIndex | null> {
    const indexOf = (head: IndexHead) =>
      head.entriesVersion === entriesVersion
        ? known.get(keyOf(head.name, head.fingerprint))
        : undefined;
    const identity = { databaseId: this.#database.databaseId, number };
    const bytes = await this.#sizeOf(number);
    await processMemory.reserve("snapshots", bytes);
    try {
      const path = this.#pathOf(number);
      const loaded = await readSnapshotFile<IndexHead>(this.#files, path, identity, (head) => {
        return indexOf(head) !== undefined;
      });
      const index = loaded === null ? undefined : indexOf(loaded.head);
      if (loaded === null || index === undefined) return null;
      await this.#fill(index, loaded.head, loaded.sections);
      const { changeCount, sources } = index.index;
      const { indexingMs } = index;
      const atMs = this.#clock.monotonicMs();
      const read = { number, atMs, bytes, changeCount, indexingMs, sources: copied(sources) };
      this.#saved.set(index, read);
      return index;
    } catch (error) {
      if (!(error instanceof UnusableSnapshot)) throw error;
      return null;
    } finally {
      processMemory.release("snapshots", bytes);
    }
  }

  async #sizeOf(number: number): Promise<number> {
    const file = await this.#files.open(this.#pathOf(number), "read");
    try {
      return await file.size();
    } finally {
      await file.close();
    }
  }

  /** Restores an index from its snapshot. @throws UnusableSnapshot */
  async #fill(
    index: OpenIndex,
    head: IndexHead,
    sections: ReadonlyMap<string, Buffer>,
  ): Promise<void> {
    const reader = new PartReader(sections, head.values);
    const found = new FoundDocuments(
      new Map(
        head.followed.map(({ collection }) => [
          collection,
          this.#documents.etagsOf(collection).deletion,
        ]),
      ),
    );
    const throttle = new Throttle(this.#clock, Number.POSITIVE_INFINITY, sliceMs, true);
    const present = this.#documents.presentTo(head.followed);
    await inSlices(found.find(reader.bytes(documentsSection), present), throttle);
    const restored = index.blank();
    await inSlices(restored.restore(reader, found.restored), throttle);
    index.index = restored;
    index.hasCaughtUp = head.hasCaughtUp;
    index.indexedAtMicros = head.indexedAtMicros;
    index.indexingMs = head.indexingMs;
  }

  #remove(number: number): void {
    const path = this.#pathOf(number);
    this.#removals = this.#removals.then(() => this.#files.unlink(path).catch(() => undefined));
  }

  #pathOf(number: number): string {
    return `${this.#folder}/${snapshotFileName(number)}`;
  }
}

/** Returns a copy: an index advances its own in place. */
function copied(sources: readonly FollowedCollection[]): readonly FollowedCollection[] {
  return sources.map((source) => ({ ...source }));
}

/** Equal for an index and its side-by-side replacement, which keeps its entries when it is swapped in. */
function keyOf(name: string, fingerprint: string): string {
  const base = name.startsWith(replacementPrefix) ? name.slice(replacementPrefix.length) : name;
  return `${foldedName(base)}\n${fingerprint}`;
}

async function inSlices(steps: Generator<void>, throttle: Throttle): Promise<void> {
  throttle.resumed();
  while (steps.next().done !== true) if (throttle.isDue()) await throttle.yield();
}
