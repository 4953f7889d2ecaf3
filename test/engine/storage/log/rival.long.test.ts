/**
 * A log whose owner was suspended during a call while another process took its folder. The delayed
 * call may reach the disk at any time, but must not damage the new owner's log.
 */
import { describe, expect, test } from "vitest";
import { everyFault } from "../../../support/every-fault.ts";
import { SimulatedFileSystem } from "../../../support/simulated-file-system.ts";
import { StoppedFiles } from "../../../support/stopped-files.ts";
import { TinyDatabase, TinyHistory } from "../../../support/tiny-database.ts";
import { scenarioOf, tinyScenarios } from "../../../support/tiny-scenarios.ts";

const tick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Runs everything to completion except the suspended call. */
async function settle(): Promise<void> {
  for (let count = 0; count < 60; count++) await tick();
}

/** Enough work for new segments, a manifest or two, and a snapshot. */
async function work(database: TinyDatabase, name: string): Promise<void> {
  for (let index = 0; index < 12; index++) {
    database.put(`${name}${index % 7}`, `${index}`.repeat(120));
    if (index % 4 === 0) await database.flush();
  }
  await database.flush();
  await database.snapshot();
  await database.log.compact({ bytesPerSecond: Number.POSITIVE_INFINITY });
}

const times = [
  "before the successor opens",
  "after it has opened",
  "after its first write",
  "after it has written much",
] as const;
type Late = (typeof times)[number];

/** Checks the state on the next start. */
async function expectAgain(
  files: SimulatedFileSystem,
  history: TinyHistory,
  state: string,
): Promise<void> {
  const again = await TinyDatabase.open(files, history.copy());
  expect(again.state).toBe(state);
  await again.check();
  await again.close();
}

/** @returns the delayed call; null if the scenario has fewer changes. */
async function takeOver(scenario: string, stopAt: number, late: Late): Promise<string | null> {
  const files = new SimulatedFileSystem();
  const stopped = new StoppedFiles(files, stopAt);
  const history = new TinyHistory();
  let isOver = false;
  const over = (): void => {
    isOver = true;
  };
  scenarioOf(scenario)(stopped as unknown as SimulatedFileSystem, history).then(over, over);
  while (!isOver && stopped.late === null) await tick();
  if (stopped.late === null) return null;
  await settle();
  files.abandonLocks();
  const goOn = async (when: Late): Promise<void> => {
    if (when !== late) return;
    stopped.goOn();
    await settle();
  };
  const known = history.copy();
  await goOn("before the successor opens");
  const successor = await TinyDatabase.open(files, known);
  await goOn("after it has opened");
  successor.put("first", "1".repeat(40));
  await successor.flush();
  if (late === "after its first write") {
    await goOn(late);
    await expectAgain(files.restart(), known, successor.state);
  }
  await work(successor, "a");
  await goOn("after it has written much");
  await work(successor, "b");
  await successor.check();
  const expected = successor.state;
  await successor.close();
  for (const after of [files.restart(), files.powerLoss(stopAt)]) {
    await expectAgain(after, known, expected);
  }
  return stopped.late;
}

/**
 * Without the removal of the folder: a delayed deletion also removes the folder of the new owner,
 * whose log then stops.
 */
const scenarios = Object.keys(tinyScenarios).filter((name) => name !== "removing the folder");
/** Short scenarios, in which each change is tested. */
const whole = ["closing and opening", "single puts, each awaited"];

describe.each(scenarios)("a delayed call of the previous owner in: %s", (scenario) => {
  test.each(times)("%s", async (late) => {
    const step = everyFault || whole.includes(scenario) ? 1 : 3;
    const seen: string[] = [];
    for (let stopAt = late.length % step; ; stopAt += step) {
      const what = await takeOver(scenario, stopAt, late).catch((error: unknown) => {
        throw new Error(`late change ${stopAt}: ${(error as Error).message}`, { cause: error });
      });
      if (what === null) break;
      seen.push(what);
    }
    expect(seen.length).toBeGreaterThan(2);
  });
});
