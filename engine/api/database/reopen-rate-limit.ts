/**
 * Rate limit for reopening a stopped database automatically: a recurring failure must not keep the machine busy with
 * recovery.
 */
import { reopeningsMax, reopeningWindowMs } from "../../base/limits.ts";

export class ReopenRateLimit {
  /** Monotonic times of recent reopenings, oldest first. */
  #atMs: number[] = [];

  /** Returns milliseconds until it may be reopened; 0: now. */
  waitMs(nowMs: number): number {
    this.#atMs = this.#atMs.filter((at) => nowMs - at < reopeningWindowMs);
    const [oldest] = this.#atMs;
    if (oldest === undefined || this.#atMs.length < reopeningsMax) return 0;
    return oldest + reopeningWindowMs - nowMs;
  }

  /** Records a reopening. */
  note(nowMs: number): void {
    this.#atMs.push(nowMs);
  }
}
