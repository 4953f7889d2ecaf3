/**
 * The set of databases in one data folder (or in memory): create, list, open on first use, delete.
 *
 *   <folder>/<name>/            a database
 *   <folder>/.creating-<hex>/   one being created; left by a crash, removed at the next start
 *   <folder>/.deleted-<hex>/    one being deleted; likewise
 *   <folder>/.replaced-…/        the old files of a database whose files are replaced: see folder-swap.ts
 *
 * Invariants:
 * - A database exists while a folder has its name: one rename creates it, after all of it is durable, and one rename
 *   deletes it.
 * - Names are compared case-insensitively, and keep the case of their creation.
 * - Requests to create, open or delete one database are carried out in order of arrival.
 * - An existing database is never created again: a folder without its content is an error.
 * - A stopped database is closed and reopened from its folder, a few times an hour at most; in the meantime requests
 *   for it fail with the reason. A database that is in memory only stays stopped.
 * - With `IdleOptions`, a database without requests or activity is closed; a request that arrives in the meantime waits
 *   for that, and opens it again.
 */

import { assert } from "../../base/assert.ts";
import { foldedName } from "../../base/case-folding.ts";
import { checkDatabaseName } from "../../base/database-name.ts";
import type { Environment, ReportEvent, Timer } from "../../base/environment.ts";
import { EngineError } from "../../base/errors.ts";
import type { JsonObject } from "../../base/json/json-object.ts";
import { reopeningsMax } from "../../base/limits.ts";
import { makeDurableDirectory } from "../../base/platform/durable-directory.ts";
import { stoppedError } from "../../state/store/stopped-error.ts";
import { isOfCluster } from "../../storage/log/health.ts";
import { nameOfReplaced, settleSwap, swapFolders } from "./folder-swap.ts";
import { type DatabaseOptions, OpenDatabase } from "./open-database.ts";
import { ReopenRateLimit } from "./reopen-rate-limit.ts";

const creatingPrefix = ".creating-";
const deletedPrefix = ".deleted-";

/** The use of a database. */
export interface DatabaseUse {
  readonly name: string;
  readonly isOpen: boolean;
  /** Milliseconds since a request began; null: none has, since the start. */
  readonly unusedMs: number | null;
  readonly isInMemory: boolean;
  /** It is open, and nothing uses it now. */
  readonly mayBeClosed: boolean;
}

/** When idle databases are closed. */
export interface IdleOptions {
  /** Milliseconds since the last request for it. */
  readonly idleMs: number;
  /** Milliseconds between two checks. */
  readonly checkMs: number;
}

/** The settings record of a new database; or a function that creates it from the record in the files. */
type NewRecord = JsonObject | ((found: JsonObject) => JsonObject);

/** Source of a database that does not begin empty. The database is not visible before both have completed. */
interface FoundFiles {
  /** Writes the files of a database. */
  write(environment: Environment, folder: string): Promise<void>;
  opened(database: OpenDatabase): Promise<void>;
}

interface Slot {
  readonly name: string;
  /** Monotonic time of the last request for it, in milliseconds. */
  usedMs: number;
  /** Its `servedCount` at the last check. */
  servedCount: number;
  /** Set while it is open. */
  database: OpenDatabase | undefined;
  /** The last queued task for it: creating, opening or deleting. They run one after another. */
  running: Promise<unknown> | undefined;
  /** It was deleted, or could not be created. */
  isGone: boolean;
  /** Its deletion has been requested. */
  isLeaving: boolean;
  /** Why it has stopped, until it is open again. */
  stopCause: Error | undefined;
  /** Why it could not be opened the last time, until it is open. */
  openingError: Error | undefined;
  readonly reopenLimit: ReopenRateLimit;
}

function newSlot(name: string): Slot {
  return {
    name,
    usedMs: 0,
    servedCount: 0,
    database: undefined,
    running: undefined,
    isGone: false,
    isLeaving: false,
    stopCause: undefined,
    openingError: undefined,
    reopenLimit: new ReopenRateLimit(),
  };
}

export class DatabaseCatalog {
  readonly #environment: Environment;
  /** Null: all databases are in memory. */
  readonly #folder: string | null;
  readonly #options: DatabaseOptions;
  readonly #slots = new Map<string, Slot>();
  readonly #idle: IdleOptions | null;
  #idleTimer: Timer | null = null;
  #isClosed = false;

  private constructor(
    environment: Environment,
    folder: string | null,
    options: DatabaseOptions,
    idle: IdleOptions | null,
  ) {
    this.#environment = environment;
    this.#folder = folder;
    this.#options = options;
    this.#idle = idle;
  }

  /** Lists the databases and removes files left by a crash; opens none of them. */
  static async open(
    environment: Environment,
    folder: string | null,
    options: DatabaseOptions = {},
    idle: IdleOptions | null = null,
  ): Promise<DatabaseCatalog> {
    const catalog = new DatabaseCatalog(environment, folder, options, idle);
    if (folder === null) return catalog;
    const { files } = environment;
    await makeDurableDirectory(files, folder);
    for (const name of await files.list(folder)) {
      const replaced = nameOfReplaced(name);
      if (replaced !== null) await settleSwap(files, folder, replaced);
    }
    for (const name of await files.list(folder)) {
      if (name.startsWith(creatingPrefix) || name.startsWith(deletedPrefix)) {
        await files.removeTree(`${folder}/${name}`);
      } else if (!name.startsWith(".")) {
        catalog.#slots.set(foldedName(name), newSlot(name));
      }
    }
    catalog.#lookLater();
    return catalog;
  }

  /** Returns the names in the case of their creation, sorted case-insensitively. */
  names(): string[] {
    return [...this.#slots.entries()]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([, slot]) => slot.name);
  }

  has(name: string): boolean {
    return this.#slots.has(foldedName(name));
  }

  /** Databases that are open now. */
  opened(): OpenDatabase[] {
    return [...this.#slots.values()].flatMap(({ database }) => database ?? []);
  }

  /** Returns the database of that name if it is open now; this does not keep it open. */
  peek(name: string): OpenDatabase | undefined {
    return this.#slots.get(foldedName(name))?.database;
  }

  /** Returns the reasons why databases cannot be used, by name: databases that have stopped, or could not be opened. */
  failures(): Map<string, Error> {
    const found = new Map<string, Error>();
    for (const { name, stopCause, openingError } of this.#slots.values()) {
      const cause = stopCause ?? openingError;
      if (cause !== undefined) found.set(name, cause);
    }
    return found;
  }

  /**
   * Returns the database of that name, in any letter case; a promise when it must be opened first.
   * @throws (rejects) EngineError database-damaged, database-locked, database-stopped while it is being reopened
   */
  find(name: string): OpenDatabase | undefined | Promise<OpenDatabase | undefined> {
    const slot = this.#slots.get(foldedName(name));
    if (slot === undefined) return undefined;
    slot.usedMs = this.#environment.clock.monotonicMs();
    if (slot.database !== undefined && slot.running === undefined) return slot.database;
    if (slot.stopCause !== undefined) return this.#findStopped(slot, slot.stopCause);
    return this.#serialized(slot, () => this.#open(slot));
  }

  /**
   * Creates a database with its settings record; durable when it resolves. If one of that name is being deleted, waits
   * for that.
   * @param found left out: it begins empty
   * @throws EngineError database-name-invalid, database-exists
   */
  async create(name: string, record: NewRecord, found?: FoundFiles): Promise<OpenDatabase> {
    if (found !== undefined && this.#folder === null) {
      throw new EngineError("not-supported", "Databases in memory cannot be made of files.");
    }
    return await this.#create(name, () => this.#make(name, record, found));
  }

  async #create(name: string, make: () => Promise<OpenDatabase>): Promise<OpenDatabase> {
    checkDatabaseName(name);
    const key = foldedName(name);
    for (;;) {
      this.#assertOpen();
      const present = this.#slots.get(key);
      if (present === undefined) break;
      if (!present.isLeaving) {
        throw new EngineError("database-exists", `Database '${name}' already exists!`);
      }
      await present.running?.catch(() => undefined);
    }
    const slot = newSlot(name);
    this.#slots.set(key, slot);
    return await this.#serialized(slot, async () => {
      try {
        slot.database = this.#kept(slot, await make());
        return slot.database;
      } catch (error) {
        this.#forget(slot);
        throw error;
      }
    });
  }

  /**
   * Creates a copy of a database that other nodes have, or will have: empty, with the replication that
   * `DatabaseOptions.replicate` returns for this name. Its contents come from the stream. Durable when it resolves.
   * @throws EngineError database-name-invalid, database-exists
   */
  createCopy(name: string): Promise<OpenDatabase> {
    return this.#create(name, () => this.#makeCopy(name));
  }

  /** Deletes a database with all its files. @returns false when it does not exist. */
  async delete(name: string): Promise<boolean> {
    const slot = this.#slots.get(foldedName(name));
    if (slot === undefined) return false;
    slot.isLeaving = true;
    return await this.#serialized(slot, () => this.#remove(slot));
  }

  /**
   * Replaces all files of a database by the files that `write` creates, and opens it: after a crash or a failure,
   * either the old or the new files are complete. It serves from the old files until the new ones are complete;
   * requests in progress then fail.
   * @param write receives the folder to fill, which does not exist, and the folder of the old files
   * @throws EngineError database-missing, not-supported in memory, and the errors of `write`
   */
  async replaceFiles(
    name: string,
    write: (environment: Environment, folder: string, old: string) => Promise<void>,
  ): Promise<OpenDatabase> {
    const slot = this.#slots.get(foldedName(name));
    if (slot === undefined || slot.isLeaving) throw missing(name);
    const folder = this.#folder;
    if (folder === null) {
      throw new EngineError("not-supported", "A database in memory has no files to replace.");
    }
    this.#assertOpen();
    const { files } = this.#environment;
    const making = this.#newFolder();
    try {
      await write(this.#environment, making, `${folder}/${slot.name}`);
      return await this.#serialized(slot, async () => {
        if (slot.isGone) throw missing(name);
        this.#assertOpen();
        const { database } = slot;
        slot.database = undefined;
        await database
          ?.abandon()
          .catch((cause: unknown) => this.#report(`Database '${name}' did not end well`, cause));
        await swapFolders(this.#environment, folder, slot.name, making);
        slot.stopCause = undefined;
        const opened = await this.#open(slot);
        assert(opened !== undefined, "a database that was not deleted is opened");
        return opened;
      });
    } catch (error) {
      await files.removeTree(making).catch(() => undefined);
      throw error;
    }
  }

  /** Closes a database until its next use. It must not be in use. */
  async unload(name: string): Promise<void> {
    const slot = this.#slots.get(foldedName(name));
    if (slot === undefined || this.#folder === null) return;
    await this.#serialized(slot, async () => {
      const { database } = slot;
      slot.database = undefined;
      await database?.close();
    });
  }

  /** Returns the last use of each database, and the conditions of closing it when it is idle. */
  uses(): DatabaseUse[] {
    const nowMs = this.#environment.clock.monotonicMs();
    return [...this.#slots.values()].map((slot) => {
      this.#noteUse(slot);
      const { name, usedMs, database } = slot;
      return {
        name,
        isOpen: database !== undefined,
        unusedMs: usedMs === 0 ? null : nowMs - usedMs,
        isInMemory: database?.isInMemory ?? false,
        mayBeClosed: database?.mayBeUnloaded ?? false,
      };
    });
  }

  /** Records a use since the last call as one of now: requests only count themselves. */
  #noteUse(slot: Slot): void {
    const { database } = slot;
    if (database === undefined || database.servedCount === slot.servedCount) return;
    slot.servedCount = database.servedCount;
    slot.usedMs = this.#environment.clock.monotonicMs();
  }

  /** Closes the databases that have been idle for long enough. @returns how many. */
  async closeIdle(): Promise<number> {
    const idle = this.#idle;
    if (idle === null) return 0;
    const { clock } = this.#environment;
    const isIdle = (slot: Slot): boolean => {
      const { database } = slot;
      if (database === undefined || slot.isLeaving) return false;
      this.#noteUse(slot);
      return clock.monotonicMs() - slot.usedMs >= idle.idleMs && database.mayBeUnloaded;
    };
    let closed = 0;
    for (const slot of [...this.#slots.values()]) {
      if (this.#isClosed || slot.running !== undefined || !isIdle(slot)) continue;
      await this.#serialized(slot, async () => {
        // It may have been used since the check.
        const { database } = slot;
        if (database === undefined || !isIdle(slot)) return;
        slot.database = undefined;
        closed++;
        await database.close();
      });
    }
    return closed;
  }

  #lookLater(): void {
    if (this.#idle === null || this.#isClosed) return;
    this.#idleTimer = this.#environment.clock.setTimer(this.#idle.checkMs, () => {
      // A failed close leaves damage, if any, to be found at the next opening.
      void this.closeIdle()
        .catch(() => undefined)
        .finally(() => this.#lookLater());
    });
  }

  /** Closes all databases; each is durable and has a fresh index snapshot. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#idleTimer?.cancel();
    const slots = [...this.#slots.values()];
    const results = await Promise.allSettled(
      slots.map((slot) =>
        this.#serialized(slot, async () => {
          const { database } = slot;
          slot.database = undefined;
          await database?.close();
        }),
      ),
    );
    for (const result of results) if (result.status === "rejected") throw result.reason;
  }

  /** Runs `work` when all earlier tasks of the slot are done. */
  #serialized<Result>(slot: Slot, work: () => Promise<Result>): Promise<Result> {
    const running = (slot.running ?? Promise.resolve()).then(work, work);
    slot.running = running;
    const settled = (): void => {
      if (slot.running === running) slot.running = undefined;
    };
    running.then(settled, settled);
    return running;
  }

  async #open(slot: Slot): Promise<OpenDatabase | undefined> {
    if (slot.isGone || slot.database !== undefined) return slot.database;
    this.#assertOpen();
    const options = { ...this.#options, log: { ...this.#options.log, mustExist: true } };
    const folder = `${this.#folder}/${slot.name}`;
    let database: OpenDatabase;
    try {
      database = await OpenDatabase.open(this.#environment, slot.name, folder, options);
    } catch (error) {
      // Every request tries again, but each reason is reported to the operator once.
      if (slot.openingError?.message !== (error as Error).message) {
        this.#report(`Database '${slot.name}' cannot be opened`, error, "database-closed");
      }
      slot.openingError = error as Error;
      throw error;
    }
    slot.database = this.#kept(slot, database);
    slot.stopCause = undefined;
    slot.openingError = undefined;
    return slot.database;
  }

  /** Watches the database for stopping. */
  #kept(slot: Slot, database: OpenDatabase): OpenDatabase {
    database.whenStopped = (error) => this.#stopped(slot, database, error);
    return database;
  }

  #stopped(slot: Slot, database: OpenDatabase, error: Error): void {
    if (slot.database !== database || this.#isClosed) return;
    if (this.#folder === null) {
      this.#report(
        `Database '${slot.name}' has stopped. It is in memory only and cannot be opened again`,
        error,
        "database-closed",
      );
      return;
    }
    if (isOfCluster(error)) {
      this.#report(`This node does not lead database '${slot.name}' any more, and follows`, error);
    } else {
      const told = `Database '${slot.name}' has stopped and is opened again from the disk`;
      this.#report(told, error, "database-stopped");
    }
    slot.stopCause = error;
    this.#serialized(slot, () => this.#reopen(slot, database)).catch((cause: unknown) =>
      this.#report(`Database '${slot.name}' could not be opened again`, cause, "database-closed"),
    );
  }

  /** Abandons a stopped database, and reopens it unless that has happened too often. */
  async #reopen(slot: Slot, stopped: OpenDatabase): Promise<void> {
    if (slot.database !== stopped || slot.isLeaving) return;
    slot.database = undefined;
    await stopped
      .abandon()
      .catch((cause: unknown) => this.#report(`Database '${slot.name}' did not end well`, cause));
    const waitMs = slot.reopenLimit.waitMs(this.#nowMs());
    if (waitMs > 0) {
      this.#report(
        `Database '${slot.name}' was opened again ${reopeningsMax} times within an hour and stays closed for ${seconds(waitMs)} s`,
        undefined,
        "database-closed",
      );
      return;
    }
    await this.#openAgain(slot);
  }

  async #openAgain(slot: Slot): Promise<OpenDatabase | undefined> {
    if (slot.isGone) return undefined;
    const beganMs = this.#nowMs();
    // Nothing failed when another node leads: that may happen often.
    if (slot.stopCause === undefined || !isOfCluster(slot.stopCause))
      slot.reopenLimit.note(beganMs);
    try {
      const database = await this.#open(slot);
      const tookMs = Math.round(this.#nowMs() - beganMs);
      const told = `Database '${slot.name}' is open again, after ${tookMs} ms`;
      this.#report(told, undefined, "database-reopened");
      return database;
    } finally {
      // If that failed, the next request opens it in the usual way and gets the error.
      slot.stopCause = undefined;
    }
  }

  /**
   * For a database that is being reopened, or was reopened too often; after its waiting time, the next request opens
   * it.
   */
  #findStopped(slot: Slot, cause: Error): Promise<OpenDatabase | undefined> {
    const waitMs = slot.reopenLimit.waitMs(this.#nowMs());
    if (slot.running === undefined && waitMs === 0) {
      return this.#serialized(slot, () => this.#openAgain(slot));
    }
    const isUnderWay = slot.running !== undefined;
    return Promise.reject(stoppedError(slot.name, cause, isUnderWay ? undefined : waitMs));
  }

  #nowMs(): number {
    return this.#environment.clock.monotonicMs();
  }

  #report(message: string, cause?: unknown, event?: ReportEvent): void {
    this.#options.report?.(message, cause, event);
  }

  async #remove(slot: Slot): Promise<boolean> {
    if (slot.isGone) return false;
    this.#assertOpen();
    try {
      await slot.database?.abandon();
    } finally {
      slot.database = undefined;
      slot.isLeaving = false;
    }
    await this.#removeFolder(slot);
    return true;
  }

  #forget(slot: Slot): void {
    slot.isGone = true;
    slot.database = undefined;
    this.#slots.delete(foldedName(slot.name));
  }

  async #make(name: string, record: NewRecord, found?: FoundFiles): Promise<OpenDatabase> {
    const folder = this.#folder;
    const change = typeof record === "function" ? record : () => record;
    if (folder === null) {
      const database = await OpenDatabase.open(this.#environment, name, null, this.#options);
      await database.changeSettings(change);
      return database;
    }
    return await this.#makeFolder(folder, name, async (making) => {
      await found?.write(this.#environment, making);
      const database = await OpenDatabase.open(this.#environment, name, making, this.#options);
      try {
        await found?.opened(database);
        await database.changeSettings(change);
      } catch (error) {
        await database.abandon().catch(() => undefined);
        throw error;
      }
      await database.close();
    });
  }

  async #makeCopy(name: string): Promise<OpenDatabase> {
    const folder = this.#folder;
    const identity = this.#options.replicate?.(name)?.identity;
    assert(identity !== undefined, "a copy is of a database that is replicated");
    if (folder === null) {
      return await OpenDatabase.open(this.#environment, name, null, this.#options);
    }
    return await this.#makeFolder(folder, name, async (making) => {
      const { replicate: _, ...options } = this.#options;
      const log = { ...options.log, databaseId: Buffer.from(identity.databaseId, "hex") };
      // No transaction writes to it: all contents of a copy come from the stream.
      const empty = await OpenDatabase.open(this.#environment, name, making, { ...options, log });
      await empty.abandon();
    });
  }

  /** Makes the folder of a database by `make`, and opens it. */
  async #makeFolder(
    folder: string,
    name: string,
    make: (making: string) => Promise<void>,
  ): Promise<OpenDatabase> {
    const { files } = this.#environment;
    const making = this.#newFolder();
    try {
      await make(making);
      await files.rename(making, `${folder}/${name}`);
    } catch (error) {
      await files.removeTree(making).catch(() => undefined);
      throw error;
    }
    try {
      await files.syncDirectory(folder);
      return await OpenDatabase.open(this.#environment, name, `${folder}/${name}`, this.#options);
    } catch (error) {
      await files.rename(`${folder}/${name}`, making).catch(() => undefined);
      await files.removeTree(making).catch(() => undefined);
      throw error;
    }
  }

  /** Returns a path for files that are written and do not belong to a database yet. */
  #newFolder(): string {
    return `${this.#folder}/${creatingPrefix}${this.#environment.random(8).toString("hex")}`;
  }

  async #removeFolder(slot: Slot): Promise<void> {
    if (this.#folder === null) {
      this.#forget(slot);
      return;
    }
    const { files } = this.#environment;
    await settleSwap(files, this.#folder, slot.name);
    const trash = `${this.#folder}/${deletedPrefix}${this.#environment.random(8).toString("hex")}`;
    await files.rename(`${this.#folder}/${slot.name}`, trash);
    this.#forget(slot);
    await files.syncDirectory(this.#folder);
    // The rest is removed at the next start.
    await files.removeTree(trash).catch(() => undefined);
  }

  #assertOpen(): void {
    if (this.#isClosed) throw new EngineError("database-stopped", "The server is stopping.");
  }
}

function missing(name: string): EngineError {
  return new EngineError("database-missing", `Database '${name}' does not exist.`);
}

function seconds(ms: number): number {
  return Math.ceil(ms / 1000);
}
