/** An engine inside a program: names of databases to databases, which are opened or created on first use. */
import { EngineError, type Engine as Storage } from "../engine/engine.ts";
import { EmbeddedDatabase, type OpenDatabase } from "./embedded-database.ts";
import type { Database, Engine } from "./surface.ts";

export class EmbeddedEngine implements Engine {
  readonly #storage: Storage;
  /** Ended when the engine is closed, so that loops over changes end. */
  readonly #life = new AbortController();
  #closing: Promise<void> | null = null;

  constructor(storage: Storage) {
    this.#storage = storage;
  }

  async database(name: string): Promise<Database> {
    const { name: spelled } = await this.#openOrCreate(name);
    const { databases } = this.#storage;
    return new EmbeddedDatabase(spelled, () => databases.find(spelled), this.#life.signal);
  }

  /** Another caller may create or delete it at any time. */
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
