/** The list of the newest writes: numbered, bounded. */
import { expect, test } from "vitest";
import { DiskWrites } from "../../../engine/log/disk-writes.ts";

const write = (bytes: number) => ({
  kind: "append" as const,
  file: "log/1.seg",
  bytes,
  fileBytes: 4096,
  endedAtMicros: bytes,
  durationMs: 1,
});

test("writes are numbered, and those after a number are told", () => {
  const writes = new DiskWrites();
  for (const bytes of [10, 20, 30]) writes.add(write(bytes));
  expect(writes.after(0).map(({ number, bytes }) => [number, bytes])).toEqual([
    [1, 10],
    [2, 20],
    [3, 30],
  ]);
  expect(writes.after(2).map(({ number }) => number)).toEqual([3]);
  expect(writes.after(3)).toEqual([]);
});

test("the newest 256 are kept", () => {
  const writes = new DiskWrites();
  for (let bytes = 1; bytes <= 1_000; bytes++) writes.add(write(bytes));
  const kept = writes.after(0);
  expect(kept).toHaveLength(256);
  expect([kept[0]?.number, kept.at(-1)?.number]).toEqual([745, 1_000]);
});
