import { expect, test } from "vitest";
import { UnappliedBytes } from "../../../../engine/storage/replication/unapplied-bytes.ts";

test("is full at its limit, and low when half of it is durable", () => {
  const unapplied = new UnappliedBytes(3, 100);
  expect([unapplied.durable, unapplied.isEmpty, unapplied.isLow]).toEqual([3, true, true]);
  unapplied.add(4, 60);
  expect([unapplied.isFull, unapplied.isLow]).toEqual([false, false]);
  unapplied.add(6, 40);
  expect(unapplied.isFull).toBe(true);
  unapplied.release(5);
  expect([unapplied.durable, unapplied.isFull, unapplied.isLow]).toEqual([5, false, true]);
  expect(unapplied.isEmpty).toBe(false);
  unapplied.release(4);
  expect(unapplied.durable).toBe(5);
  unapplied.release(6);
  expect([unapplied.durable, unapplied.isEmpty]).toEqual([6, true]);
});
