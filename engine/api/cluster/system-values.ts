/** Durable values by key: of the server itself (certificates, identity, settings), or of all nodes of a cluster. */
import { EngineError } from "../../base/errors.ts";
import type { LogFigures } from "../../state/store/store.ts";
import type { DiskWrite } from "../../storage/log/disk-writes.ts";
import type { OpenDatabase } from "../database/open-database.ts";

interface ExpectedChange {
  readonly key: string;
  /** The expected value, as JSON; null: no value may exist; undefined: not checked. */
  readonly expected?: unknown;
  /** Null: the key is removed. */
  readonly value: unknown;
}

function textOf(value: unknown): string {
  return JSON.stringify(value ?? null);
}

export class SystemValues {
  /** The database that has them: another one after it has stopped. */
  readonly #database: () => OpenDatabase;

  constructor(database: () => OpenDatabase) {
    this.#database = database;
  }

  /** Returns a value of JSON; undefined: none. */
  get(key: string): unknown {
    return this.#database().state.keyspaces.values.get(key);
  }

  /**
   * Returns the keys that begin with `prefix` and their values, in order. Nothing may be changed during the iteration.
   */
  entries(prefix: string): Iterable<readonly [string, unknown]> {
    return this.#database().state.keyspaces.values.withPrefix(prefix);
  }

  put(key: string, value: unknown): Promise<void> {
    return this.#change(key, value);
  }

  delete(key: string): Promise<void> {
    return this.#change(key, undefined);
  }

  /**
   * Makes several changes, or none if an expectation does not hold. Durable when it resolves.
   * @throws EngineError concurrency
   */
  async change(changes: readonly ExpectedChange[]): Promise<void> {
    await this.#database().write((transaction) => {
      const { values } = transaction.keyspaces;
      for (const { key, expected } of changes) {
        if (expected === undefined) continue;
        const found = transaction.entry(values, key);
        if (textOf(found) !== textOf(expected)) {
          throw new EngineError("concurrency", `The value '${key}' is not the expected one.`);
        }
      }
      for (const { key, value } of changes) {
        transaction.putEntry(values, key, value ?? undefined);
      }
    });
  }

  /** Returns the newest writes to its files after number `after`, oldest first; none of one in memory. */
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
