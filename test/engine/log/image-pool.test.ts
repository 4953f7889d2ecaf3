import { setImmediate } from "node:timers/promises";
import { expect, test, vi } from "vitest";
import { ImagePool, idleCountMax } from "../../../engine/log/image-pool.ts";

test("memory that was given is an image again in the next turn of the event loop, not before", async () => {
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

test("what was given is poisoned for those who would read it too late", async () => {
  const pool = new ImagePool(true);
  const image = pool.take(64);
  image.fill(7);
  pool.releaseImage(image);
  expect(image[0]).toBe(7);
  await setImmediate();
  expect(image[0]).toBe(0xdb);
});

test("a large memory is not taken for a small image, nor a small one for a large", async () => {
  const pool = new ImagePool();
  for (const size of [100, 10_000]) pool.releaseImage(pool.take(size));
  await setImmediate();
  expect(pool.take(1000).buffer.byteLength).toBeLessThan(2000);
  expect(pool.take(10_001).buffer.byteLength).toBeGreaterThan(10_000);
});

test("the largest are kept, as many as are allowed, and no more bytes than are allowed", async () => {
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

test("nothing is kept when no image was taken for a while", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  try {
    const pool = new ImagePool(false, 40);
    const takeAndGive = async () => {
      pool.releaseImage(pool.take(1000));
      await setImmediate();
    };
    await takeAndGive();
    for (let turn = 0; turn < 8; turn++) {
      vi.advanceTimersByTime(30);
      expect(pool.idleBytes).toBeGreaterThan(0);
      await takeAndGive();
    }
    vi.advanceTimersByTime(80);
    expect(pool.idleBytes).toBe(0);
    await takeAndGive();
    expect(pool.idleBytes).toBeGreaterThan(0);
    vi.advanceTimersByTime(80);
    expect(pool.idleBytes).toBe(0);
  } finally {
    vi.useRealTimers();
  }
});
