/** `server.json`: the addresses of a running server. */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { announce, readRunningFile } from "../../../server/startup/running-file.ts";

const folder = mkdtempSync(join(tmpdir(), "jackdaw-running-"));
const path = join(folder, "server.json");
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("it exists until the server stops", async () => {
  const withdraw = await announce(folder, "https://127.0.0.1:1");
  expect(readRunningFile(folder)).toMatchObject({
    Url: "https://127.0.0.1:1",
    ProcessId: process.pid,
  });
  await withdraw();
  expect(existsSync(path)).toBe(false);
});

test("a successor's file is not removed, and an unreadable file counts as missing", async () => {
  const withdraw = await announce(folder, "https://127.0.0.1:1");
  writeFileSync(path, "{");
  await withdraw();
  expect(readFileSync(path, "utf8")).toBe("{");
  expect(readRunningFile(folder)).toBeUndefined();
});

test("nothing is written without a folder, and a failed write has no effect", async () => {
  rmSync(path, { force: true });
  for (const none of [undefined, join(folder, "none")]) {
    const withdraw = await announce(none, "http://127.0.0.1:1");
    await expect(withdraw()).resolves.toBeUndefined();
  }
  expect(readdirSync(folder)).toEqual([]);
});
