/** Limits the speed of background work, and yields to the event loop in between. */
import type { Clock, Timer } from "../../base/environment.ts";
import { backgroundSliceMs, sliceMs as sliceMsMax } from "../../base/limits.ts";

/** Shorter waits are not worth a timer. */
const waitMsMin = 5;
/** Maximum overrun of a wait that is compensated for. */
const lateMsMax = 100;

export class Throttle {
  readonly #clock: Clock;
  readonly #bytesPerSecond: number;
  readonly #sliceMs: number;
  readonly #isAwaited: boolean;
  /**
   * Minimum share of the time, 0 to below 1: its slices are lengthened in proportion to the time of other work, up to
   * `sliceMs` of limits.ts. With 0 it runs one short slice per tick of the event loop, however long the tick is.
   */
  timeShare = 0;
  /** Length of the present slice. */
  #presentSliceMs: number;
  #sliceStartMs: number;
  #owedMs = Number.NaN;
  #hurried = false;
  #timer: Timer | null = null;
  #wake: (() => void) | null = null;

  /**
   * `bytesPerSecond` may be infinite; `sliceMs`: how long it may block the event loop; `isAwaited`: a request waits for
   * it, so the process must not exit meanwhile.
   */
  constructor(
    clock: Clock,
    bytesPerSecond: number,
    sliceMs = backgroundSliceMs,
    isAwaited = false,
  ) {
    this.#owedMs = 0;
    this.#isAwaited = isAwaited;
    this.#clock = clock;
    this.#bytesPerSecond = bytesPerSecond;
    this.#sliceMs = sliceMs;
    this.#presentSliceMs = sliceMs;
    this.#sliceStartMs = clock.monotonicMs();
  }

  /** From now on as fast as possible: the log is being closed. */
  hurry(): void {
    this.#hurried = true;
    this.#timer?.cancel();
    this.#wake?.();
  }

  /** Returns whether the current slice is used up. */
  isDue(): boolean {
    return this.#clock.monotonicMs() - this.#sliceStartMs >= this.#presentSliceMs;
  }

  /** Yields to the event loop, then starts a new slice. */
  async yield(): Promise<void> {
    const fromMs = this.#clock.monotonicMs();
    await new Promise<void>((resolve) => setImmediate(resolve));
    this.resumed();
    const othersMs = this.#sliceStartMs - fromMs;
    const ownMs = (othersMs * this.timeShare) / (1 - this.timeShare);
    this.#presentSliceMs = Math.max(this.#sliceMs, Math.min(ownMs, sliceMsMax));
  }

  /** A new slice starts, as the event loop ran during an await. */
  resumed(): void {
    this.#sliceStartMs = this.#clock.monotonicMs();
  }

  /** Waits for as long as `bytes` take at the given speed. */
  async spend(bytes: number): Promise<void> {
    if (Number.isFinite(this.#bytesPerSecond) && !this.#hurried) {
      this.#owedMs += (bytes / this.#bytesPerSecond) * 1000;
      if (this.#owedMs >= waitMsMin) {
        const fromMs = this.#clock.monotonicMs();
        await this.#sleep(this.#owedMs);
        this.resumed();
        // In a busy process timers fire late: the next waits are shortened accordingly.
        this.#owedMs -= this.#sliceStartMs - fromMs;
        this.#owedMs = Math.max(-lateMsMax, Math.min(0, this.#owedMs));
        return;
      }
    }
    if (this.isDue()) await this.yield();
  }

  async #sleep(ms: number): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
      this.#timer = this.#clock.setTimer(ms, resolve, this.#isAwaited);
    });
  }
}
