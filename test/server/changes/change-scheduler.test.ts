import { setImmediate as nextLoop } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { ChangeScheduler } from "../../../server/changes/change-scheduler.ts";

function busy(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}

describe("scheduling of changes", () => {
  it("delivers few changes immediately, and many in order and in time slices", async () => {
    const done: number[] = [];
    const turns = new ChangeScheduler<number>((item) => {
      busy(2);
      done.push(item);
    }, 1_000);
    await nextLoop();
    turns.add(0);
    expect(done).toEqual([0]);
    for (let n = 1; n < 20; n++) turns.add(n);
    expect(done.length).toBeLessThan(6);
    for (let loops = 0; done.length < 20; loops++) {
      const before = done.length;
      await nextLoop();
      expect(done.length - before).toBeLessThan(8);
      expect(loops).toBeLessThan(200);
    }
    expect(done).toEqual(Array.from({ length: 20 }, (_, n) => n));
  });

  it("queues only a limited number", async () => {
    const done: number[] = [];
    const turns = new ChangeScheduler<number>((item) => {
      busy(5);
      done.push(item);
    }, 3);
    await nextLoop();
    for (let n = 0; n < 10; n++) turns.add(n);
    expect(done.length).toBeGreaterThanOrEqual(7);
    turns.clear();
    const count = done.length;
    await nextLoop();
    await nextLoop();
    expect(done.length).toBe(count);
  });
});
