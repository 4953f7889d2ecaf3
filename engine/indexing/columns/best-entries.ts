/**
 * Selects the entries with the highest scores: a heap with the worst selected entry on top. Of equal scores the entry
 * with the lower place is better.
 */
export class BestEntries {
  readonly #countMax: number;
  readonly #entries: Uint32Array;
  readonly #scores: Float64Array;
  readonly #places: Uint32Array | null;
  #count = 0;

  /** `countMax`: at least one. `places`: by entry; null: the place of each is its number. */
  constructor(countMax: number, places: Uint32Array | null = null) {
    this.#places = places;
    this.#countMax = countMax;
    this.#entries = new Uint32Array(countMax);
    this.#scores = new Float64Array(countMax);
  }

  /** Lowest score that can still be selected; negative infinity until the heap is full. */
  get threshold(): number {
    return this.#count < this.#countMax ? Number.NEGATIVE_INFINITY : (this.#scores[0] as number);
  }

  offer(entry: number, score: number): void {
    if (this.#count < this.#countMax) {
      this.#rise(this.#count++, entry, score);
    } else if (this.#isWorse(this.#scores[0] as number, this.#entries[0] as number, score, entry)) {
      this.#sink(this.#countMax, entry, score);
    }
  }

  /** Returns the selected entries, best first. Empties the heap. */
  take(): Uint32Array {
    const taken = new Uint32Array(this.#count);
    while (this.#count > 0) {
      const last = --this.#count;
      taken[last] = this.#entries[0] as number;
      this.#sink(last, this.#entries[last] as number, this.#scores[last] as number);
    }
    return taken;
  }

  /** Puts an entry at a place below, or higher up where it is worse. */
  #rise(from: number, entry: number, score: number): void {
    const entries = this.#entries;
    const scores = this.#scores;
    let at = from;
    while (at > 0) {
      const above = (at - 1) >>> 1;
      const value = scores[above] as number;
      if (!this.#isWorse(score, entry, value, entries[above] as number)) break;
      scores[at] = value;
      entries[at] = entries[above] as number;
      at = above;
    }
    scores[at] = score;
    entries[at] = entry;
  }

  /** Puts an entry in the place of the worst of `count`, or lower down where it is better. */
  #sink(count: number, entry: number, score: number): void {
    const entries = this.#entries;
    const scores = this.#scores;
    let at = 0;
    for (;;) {
      let below = 2 * at + 1;
      if (below >= count) break;
      const other = below + 1;
      if (
        other < count &&
        this.#isWorse(
          scores[other] as number,
          entries[other] as number,
          scores[below] as number,
          entries[below] as number,
        )
      ) {
        below = other;
      }
      const value = scores[below] as number;
      if (!this.#isWorse(value, entries[below] as number, score, entry)) break;
      scores[at] = value;
      entries[at] = entries[below] as number;
      at = below;
    }
    scores[at] = score;
    entries[at] = entry;
  }

  #isWorse(score: number, entry: number, otherScore: number, otherEntry: number): boolean {
    if (score !== otherScore) return score < otherScore;
    const places = this.#places;
    if (places === null) return entry > otherEntry;
    return (places[entry] as number) > (places[otherEntry] as number);
  }
}
