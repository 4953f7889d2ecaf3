import { expect, test } from "vitest";
import { IndexLag } from "../../../server/monitoring/index-lag.ts";

test("an index lags since the first check that found a change it has still not indexed", () => {
  const lag = new IndexLag();
  const database = {};
  const look = (newest: number, seen: number, seconds: number) =>
    lag.look(
      database,
      [{ name: "A", isStale: newest > seen, etagLag: newest - seen }],
      newest,
      seconds * 1000,
    )[0];
  expect(look(10, 10, 0)).toBe(0);
  expect(look(20, 10, 5)).toBe(0);
  expect(look(30, 15, 9)).toBe(4);
  expect(look(40, 19, 12)).toBe(7);
  // It has indexed everything from second 5, but not the latest change.
  expect(look(50, 20, 15)).toBe(0);
  expect(look(60, 49, 17)).toBe(2);
  expect(look(60, 60, 18)).toBe(0);
  expect(look(70, 60, 30)).toBe(0);
});
