/**
 * Counts what happens, by tenths of a second of the last fifteen minutes, as RavenDB 7.2.7 does for its rates.
 *
 * Invariant: only tenths in which something happened use memory: 16 bytes each, of at most `keptSteps` and `passedMax`.
 */

const stepMicros = 100_000;
const stepsPerSecond = 10;
const keptSteps = 15 * 60 * stepsPerSecond;
/** Number of steps that are removed together when they have passed. */
const passedMax = 512;

export class Meter {
  /** Everything that was counted. */
  count = 0;
  /** Numbers of the steps since 1970 in which something was counted, oldest first, and how much. */
  readonly #steps: number[] = [];
  readonly #counts: number[] = [];
  readonly #sinceMicros: number;

  /** Times are microseconds since 1970. */
  constructor(sinceMicros: number) {
    this.#sinceMicros = sinceMicros;
  }

  /** A clock that was set back counts as standing still. Hot. */
  add(count: number, atMicros: number): void {
    if (count === 0) return;
    this.count += count;
    const step = Math.floor(atMicros / stepMicros);
    const last = this.#steps.length - 1;
    if (step <= this.#stepOf(last)) this.#counts[last] = (this.#counts[last] as number) + count;
    else {
      this.#steps.push(step);
      this.#counts.push(count);
      if ((this.#steps[passedMax] ?? step) <= step - keptSteps) {
        this.#steps.splice(0, passedMax);
        this.#counts.splice(0, passedMax);
      }
    }
  }

  /** The mean of the `seconds`, at most 900, that end at `atMicros`. */
  perSecond(seconds: number, atMicros: number): number {
    const from = this.#stepBefore(seconds, atMicros);
    let sum = 0;
    for (let at = this.#steps.length - 1; this.#stepOf(at) > from; at--) {
      sum += this.#counts[at] as number; // same length
    }
    return sum / seconds;
  }

  /** The mean since the beginning. */
  meanPerSecond(atMicros: number): number {
    return (this.count * 1_000_000) / Math.max(1, atMicros - this.#sinceMicros);
  }

  /** Yields the end of each tenth of a second of the last 15 minutes in which something happened, and its rate per second. */
  *recent(atMicros: number): Generator<[atMicros: number, perSecond: number]> {
    const from = this.#stepBefore(keptSteps / stepsPerSecond, atMicros);
    for (const [at, step] of this.#steps.entries()) {
      const count = this.#counts[at] as number; // same length
      if (step > from) yield [(step + 1) * stepMicros, count * stepsPerSecond];
    }
  }

  #stepOf(at: number): number {
    return this.#steps[at] ?? Number.NEGATIVE_INFINITY;
  }

  #stepBefore(seconds: number, atMicros: number): number {
    const now = Math.max(Math.floor(atMicros / stepMicros), this.#stepOf(this.#steps.length - 1));
    return now - seconds * stepsPerSecond;
  }
}
