/** How many things happened per second in the last minute. */

const seconds = 60;
const microsPerSecond = 1_000_000;

export class MinuteMeter {
  /** By the second since 1970, modulo a minute. */
  readonly #counts = new Float64Array(seconds);
  #newestSecond = 0;

  /** `atMicros`: microseconds since 1970. A clock that was set back counts as standing still. */
  add(count: number, atMicros: number): void {
    this.#advance(atMicros);
    const at = this.#newestSecond % seconds;
    this.#counts[at] = (this.#counts[at] as number) + count;
  }

  /** The mean of the minute that ends at `atMicros`. */
  perSecond(atMicros: number): number {
    this.#advance(atMicros);
    return this.#counts.reduce((sum, count) => sum + count, 0) / seconds;
  }

  #advance(atMicros: number): void {
    const second = Math.floor(atMicros / microsPerSecond);
    const passed = Math.min(second - this.#newestSecond, seconds);
    if (passed <= 0) return;
    for (let i = 0; i < passed; i++) this.#counts[(second - i) % seconds] = 0;
    this.#newestSecond = second;
  }
}
