/**
 * Keeps what is in the indexes of one database in files, so that they go on after a restart where they were: a snapshot of each
 * (log/snapshot-file.ts) in the folder `indexes`. It is an index's own and no part of the log: without it, or when it is damaged or
 * was made by another definition or version, the index is built anew from the documents.
 *
 * A snapshot is written beside traffic when the work since the last one comes to several times the work of writing it, now and
 * then when there was less, and when the database is closed.
 *
 * Invariants:
 * - A snapshot under its final name is whole and on the device.
 * - What an index has after its snapshot was read is what it had for the documents that have not changed since, and how far
 *   it was; it follows from there.
 * - Nobody sees an index that is half read.
 */
import { BackgroundTask } from "./background-task.ts";
import type { Clock, FileSystem, Report } from "./environment.ts";
import type { IndexedDocuments } from "./index-documents.ts";
import type { FollowedCollection } from "./indexing/collection-follower.ts";
import { replacementPrefix } from "./indexing/index-set.ts";
import type { OpenIndex } from "./indexing/open-index.ts";
import { documentEtags, FoundDocuments } from "./indexing/saved-documents.ts";
import { PartReader, PartWriter, UnusableSnapshot } from "./indexing/saved-parts.ts";
import { backgroundBytesPerSecond, sliceMs, snapshotIntervalMs } from "./limits.ts";
import type { SnapshotSection } from "./log/log.ts";
import { readSnapshotFile, snapshotFileName, writeSnapshotFile } from "./log/snapshot-file.ts";
import { Throttle } from "./log/throttle.ts";
import { processMemory } from "./memory-budget.ts";
import type { Store } from "./store.ts";

/** Another one for entries that are made or kept in another way: then all indexes are built anew. */
const entriesVersion = 1;
/** The work since a snapshot that a crash makes vain, at most, in the work of writing one. */
const workFactor = 5;
/** See `IndexSnapshotsOptions`. */
const defaultWorkMsMin = 250;
/** Milliseconds that writing a byte takes, about. */
const writingMsPerByte = 2e-6;
const retryMs = 1_000;
const documentsSection = "documents";
const fileNamePattern = /^\d{10}\.idx$/;

/** What a snapshot says of its index. */
interface IndexHead {
  readonly entriesVersion: number;
  readonly name: string;
  readonly fingerprint: string;
  /** Collections that it maps, and how far. */
  readonly followed: readonly FollowedCollection[];
  readonly hasCaughtUp: boolean;
  readonly indexedAtMicros: number;
  readonly indexingMs: number;
  /** Of `PartWriter`. */
  readonly values: Readonly<Record<string, unknown>>;
}

/** What is known of the newest snapshot of an index. */
interface Saved {
  /** Number of its file. */
  readonly number: number;
  /** By the clock that never goes backward. */
  readonly atMs: number;
  readonly bytes: number;
  /** As the index had them then. */
  readonly changeCount: number;
  readonly indexingMs: number;
  /** How far it was in everything that it looks at. */
  readonly sources: readonly FollowedCollection[];
}

export interface IndexSnapshotsOptions {
  /** Milliseconds after a change until a snapshot is written, however little changed. */
  readonly intervalMs?: number;
  /** Milliseconds of indexing that are not worth a snapshot of their own. */
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
  /** There were snapshots when the database was opened. */
  #hadFiles = false;
  #isClosed = false;
  /** Resolves when all snapshots that were there at the start are read. */
  #restored: Promise<void> | null = null;
  /** Files that are being removed. */
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

  /** Null when every index has what its snapshot had. */
  get restored(): Promise<void> | null {
    return this.#restored;
  }

  /**
   * Reads the snapshots of these indexes, which have taken in nothing. Until one is read, its index is `isRestoring`.
   * `done` is called for each index when it can go on.
   */
  restore(indexes: readonly OpenIndex[], done: () => void): void {
    for (const index of indexes) index.isRestoring = true;
    const restoring = this.#restoreAll(indexes, done).finally(() => {
      for (const index of indexes) index.isRestoring = false;
      this.#restored = null;
      done();
    });
    this.#restored = restoring.catch((error: unknown) =>
      this.#report(`Indexes of database '${this.#database.name}' are built anew`, error),
    );
  }

  /** The index has taken in something. Cost: a few comparisons. */
  advanced(index: OpenIndex): void {
    if (this.#isClosed) return;
    if (this.#isWorthIt(index)) this.#task.runSoon();
    else if (this.#hasChanged(index)) this.#task.armIn(this.#intervalMs);
  }

  /** Removes the files of indexes that are gone. */
  prune(): void {
    const indexes = new Set(this.#indexes());
    for (const [index, { number }] of this.#saved) {
      if (indexes.has(index)) continue;
      this.#saved.delete(index);
      this.#remove(number);
    }
  }

  /**
   * Collections that the maps of an index load documents of, as far as its newest snapshot has taken them in: later deletions must be
   * told of again after a crash.
   */
  deletionEtagsOf(index: OpenIndex): readonly FollowedCollection[] {
    return this.#saved.get(index)?.sources.slice(index.index.followed.length) ?? [];
  }

  /** Writes what is not written yet. Nothing is written after it. The indexes must be at rest. */
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

  /** Would a crash make more work vain than writing a snapshot is? */
  #isWorthIt(index: OpenIndex): boolean {
    const { indexingMs = 0, bytes = 0 } = this.#saved.get(index) ?? {};
    const worthMs = Math.max(this.#workMsMin, workFactor * bytes * writingMsPerByte);
    return index.indexingMs - indexingMs >= worthMs;
  }

  /** One index that works much does not have all others written, too. */
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

  /** When there is no room, or the device fails, there is none: what is there stays. */
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
      // It may have gone while it was written.
      this.prune();
    } catch (error) {
      for (const name of [temporary, path]) await this.#files.unlink(name).catch(() => undefined);
      if ((error as { code?: unknown }).code === "ENOSPC") return;
      this.#report(`The snapshot of index '${index.name}' could not be written`, error);
    }
  }

  /** Everything that goes into a snapshot, as it is now. */
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
          `Index '${index.name}' of database '${this.#database.name}' has no snapshot that fits and is built anew`,
        );
      }
    }
  }

  /** Numbers of the files, the newest first; what is no whole file is removed. */
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

  /** @returns the index that has now what the file has; null when it is of none of these, or cannot be used */
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
    await processMemory.take("snapshots", bytes);
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
      processMemory.give("snapshots", bytes);
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

  /** Gives an index what its snapshot has. @throws UnusableSnapshot */
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

/** As they are now: an index moves its own on. */
function copied(sources: readonly FollowedCollection[]): readonly FollowedCollection[] {
  return sources.map((source) => ({ ...source }));
}

/** An index keeps its entries when it takes the place of the one that it was built beside. */
function keyOf(name: string, fingerprint: string): string {
  const base = name.startsWith(replacementPrefix) ? name.slice(replacementPrefix.length) : name;
  return `${base.toLowerCase()}\n${fingerprint}`;
}

async function inSlices(steps: Generator<void>, throttle: Throttle): Promise<void> {
  throttle.resumed();
  while (steps.next().done !== true) if (throttle.isDue()) await throttle.yield();
}
