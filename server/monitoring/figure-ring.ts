/**
 * The metrics of a server or a database over the last 24 hours, in memory: each second of the last five minutes, each ten
 * seconds of the last hour, each minute of the last day.
 *
 *   (300 + 360 + 1,440) samples × 4 bytes: 8,400 bytes a column
 *
 * Invariants:
 * - A column uses memory from its first value on.
 * - A missing sample, of an idle database or a busy process, is NaN.
 */

/** The resolutions, finest first: the interval in milliseconds, and the number of retained samples. */
export const figureSteps = [
  { ms: 1_000, count: 300 },
  { ms: 10_000, count: 360 },
  { ms: 60_000, count: 1_440 },
] as const;
type FigureStep = (typeof figureSteps)[number];

/** Maximum number of columns that only some subjects have, such as those of indexes. */
export const namedColumnsMax = 8;

export class FigureRing {
  readonly #step: FigureStep;
  readonly #columns = new Map<string, Float32Array>();
  /** Number of the newest sample, counted from the Unix epoch, or -1. */
  #last = -1;

  constructor(step: FigureStep) {
    this.#step = step;
  }

  names(): IterableIterator<string> {
    return this.#columns.keys();
  }

  /** Adds the sample that ended at `atMs`, since the Unix epoch. Samples between it and the last one are missing. */
  add(atMs: number, values: Readonly<Record<string, number>>): void {
    const number = Math.floor(atMs / this.#step.ms);
    const { count } = this.#step;
    // A clock that was set back overwrites existing samples.
    const missing = this.#last < 0 ? 0 : Math.min(count, Math.max(0, number - this.#last));
    for (const column of this.#columns.values())
      for (let at = 0; at < missing; at++) column[(number - at) % count] = Number.NaN;
    for (const [name, value] of Object.entries(values)) {
      let column = this.#columns.get(name);
      if (column === undefined) {
        column = new Float32Array(count).fill(Number.NaN);
        this.#columns.set(name, column);
      }
      column[number % count] = value;
    }
    this.#last = number;
  }

  /** Returns the newest samples from `fromMs` to `toMs`, oldest first; null for missing ones. */
  read(
    fromMs: number,
    toMs: number,
  ): {
    readonly startMs: number;
    readonly columns: Readonly<Record<string, readonly (number | null)[]>>;
  } {
    const { ms, count } = this.#step;
    const end = Math.floor(toMs / ms);
    const start = Math.max(Math.ceil(fromMs / ms), end - count + 1);
    const columns: Record<string, (number | null)[]> = {};
    for (const [name, column] of this.#columns) {
      const values: (number | null)[] = [];
      for (let number = start; number <= end; number++) {
        const isKept = number <= this.#last && number > this.#last - count;
        const value = isKept ? (column[number % count] as number) : Number.NaN; // within the ring
        values.push(Number.isNaN(value) ? null : Math.round(value * 1000) / 1000);
      }
      columns[name] = values;
    }
    return { startMs: start * ms, columns };
  }
}
