/** The databases of one data folder: create, list, open on first use, delete. */
import { randomBytes, randomInt } from "node:crypto";
import { assert } from "../base/assert.ts";
import { EngineError } from "../base/errors.ts";
import type { JsonObject } from "../base/json/json-object.ts";
import type { ReplicationMark } from "../state/keyspaces/replication-marks.ts";
import { LogRestore, type RestoredLog } from "../storage/shipping/log-restore.ts";
import { type AddFiles, replaceFiles } from "./cluster/replaced-files.ts";
import type { DatabaseCatalog, DatabaseUse } from "./database/database-catalog.ts";
import { markAsSeed } from "./database/seed-mark.ts";
import { Database } from "./database.ts";

/** A database created from shipped files. */
export interface ShippedDatabase {
  readonly database: Database;
  readonly restored: RestoredLog;
  /** Its newest etag, of the last restored commit; new etags are higher. */
  readonly etag: number;
  /** Contents of attachments that are not among the files: they were damaged in the database that was shipped. */
  readonly missingContents: number;
}

export class Databases {
  readonly #catalog: DatabaseCatalog;

  constructor(catalog: DatabaseCatalog) {
    this.#catalog = catalog;
  }

  /** Returns the names in the case of their creation, sorted case-insensitively. */
  names(): string[] {
    return this.#catalog.names();
  }

  has(name: string): boolean {
    return this.#catalog.has(name);
  }

  /** Returns the databases that are open now; this does not keep them open. */
  opened(): Database[] {
    return this.#catalog.opened().map((database) => Database.of(database));
  }

  /** Returns the database of that name if it is open now; this does not keep it open. */
  peek(name: string): Database | undefined {
    const found = this.#catalog.peek(name);
    return found === undefined ? undefined : Database.of(found);
  }

  /** Reasons why databases cannot be used, by name: databases that have stopped, or could not be opened. */
  failures(): Map<string, Error> {
    return this.#catalog.failures();
  }

  /**
   * Returns the database of that name, in any letter case; a promise when it must be opened first.
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

  /**
   * Creates a database of shipped files; see storage/shipping/log-restore.ts. `record` makes its settings record of the one in
   * the files; `idOf`, the id that it gets, of the shipped one.
   * @throws as `create`; EngineError not-supported for databases in memory, backup-damaged
   */
  async createFromShipped(
    name: string,
    record: (found: JsonObject) => JsonObject,
    throughMicros: number,
    add: (restore: LogRestore) => Promise<void>,
    idOf?: (shipped: string) => string,
  ): Promise<ShippedDatabase> {
    let restored: RestoredLog | null = null;
    let etag = 0;
    const made = await this.#catalog.create(name, record, {
      write: async (environment, folder) => {
        const restore = new LogRestore(environment, folder, throughMicros, idOf);
        try {
          await add(restore);
          restored = await restore.finish();
        } catch (error) {
          await restore.abandon();
          throw error;
        }
      },
      opened: async (database) => {
        etag = Database.of(database).lastEtag;
        await database.skipEtags(2 ** 32 + randomInt(2 ** 32));
      },
    });
    assert(restored !== null, "the files of a database are written before it is opened");
    const missingContents = (await made.blobs.findMissing()).length;
    return { database: Database.of(made), restored, etag, missingContents };
  }

  /** Makes a copy of a database that other nodes have, or will have; see `DatabaseCatalog.createCopy`. */
  async createCopy(name: string): Promise<Database> {
    return Database.of(await this.#catalog.createCopy(name));
  }

  /**
   * Marks a database of this node alone as the source of files for other nodes: see api/database/seed-mark.ts. All writes
   * before it is opened as a copy belong to these files. Durable when it resolves.
   * @throws EngineError database-missing
   */
  async markAsSeed(name: string): Promise<ReplicationMark> {
    const database = await this.#catalog.find(name);
    if (database !== undefined) return await markAsSeed(database, randomBytes);
    throw new EngineError("database-missing", `Database '${name}' does not exist.`);
  }

  /** See `replaceFiles`. */
  async replaceFiles(name: string, add: AddFiles): Promise<Database> {
    return Database.of(await replaceFiles(this.#catalog, name, add));
  }

  /** Deletes a database with all its files. @returns false when it does not exist. */
  delete(name: string): Promise<boolean> {
    return this.#catalog.delete(name);
  }

  /** Closes a database until its next use. It must not be in use. */
  unload(name: string): Promise<void> {
    return this.#catalog.unload(name);
  }

  /** See `DatabaseUse`. */
  uses(): DatabaseUse[] {
    return this.#catalog.uses();
  }

  /** Closes the databases that have been idle for long enough. @returns how many. */
  closeIdle(): Promise<number> {
    return this.#catalog.closeIdle();
  }
}
