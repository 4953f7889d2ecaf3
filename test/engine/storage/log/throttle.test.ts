/** Background work shares a process with other work, on a simulated clock. */
import { setImmediate } from "node:timers";
import { expect, test } from "vitest";
import { Throttle } from "../../../../engine/storage/log/throttle.ts";
import { SimulatedClock } from "../../../support/simulated-clock.ts";

/**
 * Returns the length of a slice after a tick in which other work took `othersMs`, in milliseconds.
 */
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

test("background work gets its share of a busy process, in short slices", async () => {
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

/** Spends `bytes` in one call; its timer fires `lateMs` late. @returns the elapsed milliseconds. */
async function spend(throttle: Throttle, clock: SimulatedClock, bytes: number, lateMs: number) {
  const fromMs = clock.monotonicMs();
  const spent = throttle.spend(bytes);
  if (clock.plannedCount > 0) clock.advance(bytes / 1000 + lateMs);
  await spent;
  return clock.monotonicMs() - fromMs;
}

test("late timers do not lower the throughput", async () => {
  const clock = new SimulatedClock(0);
  const throttle = new Throttle(clock, 1_000_000);
  expect(await spend(throttle, clock, 10_000, 25)).toBe(35);
  // Excess waiting time is credited.
  expect(await spend(throttle, clock, 10_000, 0)).toBe(0);
  expect(await spend(throttle, clock, 10_000, 0)).toBe(0);
  expect(await spend(throttle, clock, 10_000, 0)).toBe(10);
});

test("credits only part of the time that a suspended process missed", async () => {
  const clock = new SimulatedClock(0);
  const throttle = new Throttle(clock, 1_000_000);
  expect(await spend(throttle, clock, 10_000, 60_000)).toBe(60_010);
  expect(await spend(throttle, clock, 90_000, 0)).toBe(0);
  expect(await spend(throttle, clock, 90_000, 0)).toBe(90);
});
