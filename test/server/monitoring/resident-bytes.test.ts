/** The memory of the process, which is told in a file. */
import { expect, test, vi } from "vitest";
import { residentBytes } from "../../../server/monitoring/resident-bytes.ts";

test("the memory of a process without file handles is what it was", () => {
  expect(residentBytes(7)).toBeGreaterThan(1024 * 1024);
  vi.spyOn(process.memoryUsage, "rss").mockImplementationOnce(() => {
    throw Object.assign(new Error("EMFILE: too many open files"), { code: "EMFILE" });
  });
  expect(residentBytes(7)).toBe(7);
});
