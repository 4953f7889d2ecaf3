import { expect, test } from "vitest";
import {
  defaultMemoryBudget,
  MemoryBudget,
  memoryOfProcess,
} from "../../../../engine/base/memory/memory-budget.ts";

const mebibyte = 1024 * 1024;

test("uses the container's limit if it is below the machine's memory", () => {
  expect(memoryOfProcess(8 * mebibyte, 2 * mebibyte)).toBe(2 * mebibyte);
  expect(memoryOfProcess(8 * mebibyte, 0)).toBe(8 * mebibyte);
  expect(memoryOfProcess(8 * mebibyte, 2 ** 64)).toBe(8 * mebibyte);
  expect(defaultMemoryBudget(512 * mebibyte)).toBe(128 * mebibyte);
});

test("work gets at most half of the budget, and caches the rest", () => {
  const budget = new MemoryBudget(100);
  let shrinks = 0;
  const end = budget.addCache(() => shrinks++);
  expect(budget.cacheBytesMax).toBe(100);
  expect(budget.tryReserve("replies", 30)).toBe(true);
  expect(budget.tryReserve("bodies", 21)).toBe(false);
  expect(budget.tryReserve("bodies", 20)).toBe(true);
  expect(budget.workBytesOf("bodies")).toBe(20);
  expect(budget.cacheBytesMax).toBe(50);
  expect(shrinks).toBe(2);
  end();
  budget.release("replies", 30);
  budget.release("bodies", 20);
  expect(budget.workBytes).toBe(0);
  expect(() => budget.release("bodies", 1)).toThrow("no more memory is released");
});

test("admits one reservation larger than the budget if it is the only one", () => {
  const budget = new MemoryBudget(100);
  expect(budget.tryReserve("replies", 500)).toBe(true);
  expect(budget.cacheBytesMax).toBe(0);
  expect(budget.tryReserve("replies", 1)).toBe(false);
});

test("serves waiters in order and skips aborted ones", async () => {
  const budget = new MemoryBudget(100);
  budget.force("replies", 50);
  const served: string[] = [];
  const aborting = new AbortController();
  const large = budget.reserve("bodies", 40).then((ok) => served.push(`large ${ok}`));
  const aborted = budget
    .reserve("bodies", 10, aborting.signal)
    .then((ok) => served.push(`aborted ${ok}`));
  const small = budget.reserve("bodies", 10).then((ok) => served.push(`small ${ok}`));
  // There is room for a small one, but nobody overtakes.
  budget.release("replies", 20);
  aborting.abort();
  await aborted;
  expect(served).toEqual(["aborted false"]);
  budget.release("replies", 30);
  await Promise.all([large, small]);
  expect(served).toEqual(["aborted false", "large true", "small true"]);
  expect(budget.workBytes).toBe(50);
});

test("each use has its own limit, and its waiters do not block other uses", async () => {
  const budget = new MemoryBudget(1000);
  budget.limitUse("replies", 100);
  expect(budget.useBytesMax("replies")).toBe(100);
  expect(budget.useBytesMax("bodies")).toBe(500);
  expect(budget.tryReserve("replies", 90)).toBe(true);
  expect(budget.tryReserve("replies", 20)).toBe(false);
  const waiting = budget.reserve("replies", 20);
  expect(budget.waitersOf("replies")).toBe(1);
  expect(budget.tryReserve("replies", 1)).toBe(false);
  expect(budget.tryReserve("bodies", 300)).toBe(true);
  budget.release("replies", 90);
  expect(await waiting).toBe(true);
  expect(budget.workBytesOf("replies")).toBe(20);
  budget.release("replies", 20);
  expect(budget.tryReserve("replies", 150)).toBe(true);
});
