/** Rates of growing counters between calls. */

/** Monotonic counters by name. */
type Counts<Name extends string> = Readonly<Record<Name, number>>;

/** Stores the last counts of each subject. */
export class Rates<Name extends string> {
  readonly #before = new Map<string, { readonly counts: Counts<Name>; readonly atMs: number }>();
  readonly #nowMs: () => number;

  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
  }

  /** Returns rates per second since the last call for this subject; 0 at the first call, and where counters were reset. */
  look(subject: string, counts: Counts<Name>): Record<Name, number> {
    const atMs = this.#nowMs();
    const before = this.#before.get(subject);
    this.#before.set(subject, { counts, atMs });
    const seconds = before === undefined ? 1 : Math.max(0.001, (atMs - before.atMs) / 1000);
    const rates = Object.entries(counts).map(([name, count]) => {
      const grown = (count as number) - (before ?? { counts }).counts[name as Name];
      return [name, Math.max(0, grown) / seconds];
    });
    return Object.fromEntries(rates) as Record<Name, number>;
  }
}
