/** A background task that repeats for as long as the database's record configures it. */

import type { Clock } from "../../base/environment.ts";
import { BackgroundTask } from "../../base/scheduling/background-task.ts";

/** Longest timer that Node supports, in milliseconds; Node fires longer timers immediately. */
const timerMsMax = 2 ** 31 - 1;

export class ConfiguredTask {
  readonly #task: BackgroundTask;
  readonly #secondsBetween: () => number | null;

  /** @param secondsBetween between two runs; null: not configured */
  constructor(
    clock: Clock,
    run: () => Promise<unknown>,
    secondsBetween: () => number | null,
    failed: (error: unknown) => void,
  ) {
    this.#secondsBetween = secondsBetween;
    const runAgain = async () => {
      try {
        await run();
      } finally {
        this.#arm();
      }
    };
    this.#task = new BackgroundTask(clock, runAgain, failed);
  }

  /** The database's record may have changed: reschedules the next run, if one is configured. */
  configure(): void {
    this.#task.disarm();
    this.#arm();
  }

  close(): Promise<void> {
    return this.#task.close();
  }

  #arm(): void {
    const seconds = this.#secondsBetween();
    if (seconds !== null) this.#task.armIn(Math.min(seconds * 1000, timerMsMax));
  }
}
