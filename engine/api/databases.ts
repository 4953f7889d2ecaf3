/** The databases of one data folder: create, list, open on first use, delete. */
import type { DatabaseCatalog } from "../database/database-catalog.ts";
import type { JsonObject } from "../json/json-object.ts";
import { Database } from "./database.ts";

export class Databases {
  readonly #catalog: DatabaseCatalog;

  constructor(catalog: DatabaseCatalog) {
    this.#catalog = catalog;
  }

  /** Names as they were created, sorted case-insensitively. */
  names(): string[] {
    return this.#catalog.names();
  }

  has(name: string): boolean {
    return this.#catalog.has(name);
  }

  /** Those that are open now; this keeps none of them open. */
  opened(): Database[] {
    return this.#catalog.opened().map((database) => Database.of(database));
  }

  /** Why databases cannot be used now, by their names: those that have stopped, and those that could not be opened. */
  troubles(): Map<string, Error> {
    return this.#catalog.troubles();
  }

  /**
   * The database of that name, in any letter case; a promise when it must be opened first.
   * @throws (rejects) EngineError database-damaged, database-locked, database-stopped while it is being reopened
   */
  find(name: string): Database | undefined | Promise<Database | undefined> {
    const found = this.#catalog.find(name);
    if (found === undefined) return undefined;
    if (!(found instanceof Promise)) return Database.of(found);
    return found.then((opened) => (opened === undefined ? undefined : Database.of(opened)));
  }

  /**
   * Creates a database with its settings record; durable when it resolves. If one of that name is being deleted, waits
   * for that.
   * @throws EngineError database-name-invalid, database-exists
   */
  async create(name: string, record: JsonObject): Promise<Database> {
    return Database.of(await this.#catalog.create(name, record));
  }

  /** Deletes a database with all its files. @returns false when it does not exist. */
  delete(name: string): Promise<boolean> {
    return this.#catalog.delete(name);
  }

  /** Closes a database until its next use. Nobody may be using it. */
  unload(name: string): Promise<void> {
    return this.#catalog.unload(name);
  }

  /** Closes the databases that have been idle for long enough. @returns how many. */
  closeIdle(): Promise<number> {
    return this.#catalog.closeIdle();
  }
}
