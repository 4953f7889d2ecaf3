/**
 * A database on a simulated disk, with its model: the submitted batches, in order, and the number acknowledged.
 */
import { expect } from "vitest";
import { type DatabaseOptions, OpenDatabase } from "../../engine/api/database/open-database.ts";
import type { Environment } from "../../engine/base/environment.ts";
import { EngineError } from "../../engine/base/errors.ts";
import { scriptWorkPerMs, sliceMs } from "../../engine/base/limits.ts";
import { finish, type Work } from "../../engine/base/scheduling/work-budget.ts";
import type { DocumentTableOptions } from "../../engine/state/keyspaces/document-table.ts";
import type { Transaction } from "../../engine/state/store/transaction.ts";
import type { Lease } from "../../engine/storage/log/blob-store.ts";
import type { LogCarrier } from "../../engine/storage/log/log-carrier.ts";
import { ImagePool } from "../../engine/storage/segments/image-pool.ts";
import { SegmentCache } from "../../engine/storage/segments/segment-cache.ts";
import { rewriteTouched } from "../../engine/writes/documents.ts";
import { describeDatabase, pictureOf } from "./database-picture.ts";
import { applyTo, type Batch, ModelDatabase, Refused } from "./model-database.ts";
import { SeededRandom } from "./random.ts";
import { SimulatedClock } from "./simulated-clock.ts";
import type { SimulatedFileSystem } from "./simulated-file-system.ts";

export const databaseFolder = "/data/shop";

/** The submitted batches, in log order. */
export class History {
  /** The states after 0, 1, 2, ... batches. */
  readonly states: ModelDatabase[] = [new ModelDatabase()];
  acknowledged = 0;
  /** The highest committed etag when a write was acknowledged. */
  etag = 0;

  copy(): History {
    const copy = new History();
    copy.states.push(...this.states.slice(1));
    copy.acknowledged = this.acknowledged;
    copy.etag = this.etag;
    return copy;
  }

  get newest(): ModelDatabase {
    return this.states.at(-1) as ModelDatabase; // never empty
  }

  /** Batches after the first `count` are known to be lost. */
  forget(count: number): void {
    this.states.length = count + 1;
    this.acknowledged = count;
  }

  /**
   * Returns the number of batches that led to this state, at least the acknowledged ones. Fails if
   * no number matches.
   */
  find(description: string): number {
    for (let count = this.states.length - 1; count >= this.acknowledged; count--) {
      if (this.states[count]?.text() === description) return count;
    }
    const known = this.states.slice(this.acknowledged).map((state) => state.text());
    expect.fail(`found ${description}\ninstead of one of\n${known.join("\n")}`);
  }
}

export interface SimulatedOptions {
  readonly segmentBytesMin?: number;
  /** Default 1: each transaction larger than its segment has its own segment. */
  readonly oversizedBytesMin?: number;
  readonly segmentBytesMax?: number;
  readonly cacheBytes?: number;
  readonly diskReserveBytes?: number;
  readonly mustExist?: boolean;
  readonly carrier?: LogCarrier;
  readonly maintenance?: DatabaseOptions["maintenance"];
}

/**
 * Clock, files and randomness of a simulated machine. The seed depends only on the files, so that a replay is
 * identical.
 */
export function simulatedEnvironment(
  files: SimulatedFileSystem,
): Environment & { clock: SimulatedClock } {
  const random = new SeededRandom(4711 + files.callCount);
  return { clock: new SimulatedClock(), files, random: (count) => random.bytes(count) };
}

/** So small that a few documents cross every boundary, and lists are swept often. */
const tinyChunks: DocumentTableOptions = {
  rowsPerChunk: 2,
  numbersPerChunk: 4,
  slabChunkBytes: 1024,
  hashPageSlots: 16,
  listChunkEntries: 4,
  orderLeafEntries: 2,
  stagedPerChunk: 4,
};

export function logOptions(options: SimulatedOptions = {}): DatabaseOptions {
  const { cacheBytes, maintenance, ...log } = options;
  return {
    documents: tinyChunks,
    log: {
      segmentBytesMin: 1024,
      segmentBytesMax: 4096,
      oversizedBytesMin: 1,
      diskReserveBytes: 0,
      ...log,
      cache: new SegmentCache(cacheBytes ?? 8192, new ImagePool(true)),
    },
    ...(maintenance === undefined ? {} : { maintenance }),
  };
}

/** Work of scripts after which a time slice is over. */
const workOfSlice = sliceMs * scriptWorkPerMs;

export class SimulatedDatabase {
  readonly database: OpenDatabase;
  readonly environment: Environment & { clock: SimulatedClock };
  readonly files: SimulatedFileSystem;
  readonly history: History;

  private constructor(
    database: OpenDatabase,
    environment: Environment & { clock: SimulatedClock },
    files: SimulatedFileSystem,
    history: History,
  ) {
    this.database = database;
    this.environment = environment;
    this.files = files;
    this.history = history;
  }

  /** Opens the database, and checks that its contents are a state that the history allows. */
  static async open(
    files: SimulatedFileSystem,
    history = new History(),
    options: SimulatedOptions = {},
  ): Promise<SimulatedDatabase> {
    const environment = simulatedEnvironment(files);
    const database = await OpenDatabase.open(
      environment,
      "shop",
      databaseFolder,
      logOptions(options),
    );
    try {
      const count = history.find(await describeDatabase(database));
      expect(database.state.lastEtag).toBeGreaterThanOrEqual(history.etag);
      history.forget(count);
    } catch (error) {
      await database.abandon().catch(() => undefined);
      throw error;
    }
    return new SimulatedDatabase(database, environment, files, history);
  }

  get clock(): SimulatedClock {
    return this.environment.clock;
  }

  /**
   * Runs one transaction on the database and on its model. Resolves when it is durable.
   * @param isLong run it in time slices, with a pause after each operation
   * @returns false if both rejected it
   */
  write(batch: Batch, isDeletion = false, isLong = false): Promise<boolean> {
    const written = this.#write(batch, isDeletion, isLong);
    // In-flight writes are left unawaited when the system crashes.
    written.catch(() => undefined);
    return written;
  }

  async #write(batch: Batch, isDeletion: boolean, isLong: boolean): Promise<boolean> {
    const { database, history } = this;
    const hasContent = batch.some(({ kind }) => kind === "attach");
    const contents = hasContent ? await this.#storeContents(batch) : new Map<string, Lease>();
    let isRefused = false;
    let index = -1;
    let state: ModelDatabase | null = null;
    try {
      const change = function* (transaction: Transaction): Work<void> {
        const next = stateAfter(history.newest, batch);
        isRefused = next === null;
        for (const operation of batch) {
          applyTo(transaction, operation, contents);
          if (isLong) transaction.scriptWork += workOfSlice;
          yield;
        }
        yield* rewriteTouched(transaction);
        if (next === null) expect.fail("the model rejected a batch that the database accepted");
        // Reached only by the last run: no other transaction begins before it is appended.
        history.states.push(next);
        state = next;
        index = history.states.length - 1;
      };
      if (isLong) await database.writeInSlices(change, { isDeletion });
      else await database.write((transaction) => finish(change(transaction)), { isDeletion });
      if (index > history.acknowledged) history.acknowledged = index;
      if (database.state.committedEtag > history.etag) history.etag = database.state.committedEtag;
      return true;
    } catch (error) {
      if (!(error instanceof EngineError)) throw error;
      if (error.code === "disk-full" && state !== null && history.states[index] === state) {
        history.states.length = index; // Batches appended after it are lost with it.
      }
      if (isRefused && refusals.has(error.code)) return false;
      throw error;
    } finally {
      for (const lease of contents.values()) lease.release();
    }
  }

  async #storeContents(batch: Batch): Promise<Map<string, Lease>> {
    const leases = new Map<string, Lease>();
    for (const operation of batch) {
      if (operation.kind !== "attach" || leases.has(operation.content)) continue;
      const bytes = Buffer.from(operation.content);
      leases.set(operation.content, await this.database.blobs.store([bytes]));
    }
    return leases;
  }

  /**
   * Checks that the database equals its model, and another instance opened from the same files, with snapshots and
   * without.
   */
  async check(): Promise<void> {
    const { database, history, files } = this;
    database.checkInvariants();
    expect(await describeDatabase(database)).toBe(history.newest.text());
    expect(await database.blobs.findDamaged()).toEqual([]);
    expect(blobFiles(files)).toBe(database.blobs.count);
    await this.#checkMeaning(files.restart());
    // While compaction moves records, recovery from files that already contain the moves yields all of them moved.
    await database.compactionEnded();
    const picture = pictureOf(database);
    const copy = files.restart();
    const withSnapshot = await openCopy(copy.restart());
    expect(pictureOf(withSnapshot)).toEqual(picture);
    await withSnapshot.abandon();
    for (const path of copy.paths()) {
      if (path.startsWith(`${databaseFolder}/snap/`)) copy.remove(path);
    }
    const withoutSnapshot = await openCopy(copy);
    expect(pictureOf(withoutSnapshot)).toEqual(picture);
    expect(await describeDatabase(withoutSnapshot)).toBe(history.newest.text());
    await withoutSnapshot.abandon();
  }

  /** Checks that recovery at any moment yields the same logical contents. */
  async #checkMeaning(files: SimulatedFileSystem): Promise<void> {
    const copy = await openCopy(files);
    copy.checkInvariants();
    expect(await describeDatabase(copy)).toBe(this.history.newest.text());
    await copy.abandon();
  }
}

/** Error codes for batches refused because of their contents, not because of the disk. */
const refusals = new Set(["invalid-operation", "concurrency", "document-missing"]);

function stateAfter(before: ModelDatabase, batch: Batch): ModelDatabase | null {
  try {
    return before.after(batch);
  } catch (error) {
    if (error instanceof Refused) return null;
    throw error;
  }
}

function openCopy(files: SimulatedFileSystem): Promise<OpenDatabase> {
  return OpenDatabase.open(simulatedEnvironment(files), "shop", databaseFolder, logOptions());
}

/** The number of files in the blob folder, which must be the number of referenced contents. */
function blobFiles(files: SimulatedFileSystem): number {
  return files.paths().filter((path) => path.startsWith(`${databaseFolder}/blobs/`)).length;
}
