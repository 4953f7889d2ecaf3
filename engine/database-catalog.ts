/**
 * The set of databases in one data folder (or in memory): create, list, open on first use, delete.
 *
 *   <folder>/<name>/            a database
 *   <folder>/.creating-<hex>/   one that is being made; a crash leaves it, the next start removes it
 *   <folder>/.deleted-<hex>/    one that is going; likewise
 *
 * Invariants:
 * - A database exists when its folder has its name, which happens by one rename after all of it is durable, and
 *   it is gone when its folder no longer has.
 * - Names are compared without regard to case, and keep the spelling of their creation.
 */

import { Database, type DatabaseOptions } from "./database.ts";
import { checkDatabaseName } from "./database-name.ts";
import type { Environment } from "./environment.ts";
import { EngineError } from "./errors.ts";
import type { JsonObject } from "./keyspaces/index-definitions.ts";

const creatingPrefix = ".creating-";
const deletedPrefix = ".deleted-";

interface Slot {
  readonly name: string;
  /** Set when it is open. */
  database: Database | undefined;
  /** Set while it is being made, opened or deleted. */
  pending: Promise<Database | undefined> | undefined;
}

export class DatabaseCatalog {
  readonly #environment: Environment;
  /** Null: all databases are in memory. */
  readonly #folder: string | null;
  readonly #options: DatabaseOptions;
  readonly #slots = new Map<string, Slot>();
  #isClosed = false;

  private constructor(environment: Environment, folder: string | null, options: DatabaseOptions) {
    this.#environment = environment;
    this.#folder = folder;
    this.#options = options;
  }

  /** Reads which databases there are and clears away what a crash left; opens none of them. */
  static async open(
    environment: Environment,
    folder: string | null,
    options: DatabaseOptions = {},
  ): Promise<DatabaseCatalog> {
    const catalog = new DatabaseCatalog(environment, folder, options);
    if (folder === null) return catalog;
    const { files } = environment;
    await files.makeDirectory(folder);
    for (const name of await files.list(folder)) {
      if (name.startsWith(creatingPrefix) || name.startsWith(deletedPrefix)) {
        await files.removeTree(`${folder}/${name}`);
      } else if (!name.startsWith(".")) {
        catalog.#slots.set(name.toLowerCase(), { name, database: undefined, pending: undefined });
      }
    }
    return catalog;
  }

  /** Names as they were created, sorted without regard to case. */
  names(): string[] {
    return [...this.#slots.entries()]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([, slot]) => slot.name);
  }

  has(name: string): boolean {
    return this.#slots.has(name.toLowerCase());
  }

  /** Databases that are open now. */
  opened(): Database[] {
    return [...this.#slots.values()].flatMap(({ database }) => database ?? []);
  }

  /**
   * The database of that name, in any letter case; a promise when it must be opened first.
   * @throws (rejects) EngineError database-damaged, database-locked
   */
  find(name: string): Database | undefined | Promise<Database | undefined> {
    const slot = this.#slots.get(name.toLowerCase());
    if (slot === undefined) return undefined;
    if (slot.database !== undefined && slot.pending === undefined) return slot.database;
    return this.#openSlot(slot);
  }

  /**
   * Makes a database with its record of settings; durable when it resolves.
   * @throws EngineError database-name-invalid, database-exists
   */
  async create(name: string, record: JsonObject): Promise<Database> {
    checkDatabaseName(name);
    this.#assertOpen();
    const key = name.toLowerCase();
    if (this.#slots.has(key)) {
      throw new EngineError("database-exists", `Database '${name}' already exists!`);
    }
    const slot: Slot = { name, database: undefined, pending: undefined };
    this.#slots.set(key, slot);
    slot.pending = this.#make(name, record);
    try {
      const database = await slot.pending;
      slot.database = database;
      return database as Database;
    } catch (error) {
      this.#slots.delete(key);
      throw error;
    } finally {
      slot.pending = undefined;
    }
  }

  /** Deletes a database with all its files. @returns false when there is none. */
  async delete(name: string): Promise<boolean> {
    const key = name.toLowerCase();
    const slot = this.#slots.get(key);
    if (slot === undefined) return false;
    const before = slot.pending;
    const removal = (async (): Promise<undefined> => {
      await before?.catch(() => undefined);
      await slot.database?.abandon();
      slot.database = undefined;
      await this.#removeFolder(slot.name);
      return undefined;
    })();
    slot.pending = removal;
    try {
      await removal;
      this.#slots.delete(key);
    } finally {
      slot.pending = undefined;
    }
    return true;
  }

  /** Closes all databases; each is durable and has a fresh index snapshot. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const slots = [...this.#slots.values()];
    await Promise.all(slots.map(({ pending }) => pending?.catch(() => undefined)));
    const results = await Promise.allSettled(slots.map(({ database }) => database?.close()));
    for (const slot of slots) slot.database = undefined;
    for (const result of results) if (result.status === "rejected") throw result.reason;
  }

  async #openSlot(slot: Slot): Promise<Database | undefined> {
    if (slot.pending !== undefined) return await slot.pending;
    this.#assertOpen();
    slot.pending = Database.open(
      this.#environment,
      slot.name,
      `${this.#folder}/${slot.name}`,
      this.#options,
    );
    try {
      slot.database = await slot.pending;
      return slot.database;
    } finally {
      slot.pending = undefined;
    }
  }

  async #make(name: string, record: JsonObject): Promise<Database> {
    const folder = this.#folder;
    if (folder === null) {
      const database = await Database.open(this.#environment, name, null, this.#options);
      await database.putSettings(record);
      return database;
    }
    const { files } = this.#environment;
    const making = `${folder}/${creatingPrefix}${this.#environment.random(8).toString("hex")}`;
    try {
      const database = await Database.open(this.#environment, name, making, this.#options);
      await database.putSettings(record);
      await database.close();
      await files.rename(making, `${folder}/${name}`);
      await files.syncDirectory(folder);
    } catch (error) {
      await files.removeTree(making).catch(() => undefined);
      throw error;
    }
    return await Database.open(this.#environment, name, `${folder}/${name}`, this.#options);
  }

  async #removeFolder(name: string): Promise<void> {
    if (this.#folder === null) return;
    const { files } = this.#environment;
    const trash = `${this.#folder}/${deletedPrefix}${this.#environment.random(8).toString("hex")}`;
    await files.rename(`${this.#folder}/${name}`, trash);
    await files.syncDirectory(this.#folder);
    await files.removeTree(trash);
  }

  #assertOpen(): void {
    if (this.#isClosed) throw new EngineError("database-stopped", "The server is stopping.");
  }
}
