/** How often something is logged. */
import { expect, test } from "vitest";
import { LineLimit } from "../../../server/logging/line-limit.ts";

test("a burst, then one after each pause, with the number of those left out", () => {
  let nowMs = 0;
  const limit = new LineLimit(2, 100, () => nowMs);
  const taken = () => Array.from({ length: 3 }, () => limit.take());
  expect(taken()).toEqual([0, 0, null]);
  nowMs = 99;
  expect(taken()).toEqual([null, null, null]);
  nowMs = 100;
  expect(taken()).toEqual([4, null, null]);
  nowMs = 100_000;
  expect(taken()).toEqual([2, 0, null]);
});
