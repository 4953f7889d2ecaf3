/** Subscriptions: tasks that send documents, and their changes, to workers, which acknowledge them. */
import type { EngineError } from "../base/errors.ts";
import type { SubscriptionBatch } from "../services/subscriptions/subscription.ts";
import type {
  IncludeKind,
  SubscriptionIncludes,
  SubscriptionItem,
} from "../services/subscriptions/subscription-query.ts";
import { closed, type SubscriptionTrial } from "../services/subscriptions/subscription-set.ts";
import {
  type SubscriptionWorker as ConnectedWorker,
  type OpeningStrategy,
  openingStrategies,
  type WorkerOptions,
} from "../services/subscriptions/subscription-worker.ts";
import {
  archivedBehaviors,
  type SubscriptionTask,
  subscriptionKey,
} from "../state/keyspaces/subscriptions.ts";
import {
  deleteSubscription,
  requireSubscription,
  type SubscriptionChoice,
  type SubscriptionSettings,
  setSubscriptionDisabled,
} from "../writes/subscriptions.ts";
import type { OpenDatabase } from "./database/open-database.ts";

export type {
  IncludeKind,
  OpeningStrategy,
  SubscriptionBatch,
  SubscriptionChoice,
  SubscriptionIncludes,
  SubscriptionItem,
  SubscriptionSettings,
  SubscriptionTask,
};
export { archivedBehaviors, closed as subscriptionClosed, openingStrategies };

/** A consumer: requests a batch, acknowledges it, requests the next. */
export type SubscriptionWorker = Pick<
  ConnectedWorker,
  "acknowledge" | "close" | "isEnded" | "nextBatch" | "options"
>;

/** A worker as lists show it. */
type WorkerInfo = Pick<WorkerOptions, "client" | "strategy" | "workerId">;

export class Subscriptions {
  readonly #database: OpenDatabase;

  constructor(database: OpenDatabase) {
    this.#database = database;
  }

  /** Returns all tasks, in name order. */
  list(): SubscriptionTask[] {
    return [...this.#database.subscriptions.tasks()];
  }

  /** Returns whether a task of this name exists, in any letter case. */
  has(name: string): boolean {
    const { subscriptions } = this.#database.state.keyspaces;
    return subscriptions.get(subscriptionKey(name)) !== undefined;
  }

  /** @throws EngineError subscription-missing */
  get(choice: SubscriptionChoice): SubscriptionTask {
    return this.#database.subscriptions.task(choice);
  }

  /** @throws EngineError query-syntax, query-invalid, not-supported, invalid-operation */
  checkQuery(query: string): void {
    this.#database.queries.compile(query, "subscription", null);
  }

  /**
   * Defines a task, or redefines the one with `id` if that exists.
   * @param index index of this command: the id of a new task, and its default name
   * @throws EngineError as `checkQuery`, raft-apply, subscription-name-invalid, too-large
   */
  put(settings: SubscriptionSettings, index: number, id?: number): Promise<SubscriptionTask> {
    return this.#database.subscriptions.put(settings, index, id);
  }

  /**
   * Changes the given settings. @returns the task, and whether it changed
   * @throws EngineError as `put`, subscription-missing
   */
  update(
    choice: SubscriptionChoice,
    settings: SubscriptionSettings,
    index: number,
  ): Promise<{ readonly task: SubscriptionTask; readonly isChanged: boolean }> {
    return this.#database.subscriptions.update(choice, settings, index);
  }

  /** Disables a task, which ends its workers, or enables it. @throws EngineError subscription-missing */
  async setDisabled(choice: SubscriptionChoice, isDisabled: boolean): Promise<void> {
    await this.#database.write((transaction) =>
      setSubscriptionDisabled(transaction, choice, isDisabled),
    );
  }

  /** Deletes a task; a name that does not exist is ignored. @throws EngineError subscription-missing for an id */
  async delete({ id, name }: SubscriptionChoice): Promise<void> {
    await this.#database.write(
      (transaction) => {
        const task = name ? { name } : requireSubscription(transaction, { id });
        deleteSubscription(transaction, task.name);
      },
      { isDeletion: true },
    );
  }

  /**
   * Returns the first documents that a query would send, at most `count`, searching for at most `limitMs`.
   * @param changeVector as of a task @throws EngineError as `checkQuery`; invalid-argument for a bad change vector
   */
  try(
    query: string,
    changeVector: string | null,
    count: number,
    limitMs: number,
  ): Promise<SubscriptionTrial> {
    return this.#database.subscriptions.try(query, changeVector, count, limitMs);
  }

  /**
   * Opens a subscription for a worker. With strategy WaitForFree it waits, until `signal` is aborted.
   * @throws EngineError subscription-missing, subscription-closed, subscription-in-use, subscription-invalid
   */
  connect(options: WorkerOptions, signal: AbortSignal): Promise<SubscriptionWorker> {
    return this.#database.subscriptions.connect(options, signal);
  }

  /** Connected workers. */
  workersOf(name: string): WorkerInfo[] {
    return this.#database.subscriptions.workersOf(name).map(({ options }) => infoOf(options));
  }

  /** Workers that wait until the subscription is free. */
  pendingOf(name: string): WorkerInfo[] {
    return this.#database.subscriptions.pendingOf(name).map(infoOf);
  }

  /** Ends workers: all, or the one with this id. */
  drop(name: string, workerId: string | undefined, reason: EngineError): void {
    this.#database.subscriptions.drop(name, workerId, reason);
  }
}

function infoOf({ client, strategy, workerId }: WorkerOptions): WorkerInfo {
  return { client, strategy, workerId };
}
