import { setImmediate as tick } from "node:timers/promises";
import { expect, test } from "vitest";
import { sliceMs } from "../../../../engine/base/limits.ts";
import { SliceScheduler } from "../../../../engine/base/scheduling/slice-scheduler.ts";

/**
 * A queue whose clock only `use` advances, and a log of the resumed waiters per event-loop tick.
 */
function startQueue() {
  let nowMs = 0;
  const queue = new SliceScheduler(() => nowMs);
  const resumed: string[] = [];
  const wait = async (name: string, usesMs: number) => {
    await queue.next();
    // Microtasks after the first resume belong to the same slice.
    await Promise.resolve();
    nowMs += usesMs;
    resumed.push(name);
  };
  return { queue, resumed, wait };
}

test("resumes one waiter per tick, in order, if each uses a whole slice", async () => {
  const { resumed, wait } = startQueue();
  for (const name of ["a", "b", "c"]) void wait(name, sliceMs);
  await tick();
  expect(resumed).toEqual(["a"]);
  await tick();
  expect(resumed).toEqual(["a", "b"]);
  await tick();
  expect(resumed).toEqual(["a", "b", "c"]);
});

test("waiters that do little work share one slice", async () => {
  const { resumed, wait } = startQueue();
  for (let n = 0; n < 10_000; n++) void wait(`${n}`, n < 9990 ? 0 : sliceMs / 2);
  await tick();
  expect(resumed.length).toBe(9992);
  await tick();
  expect(resumed.length).toBe(9994);
});

test("resumes a waiter in a later tick if it waits again", async () => {
  const { queue, resumed } = startQueue();
  void (async () => {
    for (let n = 0; n < 3; n++) {
      await queue.next();
      resumed.push(`${n}`);
    }
  })();
  for (let n = 1; n <= 3; n++) {
    await tick();
    expect(resumed.length).toBe(n);
  }
});

test("the first work of a tick starts its slice", async () => {
  const { queue, wait, resumed } = startQueue();
  expect(queue.isFresh).toBe(true);
  expect(queue.isOver()).toBe(false);
  expect(queue.isFresh).toBe(false);
  void wait("a", sliceMs);
  expect(queue.hasWaiters).toBe(true);
  await tick();
  expect([resumed, queue.isOver()]).toEqual([["a"], true]);
});
