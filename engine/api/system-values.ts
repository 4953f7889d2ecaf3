/** The durable values of the server itself, by key: certificates, identity, settings. */
import type { OpenDatabase } from "../database/open-database.ts";
import type { DiskWrite } from "../log/disk-writes.ts";
import type { LogFigures } from "../store/store.ts";

export class SystemValues {
  /** The database that has them: another one after it has stopped. */
  readonly #database: () => OpenDatabase;

  constructor(database: () => OpenDatabase) {
    this.#database = database;
  }

  /** A value of JSON; undefined: none. */
  get(key: string): unknown {
    return this.#database().state.keyspaces.values.get(key);
  }

  /** Keys that begin with `prefix` and their values, in order. Nothing may be changed meanwhile. */
  entries(prefix: string): Iterable<readonly [string, unknown]> {
    return this.#database().state.keyspaces.values.withPrefix(prefix);
  }

  put(key: string, value: unknown): Promise<void> {
    return this.#change(key, value);
  }

  delete(key: string): Promise<void> {
    return this.#change(key, undefined);
  }

  /** The newest writes to its files after number `after`, oldest first; none of one in memory. */
  diskWrites(after: number): DiskWrite[] {
    return this.#database().diskWrites(after);
  }

  /** Sizes of its log. */
  logFigures(): LogFigures {
    return this.#database().logFigures();
  }

  async #change(key: string, value: unknown): Promise<void> {
    await this.#database().write((transaction) => {
      transaction.putEntry(transaction.keyspaces.values, key, value);
    });
  }
}
