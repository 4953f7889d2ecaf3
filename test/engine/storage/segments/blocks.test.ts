import { setImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
import { MemoryBudget } from "../../../../engine/base/memory/memory-budget.ts";
import { recordLengthAt, sealRecord } from "../../../../engine/base/record.ts";
import {
  BlockPool,
  Extent,
  newPlace,
  SingleTable,
  slotCountMax,
} from "../../../../engine/storage/segments/blocks.ts";
import { ImagePool } from "../../../../engine/storage/segments/image-pool.ts";
import { Segment } from "../../../../engine/storage/segments/segment.ts";
import { SegmentCache } from "../../../../engine/storage/segments/segment-cache.ts";
import { SeededRandom } from "../../../support/random.ts";

const extentBytes = 1024;
const poison = 0xdb;

function newSegment(number = 1): Segment {
  return new Segment({ number, kind: "log", salt: 1, size: 1 << 20 });
}

function newCache(limit: number | MemoryBudget): SegmentCache {
  return new SegmentCache(limit, new ImagePool(true), extentBytes);
}

/** A record whose bytes identify it. */
function recordOf(value: number, length = 64): Buffer {
  const record = Buffer.alloc(length);
  record.writeUInt32LE(length, recordLengthAt);
  record.writeUInt32LE(value, length - 4);
  sealRecord(record, 0);
  return record;
}

/** An extent full of records of 64 bytes, as if read from the file. */
function extentOf(cache: SegmentCache, segment: Segment, index: number): Extent {
  const { blocks } = cache;
  const bytes = blocks.take();
  for (let at = 0; at < bytes.length; at += 64) {
    recordOf(index * extentBytes + at).copy(bytes, at, 0, Math.min(64, bytes.length - at));
  }
  return new Extent(segment, index, index * extentBytes, blocks.blockBytes, bytes, blocks);
}

test("keeps recently used single records when a scan exceeds the capacity", () => {
  const cache = newCache(64 * 1024);
  const segment = newSegment();
  const place = newPlace();
  for (let n = 1; n <= 100; n++) cache.addSingle(segment, n * 64, recordOf(n), 0, 64);
  for (let index = 100; index < 600; index++) {
    const extent = extentOf(cache, segment, index);
    cache.addExtent(extent);
    cache.place(segment, index * extentBytes, 64, place, true);
    for (let n = 1; n <= 100; n++) cache.place(segment, n * 64, 64, place, false);
  }
  for (let n = 1; n <= 100; n++) {
    expect(cache.place(segment, n * 64, 64, place, false)).toBe(true);
    expect(place.bytes.readUInt32LE(place.start + 60)).toBe(n);
  }
  expect(cache.bytes).toBeLessThanOrEqual(cache.bytesMax);
});

test("keeps an extent that is used again soon, while others are scanned", () => {
  const cache = newCache(64 * 1024);
  const segment = newSegment();
  const isThere = (index: number) => cache.extentAt(segment, index * extentBytes) !== null;
  for (let index = 0; index < 61; index++) cache.addExtent(extentOf(cache, segment, index));
  expect(isThere(0)).toBe(false);
  cache.addExtent(extentOf(cache, segment, 0));
  for (let index = 100; index < 110; index++) cache.addExtent(extentOf(cache, segment, index));
  expect(isThere(0)).toBe(true);
});

test("returns the right record or none, and never exceeds the capacity", () => {
  const random = new SeededRandom(11);
  const budget = new MemoryBudget(40_000);
  const cache = newCache(budget);
  const segments = [newSegment(1), newSegment(2), newSegment(3)];
  const place = newPlace();
  let found = 0;
  for (let step = 0; step < 20_000; step++) {
    const segment = segments[random.below(3)] as Segment;
    const offset = 64 * (1 + random.below(200));
    const kind = random.below(100);
    const length = 64 * (1 + (offset % 5));
    if (kind === 0) cache.remove(segment);
    else if (kind === 1) budget.bytesMax = 5_000 + random.below(60_000);
    else if (kind < 50) {
      const record = recordOf(segment.number * 1e6 + offset, length);
      cache.addSingle(segment, offset, record, 0, length);
    } else if (cache.place(segment, offset, length, place, false)) {
      found++;
      const { bytes, start } = place;
      expect(bytes.readUInt32LE(start + length - 4)).toBe(segment.number * 1e6 + offset);
    }
    expect(cache.bytes).toBeLessThanOrEqual(cache.bytesMax);
  }
  expect(found).toBeGreaterThan(1000);
});

test("releases memory when other uses need it", () => {
  const budget = new MemoryBudget(100_000);
  const cache = newCache(budget);
  const segment = newSegment();
  for (let index = 0; index < 100; index++) cache.addExtent(extentOf(cache, segment, index));
  expect(cache.bytes).toBeGreaterThan(80_000);
  budget.force("replies", 60_000);
  expect(cache.bytes).toBeLessThanOrEqual(40_000);
  budget.release("replies", 60_000);
});

test("a segment being written reduces the capacity until it is complete", () => {
  const cache = newCache(100_000);
  const segment = newSegment();
  segment.image = Buffer.alloc(60_000);
  Object.assign(segment, { size: 60_000 });
  cache.write(segment);
  cache.write(segment);
  expect(cache.bytesMax).toBe(40_000);
  cache.add(segment);
  expect(cache.bytesMax).toBe(100_000);
  expect(cache.bytes).toBe(60_000);
});

test("reuses the memory of a block in a later tick, when nothing holds it", async () => {
  const pool = new BlockPool(extentBytes, true, () => undefined);
  const segment = newSegment();
  const bytes = pool.take().fill(1);
  const extent = new Extent(segment, 0, 0, extentBytes, bytes, pool);
  extent.isCached = true;
  extent.leave();
  // A waiter acquires it in the same tick.
  extent.hold();
  await setImmediate();
  expect(bytes[0]).toBe(1);
  extent.release();
  expect(bytes[0]).toBe(1);
  await setImmediate();
  expect(bytes[0]).toBe(poison);
  expect(pool.take()).toBe(bytes);
});

test("an extent has the complete records that start in it", () => {
  const cache = newCache(0);
  const extent = extentOf(cache, newSegment(), 2);
  expect(extent.has(2 * extentBytes, 64)).toBe(true);
  expect(extent.has(2 * extentBytes + 64, 64)).toBe(true);
  expect(extent.has(3 * extentBytes, 64)).toBe(false);
  extent.bytes.writeUInt8(9, 30);
  expect(extent.has(2 * extentBytes, 64)).toBe(true); // checked before
  extent.bytes.writeUInt8(9, 128 + 30);
  expect(extent.has(2 * extentBytes + 128, 64)).toBe(false);
});

test("a table of single records behaves like a map under any removals", () => {
  const random = new SeededRandom(5);
  const table = new SingleTable();
  const found = { slot: 0, start: 0 };
  const model = new Map<number, [slot: number, start: number]>();
  for (let step = 0; step < 50_000; step++) {
    const offset = 64 + 8 * random.below(2_000);
    const known = model.get(offset);
    if (random.below(2) === 0) {
      const place: [number, number] = [random.below(slotCountMax), 8 * random.below(131_000)];
      table.set(offset, ...place);
      model.set(offset, place);
    } else if (known !== undefined) {
      expect(table.remove(offset, known[0] + 1, known[1])).toBeNull();
      expect(table.remove(offset, ...known)).not.toBeNull();
      model.delete(offset);
    } else expect(table.find(offset, found)).toBe(false);
  }
  for (const [offset, [slot, start]] of model) {
    expect(table.find(offset, found)).toBe(true);
    expect(found).toEqual({ slot, start });
    expect(table.remove(offset, slot, start)).toBe(true);
  }
});
