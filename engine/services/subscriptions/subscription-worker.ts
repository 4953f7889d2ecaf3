/**
 * A consumer of a subscription: requests a batch, acknowledges it, requests the next. It ends when its user closes it,
 * or when the engine ends it with a reason (`onEnd`).
 */
import { EngineError } from "../../base/errors.ts";
import type { Subscription, SubscriptionBatch } from "./subscription.ts";
import type { IncludeKind } from "./subscription-query.ts";

export const openingStrategies = ["OpenIfFree", "TakeOver", "WaitForFree", "Concurrent"] as const;
/** Strategy of a worker if the subscription already has a worker: abort, take over, wait, or share. */
export type OpeningStrategy = (typeof openingStrategies)[number];

export interface WorkerOptions {
  /** Name of the subscription, in any case. */
  readonly name: string;
  readonly strategy: OpeningStrategy;
  /** At least 1. */
  readonly documentsPerBatchMax: number;
  /** It ends instead of waiting for more documents. */
  readonly closesWhenNoneLeft: boolean;
  readonly workerId: string;
  /** Kinds of includes that an old client cannot read. */
  readonly unreadable: readonly IncludeKind[];
  /** Address of the client, for lists. */
  readonly client: string;
  /** Called when the engine ends the worker; at most once, and not after `close`. It must be quick. */
  readonly onEnd: (reason: EngineError) => void;
}

export class SubscriptionWorker {
  readonly options: WorkerOptions;
  readonly subscription: Subscription;
  readonly #onClose: (worker: SubscriptionWorker) => void;
  #isEnded = false;

  /** Created by `SubscriptionSet.connect`. */
  constructor(
    options: WorkerOptions,
    subscription: Subscription,
    onClose: (worker: SubscriptionWorker) => void,
  ) {
    this.options = options;
    this.subscription = subscription;
    this.#onClose = onClose;
  }

  get isEnded(): boolean {
    return this.#isEnded;
  }

  /**
   * Waits for the next batch. The previous one must have been acknowledged.
   * @returns null if no batch remains and the worker does not wait, or if it was closed
   * @throws EngineError record-damaged, database-stopped
   */
  async nextBatch(): Promise<SubscriptionBatch | null> {
    return await this.subscription.nextBatch(this);
  }

  /**
   * Acknowledges the last batch: it is never sent again. Resolves when that is durable.
   * @throws EngineError subscription-closed when it was ended before, subscription-missing, subscription-changed,
   * disk-full, database-stopped
   */
  async acknowledge(): Promise<void> {
    // The acknowledgment and the end may have crossed.
    if (this.#isEnded) {
      throw new EngineError("subscription-closed", "The worker was ended before it acknowledged.", {
        details: { CanReconnect: true, NoDocsLeft: false },
      });
    }
    await this.subscription.acknowledge(this);
  }

  /** Its unacknowledged batch is sent again, to another worker. */
  close(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#onClose(this);
  }

  /** As `close`, initiated by the engine. */
  end(reason: EngineError): void {
    if (this.#isEnded) return;
    this.close();
    this.options.onEnd(reason);
  }
}
