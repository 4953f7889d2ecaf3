import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { expect, test } from "vitest";
import { readInput, reasonOf } from "../../cli/input-file.ts";

test("reports an unreadable file with a plain reason", async () => {
  await expect(readInput("nowhere.json")).rejects.toThrow(
    /^nowhere\.json cannot be read: no such file or directory$/,
  );
  const folder = mkdtempSync(`${tmpdir()}/jackdaw-input-`);
  await expect(readInput(folder)).rejects.toThrow(
    "cannot be read: illegal operation on a directory",
  );
  rmSync(folder, { recursive: true });
  expect(reasonOf(new Error("another"))).toBe("another");
});
