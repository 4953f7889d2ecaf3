/**
 * Bounds the speed of work in the background, and gives the event loop back in between. When `hurry` is aborted, the
 * log is about to close and waits for the work: from then on its speed has no bound.
 */
import type { Clock } from "../environment.ts";
import { sliceMs } from "../limits.ts";

export class Throttle {
  readonly #clock: Clock;
  readonly #bytesPerSecond: number;
  readonly #hurry: AbortSignal | undefined;
  #sliceStartMs: number;
  #owedMs = 0;

  /** `bytesPerSecond` may be infinite. */
  constructor(clock: Clock, bytesPerSecond: number, hurry?: AbortSignal) {
    this.#clock = clock;
    this.#bytesPerSecond = bytesPerSecond;
    this.#hurry = hurry;
    this.#sliceStartMs = clock.monotonicMs();
  }

  /** Has the present slice lasted long enough? */
  isDue(): boolean {
    return this.#clock.monotonicMs() - this.#sliceStartMs >= sliceMs;
  }

  /** Lets others run, and starts a new slice. */
  async yield(): Promise<void> {
    await new Promise<void>((resolve) => setImmediate(resolve));
    this.#sliceStartMs = this.#clock.monotonicMs();
  }

  /** Waits as long as `bytes` take at the given speed, less what has passed since the last wait. */
  async spend(bytes: number): Promise<void> {
    if (Number.isFinite(this.#bytesPerSecond) && this.#hurry?.aborted !== true) {
      this.#owedMs += (bytes / this.#bytesPerSecond) * 1000;
      // Shorter waits are not worth a timer.
      if (this.#owedMs >= sliceMs) {
        const ms = this.#owedMs;
        this.#owedMs = 0;
        await this.#sleep(ms);
        this.#sliceStartMs = this.#clock.monotonicMs();
        return;
      }
    }
    if (this.isDue()) await this.yield();
  }

  async #sleep(ms: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const wake = (): void => {
        timer.cancel();
        this.#hurry?.removeEventListener("abort", wake);
        resolve();
      };
      const timer = this.#clock.setTimer(ms, wake);
      this.#hurry?.addEventListener("abort", wake);
    });
  }
}
