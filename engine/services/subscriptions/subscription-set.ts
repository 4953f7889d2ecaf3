/**
 * The subscriptions of one database: their tasks and their workers.
 *
 * Invariants:
 * - A `Subscription` exists while it has workers; without it, the stored position is the state.
 * - Workers of a task that is changed, disabled or removed are closed in the tick in which the change becomes visible.
 */

import { EngineError } from "../../base/errors.ts";
import {
  sliceMs,
  subscriptionBatchBytes,
  subscriptionBatchDocumentsMax,
  subscriptionWorkersMax,
} from "../../base/limits.ts";
import { nextSlice } from "../../base/scheduling/time-slices.ts";
import { type SubscriptionTask, subscriptionKey } from "../../state/keyspaces/subscriptions.ts";
import { etagOfPosition, newestEtag } from "../../writes/subscription-position.ts";
import {
  moveSubscription,
  putSubscription,
  type SubscriptionChoice,
  type SubscriptionSettings,
  subscriptionMissing,
  updateSubscription,
} from "../../writes/subscriptions.ts";
import { Subscription } from "./subscription.ts";
import {
  type IncludeKind,
  type SubscriptionIncludes,
  SubscriptionQuery,
  type SubscriptionStore,
} from "./subscription-query.ts";
import { sourceOf } from "./subscription-source.ts";
import { SubscriptionWorker, type WorkerOptions } from "./subscription-worker.ts";

/** The first items that a query would send. */
export interface SubscriptionTrial {
  /** JSON texts of documents. */
  readonly items: readonly Buffer[];
  readonly includes: SubscriptionIncludes;
}

/** A worker that waits until the subscription is free. */
interface Pending {
  readonly options: WorkerOptions;
  admit(): void;
  refuse(reason: EngineError): void;
}

export class SubscriptionSet {
  readonly #database: SubscriptionStore;
  /** Subscriptions with workers, by key. */
  readonly #live = new Map<string, Subscription>();
  /** By key, in order of arrival. */
  readonly #pending = new Map<string, Pending[]>();
  #isClosed = false;

  constructor(database: SubscriptionStore) {
    this.#database = database;
    database.state.keyspaces.subscriptions.listen((key, task) => this.#changed(key, task));
  }

  /** Whether any worker is connected or waiting. */
  get hasWorkers(): boolean {
    return this.#live.size > 0 || this.#pending.size > 0;
  }

  // Tasks

  /** Yields all tasks, in name order. */
  *tasks(): Generator<SubscriptionTask> {
    for (const [, task] of this.#database.state.keyspaces.subscriptions.withPrefix("")) yield task;
  }

  /** @throws EngineError subscription-missing */
  task({ id, name = "" }: SubscriptionChoice): SubscriptionTask {
    const { subscriptions } = this.#database.state.keyspaces;
    const found =
      id === undefined
        ? subscriptions.get(subscriptionKey(name))
        : [...this.tasks()].find((task) => task.id === id);
    if (found === undefined) throw subscriptionMissing({ id, name });
    return found;
  }

  /** See `putSubscription`; also @throws EngineError query-syntax, query-invalid, not-supported, invalid-operation */
  async put(settings: SubscriptionSettings, index: number, id?: number): Promise<SubscriptionTask> {
    this.#checkQuery(settings.query ?? "");
    return await this.#database.write((transaction) =>
      putSubscription(transaction, settings, this.#checkQuery, index, id),
    );
  }

  /** See `updateSubscription`; also @throws as `put` */
  async update(
    choice: SubscriptionChoice,
    settings: SubscriptionSettings,
    index: number,
  ): Promise<{ readonly task: SubscriptionTask; readonly isChanged: boolean }> {
    return await this.#database.write((transaction) =>
      updateSubscription(transaction, choice, settings, this.#checkQuery, index),
    );
  }

  readonly #checkQuery = (query: string): boolean =>
    new SubscriptionQuery(this.#database, query).hasRevisions;

  /**
   * Returns the first documents that a query would send, at most `count`, searching for at most `limitMs`.
   * @param changeVector as of a task @throws EngineError as `put`; invalid-argument for a bad change vector
   */
  async try(
    text: string,
    changeVector: string | null,
    count: number,
    limitMs: number,
  ): Promise<SubscriptionTrial> {
    const database = this.#database;
    const query = new SubscriptionQuery(database, text);
    const isLast = changeVector === "LastDocument";
    const isStart = changeVector === "BeginningOfTime" || changeVector === "DoNotChange";
    const etag = isLast
      ? newestEtag(database.state, query.hasRevisions)
      : etagOfPosition(database.state, isStart ? null : changeVector);
    const countMax = Math.max(1, Math.min(count, subscriptionBatchDocumentsMax));
    const { clock } = database;
    const endMs = clock.monotonicMs() + limitMs;
    let sliceEndMs = clock.monotonicMs() + sliceMs;
    const items: Buffer[] = [];
    const walk = sourceOf(database, query).walk(etag);
    try {
      for (let bytes = 0; items.length < countMax && bytes < subscriptionBatchBytes; ) {
        if (clock.monotonicMs() > endMs) break;
        if (clock.monotonicMs() >= sliceEndMs) {
          await nextSlice();
          sliceEndMs = clock.monotonicMs() + sliceMs;
        }
        if ((await walk.next()) === null) break;
        const item = await walk.evaluate();
        if (item === null || item.error !== null) continue;
        items.push(item.text);
        bytes += item.text.length;
      }
    } finally {
      walk.end();
    }
    return { items, includes: await query.takeIncludes() };
  }

  // Workers

  /**
   * Opens a subscription for a worker. With strategy WaitForFree it waits, until `signal` is aborted.
   * @throws EngineError subscription-missing, subscription-closed, subscription-in-use, subscription-invalid
   */
  async connect(options: WorkerOptions, signal: AbortSignal): Promise<SubscriptionWorker> {
    const key = subscriptionKey(options.name);
    const task = this.#openTask(options.name);
    if (options.unreadable.length > 0) this.#checkReadable(task, options.unreadable);
    const live = this.#live.get(key);
    const countNow = (live?.workers.size ?? 0) + (this.#pending.get(key)?.length ?? 0);
    if (countNow >= subscriptionWorkersMax) throw occupied(task);
    if (live !== undefined && !isShared(live, options)) {
      if (options.strategy === "WaitForFree") await this.#whenFree(key, options, signal);
      else if (options.strategy !== "TakeOver") throw occupied(task);
      else takeOver(live);
    }
    return await this.#open(key, options);
  }

  /** Connected workers of a subscription. */
  workersOf(name: string): readonly SubscriptionWorker[] {
    return [...(this.#live.get(subscriptionKey(name))?.workers ?? [])];
  }

  /** Workers waiting for a subscription. */
  pendingOf(name: string): readonly WorkerOptions[] {
    return (this.#pending.get(subscriptionKey(name)) ?? []).map(({ options }) => options);
  }

  /** Ends workers of a subscription: all, or the one with this id. */
  drop(name: string, workerId: string | undefined, reason: EngineError): void {
    for (const worker of this.workersOf(name)) {
      if (workerId === undefined || worker.options.workerId === workerId) worker.end(reason);
    }
  }

  /** Closes all workers, including waiting ones. */
  endAll(reason: EngineError): void {
    for (const key of [...this.#pending.keys()]) this.#refusePending(key, reason);
    for (const { workers } of [...this.#live.values()]) {
      for (const worker of [...workers]) worker.end(reason);
    }
  }

  /** Ends all workers; no further ones are accepted. */
  close(reason: EngineError): void {
    this.#isClosed = true;
    this.endAll(reason);
  }

  /** Returns the task, if it can be worked on. @throws EngineError */
  #openTask(name: string): SubscriptionTask {
    this.#database.assertServing();
    if (this.#isClosed) throw new EngineError("database-stopped", "The database is closed.");
    const { subscriptions } = this.#database.state.keyspaces;
    const task = subscriptions.get(subscriptionKey(name));
    if (task === undefined) {
      throw name === ""
        ? subscriptionMissing({ name })
        : new EngineError(
            "subscription-missing",
            `Cannot find any Subscription Task with name: ${name}`,
          );
    }
    if (task.isDisabled) {
      throw closed(
        `The subscription with id '${task.id}' and name '${task.name}' is disabled and cannot be used until enabled`,
        false,
      );
    }
    return task;
  }

  async #open(key: string, options: WorkerOptions): Promise<SubscriptionWorker> {
    const task = this.#openTask(options.name);
    let live = this.#live.get(key);
    if (live === undefined) {
      live = this.#start(task);
      this.#live.set(key, live);
    }
    const worker = new SubscriptionWorker(options, live, (one) => this.#left(key, one));
    live.add(worker);
    try {
      await this.#database.write((transaction) =>
        moveSubscription(transaction, task, 0, {
          connectedAt: this.#database.clock.nowMicros(),
        }),
      );
    } catch (error) {
      worker.close();
      throw error;
    }
    return worker;
  }

  #start(task: SubscriptionTask): Subscription {
    return orInvalid(() => new Subscription(this.#database, task));
  }

  /** @throws EngineError subscription-invalid */
  #checkReadable(task: SubscriptionTask, unreadable: readonly IncludeKind[]): void {
    const query = orInvalid(() => new SubscriptionQuery(this.#database, task.query));
    const kind = query.includedKinds.find((each) => unreadable.includes(each));
    if (kind === undefined) return;
    throw new EngineError(
      "subscription-invalid",
      `A connection to Subscription Task with ID '${task.id}' cannot be opened because it requires the protocol to support ${kindNames[kind]}.`,
    );
  }

  /** Waits until the subscription is free. @throws EngineError when the task ends first, operation-cancelled */
  async #whenFree(
    key: string,
    options: WorkerOptions,
    signal: AbortSignal,
    isFirst = false,
  ): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      const waiting = this.#pending.get(key) ?? [];
      this.#pending.set(key, waiting);
      const leave = () => {
        const at = waiting.indexOf(pending);
        if (at >= 0) waiting.splice(at, 1);
        if (waiting.length === 0 && this.#pending.get(key) === waiting) this.#pending.delete(key);
        signal.removeEventListener("abort", cancel);
      };
      const cancel = () => {
        leave();
        reject(new EngineError("operation-cancelled", "The operation was canceled."));
      };
      const pending: Pending = {
        options,
        admit: () => {
          leave();
          resolve();
        },
        refuse: (reason) => {
          leave();
          reject(reason);
        },
      };
      if (isFirst) waiting.unshift(pending);
      else waiting.push(pending);
      if (signal.aborted) cancel();
      else signal.addEventListener("abort", cancel);
    });
    // Another worker may have connected since this one was admitted.
    const live = this.#live.get(key);
    if (live !== undefined) await this.#whenFree(key, options, signal, true);
  }

  #left(key: string, worker: SubscriptionWorker): void {
    const { subscription } = worker;
    subscription.remove(worker);
    if (subscription.workers.size > 0 || this.#live.get(key) !== subscription) return;
    this.#live.delete(key);
    this.#pending.get(key)?.[0]?.admit();
  }

  #refusePending(key: string, reason: EngineError): void {
    for (const pending of [...(this.#pending.get(key) ?? [])]) pending.refuse(reason);
  }

  /** A task changed visibly; undefined: it was removed. */
  #changed(key: string, task: SubscriptionTask | undefined): void {
    const live = this.#live.get(key);
    const before = live?.task;
    if (task === undefined) {
      const name = before?.name ?? this.#pending.get(key)?.[0]?.options.name ?? key;
      this.#end(
        key,
        new EngineError("subscription-missing", `The subscription ${name} had been deleted`),
      );
      return;
    }
    if (task.isDisabled) {
      this.#end(
        key,
        closed(`The subscription ${task.name} is disabled and cannot be used until enabled`, false),
      );
    } else if (before !== undefined && before.index !== task.index) {
      const what = before.query === task.query ? "was modified" : "query has been modified";
      this.#end(
        key,
        closed(`The subscription ${task.name} ${what}, connection must be restarted`, true),
      );
    } else live?.moved(task);
  }

  #end(key: string, reason: EngineError): void {
    const { code, details } = reason;
    // Waiting workers may still open a task that was only changed.
    if (code === "subscription-missing" || details?.["CanReconnect"] === false) {
      this.#refusePending(key, reason);
    }
    for (const worker of [...(this.#live.get(key)?.workers ?? [])]) worker.end(reason);
  }
}

/** Names of kinds in messages. */
const kindNames: Readonly<Record<IncludeKind, string>> = {
  documents: "Includes",
  counters: "Counter Includes",
  series: "TimeSeries Includes",
};

/** Calls `make` for a stored query. @throws EngineError subscription-invalid if the query is no longer valid */
function orInvalid<Result>(make: () => Result): Result {
  try {
    return make();
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    throw new EngineError("subscription-invalid", error.message, { cause: error });
  }
}

function isShared(live: Subscription, { strategy }: WorkerOptions): boolean {
  return strategy === "Concurrent" && isSharing(live);
}

function isSharing({ workers }: Subscription): boolean {
  return [...workers].every(({ options }) => options.strategy === "Concurrent");
}

/** Returns the error that closes a worker, with a flag whether it may reconnect immediately. */
export function closed(message: string, canReconnect: boolean, isNoneLeft = false): EngineError {
  return new EngineError("subscription-closed", message, {
    details: { CanReconnect: canReconnect, NoDocsLeft: isNoneLeft },
  });
}

function occupied({ name }: SubscriptionTask): EngineError {
  return new EngineError(
    "subscription-in-use",
    `Subscription ${name} is occupied, connection cannot be opened`,
  );
}

/**
 * Ends the workers. @throws EngineError subscription-in-use when they share the subscription, or took it over
 * themselves
 */
function takeOver({ task, workers }: Subscription): void {
  for (const { options } of workers) {
    if (options.strategy === "Concurrent") throw occupied(task);
    if (options.strategy !== "TakeOver") continue;
    throw new EngineError(
      "subscription-in-use",
      `Subscription ${task.name} is already occupied by a TakeOver connection, connection cannot be opened`,
    );
  }
  const reason = new EngineError("subscription-in-use", "Closed by TakeOver");
  for (const worker of [...workers]) worker.end(reason);
}
