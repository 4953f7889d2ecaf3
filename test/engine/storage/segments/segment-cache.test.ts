import { setImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
import { ImagePool } from "../../../../engine/storage/segments/image-pool.ts";
import { newImage, Segment } from "../../../../engine/storage/segments/segment.ts";
import { SegmentCache } from "../../../../engine/storage/segments/segment-cache.ts";

function segment(number: number, size = 100): Segment {
  const created = new Segment({ number, kind: "log", salt: 1, size });
  created.image = newImage(size);
  return created;
}

test("evicts the least recently used image first", () => {
  const cache = new SegmentCache(300);
  const [one, two, three, four] = [segment(1), segment(2), segment(3), segment(4)] as const;
  for (const added of [one, two, three]) cache.add(added);
  cache.touch(one);
  expect(cache.hasRoom(1)).toBe(false);
  cache.add(four);
  expect([one, two, three, four].map(({ image }) => image !== null)).toEqual([
    true,
    false,
    true,
    true,
  ]);
  expect(cache.bytes).toBe(300);
  cache.remove(three);
  cache.remove(three);
  expect(cache.bytes).toBe(200);
});

test("does not cache an image larger than the cache", () => {
  const cache = new SegmentCache(50);
  const [one, two] = [segment(1), segment(2)] as const;
  cache.add(one);
  expect(one.image).toBeNull();
  cache.add(two);
  expect(cache.bytes).toBe(0);
});

test("segments written one after the other reuse the same memory", async () => {
  const pool = new ImagePool();
  const size = 10_000;
  const room = 10;
  const cache = new SegmentCache(room * size, pool);
  const memories = new Set<ArrayBufferLike>();
  let last: Segment | null = null;
  for (let number = 1; number <= 100; number++) {
    const next = new Segment({ number, kind: "log", salt: 1, size });
    next.image = pool.take(size);
    memories.add(next.image.buffer);
    cache.write(next);
    if (last !== null) cache.add(last);
    last = next;
    // Evicted memory is free in a later tick.
    await setImmediate();
    await setImmediate();
    expect(cache.bytes + pool.idleBytes).toBeLessThanOrEqual((room + 1) * size);
  }
  expect(memories.size).toBeLessThanOrEqual(room + 2);
});
