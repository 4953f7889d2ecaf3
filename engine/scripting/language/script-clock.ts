/**
 * Measures how long a script runs, in processor time. Work is charged at its usual cost; where that is wrong, on a slow
 * machine or during garbage collection, the clock ends a run before it blocks others for long.
 *
 * Knows nothing of scripts.
 *
 * Invariants:
 * - Time in which the process did not run is not counted, and at most `stretchMsMax` between two checks of the clock: a
 *   garbage collection caused by others ends no script.
 */

/** Maximum milliseconds counted between two checks. */
const stretchMsMax = 10;

/** The source of the clock. */
interface TimeSource {
  /** Returns milliseconds since an arbitrary moment. */
  now(): number;
  /** Returns milliseconds of processor time of the whole process. */
  used(): number;
}

const processTime: TimeSource = {
  now: () => performance.now(),
  used() {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1000;
  },
};

export class ScriptClock {
  readonly #source: TimeSource;
  #lookedAt: number;
  readonly #usedAtStart: number;
  #ms = 0;

  constructor(source: TimeSource = processTime) {
    this.#source = source;
    this.#lookedAt = source.now();
    this.#usedAtStart = source.used();
  }

  /** Returns whether it has run for `ms` since its creation. Usually costs some ten nanoseconds. */
  hasRun(ms: number): boolean {
    const now = this.#source.now();
    this.#ms += Math.min(now - this.#lookedAt, stretchMsMax);
    this.#lookedAt = now;
    if (this.#ms < ms) return false;
    // Reading the processor time is slower. It includes all threads, so it can only be too high.
    this.#ms = Math.min(this.#ms, this.#source.used() - this.#usedAtStart);
    return this.#ms >= ms;
  }
}
