import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import {
  nodeEnvironment,
  steppedMicros,
} from "../../../../engine/base/platform/node-environment.ts";

let folder = "";

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "jackdaw-environment-"));
});

afterAll(async () => {
  await rm(folder, { recursive: true });
});

test("the clock has whole microseconds, and timers can be cancelled", async () => {
  const { clock } = nodeEnvironment();
  const micros = clock.nowMicros();
  expect(Number.isSafeInteger(micros)).toBe(true);
  expect(Math.abs(micros / 1000 - Date.now())).toBeLessThan(60_000);
  expect(clock.monotonicMs()).toBeLessThanOrEqual(clock.monotonicMs());
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  try {
    const ran: string[] = [];
    clock.setTimer(10, () => ran.push("cancelled")).cancel();
    clock.setTimer(10, () => ran.push("kept"));
    clock.setTimer(Number.MAX_SAFE_INTEGER, () => ran.push("longer than Node's timers"));
    vi.advanceTimersByTime(9);
    expect(ran).toEqual([]);
    vi.advanceTimersByTime(1_000);
    expect(ran).toEqual(["kept"]);
  } finally {
    vi.useRealTimers();
  }
});

test("the clock follows steps of the system clock, but not every drift of a millisecond", () => {
  let wallMs = 1_000_000;
  let finerMs = 1_000_000.25;
  const nowMicros = steppedMicros(
    () => wallMs,
    () => finerMs,
  );
  expect(nowMicros()).toBe(1_000_000_250);
  finerMs += 500.5; // drift
  expect(nowMicros()).toBe(1_000_500_750);
  wallMs += 3_600_000; // the computer slept
  expect(nowMicros()).toBe(wallMs * 1000);
  finerMs += 0.125;
  expect(nowMicros()).toBe(wallMs * 1000 + 125);
  wallMs -= 10_000_000; // the clock was set back
  expect(nowMicros()).toBe(wallMs * 1000);
});

test("random bytes have the requested count and differ", () => {
  const environment = nodeEnvironment();
  expect(environment.random(16)).toHaveLength(16);
  expect(environment.random(16).equals(environment.random(16))).toBe(false);
});

describe("files", () => {
  const { files } = nodeEnvironment();

  test("are written, read, truncated, renamed and removed", async () => {
    const path = join(folder, "file");
    const file = await files.open(path, "create");
    await file.write(Buffer.from("xxhello worldxx"), 2, 11, 0);
    await file.write(Buffer.from("W"), 0, 1, 6);
    await file.sync();
    expect(await file.size()).toBe(11);
    const target = Buffer.alloc(20, ".");
    expect(await file.read(target, 1, 15, 6)).toBe(5);
    expect(target.toString()).toBe(".World..............");
    await file.truncate(5);
    expect(await file.size()).toBe(5);
    await file.close();
    await expect(files.open(path, "create")).rejects.toMatchObject({ code: "EEXIST" });
    await expect(files.open(join(folder, "none"), "update")).rejects.toMatchObject({
      code: "ENOENT",
    });
    await files.rename(path, join(folder, "renamed"));
    await files.syncDirectory(folder);
    expect(await files.exists(path)).toBe(false);
    expect(await files.list(folder)).toEqual(["renamed"]);
    const reading = await files.open(join(folder, "renamed"), "read");
    await expect(reading.write(Buffer.from("x"), 0, 1, 0)).rejects.toMatchObject({ code: "EBADF" });
    await reading.close();
    await files.unlink(join(folder, "renamed"));
    expect(await files.list(folder)).toEqual([]);
  });

  test("folders are created with their parents and removed with their contents", async () => {
    await files.makeDirectory(join(folder, "a/b/c"));
    await files.makeDirectory(join(folder, "a/b/c"));
    expect(await files.exists(join(folder, "a/b"))).toBe(true);
    await files.removeTree(join(folder, "a"));
    await files.removeTree(join(folder, "a"));
    expect(await files.exists(join(folder, "a"))).toBe(false);
    expect(await files.freeBytes(folder)).toBeGreaterThan(0);
  });

  test("a full device is an error", async () => {
    const full = await files.open("/dev/full", "update");
    await expect(full.write(Buffer.alloc(10), 0, 10, 0)).rejects.toMatchObject({ code: "ENOSPC" });
    await full.close();
  });
});

describe("the lock of a folder", () => {
  const { files } = nodeEnvironment();

  test("is granted once within a process", async () => {
    const lock = await files.lockDirectory(folder);
    await expect(files.lockDirectory(folder)).rejects.toMatchObject({ code: "database-locked" });
    await expect(files.lockDirectory(`${folder}/.`)).rejects.toThrow(`process ${process.pid} `);
    await lock.release();
    await (await files.lockDirectory(folder)).release();
  });
});
