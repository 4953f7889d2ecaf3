/**
 * Work that runs now and then beside traffic, on a timer of the environment's clock.
 *
 * Invariants:
 * - It runs at most once at a time; what is asked for while it runs follows it.
 * - After `close` it does not begin, and when that has resolved it is not running.
 */
import type { Clock, Timer } from "./environment.ts";
import { EngineError } from "./errors.ts";

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
   * `failed` hears of errors that are our bug; what the engine refuses (the disk is full, the database has stopped)
   * is left to the next run.
   */
  constructor(clock: Clock, run: () => Promise<void>, failed: (error: unknown) => void) {
    this.#clock = clock;
    this.#run = run;
    this.#failed = failed;
  }

  /** Runs it in `ms` milliseconds, unless it is planned already. */
  armIn(ms: number): void {
    if (this.#isClosed || this.#timer !== null) return;
    if (this.#running !== null) {
      this.#again ??= ms;
      return;
    }
    this.#timer = this.#clock.setTimer(ms, () => this.#begin());
  }

  /** Runs it as soon as the present turn of the event loop is over. */
  runSoon(): void {
    if (this.#isSoon) return;
    this.#isSoon = this.#running === null;
    this.#timer?.cancel();
    this.#timer = null;
    this.#again = null;
    this.armIn(0);
  }

  /** Takes back what is planned; what runs goes on. */
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
