/**
 * A clock that advances only on the test's request, and a little with each reading, so that time
 * slices end.
 */
import type { Clock, Timer } from "../../engine/base/environment.ts";

interface Planned {
  readonly atMs: number;
  readonly run: () => void;
}

export class SimulatedClock implements Clock {
  #nowMs = 0;
  #wallLeadMs = 0;
  readonly #planned = new Set<Planned>();
  readonly #lookMs: number;

  /** Each call of `monotonicMs` advances the clock by `lookMs` milliseconds. */
  constructor(lookMs = 1) {
    this.#lookMs = lookMs;
  }

  nowMicros(): number {
    return 1_700_000_000_000_000 + Math.round((this.#nowMs + this.#wallLeadMs) * 1000);
  }

  /** Sets the time of day forward by `ms`, or back when it is negative; timers do not notice. */
  shiftTimeOfDay(ms: number): void {
    this.#wallLeadMs += ms;
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

  /** Timers that have not fired yet. */
  get plannedCount(): number {
    return this.#planned.size;
  }

  /** Advances the clock by `ms`, and fires due timers in order. */
  advance(ms: number): void {
    this.#nowMs += ms;
    const due = [...this.#planned].filter((planned) => planned.atMs <= this.#nowMs);
    for (const planned of due.sort((one, other) => one.atMs - other.atMs)) {
      if (this.#planned.delete(planned)) planned.run();
    }
  }
}
