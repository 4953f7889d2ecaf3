/**
 * How long a script runs, in processor time. Work is paid for by what it usually costs; where that is wrong, on a slow
 * machine, and when memory is collected, the clock ends a run before others have waited long for it.
 *
 * Knows nothing of scripts.
 *
 * Invariants:
 * - Time in which the process did not run is not counted, nor more than `stretchMsMax` of a time in which the clock was not
 *   looked at: a collection of memory that others caused ends no innocent script.
 */

/** Milliseconds that are counted at most between two looks. */
const stretchMsMax = 10;

/** What the clock is read from. */
export interface TimeSource {
  /** Milliseconds since some moment. */
  now(): number;
  /** Milliseconds of processor time of the whole process. */
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

  /** Has it run for `ms` since it was made? Costs some ten nanoseconds most times. */
  hasRun(ms: number): boolean {
    const now = this.#source.now();
    this.#ms += Math.min(now - this.#lookedAt, stretchMsMax);
    this.#lookedAt = now;
    if (this.#ms < ms) return false;
    // Asking for processor time takes longer. It is that of all threads, so that it can only be too much.
    this.#ms = Math.min(this.#ms, this.#source.used() - this.#usedAtStart);
    return this.#ms >= ms;
  }
}
