/**
 * Schedules time slices: each tick of the event loop runs one slice of work, however much work is in progress, so that
 * incoming requests wait for one slice, not for one slice of each task. Waiters that do little share a slice: thousands
 * whose clients have disconnected do not delay the others by a tick each.
 *
 * Invariants:
 * - Waiters resume first come, first served, one after the other, each in a later tick than it began to wait.
 */
import { sliceMs } from "../limits.ts";

export class SliceScheduler {
  readonly #nowMs: () => number;
  readonly #waiters: (() => void)[] = [];
  /** Start of the first work in this tick; negative if no work has begun in it. */
  #startMs = Number.NEGATIVE_INFINITY;
  #isScheduled = false;

  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
  }

  /** Whether no work has begun in this tick. */
  get isFresh(): boolean {
    return this.#startMs < 0;
  }

  get hasWaiters(): boolean {
    return this.#waiters.length > 0;
  }

  /** Returns whether this tick's slice is used up. The first caller in a tick starts the slice. */
  isOver(): boolean {
    const nowMs = this.#nowMs();
    if (this.#startMs >= 0) return nowMs - this.#startMs >= sliceMs;
    this.#startMs = nowMs;
    this.#schedule();
    return false;
  }

  /** Resolves in a later tick, while its slice is not used up. */
  next(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiters.push(resolve);
      this.#schedule();
    });
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => this.#runNext());
  }

  #runNext(): void {
    this.#isScheduled = false;
    this.#startMs = -1;
    if (this.#waiters.length === 0) return;
    this.#startMs = this.#nowMs();
    this.#schedule();
    this.#resume(this.#waiters.length);
  }

  /** Resumes up to `count` waiters while the slice lasts. */
  #resume(count: number): void {
    const first = this.#waiters.shift();
    first?.();
    if (count === 1) return;
    // Callbacks of `process.nextTick` that a microtask schedules run when all microtasks are done: the waiter that
    // `first` resumed has paused by then.
    queueMicrotask(() =>
      process.nextTick(() => {
        if (this.#nowMs() - this.#startMs < sliceMs) this.#resume(count - 1);
      }),
    );
  }
}
