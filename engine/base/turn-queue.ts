/**
 * Shares turns of the event loop: each runs one slice of work, however much work is in progress, so that incoming requests
 * wait for one slice, not for one of each task.
 *
 * Invariants:
 * - Waiters get their turns first come, first served, one in a turn.
 */
import { sliceMs } from "./limits.ts";

export class TurnQueue {
  readonly #nowMs: () => number;
  readonly #waiters: (() => void)[] = [];
  /** Start of the first work in this turn; negative: there was none yet. */
  #startMs = -1;
  #isScheduled = false;

  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
  }

  /** Has no work begun in this turn? */
  get isFresh(): boolean {
    return this.#startMs < 0;
  }

  get hasWaiters(): boolean {
    return this.#waiters.length > 0;
  }

  /** Is this turn's slice used up? The first caller in a turn starts it. */
  isOver(): boolean {
    const nowMs = this.#nowMs();
    if (this.#startMs >= 0) return nowMs - this.#startMs >= sliceMs;
    this.#startMs = nowMs;
    this.#schedule();
    return false;
  }

  /** Resolves in a later turn, with a full slice left. */
  next(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiters.push(resolve);
      this.#schedule();
    });
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => this.#turn());
  }

  #turn(): void {
    this.#isScheduled = false;
    this.#startMs = -1;
    const first = this.#waiters.shift();
    if (first === undefined) return;
    this.#startMs = this.#nowMs();
    this.#schedule();
    first();
  }
}
