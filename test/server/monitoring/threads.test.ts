/** Threads of this process, and the lines of the kernel that describe them. */
import { platform } from "node:os";
import { expect, test } from "vitest";
import { threadOf, threadsOfProcess } from "../../../server/monitoring/threads.ts";

test("a line is parsed although its name contains brackets and spaces", () => {
  const line =
    "4711 (a (b) c) S 1 1 1 0 -1 4194368 9 0 0 0 150 25 0 0 20 0 11 0 340000 1 2 18446744073709551615";
  expect(threadOf(line)).toEqual({
    id: 4711,
    name: "a (b) c",
    state: "S",
    userMs: 1_500,
    systemMs: 250,
    startedMs: 3_400_000,
  });
});

test.runIf(platform() === "linux")("includes the main thread of this process", () => {
  const threads = threadsOfProcess();
  expect(threads.map(({ id }) => id)).toContain(process.pid);
  expect(threads.reduce((sum, { userMs }) => sum + userMs, 0)).toBeGreaterThan(0);
});
