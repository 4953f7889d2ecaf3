/** Seeds of tests that change with each run: a failure reports the seed, and SEED=n repeats it. */
import { beforeEach } from "vitest";

/**
 * The seed of this run, for a file or a group of tests: called where tests are declared. The
 * message of each failed assertion and exception includes the seed.
 */
export function seedOfRun(): number {
  const seed = Number(process.env["SEED"] ?? Date.now() >>> 0);
  beforeEach(({ onTestFailed }) => {
    onTestFailed(({ task }) => {
      for (const error of task.result?.errors ?? [])
        error.message += `\nSEED=${seed} repeats this run.`;
    });
  });
  return seed;
}
