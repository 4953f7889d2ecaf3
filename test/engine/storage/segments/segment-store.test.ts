/** The list of segments: numbers, order, and segments kept readable by pins. */
import { expect, test } from "vitest";
import { nodeEnvironment } from "../../../../engine/base/platform/node-environment.ts";
import { Health } from "../../../../engine/storage/log/health.ts";
import { positionSegmentFactor } from "../../../../engine/storage/log/log.ts";
import { SegmentCache } from "../../../../engine/storage/segments/segment-cache.ts";
import { SegmentStore } from "../../../../engine/storage/segments/segment-store.ts";

/** Without files. */
function newStore(): SegmentStore {
  const cache = new SegmentCache(1 << 20);
  return new SegmentStore(null, Buffer.alloc(16), cache, new Health(), nodeEnvironment());
}

test("segments have their own numbers and are found by them before they are listed", () => {
  const store = newStore();
  const [one, two] = [store.newSegment("log", 1024), store.newSegment("log", 2048)];
  expect(two.number).toBe(one.number + 1);
  expect(store.find(one.number)).toBe(one);
  expect(store.order).toEqual([]);
  expect(() => store.adopt(one)).toThrow("segment numbers are unique");
});

test("appending can be undone, and dropped segments are forgotten", () => {
  const store = newStore();
  const [one, two] = [store.newSegment("log", 1024), store.newSegment("log", 1024)];
  store.append(one);
  const undo = store.append(two);
  expect(store.order).toEqual([one, two]);
  undo();
  expect(store.order).toEqual([one]);
  store.drop(one);
  expect(store.order).toEqual([]);
  expect(store.find(one.number)).toBeUndefined();
});

test("a retired segment stays only while an older pin is held", () => {
  const store = newStore();
  const [one, two] = [store.newSegment("log", 1024), store.newSegment("log", 1024)];
  const older = store.pin();
  store.retire([one]);
  const newer = store.pin();
  store.retire([two]);
  expect([store.find(one.number), store.find(two.number)]).toEqual([one, two]);
  older.release();
  older.release();
  expect([store.find(one.number), store.find(two.number)]).toEqual([undefined, two]);
  newer.release();
  expect(store.find(two.number)).toBeUndefined();
});

test("a position in no segment is damage, and a peek finds nothing there", async () => {
  const store = newStore();
  const position = 99 * positionSegmentFactor;
  expect(store.peek(position, 8)).toBeNull();
  await expect(store.read(position, 8)).rejects.toMatchObject({ code: "record-damaged" });
});
