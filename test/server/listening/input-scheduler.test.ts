import { setImmediate as tick } from "node:timers/promises";
import { expect, test } from "vitest";
import { InputScheduler, type InputShare } from "../../../server/listening/input-scheduler.ts";

/** Connections whose input takes `sliceMs` per slice of a simulated clock, and the names of those that were served. */
class Inputs {
  nowMs = 1000;
  readonly scheduler = new InputScheduler(() => this.nowMs);
  readonly served: string[] = [];

  /** A connection with input for `slices` time slices. */
  add(name: string, slices: number, sliceMs: number, isKnown = true): InputShare {
    let left = slices;
    const work = () => {
      this.served.push(name);
      this.nowMs += sliceMs;
      left--;
      share.end(left > 0);
    };
    const share = this.scheduler.shareOf({ isKnown, resumeInput: work });
    if (share.begin(this.nowMs)) work();
    return share;
  }
}

test("input is processed immediately while the tick is not used up", () => {
  const inputs = new Inputs();
  inputs.add("a", 1, 0.1);
  inputs.add("b", 1, 0.1);
  expect(inputs.served).toEqual(["a", "b"]);
});

test("a time slice is over after half a millisecond", () => {
  const inputs = new Inputs();
  const share = inputs.scheduler.shareOf({ isKnown: true, resumeInput: () => undefined });
  expect(share.begin(inputs.nowMs)).toBe(true);
  inputs.nowMs += 0.4;
  expect(share.isOver()).toBe(false);
  inputs.nowMs += 0.1;
  expect(share.isOver()).toBe(true);
});

test("a connection with more input continues in a later tick, and begins nothing before", async () => {
  const inputs = new Inputs();
  const share = inputs.add("a", 2, 0.5);
  expect(inputs.served).toEqual(["a"]);
  expect(share.isWaiting).toBe(true);
  expect(share.begin(inputs.nowMs)).toBe(false);
  await tick();
  await tick();
  expect(inputs.served).toEqual(["a", "a"]);
  expect(share.isWaiting).toBe(false);
});

test("64 connections with much input take no more than four milliseconds of a tick", async () => {
  const inputs = new Inputs();
  for (let n = 0; n < 64; n++) inputs.add(`c${n}`, 1000, 1);
  // The first slices of connections that had used nothing.
  expect(inputs.served.length).toBeLessThanOrEqual(8);
  await tick();
  for (let ticks = 0; ticks < 20; ticks++) {
    const before = inputs.nowMs;
    await tick();
    expect(inputs.nowMs - before).toBeLessThanOrEqual(8);
  }
  // Each in its turn.
  expect(new Set(inputs.served).size).toBe(64);
});

test("a connection with little input does not wait for those with much", async () => {
  const inputs = new Inputs();
  for (let n = 0; n < 16; n++) inputs.add(`c${n}`, 1000, 1);
  for (let ticks = 0; ticks < 5; ticks++) await tick();
  inputs.served.length = 0;
  inputs.add("small", 1, 0.01);
  expect(inputs.served).toEqual(["small"]);
});

test("what a connection used is forgotten after a while", () => {
  const inputs = new Inputs();
  const share = inputs.add("a", 1, 3);
  inputs.add("b", 1, 3);
  expect(share.begin(inputs.nowMs)).toBe(false);
  inputs.nowMs += 100;
  const other = inputs.add("c", 1, 0.5);
  inputs.nowMs += 100;
  expect(other.begin(inputs.nowMs)).toBe(true);
});

test("clients without a certificate get less while others have input, and are served in each tick", async () => {
  const inputs = new Inputs();
  for (let n = 0; n < 8; n++) {
    inputs.add("unknown", 1000, 1, false);
    inputs.add("known", 1000, 1, true);
  }
  for (let ticks = 0; ticks < 5; ticks++) await tick();
  inputs.served.length = 0;
  for (let ticks = 0; ticks < 20; ticks++) await tick();
  const unknown = inputs.served.filter((name) => name === "unknown").length;
  expect(unknown).toBeGreaterThanOrEqual(10);
  expect(unknown).toBeLessThan(inputs.served.length / 2);
});

test("a closed connection is not resumed", async () => {
  const inputs = new Inputs();
  const share = inputs.add("a", 2, 0.5);
  share.close();
  await tick();
  await tick();
  expect(inputs.served).toEqual(["a"]);
});
