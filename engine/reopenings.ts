/**
 * How often a database that has stopped may be opened again by itself: a mistake that is met again and again must not
 * keep the machine busy with opening.
 */
import { reopeningsMax, reopeningWindowMs } from "./limits.ts";

export class Reopenings {
  /** Moments of the clock that never goes backward, the oldest first. */
  #atMs: number[] = [];

  /** Milliseconds until it may be opened again; 0: now. */
  waitMs(nowMs: number): number {
    this.#atMs = this.#atMs.filter((at) => nowMs - at < reopeningWindowMs);
    const [oldest] = this.#atMs;
    if (oldest === undefined || this.#atMs.length < reopeningsMax) return 0;
    return oldest + reopeningWindowMs - nowMs;
  }

  /** It is being opened again. */
  note(nowMs: number): void {
    this.#atMs.push(nowMs);
  }
}
