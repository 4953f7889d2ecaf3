import { expect, test } from "vitest";
import { MinuteMeter } from "../../../../engine/base/scheduling/minute-meter.ts";

const atSecond = (second: number) => (1_700_000_000 + second) * 1_000_000;

test("a meter is the mean of the last minute, as RavenDB 7.2.7 shows 300 documents as 5 per second", () => {
  const meter = new MinuteMeter();
  expect(meter.perSecond(atSecond(0))).toBe(0);
  meter.add(300, atSecond(0.2));
  expect(meter.perSecond(atSecond(0.9))).toBe(5);
  expect(meter.perSecond(atSecond(33))).toBe(5);
  meter.add(60, atSecond(33));
  expect(meter.perSecond(atSecond(59))).toBe(6);
  expect(meter.perSecond(atSecond(60))).toBe(1);
  expect(meter.perSecond(atSecond(93))).toBe(0);
});

test("a meter forgets after a long pause, and a clock that goes back forgets nothing", () => {
  const meter = new MinuteMeter();
  meter.add(60, atSecond(100));
  meter.add(60, atSecond(40));
  expect(meter.perSecond(atSecond(100))).toBe(2);
  expect(meter.perSecond(atSecond(100_000))).toBe(0);
});
