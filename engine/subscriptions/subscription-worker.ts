/**
 * One who takes the documents of a subscription: asks for a batch, acknowledges it, asks for the next. It ends when its
 * user closes it, or when the engine says why (`onEnd`).
 */
import { EngineError } from "../errors.ts";
import type { Subscription, SubscriptionBatch } from "./subscription.ts";
import type { IncludeKind } from "./subscription-query.ts";

export const openingStrategies = ["OpenIfFree", "TakeOver", "WaitForFree", "Concurrent"] as const;
/** What a worker does when the subscription has one: give up, push it aside, wait, or share. */
export type OpeningStrategy = (typeof openingStrategies)[number];

export interface WorkerOptions {
  /** Of the subscription, in any case. */
  readonly name: string;
  readonly strategy: OpeningStrategy;
  /** From 1 on. */
  readonly documentsPerBatchMax: number;
  /** It does not wait for more documents. */
  readonly closesWhenNoneLeft: boolean;
  readonly workerId: string;
  /** What an old client cannot read. */
  readonly unreadable: readonly IncludeKind[];
  /** How lists call it: an address. */
  readonly client: string;
  /** The engine ends it; called at most once, and not after `close`. It must be quick. */
  readonly onEnd: (reason: EngineError) => void;
}

export class SubscriptionWorker {
  readonly options: WorkerOptions;
  readonly subscription: Subscription;
  readonly #onClose: (worker: SubscriptionWorker) => void;
  #isEnded = false;

  /** Made by `SubscriptionSet.connect`. */
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
   * Waits for the next batch. The one before must be acknowledged.
   * @returns null when there is none left and the worker does not wait, or when it was ended
   * @throws EngineError record-damaged, database-stopped
   */
  async nextBatch(): Promise<SubscriptionBatch | null> {
    return await this.subscription.nextBatch(this);
  }

  /**
   * The last batch is done with: it never comes again. Resolves when that is durable.
   * @throws EngineError subscription-closed when it was ended before, subscription-missing, subscription-changed,
   * disk-full, database-stopped
   */
  async acknowledge(): Promise<void> {
    // The acknowledgment and the end may have met on their way.
    if (this.#isEnded) {
      throw new EngineError("subscription-closed", "The worker was ended before it acknowledged.", {
        details: { CanReconnect: true, NoDocsLeft: false },
      });
    }
    await this.subscription.acknowledge(this);
  }

  /** What it has not acknowledged is sent again, to another one. */
  close(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#onClose(this);
  }

  /** As `close`, from the engine's side. */
  end(reason: EngineError): void {
    if (this.#isEnded) return;
    this.close();
    this.options.onEnd(reason);
  }
}
