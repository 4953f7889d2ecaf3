/**
 * A log whose owner was stopped in the middle of a call while another took its folder: whatever the call was, and whenever
 * it reaches the disk, the other's log stays as it should be.
 */
import { describe, expect, test } from "vitest";
import { everyFault } from "../../support/every-fault.ts";
import { SimulatedFileSystem } from "../../support/simulated-file-system.ts";
import { StoppedFiles } from "../../support/stopped-files.ts";
import { TinyDatabase, TinyHistory } from "../../support/tiny-database.ts";
import { scenarioOf, tinyScenarios } from "../../support/tiny-scenarios.ts";

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Lets everything come to its end that does not wait for a stopped call. */
async function settle(): Promise<void> {
  for (let count = 0; count < 60; count++) await turn();
}

/** Enough for new segments, a manifest or two, and a snapshot. */
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

/** The next start finds it so. */
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

/** @returns what was late; null when the story has fewer changes. */
async function takeOver(scenario: string, stopAt: number, late: Late): Promise<string | null> {
  const files = new SimulatedFileSystem();
  const stopped = new StoppedFiles(files, stopAt);
  const history = new TinyHistory();
  let isOver = false;
  const over = (): void => {
    isOver = true;
  };
  scenarioOf(scenario)(stopped as unknown as SimulatedFileSystem, history).then(over, over);
  while (!isOver && stopped.late === null) await turn();
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
 * Not where the folder itself goes: a deletion that was begun and comes late takes the folder from its new owner, too,
 * whose log then stops.
 */
const scenarios = Object.keys(tinyScenarios).filter((name) => name !== "removing the folder");
/** Short ones in which each change is looked at. */
const whole = ["closing and opening", "single puts, each awaited"];

describe.each(scenarios)("a rival's call that comes late in: %s", (scenario) => {
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
