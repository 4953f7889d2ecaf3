/**
 * The last batches of one index: the work from when the index became stale until it had caught up, and its duration. An
 * index that never catches up begins another batch after `batchMsMax`.
 *
 * Invariants:
 * - At most `keptBatchesMax` batches are stored; only the last of them may be open.
 */

import { Meter } from "../base/scheduling/meter.ts";

/** Counters of an index since it was opened; a batch is the difference of two readings. */
export interface IndexCounts {
  readonly mapAttempts: number;
  readonly mapErrors: number;
  readonly reduceAttempts: number;
  /** Entries made, in the store that they are in: a compaction makes another one, of the living ones. */
  readonly entries: number;
  readonly livingEntries: number;
  readonly store: object;
  /** Milliseconds of reducing, of all its milliseconds. */
  readonly reduceMs: number;
}

/** Times are microseconds since 1970. */
export interface IndexBatch {
  /** Counted from 1 since the process was started, over all indexes. */
  readonly id: number;
  /** Grows with each change of any batch. */
  readonly version: number;
  readonly startedAtMicros: number;
  readonly endedAtMicros: number;
  readonly isComplete: boolean;
  /** It ended as nothing was left; otherwise after `batchMsMax`. */
  readonly hasCaughtUp: boolean;
  /** Milliseconds of work, of all that passed. */
  readonly workMs: number;
  readonly reduceMs: number;
  readonly inputs: number;
  readonly failures: number;
  readonly reduced: number;
  readonly outputs: number;
}

/** One slice of work. */
export interface IndexStep {
  readonly startedAtMicros: number;
  readonly endedAtMicros: number;
  readonly workMs: number;
  readonly before: IndexCounts;
  readonly after: IndexCounts;
  readonly isStale: boolean;
}

const keptBatchesMax = 25;
const batchMsMax = 5_000;

let lastId = 0;
let lastVersion = 0;

export class IndexBatches {
  readonly mapped: Meter;
  readonly reduced: Meter;
  readonly #kept: IndexBatch[] = [];

  constructor(openedAtMicros: number) {
    this.mapped = new Meter(openedAtMicros);
    this.reduced = new Meter(openedAtMicros);
  }

  /** Oldest first. */
  get list(): readonly IndexBatch[] {
    return this.#kept;
  }

  add({ startedAtMicros, endedAtMicros, workMs, before, after, isStale }: IndexStep): void {
    this.mapped.add(after.mapAttempts - before.mapAttempts, endedAtMicros);
    this.reduced.add(after.reduceAttempts - before.reduceAttempts, endedAtMicros);
    const last = this.#kept.at(-1);
    const open = last?.isComplete === false ? this.#kept.pop() : undefined;
    const from = open ?? emptyBatch(startedAtMicros);
    const isLong = endedAtMicros - from.startedAtMicros >= batchMsMax * 1000;
    this.#kept.push({
      id: from.id,
      version: ++lastVersion,
      startedAtMicros: from.startedAtMicros,
      endedAtMicros,
      isComplete: !isStale || isLong,
      hasCaughtUp: !isStale,
      workMs: from.workMs + workMs,
      reduceMs: from.reduceMs + after.reduceMs - before.reduceMs,
      inputs: from.inputs + after.mapAttempts - before.mapAttempts,
      failures: from.failures + after.mapErrors - before.mapErrors,
      reduced: from.reduced + after.reduceAttempts - before.reduceAttempts,
      outputs: from.outputs + entriesMade(before, after),
    });
    if (this.#kept.length > keptBatchesMax) this.#kept.shift();
  }
}

function entriesMade(before: IndexCounts, after: IndexCounts): number {
  if (after.store === before.store) return after.entries - before.entries;
  return Math.max(0, after.entries - before.livingEntries);
}

function emptyBatch(startedAtMicros: number) {
  const id = ++lastId;
  return {
    id,
    startedAtMicros,
    workMs: 0,
    reduceMs: 0,
    inputs: 0,
    failures: 0,
    reduced: 0,
    outputs: 0,
  };
}
