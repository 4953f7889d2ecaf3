/**
 * Limits how often something is logged, because whoever causes it may do so as often as they like: a few lines at once, then one
 * after another pause. What is left out is counted, and told with the next line.
 */
export class LineLimit {
  readonly #burst: number;
  readonly #pauseMs: number;
  readonly #nowMs: () => number;
  #left: number;
  #filledMs: number;
  #leftOut = 0;

  /** `burst` lines at once; another one every `pauseMs`. */
  constructor(burst: number, pauseMs: number, nowMs: () => number = () => performance.now()) {
    this.#burst = burst;
    this.#pauseMs = pauseMs;
    this.#nowMs = nowMs;
    this.#left = burst;
    this.#filledMs = nowMs();
  }

  /** @returns how many were left out since the last line; null: this one is left out too. Cheap. */
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
