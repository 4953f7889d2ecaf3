/** Frames without use are counted against what is transferred. */
import { expect, test } from "vitest";
import { FrameBudget } from "../../../../server/listening/http2/frame-budget.ts";

function spentUntilRefused(spend: () => boolean): number {
  let count = 0;
  while (spend() && count < 100_000) count++;
  return count;
}

test("allows a burst, and more with time, with requests and with bodies", () => {
  const budget = new FrameBudget();
  expect(spentUntilRefused(() => budget.spend())).toBe(1000);
  budget.look();
  budget.request();
  // One more was spent by the refusal.
  expect(spentUntilRefused(() => budget.spend())).toBe(59);
  budget.piece(0);
  budget.piece(5120);
  expect(spentUntilRefused(() => budget.spend())).toBe(13);
});

test("does not save up", () => {
  const budget = new FrameBudget();
  for (let n = 0; n < 10_000; n++) {
    budget.look();
    budget.request();
    budget.piece(100_000);
  }
  expect(spentUntilRefused(() => budget.spend())).toBe(1000);
  expect(spentUntilRefused(() => budget.spendReset())).toBe(900);
});

test("counts streams that are taken back by themselves", () => {
  const budget = new FrameBudget();
  expect(spentUntilRefused(() => budget.spendReset())).toBe(900);
  budget.request();
  budget.piece(1_000_000);
  expect(budget.spendReset()).toBe(false);
  budget.look();
  expect(spentUntilRefused(() => budget.spendReset())).toBe(14);
  expect(budget.spend()).toBe(true);
});
