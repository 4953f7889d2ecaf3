/**
 * Limits the rate of log lines that clients can cause: a burst of lines, then one per interval. Suppressed lines are
 * counted, and the count is part of the next line.
 */
export class LineLimit {
  readonly #burst: number;
  readonly #pauseMs: number;
  readonly #nowMs: () => number;
  #left: number;
  #filledMs: number;
  #leftOut = 0;

  /** Allows a burst of `burst` lines, and another line every `pauseMs`. */
  constructor(burst: number, pauseMs: number, nowMs: () => number = () => performance.now()) {
    this.#burst = burst;
    this.#pauseMs = pauseMs;
    this.#nowMs = nowMs;
    this.#left = burst;
    this.#filledMs = nowMs();
  }

  /** @returns the number of lines suppressed since the last one, or null if this one is suppressed too. Cheap. */
  take(): number | null {
    const nowMs = this.#nowMs();
    const due = Math.floor((nowMs - this.#filledMs) / this.#pauseMs);
    if (due > 0) {
      this.#left = Math.min(this.#burst, this.#left + due);
      this.#filledMs += due * this.#pauseMs;
    }
    if (this.#left === 0) {
      this.#leftOut++;
      return null;
    }
    this.#left--;
    const leftOut = this.#leftOut;
    this.#leftOut = 0;
    return leftOut;
  }
}
