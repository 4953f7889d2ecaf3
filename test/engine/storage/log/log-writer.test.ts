/**
 * Group commit: appended records become durable together and in order; a stopped log accepts none.
 */
import { expect, test } from "vitest";
import { nodeEnvironment } from "../../../../engine/base/platform/node-environment.ts";
import { Health } from "../../../../engine/storage/log/health.ts";
import type { LogListener } from "../../../../engine/storage/log/log.ts";
import { LogWriter } from "../../../../engine/storage/log/log-writer.ts";
import { SpaceGuard } from "../../../../engine/storage/log/space-guard.ts";
import { SegmentCache } from "../../../../engine/storage/segments/segment-cache.ts";
import { SegmentStore } from "../../../../engine/storage/segments/segment-store.ts";

/** A writer without files, and the events it reports. */
function newWriter() {
  const { clock, files, random } = nodeEnvironment();
  const health = new Health();
  const cache = new SegmentCache(1 << 20);
  const store = new SegmentStore(null, Buffer.alloc(16), cache, health, { clock, random });
  const reported: (number | string)[] = [];
  const listener: LogListener = {
    durable: (count) => reported.push(count),
    lost: (count) => reported.push(`lost after ${count}`),
    stopped: (error) => reported.push(error.message),
  };
  const space = new SpaceGuard(null, files, clock, 0);
  const sizes = { segmentBytesMin: 1024, segmentBytesMax: 4096 };
  const writer = new LogWriter(
    { store, space, clock, listener, ...sizes, slowDown: () => null },
    { active: null, wasClosed: false, lastNumber: 0, lastCrc: 0, plannedSize: 1024 },
  );
  const append = (length: number, byte = 1) =>
    writer.append(Buffer.alloc(length, byte), length, false, false, null);
  return { writer, store, health, reported, append };
}

test("records appended in one tick become durable together", async () => {
  const { writer, store, reported, append } = newWriter();
  const positions = [append(64, 1), append(64, 2), append(64, 3)];
  expect(positions).toEqual([...positions].sort((left, right) => left - right));
  expect([writer.appendedCount, writer.durableCount, writer.unsyncedBytes]).toEqual([3, 0, 192]);
  expect(store.peek(positions[1] ?? 0, 64)).toEqual(Buffer.alloc(64, 2));
  await writer.flush();
  expect([writer.durableCount, writer.unsyncedBytes]).toEqual([3, 0]);
  expect(reported).toEqual([3]);
  await writer.flush();
});

test("a full segment is followed by a new one, larger if necessary", async () => {
  const { writer, store, reported, append } = newWriter();
  for (let n = 0; n < 10; n++) append(512);
  append(8192);
  await writer.flush();
  expect(store.order.length).toBeGreaterThan(3);
  expect(store.order.every(({ size }) => size >= 1024)).toBe(true);
  expect(store.order.at(-1)?.size).toBeGreaterThan(8192);
  expect(reported.at(-1)).toBe(11);
});

test("notifies a waiter when fewer bytes are unsynced", async () => {
  const { writer, append } = newWriter();
  append(512);
  const below = writer.whenUnsyncedBelow(100);
  expect(writer.unsyncedBytes).toBe(512);
  await below;
  expect(writer.unsyncedBytes).toBe(0);
});

test("accepts only whole records, and none after the log has stopped or was closed", async () => {
  const { writer, health, append } = newWriter();
  expect(() => append(7)).toThrow("a transaction is made of whole records");
  expect(() => append(0)).toThrow("a transaction is made of whole records");
  append(8);
  await writer.close();
  expect(() => append(8)).toThrow("nothing is appended to a log that is closed");
  const other = newWriter();
  other.health.stop(new Error("the disk is gone"));
  expect(() => other.append(8)).toThrow();
  await expect(other.writer.whenUnsyncedBelow(0)).rejects.toThrow("the disk is gone");
  expect(other.reported).toEqual([expect.stringContaining("the disk is gone")]);
  expect(health.stopped).toBeNull();
});
