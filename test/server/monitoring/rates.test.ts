/** Rates between two reads. */
import { expect, test } from "vitest";
import { Rates } from "../../../server/monitoring/rates.ts";

test("counts become rates per second, 0 at first and after a restart", () => {
  let nowMs = 0;
  const rates = new Rates<"a">(() => nowMs);
  expect(rates.look("x", { a: 100 })).toEqual({ a: 0 });
  nowMs = 2_000;
  expect(rates.look("x", { a: 110 })).toEqual({ a: 5 });
  expect(rates.look("y", { a: 7 })).toEqual({ a: 0 });
  nowMs = 3_000;
  expect(rates.look("x", { a: 0 })).toEqual({ a: 0 });
});
