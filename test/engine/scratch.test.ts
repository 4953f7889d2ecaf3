/** The room in which transactions are gathered: it grows with the largest, and does not stay so large for small ones. */
import { expect, test } from "vitest";
import { Scratch } from "../../engine/transaction.ts";

function transact(scratch: Scratch, bytes: number): void {
  const at = scratch.reserve(bytes);
  scratch.length = at + bytes;
  scratch.reset();
}

test("keeps what was gathered when it grows", () => {
  const scratch = new Scratch();
  for (let n = 0; n < 100; n++) {
    const at = scratch.reserve(10_000);
    scratch.bytes.fill(n, at, at + 10_000);
    scratch.length += 10_000;
  }
  for (let n = 0; n < 100; n++) {
    expect(scratch.bytes.subarray(n * 10_000, (n + 1) * 10_000).every((byte) => byte === n)).toBe(
      true,
    );
  }
});

test("shrinks after many small transactions, not between large ones", () => {
  const scratch = new Scratch();
  const smallest = scratch.bytes.length;
  for (let turn = 0; turn < 20; turn++) {
    transact(scratch, 2_000_000);
    for (let n = 0; n < 20; n++) transact(scratch, 1000);
    expect(scratch.bytes.length).toBeGreaterThanOrEqual(2_000_000);
  }
  for (let n = 0; n < 1000; n++) transact(scratch, 1000);
  expect(scratch.bytes.length).toBe(smallest);
});

test("lets go of the room of a very large transaction at once", () => {
  const scratch = new Scratch();
  const smallest = scratch.bytes.length;
  transact(scratch, 20 * 1024 * 1024);
  expect(scratch.bytes.length).toBe(smallest);
});
