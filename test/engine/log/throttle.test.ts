/** How background work shares a process with others, on a clock that the test moves. */
import { setImmediate } from "node:timers";
import { expect, test } from "vitest";
import { Throttle } from "../../../engine/log/throttle.ts";
import { SimulatedClock } from "../../support/simulated-clock.ts";

/** Milliseconds of a slice that follows a turn in which others took `othersMs`. */
async function sliceAfter(throttle: Throttle, clock: SimulatedClock, othersMs: number) {
  setImmediate(() => clock.advance(othersMs));
  await throttle.yield();
  const fromMs = clock.monotonicMs();
  while (!throttle.isDue()) clock.advance(1 / 64);
  return clock.monotonicMs() - fromMs;
}

test("slices are short while the process is idle", async () => {
  const clock = new SimulatedClock(0);
  const throttle = new Throttle(clock, Number.POSITIVE_INFINITY);
  throttle.timeShare = 0.5;
  expect(await sliceAfter(throttle, clock, 0)).toBeCloseTo(0.1, 1);
});

test("work has its share of the time of a busy process, in slices that hold nobody up for long", async () => {
  const clock = new SimulatedClock(0);
  const throttle = new Throttle(clock, Number.POSITIVE_INFINITY);
  expect(await sliceAfter(throttle, clock, 3)).toBeCloseTo(0.1, 1);
  throttle.timeShare = 0.25;
  expect(await sliceAfter(throttle, clock, 3)).toBeCloseTo(1);
  throttle.timeShare = 0.5;
  expect(await sliceAfter(throttle, clock, 3)).toBeCloseTo(3);
  expect(await sliceAfter(throttle, clock, 1000)).toBeCloseTo(5);
  expect(await sliceAfter(throttle, clock, 0)).toBeCloseTo(0.1, 1);
});

/** Spends `bytes` at once; its timer comes `lateMs` too late. @returns milliseconds that passed */
async function spend(throttle: Throttle, clock: SimulatedClock, bytes: number, lateMs: number) {
  const fromMs = clock.monotonicMs();
  const spent = throttle.spend(bytes);
  if (clock.plannedCount > 0) clock.advance(bytes / 1000 + lateMs);
  await spent;
  return clock.monotonicMs() - fromMs;
}

test("the speed is kept though timers come late", async () => {
  const clock = new SimulatedClock(0);
  const throttle = new Throttle(clock, 1_000_000);
  expect(await spend(throttle, clock, 10_000, 25)).toBe(35);
  // What was waited too long is made up for.
  expect(await spend(throttle, clock, 10_000, 0)).toBe(0);
  expect(await spend(throttle, clock, 10_000, 0)).toBe(0);
  expect(await spend(throttle, clock, 10_000, 0)).toBe(10);
});

test("what a process that stood still has missed is not made up for all at once", async () => {
  const clock = new SimulatedClock(0);
  const throttle = new Throttle(clock, 1_000_000);
  expect(await spend(throttle, clock, 10_000, 60_000)).toBe(60_010);
  expect(await spend(throttle, clock, 90_000, 0)).toBe(0);
  expect(await spend(throttle, clock, 90_000, 0)).toBe(90);
});
