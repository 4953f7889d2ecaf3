import { setImmediate as turn } from "node:timers/promises";
import { expect, test } from "vitest";
import { sliceMs } from "../../../engine/base/limits.ts";
import { SliceScheduler } from "../../../engine/base/slice-scheduler.ts";

/** A queue with a clock that only `use` moves, and a log of who resumed in which turn of the event loop. */
function startQueue() {
  let nowMs = 0;
  const queue = new SliceScheduler(() => nowMs);
  const resumed: string[] = [];
  const wait = async (name: string, usesMs: number) => {
    await queue.next();
    // What follows after further pauses belongs to the same slice.
    await Promise.resolve();
    nowMs += usesMs;
    resumed.push(name);
  };
  return { queue, resumed, wait };
}

test("waiters that use up a slice resume one in a turn, first come, first served", async () => {
  const { resumed, wait } = startQueue();
  for (const name of ["a", "b", "c"]) void wait(name, sliceMs);
  await turn();
  expect(resumed).toEqual(["a"]);
  await turn();
  expect(resumed).toEqual(["a", "b"]);
  await turn();
  expect(resumed).toEqual(["a", "b", "c"]);
});

test("waiters that do little share a slice, and no more than that", async () => {
  const { resumed, wait } = startQueue();
  for (let n = 0; n < 10_000; n++) void wait(`${n}`, n < 9990 ? 0 : sliceMs / 2);
  await turn();
  expect(resumed.length).toBe(9992);
  await turn();
  expect(resumed.length).toBe(9994);
});

test("who waits again goes on in a later turn", async () => {
  const { queue, resumed } = startQueue();
  void (async () => {
    for (let n = 0; n < 3; n++) {
      await queue.next();
      resumed.push(`${n}`);
    }
  })();
  for (let n = 1; n <= 3; n++) {
    await turn();
    expect(resumed.length).toBe(n);
  }
});

test("the first work of a turn begins its slice", async () => {
  const { queue, wait, resumed } = startQueue();
  expect(queue.isFresh).toBe(true);
  expect(queue.isOver()).toBe(false);
  expect(queue.isFresh).toBe(false);
  void wait("a", sliceMs);
  expect(queue.hasWaiters).toBe(true);
  await turn();
  expect([resumed, queue.isOver()]).toEqual([["a"], true]);
});
