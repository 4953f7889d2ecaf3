/** The embedded engine: opens or creates databases by name on first use. */
import { EngineError, type Engine as Storage } from "../engine/engine.ts";
import { EmbeddedDatabase, type OpenDatabase } from "./embedded-database.ts";
import type { Database, Engine } from "./surface.ts";

export class EmbeddedEngine implements Engine {
  readonly #storage: Storage;
  /** Aborted when the engine is closed, which closes change streams. */
  readonly #life = new AbortController();
  #closing: Promise<void> | null = null;

  constructor(storage: Storage) {
    this.#storage = storage;
  }

  async database(name: string): Promise<Database> {
    const { name: storedName } = await this.#openOrCreate(name);
    const { databases } = this.#storage;
    return new EmbeddedDatabase(storedName, () => databases.find(storedName), this.#life.signal);
  }

  /** Retries, because another caller may create or delete the database concurrently. */
  async #openOrCreate(name: string): Promise<OpenDatabase> {
    const { databases } = this.#storage;
    for (;;) {
      const found = await databases.find(name);
      if (found !== undefined) return found;
      try {
        return await databases.create(name, { DatabaseName: name });
      } catch (error) {
        if (!(error instanceof EngineError) || error.code !== "database-exists") throw error;
      }
    }
  }

  databaseNames(): string[] {
    return this.#storage.databases.names();
  }

  deleteDatabase(name: string): Promise<boolean> {
    return this.#storage.databases.delete(name);
  }

  get lost(): Promise<Error> {
    return this.#storage.lost;
  }

  close(): Promise<void> {
    this.#life.abort();
    this.#closing ??= this.#storage.close();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
