import { describe, expect, it } from "vitest";
import { processMemory } from "../../../../engine/base/memory/memory-budget.ts";
import { SliceScheduler } from "../../../../engine/base/scheduling/slice-scheduler.ts";
import { runSteps } from "../../../../engine/base/scheduling/steps.ts";
import { finish, type Work, WorkBudget } from "../../../../engine/base/scheduling/work-budget.ts";

/** A clock that advances by one millisecond on every read. */
function steppingClock(): () => number {
  let nowMs = 0;
  return () => nowMs++;
}

function* steps(budget: WorkBudget, count: number, seen: () => void): Work<string> {
  for (let i = 0; i < count; i++) {
    budget.spend(1024);
    seen();
    if (budget.isDue) yield;
  }
  return "done";
}

describe("a budget of work", () => {
  it("gives the event loop back after each slice, and goes on", async () => {
    const turns = new SliceScheduler(steppingClock());
    const budget = new WorkBudget(undefined, Number.POSITIVE_INFINITY, turns);
    let isAlternating = true;
    let tickCount = 0;
    const tick = () => {
      tickCount++;
      if (isAlternating) setImmediate(tick);
    };
    tick();
    let stepCount = 0;
    const work = steps(budget, 100, () => {
      stepCount++;
    });
    const result = await runSteps(budget.steps(work));
    isAlternating = false;
    expect(result).toBe("done");
    expect(stepCount).toBe(100);
    expect(tickCount).toBeGreaterThan(10);
  });

  it("shares one slice a turn with all others", async () => {
    const turns = new SliceScheduler(steppingClock());
    const perTick: number[] = [];
    let inTick = 0;
    let isCounting = true;
    const count = () => {
      perTick.push(inTick);
      inTick = 0;
      if (isCounting) setImmediate(count);
    };
    setImmediate(count);
    const runs = Array.from({ length: 20 }, () => {
      const budget = new WorkBudget(undefined, Number.POSITIVE_INFINITY, turns);
      const work = steps(budget, 20, () => {
        inTick++;
      });
      return runSteps(budget.steps(work));
    });
    await Promise.all(runs);
    isCounting = false;
    // Each reads the clock once at the start, then they alternate.
    expect(Math.max(...perTick.slice(1))).toBeLessThanOrEqual(8);
  });

  it("rejects work beyond its units and names the setting", () => {
    const budget = new WorkBudget(undefined, 5_000_000);
    expect(() => finish(steps(budget, 10_000, () => undefined))).toThrow(
      /more than 5 million steps.*Query\.MaxWorkInMillions/s,
    );
  });

  it("aborts when the client no longer waits for the result", async () => {
    const controller = new AbortController();
    const turns = new SliceScheduler(steppingClock());
    const budget = new WorkBudget(controller.signal, Number.POSITIVE_INFINITY, turns);
    let stepCount = 0;
    const work = steps(budget, 1_000_000, () => {
      if (++stepCount === 50) controller.abort();
    });
    await expect(runSteps(budget.steps(work))).rejects.toThrow("gone");
    expect(stepCount).toBeLessThan(100);
  });

  it("releases the memory it holds", () => {
    const before = processMemory.workBytesOf("queries");
    const budget = new WorkBudget();
    budget.hold(1000);
    budget.hold(500);
    budget.release(200);
    expect(processMemory.workBytesOf("queries") - before).toBe(1300);
    expect(() => budget.hold(2 ** 40)).toThrow(/Query\.MaxMemoryInMb/);
    budget.close();
    expect(processMemory.workBytesOf("queries")).toBe(before);
  });
});
