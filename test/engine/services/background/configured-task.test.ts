import { expect, test } from "vitest";
import { EngineError } from "../../../../engine/base/errors.ts";
import { ConfiguredTask } from "../../../../engine/services/background/configured-task.ts";
import { SimulatedClock } from "../../../support/simulated-clock.ts";

const soon = () => new Promise((resolve) => setImmediate(resolve));

test("runs again after a run that failed, as on a full disk", async () => {
  const clock = new SimulatedClock();
  let runs = 0;
  const failures: unknown[] = [];
  const task = new ConfiguredTask(
    clock,
    async () => {
      runs++;
      if (runs === 1) throw new EngineError("disk-full", "no room");
      if (runs === 2) throw new TypeError("a bug");
    },
    () => 10,
    (error) => failures.push(error),
  );
  task.configure();
  for (const expected of [1, 2, 3]) {
    clock.advance(10_001);
    await soon();
    await soon();
    expect(runs).toBe(expected);
  }
  expect(failures).toEqual([new TypeError("a bug")]);
  await task.close();
  clock.advance(60_000);
  await soon();
  expect(runs).toBe(3);
});
