/** Transactions over several turns of the event loop. */
import { setImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
import { openTestDatabase } from "../../support/open-test-database.ts";

test("work that is abandoned cleans up", async () => {
  const database = await openTestDatabase({ isInMemory: true });
  let isCleanedUp = false;
  const work = database.writeInTurns(function* endless() {
    try {
      for (;;) yield;
    } finally {
      isCleanedUp = true;
    }
  });
  const refused = expect(work).rejects.toThrow("is closed");
  await setImmediate();
  await database.abandon();
  await refused;
  expect(isCleanedUp).toBe(true);
});

test("work that fails cleans up once, and its error is the one that is told", async () => {
  const database = await openTestDatabase({ isInMemory: true });
  const steps: string[] = [];
  const work = database.writeInTurns(function* failing() {
    try {
      yield;
      throw new Error("the work has failed");
    } finally {
      steps.push("cleaned up");
    }
  });
  await expect(work).rejects.toThrow("the work has failed");
  expect(steps).toEqual(["cleaned up"]);
  await database.put("a", "{}");
});
