/** Rate limit of log messages. */
import { expect, test } from "vitest";
import { LineLimit } from "../../../server/logging/line-limit.ts";

test("allows a burst, then one message after each pause, with the number of omitted ones", () => {
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
