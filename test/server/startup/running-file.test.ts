/** `server.json`: where a running server listens. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { announce, readRunningFile } from "../../../server/startup/running-file.ts";

const folder = mkdtempSync(join(tmpdir(), "jackdaw-running-"));
const path = join(folder, "server.json");
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("it is there until the stop", async () => {
  const withdraw = await announce(folder, "https://127.0.0.1:1");
  expect(readRunningFile(folder)).toMatchObject({
    Url: "https://127.0.0.1:1",
    ProcessId: process.pid,
  });
  await withdraw();
  expect(existsSync(path)).toBe(false);
});

test("a successor's is left alone, and one that cannot be read counts for none", async () => {
  const withdraw = await announce(folder, "https://127.0.0.1:1");
  writeFileSync(path, "{");
  await withdraw();
  expect(readFileSync(path, "utf8")).toBe("{");
  expect(readRunningFile(folder)).toBeUndefined();
});

test("nothing is written without a folder, and one that cannot be written does no harm", async () => {
  await (await announce(undefined, "http://127.0.0.1:1"))();
  await (await announce(join(folder, "none"), "http://127.0.0.1:1"))();
});
