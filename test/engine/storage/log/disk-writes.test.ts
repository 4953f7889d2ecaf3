/** The list of the newest writes: numbered, bounded. */
import { expect, test } from "vitest";
import { DiskWrites } from "../../../../engine/storage/log/disk-writes.ts";

function add(writes: DiskWrites, bytes: number): void {
  writes.add("append", "log/1.seg", bytes, 4096, 1_000_000 + bytes, 1.5);
}

test("lists the writes after a given number", () => {
  const writes = new DiskWrites();
  for (const bytes of [10, 20, 30]) add(writes, bytes);
  expect(writes.after(0).map(({ number, bytes }) => [number, bytes])).toEqual([
    [1, 10],
    [2, 20],
    [3, 30],
  ]);
  expect(writes.after(2)).toEqual([
    {
      number: 3,
      kind: "append",
      file: "log/1.seg",
      bytes: 30,
      fileBytes: 4096,
      endedAtMicros: 1_000_030,
      durationMs: 1.5,
    },
  ]);
  expect(writes.after(3)).toEqual([]);
});

test("keeps the newest 256", () => {
  const writes = new DiskWrites();
  for (let bytes = 1; bytes <= 1_000; bytes++) add(writes, bytes);
  const kept = writes.after(0);
  expect(kept).toHaveLength(256);
  expect([kept[0]?.number, kept.at(-1)?.number]).toEqual([745, 1_000]);
});
