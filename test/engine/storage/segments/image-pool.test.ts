import { setImmediate } from "node:timers/promises";
import { expect, test, vi } from "vitest";
import { ImagePool, idleCountMax } from "../../../../engine/storage/segments/image-pool.ts";

test("reuses released memory in the next event-loop tick, not before", async () => {
  const pool = new ImagePool();
  const first = pool.take(1000);
  first.fill(7);
  pool.releaseImage(first);
  expect(pool.take(1000).buffer).not.toBe(first.buffer);
  await setImmediate();
  const second = pool.take(999);
  expect(second.buffer).toBe(first.buffer);
  expect(second).toHaveLength(999);
  expect(pool.idleBytes).toBe(0);
});

test("poisons released memory to expose late readers", async () => {
  const pool = new ImagePool(true);
  const image = pool.take(64);
  image.fill(7);
  pool.releaseImage(image);
  expect(image[0]).toBe(7);
  await setImmediate();
  expect(image[0]).toBe(0xdb);
});

test("does not use a large buffer for a small image, nor a small buffer for a large one", async () => {
  const pool = new ImagePool();
  for (const size of [100, 10_000]) pool.releaseImage(pool.take(size));
  await setImmediate();
  expect(pool.take(1000).buffer.byteLength).toBeLessThan(2000);
  expect(pool.take(10_001).buffer.byteLength).toBeGreaterThan(10_000);
});

test("keeps the largest buffers, up to the allowed count and bytes", async () => {
  const pool = new ImagePool();
  for (let count = 0; count <= idleCountMax; count++) {
    pool.releaseImage(Buffer.from(new ArrayBuffer(count === 2 ? 512 : 1024)));
  }
  await setImmediate();
  expect(pool.idleBytes).toBe(idleCountMax * 1024);
  for (const mebibytes of [64, 64, 65]) {
    pool.releaseImage(Buffer.from(new ArrayBuffer(mebibytes * 1024 * 1024)));
  }
  await setImmediate();
  expect(pool.idleBytes).toBe(128 * 1024 * 1024);
});

test("keeps nothing if no image was acquired for some time", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  try {
    const pool = new ImagePool(false, 40);
    const acquireAndRelease = async () => {
      pool.releaseImage(pool.take(1000));
      await setImmediate();
    };
    await acquireAndRelease();
    for (let tick = 0; tick < 8; tick++) {
      vi.advanceTimersByTime(30);
      expect(pool.idleBytes).toBeGreaterThan(0);
      await acquireAndRelease();
    }
    vi.advanceTimersByTime(80);
    expect(pool.idleBytes).toBe(0);
    await acquireAndRelease();
    expect(pool.idleBytes).toBeGreaterThan(0);
    vi.advanceTimersByTime(80);
    expect(pool.idleBytes).toBe(0);
  } finally {
    vi.useRealTimers();
  }
});
