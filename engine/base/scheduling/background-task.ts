/**
 * A task that runs from time to time concurrently with traffic, on a timer of the environment's clock.
 *
 * Invariants:
 * - Runs never overlap; a run requested during another follows it.
 * - After `close` no run begins; once that has resolved, none is in progress.
 */
import type { Clock, Timer } from "../environment.ts";
import { EngineError } from "../errors.ts";

export class BackgroundTask {
  readonly #clock: Clock;
  readonly #run: () => Promise<void>;
  readonly #failed: (error: unknown) => void;
  #timer: Timer | null = null;
  #isSoon = false;
  #running: Promise<void> | null = null;
  #again: number | null = null;
  #isClosed = false;

  /**
   * `failed` is called for programming errors; after an `EngineError` (the disk is full, the database has stopped) the
   * next run retries.
   */
  constructor(clock: Clock, run: () => Promise<void>, failed: (error: unknown) => void) {
    this.#clock = clock;
    this.#run = run;
    this.#failed = failed;
  }

  /** Schedules a run in `ms` milliseconds, unless one is scheduled already. */
  armIn(ms: number): void {
    if (this.#isClosed || this.#timer !== null) return;
    if (this.#running !== null) {
      this.#again ??= ms;
      return;
    }
    this.#timer = this.#clock.setTimer(ms, () => this.#begin());
  }

  /** Schedules a run right after the current tick of the event loop. */
  runSoon(): void {
    if (this.#isSoon) return;
    this.#isSoon = this.#running === null;
    this.#timer?.cancel();
    this.#timer = null;
    this.#again = null;
    this.armIn(0);
  }

  /** Cancels the scheduled run; a run in progress continues. */
  disarm(): void {
    this.#timer?.cancel();
    this.#timer = null;
    this.#isSoon = false;
    this.#again = null;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#timer?.cancel();
    this.#timer = null;
    await this.#running;
  }

  #begin(): void {
    this.#timer = null;
    this.#isSoon = false;
    this.#running = this.#run()
      .catch((error: unknown) => {
        if (!(error instanceof EngineError)) this.#failed(error);
      })
      .finally(() => {
        this.#running = null;
        const ms = this.#again;
        this.#again = null;
        if (ms !== null) this.armIn(ms);
      });
  }
}
