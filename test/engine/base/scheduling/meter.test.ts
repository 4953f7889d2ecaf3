import { expect, test } from "vitest";
import { Meter } from "../../../../engine/base/scheduling/meter.ts";

const startMicros = 1_700_000_000_000_000;
const atSecond = (second: number) => startMicros + second * 1_000_000;

test("a rate is the mean of the last minutes, as RavenDB 7.2.7 shows 300 documents as 5 per second", () => {
  const meter = new Meter(startMicros);
  const rates = (second: number) =>
    [1, 60, 300, 900].map((seconds) => meter.perSecond(seconds, atSecond(second)));
  expect(rates(0)).toEqual([0, 0, 0, 0]);
  meter.add(900, atSecond(0.2));
  expect(rates(0.9)).toEqual([900, 15, 3, 1]);
  expect(rates(1.2)).toEqual([0, 15, 3, 1]);
  meter.add(900, atSecond(33));
  expect(rates(33)).toEqual([900, 30, 6, 2]);
  expect(rates(60.1)).toEqual([0, 30, 6, 2]);
  expect(rates(60.2)).toEqual([0, 15, 6, 2]);
  expect(rates(93)).toEqual([0, 0, 6, 2]);
  expect(rates(300.2)).toEqual([0, 0, 3, 2]);
  expect(rates(900.2)).toEqual([0, 0, 0, 1]);
  expect(rates(933)).toEqual([0, 0, 0, 0]);
  expect(meter.count).toBe(1800);
  expect(meter.meanPerSecond(atSecond(900))).toBe(2);
  expect(meter.meanPerSecond(atSecond(1800))).toBe(1);
});

test("a clock that goes back forgets nothing", () => {
  const meter = new Meter(startMicros);
  meter.add(60, atSecond(100));
  meter.add(60, atSecond(40));
  expect(meter.perSecond(60, atSecond(100))).toBe(2);
  expect(meter.perSecond(60, atSecond(40))).toBe(2);
  expect(meter.perSecond(60, atSecond(160))).toBe(0);
});

test("the tenths of a second of the last fifteen minutes are known, and those before are forgotten", () => {
  const meter = new Meter(startMicros);
  meter.add(2, atSecond(0.05));
  meter.add(3, atSecond(0.09));
  meter.add(1, atSecond(0.31));
  meter.add(0, atSecond(0.5));
  expect([...meter.recent(atSecond(1))]).toEqual([
    [atSecond(0.1), 50],
    [atSecond(0.4), 10],
  ]);
  expect([...meter.recent(atSecond(900.1))]).toEqual([[atSecond(0.4), 10]]);
  for (let tenth = 10; tenth < 30_000; tenth++) meter.add(7, startMicros + tenth * 100_000);
  const recent = [...meter.recent(atSecond(2999.9))];
  expect(recent).toHaveLength(9000);
  expect(recent[0]).toEqual([atSecond(2100.1), 70]);
  expect(meter.perSecond(900, atSecond(2999.9))).toBe(70);
});
