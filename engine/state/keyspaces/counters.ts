/**
 * Counters: named 64-bit signed integers of documents.
 *
 * Knows nothing of transactions; they check that the document exists and write its list of names. Names are compared
 * case-insensitively; the spelling of the first increment is kept.
 */
import { EngineError } from "../../base/errors.ts";
import { recordKinds } from "../../base/record.ts";
import { CounterChanges } from "./counter-changes.ts";
import { documentKey, EntryKeyspace } from "./entry-keyspace.ts";
import type { DeadRecordListener } from "./keyspace.ts";

/** `value` is the integer as decimal text: JSON numbers are not exact above 2^53. */
export interface Counter {
  readonly name: string;
  readonly value: string;
}

const int64Max = 2n ** 63n - 1n;
const int64Min = -(2n ** 63n);

export function makeCounters(dead: DeadRecordListener): EntryKeyspace<Counter> {
  return new EntryKeyspace<Counter>("counters", recordKinds.counter, dead);
}

/** How many documents have counters, and which of these changed values. */
export class CounterOwners {
  count = 0;
  readonly changes = new CounterChanges();
  /** The document whose counters were added last: it has some. A transaction may add very many of one document. */
  #owner = "";

  /** Listens to `counters`, which must be empty. */
  constructor(counters: EntryKeyspace<Counter>) {
    counters.listen((key, counter, previous) => {
      const idLength = key.indexOf("\u0000");
      if (counter !== undefined && previous !== undefined) {
        if (!this.changes.isFollowed) return;
        this.changes.note(key.slice(0, idLength), counters.entry(key)?.etag ?? 0);
        return;
      }
      if (counter === previous) return;
      const prefix = key.slice(0, idLength + 1);
      if (counter !== undefined && prefix === this.#owner) return;
      this.#owner = counter === undefined ? "" : prefix;
      const rest = counters.withPrefix(prefix);
      const isAlone = rest.next().done === true || rest.next().done === true;
      if (counter !== undefined && isAlone) this.count++;
      else if (counter === undefined && counters.withPrefix(prefix).next().done) {
        this.count--;
        this.changes.forget(key.slice(0, idLength));
      }
    });
  }
}

/** Key of one counter. */
export const counterKey = documentKey;

/** Returns the nearest 64-bit integer: RavenDB 7.2.7 clamps a request's delta that is out of range. */
export function clampInt64(value: bigint): bigint {
  if (value > int64Max) return int64Max;
  return value < int64Min ? int64Min : value;
}

/** @throws EngineError counter-overflow when the sum leaves the 64-bit range. */
export function addToCounter(
  documentId: string,
  name: string,
  value: bigint,
  delta: bigint,
): bigint {
  const sum = value + delta;
  if (sum > int64Max || sum < int64Min) {
    throw new EngineError(
      "counter-overflow",
      `Could not increment counter '${name}' from document '${documentId}' with value '${value}' by '${delta}'.`,
    );
  }
  return sum;
}
