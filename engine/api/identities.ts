/** Numbers for ids: identities (`users|`) and the ranges that clients assign ids from (HiLo). */

import { hiLoCapacity, nextHiLoRange, returnHiLoRange } from "../batches/hilo.ts";
import { earlierOutcome, keepOutcome } from "../batches/repeated-requests.ts";
import { nextIdentity, seedIdentity } from "../writes/documents.ts";
import type { OpenDatabase } from "./database/open-database.ts";

/** The client's data about its last range. */
interface LastRange {
  /** Number of ids in it; 0 if the client had no range. */
  readonly size: number;
  /** Microseconds since 1970; 0: never. */
  readonly at: number;
  /** Its highest number. */
  readonly max: number;
}

/** A range of numbers reserved for one client. */
interface NumberRange {
  readonly low: number;
  readonly high: number;
  /** The assigned size, which the client sends with its next request. */
  readonly size: number;
  /** Microseconds since 1970. */
  readonly at: number;
}

export class Identities {
  readonly #database: OpenDatabase;

  constructor(database: OpenDatabase) {
    this.#database = database;
  }

  /**
   * Returns the next number of `name`; the same again for a request that is sent again, by its id.
   * @throws EngineError invalid-argument, out-of-range
   */
  next(name: string, requestId?: string): Promise<number> {
    return this.#database.write((transaction) => {
      const earlier = earlierOutcome(transaction, "identity", requestId);
      if (earlier !== undefined) return earlier as number;
      const number = nextIdentity(transaction, name);
      keepOutcome(transaction, "identity", requestId, number);
      return number;
    });
  }

  /** Sets the last number of `name`; without `isForced` it can only grow. @returns the number that holds then */
  seed(name: string, value: number, isForced: boolean): Promise<number> {
    return this.#database.write((transaction) => seedIdentity(transaction, name, value, isForced));
  }

  /** Returns the names with their last numbers, in order of the names. */
  list(): Iterable<readonly [string, number]> {
    return this.#database.state.keyspaces.identities.withPrefix("");
  }

  /** Returns a range of numbers for ids that begin with `tag`; larger for clients that use them up fast. */
  async nextRange(tag: string, last: LastRange): Promise<NumberRange> {
    const at = this.#database.state.nowMicros();
    const size = hiLoCapacity(last.size, last.at, at);
    const { low, high } = await this.#database.write((transaction) =>
      nextHiLoRange(transaction, tag, size, last.max),
    );
    return { low, high, size, at };
  }

  /** Returns the numbers after `last` of the range that ends with `end`, if no later range was assigned. */
  async returnRange(tag: string, end: number, last: number): Promise<void> {
    await this.#database.write((transaction) => returnHiLoRange(transaction, tag, end, last));
  }
}
