/** System information on processors, memory and disks. */
import { tmpdir } from "node:os";
import { expect, test, vi } from "vitest";
import {
  DiskWatch,
  deviceCounts,
  machineMemory,
  mountPointOf,
  ProcessorWatch,
  RoomWatch,
} from "../../../server/monitoring/machine.ts";

test("the processor time of this process increases while it works", () => {
  const watch = new ProcessorWatch();
  const untilMs = performance.now() + 150;
  while (performance.now() < untilMs);
  const { process, machine, cores } = watch.look();
  expect(process).toBeGreaterThan(0);
  expect(process).toBeLessThanOrEqual(100);
  expect(machine).toBeLessThanOrEqual(100);
  expect(cores).toBeGreaterThan(0);
});

test("memory is that of this process and machine", () => {
  const memory = machineMemory();
  expect(memory.residentBytes).toBeGreaterThan(memory.heapBytes / 2);
  expect(memory.totalBytes).toBeGreaterThan(memory.residentBytes);
  expect(memory.swapUsedBytes).toBeGreaterThanOrEqual(0);
});

test("a line of /proc/diskstats is parsed as the kernel documents it", () => {
  const text =
    "   8       0 sda 1 0 2 0 3 0 4 0 0 0 0\n 254       1 vda1 1033 20 8000 5 501 7 9000 6 3 70 90 0 0 0 0\n";
  expect(deviceCounts(text, "254:1")).toMatchObject({
    reads: 1033,
    readSectors: 8000,
    writes: 501,
    writtenSectors: 9000,
    underWay: 3,
  });
  expect(deviceCounts(text, "9:9")).toBeNull();
  // Unavailable values on this machine are not a failure.
  expect(() => new DiskWatch(tmpdir()).look()).not.toThrow();
  expect(new DiskWatch("/no/such/folder").look()).toBeNull();
});

test("disk space is queried in the background, and each result is reported once", async () => {
  const watch = new RoomWatch(tmpdir());
  expect(watch.look()).toBeUndefined();
  const reported = await vi.waitUntil(() => watch.look(), { timeout: 5_000 });
  expect(reported?.totalBytes).toBeGreaterThan(0);
  expect(reported?.freeBytes).toBeLessThanOrEqual(reported?.totalBytes ?? 0);
  expect(watch.look()).toBeUndefined();
});

test("a missing folder has no reported space", async () => {
  const watch = new RoomWatch("/no/such/folder");
  expect(watch.look()).toBeUndefined();
  await expect.poll(() => watch.look()).toBeNull();
});

test("a folder belongs to the deepest mount above it", () => {
  const mounts = "dev / ext4 rw 0 0\ndev /data ext4 rw 0 0\ndev /data/my\\040disk ext4 rw 0 0\n";
  expect(mountPointOf("/data/x", mounts)).toBe("/data");
  expect(mountPointOf("/database", mounts)).toBe("/");
  expect(mountPointOf("/data/my disk/x", mounts)).toBe("/data/my disk");
});
