/**
 * Gives the event loop its turns in work that waits for nothing else: promises that are settled already give it none.
 *
 * Knows nothing of the work.
 */
import { sliceMs } from "./limits.ts";

export class TurnPacer {
  #startMs = performance.now();

  /** Has the work held the event loop for as long as it may? What it waited for counts too, and costs a turn at most. */
  get isOver(): boolean {
    return performance.now() - this.#startMs >= sliceMs;
  }

  /** Waits for the next turn. */
  async next(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    this.#startMs = performance.now();
  }
}
