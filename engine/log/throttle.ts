/**
 * Bounds the speed of work in the background, and gives the event loop back in between.
 */
import type { Clock, Timer } from "../environment.ts";
import { sliceMs } from "../limits.ts";

export class Throttle {
  readonly #clock: Clock;
  readonly #bytesPerSecond: number;
  #sliceStartMs: number;
  #owedMs = 0;
  #hurried = false;
  #timer: Timer | null = null;
  #goOn: (() => void) | null = null;
  readonly #ending: AbortSignal | undefined;

  /** `bytesPerSecond` may be infinite. When `ending` is aborted there is no bound any more, as after `hurry`. */
  constructor(clock: Clock, bytesPerSecond: number, ending?: AbortSignal) {
    this.#clock = clock;
    this.#bytesPerSecond = bytesPerSecond;
    this.#ending = ending;
    this.#sliceStartMs = clock.monotonicMs();
  }

  /** From now on as fast as can be: the log is being closed. */
  hurry(): void {
    this.#hurried = true;
    this.#timer?.cancel();
    this.#goOn?.();
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

  /** Waits as long as `bytes` take at the given speed. */
  async spend(bytes: number): Promise<void> {
    const isHurried = this.#hurried || this.#ending?.aborted === true;
    if (Number.isFinite(this.#bytesPerSecond) && !isHurried) {
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
    const wake = () => {
      this.#timer?.cancel();
      this.#goOn?.();
    };
    this.#ending?.addEventListener("abort", wake);
    await new Promise<void>((resolve) => {
      this.#goOn = resolve;
      this.#timer = this.#clock.setTimer(ms, resolve);
    });
    this.#ending?.removeEventListener("abort", wake);
  }
}
