/** Seeds of tests that are another one each time: a failure tells the seed, and SEED=n repeats it. */
import { beforeEach } from "vitest";

/**
 * The seed of this run, for a file or a group of tests: called where tests are declared. Whatever fails in them, an
 * assertion or an exception, has the seed in its message.
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
