/** Time that passes only when a test says so, but for a little with each look, so that slices of work come to an end. */
import type { Clock, Timer } from "../../engine/environment.ts";

interface Planned {
  readonly atMs: number;
  readonly run: () => void;
}

export class SimulatedClock implements Clock {
  #nowMs = 0;
  readonly #planned = new Set<Planned>();
  readonly #lookMs: number;

  /** `lookMs` milliseconds pass with each call of `monotonicMs`. */
  constructor(lookMs = 1) {
    this.#lookMs = lookMs;
  }

  nowMicros(): number {
    return 1_700_000_000_000_000 + Math.round(this.#nowMs * 1000);
  }

  monotonicMs(): number {
    this.#nowMs += this.#lookMs;
    return this.#nowMs;
  }

  setTimer(ms: number, run: () => void): Timer {
    const planned = { atMs: this.#nowMs + ms, run };
    this.#planned.add(planned);
    return { cancel: () => this.#planned.delete(planned) };
  }

  /** Timers that have not run yet. */
  get plannedCount(): number {
    return this.#planned.size;
  }

  /** Lets `ms` pass, runs what has become due, in order of time. */
  advance(ms: number): void {
    this.#nowMs += ms;
    const due = [...this.#planned].filter((planned) => planned.atMs <= this.#nowMs);
    for (const planned of due.sort((one, other) => one.atMs - other.atMs)) {
      if (this.#planned.delete(planned)) planned.run();
    }
  }
}
