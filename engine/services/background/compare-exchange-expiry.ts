/**
 * Deletes compare-exchange values at the time in the `@expires` of their metadata. As in RavenDB 7.2.7, this needs no
 * configuration, and a value that has expired is returned until the next run.
 *
 * It costs writers one search in the text of a value. After opening, the first run reads all values; a database without
 * values that expire has no timer.
 *
 * Invariants:
 * - After the first run, `#due` has every value with such a time, and perhaps some that no longer have one: the
 *   transaction checks again.
 */
import { dueTimeOf } from "../../base/due-time.ts";
import type { Clock } from "../../base/environment.ts";
import { compareExchangeExpirySeconds, documentsPerTask } from "../../base/limits.ts";
import { nextSlice } from "../../base/scheduling/time-slices.ts";
import type { CompareExchangeValue } from "../../state/keyspaces/compare-exchange.ts";
import type { Store } from "../../state/store/store.ts";
import type { Transaction } from "../../state/store/transaction.ts";
import { deleteCompareExchange } from "../../writes/compare-exchange.ts";
import { ConfiguredTask } from "./configured-task.ts";

const valuesPerTurn = 1024;

export class CompareExchangeExpiry {
  readonly #database: Store;
  readonly #clock: Clock;
  readonly #task: ConfiguredTask;
  /** Due time by the key of the keyspace, microseconds since 1970. */
  readonly #due = new Map<string, number>();
  /** Values may have been stored before the listener was there. */
  #isScanned: boolean;
  #isClosed = false;

  constructor(database: Store, clock: Clock, failed: (error: unknown) => void) {
    this.#database = database;
    this.#clock = clock;
    const { compareExchange } = database.state.keyspaces;
    this.#isScanned = compareExchange.count === 0;
    this.#task = new ConfiguredTask(
      clock,
      () => this.run(),
      () => (this.isWaiting ? compareExchangeExpirySeconds : null),
      failed,
    );
    compareExchange.listen((key, value) => this.#note(key, value));
    if (this.isWaiting) this.#task.configure();
  }

  /** Whether there are values that expire, as far as is known. */
  get isWaiting(): boolean {
    return !this.#isScanned || this.#due.size > 0;
  }

  /** Deletes the values that have expired. @returns how many. */
  async run(): Promise<number> {
    await this.#scan();
    if (this.#database.isFollowing) return 0;
    const now = this.#clock.nowMicros();
    const due = [...this.#due].filter(([, time]) => time <= now).map(([key]) => key);
    let deleted = 0;
    for (let at = 0; at < due.length && !this.#isClosed; at += documentsPerTask) {
      const some = due.slice(at, at + documentsPerTask);
      deleted += await this.#database.write((transaction) => deleteDue(transaction, some, now));
    }
    return deleted;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#task.close();
  }

  #note(key: string, value: CompareExchangeValue | undefined): void {
    const time = value === undefined ? Number.NaN : expiryOf(value);
    if (Number.isNaN(time)) {
      this.#due.delete(key);
      return;
    }
    const wasWaiting = this.isWaiting;
    this.#due.set(key, time);
    if (!wasWaiting) this.#task.configure();
  }

  /** Reads the times of the values that were there when the database was opened. */
  async #scan(): Promise<void> {
    if (this.#isScanned) return;
    const cursor = this.#database.state.keyspaces.compareExchange.view().cursor();
    for (let count = 1; cursor.next(); count++) {
      const time = expiryOf(cursor.value.value);
      if (!Number.isNaN(time)) this.#due.set(cursor.key, time);
      if (count % valuesPerTurn !== 0) continue;
      await nextSlice();
      if (this.#isClosed) return;
    }
    this.#isScanned = true;
  }
}

/** Deletes those of the values that are there and have expired. @returns how many. */
function deleteDue(transaction: Transaction, keys: readonly string[], now: number): number {
  const { compareExchange } = transaction.keyspaces;
  let deleted = 0;
  for (const key of keys) {
    const value = transaction.entry(compareExchange, key);
    if (value === undefined || !(expiryOf(value) <= now)) continue;
    deleteCompareExchange(transaction, value.key, value.index);
    deleted++;
  }
  return deleted;
}

/** The time in the metadata of a value; NaN for none. */
function expiryOf({ text }: CompareExchangeValue): number {
  if (!text.includes('"@expires"')) return Number.NaN;
  const value = JSON.parse(text) as { readonly "@metadata"?: Readonly<Record<string, unknown>> };
  return dueTimeOf(value["@metadata"]?.["@expires"]);
}
