/** The memory of the process, read from a file. */
import { expect, test, vi } from "vitest";
import { residentBytes } from "../../../../engine/base/memory/resident-bytes.ts";

test("returns the previous value if no file handle is available", () => {
  expect(residentBytes(7)).toBeGreaterThan(1024 * 1024);
  vi.spyOn(process.memoryUsage, "rss").mockImplementationOnce(() => {
    throw Object.assign(new Error("EMFILE: too many open files"), { code: "EMFILE" });
  });
  expect(residentBytes(7)).toBe(7);
});
