import { describe, expect, test } from "vitest";
import { ScriptClock } from "../../../../engine/scripting/language/script-clock.ts";

function source() {
  const time = { now: 0, used: 0 };
  const clock = new ScriptClock({ now: () => time.now, used: () => time.used });
  const pass = (ms: number, usedMs = ms) => {
    time.now += ms;
    time.used += usedMs;
  };
  return { clock, pass };
}

describe("the clock of a script", () => {
  test("counts the time in which the script ran", () => {
    const { clock, pass } = source();
    for (let i = 0; i < 24; i++) {
      pass(1);
      expect(clock.hasRun(25)).toBe(false);
    }
    pass(1);
    expect(clock.hasRun(25)).toBe(true);
  });

  test("does not count the time of other processes", () => {
    const { clock, pass } = source();
    for (let i = 0; i < 100; i++) {
      pass(5, 0.2);
      expect(clock.hasRun(25)).toBe(false);
    }
    pass(6);
    expect(clock.hasRun(25)).toBe(true);
  });

  test("counts only a small part of one long stretch, which may be a garbage collection", () => {
    const { clock, pass } = source();
    pass(200);
    expect(clock.hasRun(25)).toBe(false);
    pass(200);
    expect(clock.hasRun(25)).toBe(false);
    pass(200);
    expect(clock.hasRun(25)).toBe(true);
  });
});
