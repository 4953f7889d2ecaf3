/**
 * Control of a running operation: pause, resume, and a limit of items per second.
 *
 * Independent of the type of the items.
 */
import type { Clock } from "../../base/environment.ts";

export class OperationControl {
  #isPaused = false;
  #rate: number | null;
  /** Grows with each change. */
  #revision = 0;
  readonly #waiting = new Set<() => void>();

  /** `rate`: items a second; null: no limit. */
  constructor(rate: number | null) {
    this.#rate = rate;
  }

  get isPaused(): boolean {
    return this.#isPaused;
  }

  get rate(): number | null {
    return this.#rate;
  }

  get revision(): number {
    return this.#revision;
  }

  pause(): void {
    this.#isPaused = true;
    this.#changed();
  }

  resume(): void {
    this.#isPaused = false;
    this.#changed();
  }

  limit(rate: number | null): void {
    this.#rate = rate;
    this.#changed();
  }

  /** Calls `listener` once, at the next change. @returns a function that forgets it */
  whenChanged(listener: () => void): () => void {
    this.#waiting.add(listener);
    return () => this.#waiting.delete(listener);
  }

  #changed(): void {
    this.#revision++;
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const listener of waiting) listener();
  }
}

/** Batches a second when the rate is limited. */
const pacedBatchesPerSecond = 25;

/** Lets the work of an operation go on as fast as its control allows. */
export class Pace {
  readonly #control: OperationControl;
  readonly #clock: Clock;
  readonly #signal: AbortSignal;
  #revision = -1;
  /** When the present rate began to hold, and how many items were done then. */
  #fromMs = 0;
  #fromCount = 0;

  constructor(control: OperationControl, clock: Clock, signal: AbortSignal) {
    this.#control = control;
    this.#clock = clock;
    this.#signal = signal;
  }

  /** Items of the next batch: so few that a limited rate is even. */
  batchOf(most: number): number {
    const { rate } = this.#control;
    if (rate === null) return most;
    return Math.min(most, Math.max(1, Math.floor(rate / pacedBatchesPerSecond)));
  }

  /** Resolves when the item after `count` may begin, or the work is aborted. */
  async next(count: number): Promise<void> {
    while (!this.#signal.aborted) {
      const { isPaused, rate, revision } = this.#control;
      const now = this.#clock.monotonicMs();
      if (revision !== this.#revision) {
        this.#revision = revision;
        this.#fromMs = now;
        this.#fromCount = count;
      }
      if (isPaused) {
        await this.#change(null);
        continue;
      }
      if (rate === null) return;
      const left = this.#fromMs + ((count - this.#fromCount) * 1000) / rate - now;
      if (left <= 0) return;
      await this.#change(left);
    }
  }

  /** Resolves when the control has changed, the work is aborted, or after `ms`; null: without a timeout. */
  #change(ms: number | null): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        timer?.cancel();
        forget();
        this.#signal.removeEventListener("abort", done);
        resolve();
      };
      const forget = this.#control.whenChanged(done);
      const timer = ms === null ? null : this.#clock.setTimer(ms, done, true);
      this.#signal.addEventListener("abort", done);
    });
  }
}
