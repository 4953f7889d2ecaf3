/**
 * One subscription with workers: distributes documents to them, and tracks the position up to which all are
 * acknowledged.
 *
 * The scan for documents only moves forward (`#seenEtag`). A document sent to a worker is outstanding until it is
 * acknowledged; if its worker ends before that, it is sent again to another one. The stored position is before
 * everything outstanding: after a crash, or when the last worker ends, all of that is sent again.
 *
 *   | acknowledged, or not wanted | given to workers, or to be sent again | not scanned   |
 *                                 ^ position                              ^ seenEtag
 *
 * Invariants:
 * - A document is with at most one worker at a time. If it changes in the meantime, it is sent again afterward.
 * - A worker has at most one unacknowledged batch.
 * - The stored position never passes an unacknowledged document.
 */

import { assert } from "../../base/assert.ts";
import {
  sliceMs,
  subscriptionBatchBytes,
  subscriptionBatchMs,
  subscriptionPassedMax,
  subscriptionPassedMs,
} from "../../base/limits.ts";
import { nextSlice } from "../../base/scheduling/time-slices.ts";
import type { SubscriptionTask } from "../../state/keyspaces/subscriptions.ts";
import { etagOfPosition } from "../../writes/subscription-position.ts";
import { moveSubscription } from "../../writes/subscriptions.ts";
import {
  type SubscriptionIncludes,
  type SubscriptionItem,
  SubscriptionQuery,
  type SubscriptionStore,
} from "./subscription-query.ts";
import {
  type Candidate,
  type CandidateWalk,
  type SubscriptionSource,
  sourceOf,
} from "./subscription-source.ts";
import type { SubscriptionWorker } from "./subscription-worker.ts";

/** A batch for a worker. */
export interface SubscriptionBatch {
  /** At least one. */
  readonly items: readonly SubscriptionItem[];
  readonly includes: SubscriptionIncludes;
}

/** A batch under construction. */
class Gathering {
  readonly worker: SubscriptionWorker;
  readonly items: SubscriptionItem[] = [];
  readonly #endMs: number;
  #bytes = 0;

  constructor(worker: SubscriptionWorker, endMs: number) {
    this.worker = worker;
    this.#endMs = endMs;
  }

  add(item: SubscriptionItem): void {
    this.items.push(item);
    this.#bytes += item.text.length;
  }

  isFull(nowMs: number): boolean {
    const { length } = this.items;
    if (length === 0) return false;
    const isLarge =
      length >= this.worker.options.documentsPerBatchMax || this.#bytes >= subscriptionBatchBytes;
    return isLarge || nowMs >= this.#endMs;
  }
}

export class Subscription {
  readonly #database: SubscriptionStore;
  readonly #workers = new Set<SubscriptionWorker>();
  #task: SubscriptionTask;
  #query: SubscriptionQuery;
  #source: SubscriptionSource;
  #seenEtag: number;
  /** The candidates sent to each worker and not acknowledged yet. */
  readonly #outstanding = new Map<SubscriptionWorker, Candidate[]>();
  /** The documents among them; empty for revisions, which are not tracked. */
  readonly #held = new Set<number>();
  /** Candidates to send again: their worker has ended, or another one has an older state of the document. */
  #again: Candidate[] = [];
  /** Serializes the scans of workers. */
  #gathering: Promise<void> = Promise.resolve();
  #waiting: (() => void)[] = [];
  #passedCount = 0;
  #passedAtMs = Number.NEGATIVE_INFINITY;
  readonly #stopListening: () => void;

  /** @throws EngineError if the stored query is no longer valid */
  constructor(database: SubscriptionStore, task: SubscriptionTask) {
    this.#database = database;
    this.#task = task;
    this.#query = new SubscriptionQuery(database, task.query);
    this.#source = sourceOf(database, this.#query);
    this.#seenEtag = etagOfPosition(database.state, task.changeVector);
    this.#stopListening = database.state.feed.listenToCommits(() => {
      if (this.#waiting.length > 0 && this.#hasMore()) this.#wake();
    });
  }

  get task(): SubscriptionTask {
    return this.#task;
  }

  get workers(): ReadonlySet<SubscriptionWorker> {
    return this.#workers;
  }

  /** The same definition with a newer position. */
  moved(task: SubscriptionTask): void {
    assert(task.index === this.#task.index, "a definition does not change under its workers");
    this.#task = task;
  }

  add(worker: SubscriptionWorker): void {
    this.#workers.add(worker);
  }

  /** A worker has ended: its unacknowledged documents go to another one. */
  remove(worker: SubscriptionWorker): void {
    this.#workers.delete(worker);
    this.#again.push(...this.#release(worker));
    this.#wake();
    if (this.#workers.size === 0) this.#stopListening();
  }

  #hold(worker: SubscriptionWorker, candidate: Candidate): void {
    const own = this.#outstanding.get(worker);
    if (own === undefined) this.#outstanding.set(worker, [candidate]);
    else own.push(candidate);
    if (!this.#query.hasRevisions) this.#held.add(candidate.document);
  }

  #release(worker: SubscriptionWorker): readonly Candidate[] {
    const own = this.#outstanding.get(worker) ?? [];
    this.#outstanding.delete(worker);
    for (const { document } of own) this.#held.delete(document);
    return own;
  }

  /** The position that may be stored. */
  get #position(): number {
    let etag = this.#seenEtag;
    for (const candidates of this.#outstanding.values()) {
      for (const candidate of candidates) etag = Math.min(etag, candidate.etag - 1);
    }
    for (const candidate of this.#again) etag = Math.min(etag, candidate.etag - 1);
    return etag;
  }

  /**
   * Returns the next batch for a worker; waits until a batch is available.
   * @returns null if no batch remains and the worker does not wait, or if the worker was closed
   */
  async nextBatch(worker: SubscriptionWorker): Promise<SubscriptionBatch | null> {
    assert(!this.#outstanding.has(worker), "a worker acknowledges one batch before the next");
    while (!worker.isEnded) {
      const batch = await this.#serialized(() => this.#gather(worker));
      if (batch !== null || worker.isEnded) return batch;
      if (this.#hasMore()) continue;
      if (worker.options.closesWhenNoneLeft) return null;
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
    return null;
  }

  /**
   * A worker has acknowledged its batch. Resolves when that is durable.
   * @throws EngineError subscription-missing, subscription-changed, disk-full, database-stopped
   */
  async acknowledge(worker: SubscriptionWorker): Promise<void> {
    assert(this.#outstanding.has(worker), "there is a batch to acknowledge");
    this.#release(worker);
    if (this.#again.length > 0) this.#wake();
    this.#passedCount = 0;
    await this.#database.write((transaction) =>
      moveSubscription(transaction, this.#task, this.#position, {
        acknowledgedAt: this.#database.clock.nowMicros(),
      }),
    );
  }

  #wake(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }

  #hasMore(): boolean {
    if (this.#source.newestEtag > this.#seenEtag) return true;
    return this.#again.some(({ document }) => !this.#held.has(document));
  }

  async #serialized<Result>(work: () => Promise<Result>): Promise<Result> {
    const before = this.#gathering;
    const running = before.then(work);
    this.#gathering = running.then(
      () => undefined,
      () => undefined,
    );
    return await running;
  }

  async #gather(worker: SubscriptionWorker): Promise<SubscriptionBatch | null> {
    const { clock } = this.#database;
    const gathering = new Gathering(worker, clock.monotonicMs() + subscriptionBatchMs);
    try {
      await this.#gatherAgain(gathering);
      await this.#gatherNew(gathering);
      if (gathering.items.length === 0) {
        this.#storePassed();
        return null;
      }
      const includes = await this.#query.takeIncludes();
      if (!worker.isEnded) return { items: gathering.items, includes };
    } catch (error) {
      this.#again.push(...this.#release(worker));
      throw error;
    }
    // Its worker was closed in the meantime.
    this.#again.push(...this.#release(worker));
    this.#wake();
    return null;
  }

  /** Gathers candidates to send again. */
  async #gatherAgain(gathering: Gathering): Promise<void> {
    if (this.#again.length === 0) return;
    const free = this.#again
      .filter(({ document }) => !this.#held.has(document))
      .sort((one, other) => one.etag - other.etag);
    const last = await this.#walkToEnd(gathering, this.#source.again(free), () => undefined);
    const done = new Set(free.filter(({ etag }) => etag <= last));
    this.#again = this.#again.filter((candidate) => !done.has(candidate));
  }

  async #gatherNew(gathering: Gathering): Promise<void> {
    const { clock, state } = this.#database;
    if (gathering.isFull(clock.monotonicMs())) return;
    const newest = Math.min(this.#source.newestEtag, state.committedEtag);
    const last = await this.#walkToEnd(gathering, this.#source.walk(this.#seenEtag), (etag) => {
      this.#seenEtag = Math.max(this.#seenEtag, etag);
    });
    if (last > newest) this.#seenEtag = Math.max(this.#seenEtag, newest);
  }

  /**
   * Evaluates candidates until the batch is full.
   * @param onPassed called with the etag of each processed candidate
   * @returns the etag reached: infinity at the end of the scan
   */
  async #walkToEnd(
    gathering: Gathering,
    walk: CandidateWalk,
    onPassed: (etag: number) => void,
  ): Promise<number> {
    try {
      return await this.#walk(gathering, walk, onPassed);
    } finally {
      walk.end();
    }
  }

  async #walk(
    gathering: Gathering,
    walk: CandidateWalk,
    onPassed: (etag: number) => void,
  ): Promise<number> {
    const { clock } = this.#database;
    const { worker } = gathering;
    let last = 0;
    let sliceEndMs = clock.monotonicMs() + sliceMs;
    for (;;) {
      const nowMs = clock.monotonicMs();
      if (gathering.isFull(nowMs) || worker.isEnded) return last;
      if (nowMs >= sliceEndMs) {
        await nextSlice();
        sliceEndMs = clock.monotonicMs() + sliceMs;
      }
      const next = walk.next();
      const candidate = next instanceof Promise ? await next : next;
      if (candidate === null) return Number.POSITIVE_INFINITY;
      if (this.#held.has(candidate.document)) this.#again.push(candidate);
      else {
        const evaluated = walk.evaluate();
        const item = evaluated instanceof Promise ? await evaluated : evaluated;
        if (item === null) this.#passedCount++;
        else {
          this.#hold(worker, candidate);
          gathering.add(item);
        }
      }
      onPassed(candidate.etag);
      last = candidate.etag;
    }
  }

  /** Stores, from time to time, that unwanted documents were passed. If that is lost, they are passed again. */
  #storePassed(): void {
    const nowMs = this.#database.clock.monotonicMs();
    const isDue =
      this.#passedCount >= subscriptionPassedMax ||
      nowMs >= this.#passedAtMs + subscriptionPassedMs;
    if (this.#passedCount === 0 || !isDue) return;
    this.#passedCount = 0;
    this.#passedAtMs = nowMs;
    this.#database
      .write((transaction) => moveSubscription(transaction, this.#task, this.#position, {}))
      .catch(() => undefined);
  }
}
