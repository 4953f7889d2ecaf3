/**
 * Bounds the speed of work in the background, and gives the event loop back in between.
 */
import type { Clock, Timer } from "../environment.ts";
import { backgroundSliceMs, sliceMs as sliceMsMax } from "../limits.ts";

/** Shorter waits are not worth a timer. */
const waitMsMin = 5;
/** Of the time that a wait took longer than it should have, what is made up for at most. */
const lateMsMax = 100;

export class Throttle {
  readonly #clock: Clock;
  readonly #bytesPerSecond: number;
  readonly #sliceMs: number;
  readonly #isAwaited: boolean;
  /**
   * The part of the time that it has at least, 0 to below 1: its slices are as much longer as the others' turns are, up
   * to `sliceMs` of limits.ts. With 0 it gets one short slice for each turn, however long that is.
   */
  timeShare = 0;
  /** How long the present slice may last. */
  #presentSliceMs: number;
  #sliceStartMs: number;
  #owedMs = 0;
  #hurried = false;
  #timer: Timer | null = null;
  #goOn: (() => void) | null = null;

  /**
   * `bytesPerSecond` may be infinite; `sliceMs` is how long the event loop may be held; `isAwaited`: somebody's request
   * waits for it, so that the process must not end meanwhile.
   */
  constructor(
    clock: Clock,
    bytesPerSecond: number,
    sliceMs = backgroundSliceMs,
    isAwaited = false,
  ) {
    this.#isAwaited = isAwaited;
    this.#clock = clock;
    this.#bytesPerSecond = bytesPerSecond;
    this.#sliceMs = sliceMs;
    this.#presentSliceMs = sliceMs;
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
    return this.#clock.monotonicMs() - this.#sliceStartMs >= this.#presentSliceMs;
  }

  /** Lets others run, and starts a new slice. */
  async yield(): Promise<void> {
    const fromMs = this.#clock.monotonicMs();
    await new Promise<void>((resolve) => setImmediate(resolve));
    this.resumed();
    const othersMs = this.#sliceStartMs - fromMs;
    const ownMs = (othersMs * this.timeShare) / (1 - this.timeShare);
    this.#presentSliceMs = Math.max(this.#sliceMs, Math.min(ownMs, sliceMsMax));
  }

  /** Something was awaited that gave the event loop back: a new slice starts. */
  resumed(): void {
    this.#sliceStartMs = this.#clock.monotonicMs();
  }

  /** Waits as long as `bytes` take at the given speed. */
  async spend(bytes: number): Promise<void> {
    if (Number.isFinite(this.#bytesPerSecond) && !this.#hurried) {
      this.#owedMs += (bytes / this.#bytesPerSecond) * 1000;
      if (this.#owedMs >= waitMsMin) {
        const fromMs = this.#clock.monotonicMs();
        await this.#sleep(this.#owedMs);
        this.resumed();
        // In a busy process timers come late: what follows is as much earlier.
        this.#owedMs -= this.#sliceStartMs - fromMs;
        this.#owedMs = Math.max(-lateMsMax, Math.min(0, this.#owedMs));
        return;
      }
    }
    if (this.isDue()) await this.yield();
  }

  async #sleep(ms: number): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#goOn = resolve;
      this.#timer = this.#clock.setTimer(ms, resolve, this.#isAwaited);
    });
  }
}
