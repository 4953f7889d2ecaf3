/** Log files: order, archives, retention, write errors. */
import {
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { afterAll, expect, test } from "vitest";
import { LogFile } from "../../../server/logging/log-file.ts";

const root = mkdtempSync(join(tmpdir(), "jackdaw-log-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const day = 86_400_000;
const startMs = Date.UTC(2026, 10, 23);

function options(folder: string, changes: object = {}, archives: object = {}) {
  return {
    folder: join(root, folder),
    name: "server",
    archives: {
      aboveBytes: 1000,
      keepMs: 3 * day,
      countMax: undefined,
      isCompressed: false,
      ...archives,
    },
    isSynced: true,
    failed: (error: unknown) => {
      throw error;
    },
    ...changes,
  };
}

const event = (message: string) => ({ level: "Info", timeMs: startMs, message }) as const;
const messages = (text: string) =>
  text
    .trim()
    .split("\n")
    .map((line) => (JSON.parse(line) as { msg: string }).msg);

test("appends lines in order, after those of an earlier run", async () => {
  for (const run of ["a", "b"]) {
    const file = await LogFile.open(options("order", {}, { aboveBytes: 1e9 }));
    for (let i = 0; i < 100; i++) file.write(event(`${run}${i}`));
    await file.close();
  }
  const expected = ["a", "b"].flatMap((run) => Array.from({ length: 100 }, (_, i) => `${run}${i}`));
  expect(messages(readFileSync(join(root, "order", "server.log"), "utf8"))).toEqual(expected);
});

test("archives a large file and yesterday's; deletes old and excess archives", async () => {
  let nowMs = startMs;
  const opened = options("archives", { nowMs: () => nowMs }, { countMax: 2, isCompressed: true });
  const file = await LogFile.open(opened);
  writeFileSync(join(opened.folder, "server.notes.log"), "mine");
  const archives = () =>
    readdirSync(opened.folder)
      .filter((name) => name.endsWith(".gz"))
      .sort()
      .map((name) => gunzipSync(readFileSync(join(opened.folder, name))).toString());
  for (const message of ["one", "two", "three"]) {
    file.write(event(message.padEnd(1500, "!")));
    await expect.poll(() => archives().at(-1)).toContain(`${message}!`);
    nowMs += 1000;
  }
  await expect.poll(() => archives().length).toBe(2);
  expect(archives()[0]).toContain("two!");
  nowMs += 5 * day;
  await file.close();
  await (await LogFile.open(opened)).close();
  expect(readdirSync(opened.folder)).toEqual(["server.log", "server.notes.log"]);
});

test("counts write errors, reports them once, and throws nothing", async () => {
  const errors: unknown[] = [];
  const opened = options("full", {
    failed: (error: unknown) => errors.push(error),
    isSynced: false,
  });
  await (await LogFile.open(opened)).close();
  rmSync(join(opened.folder, "server.log"));
  symlinkSync("/dev/full", join(opened.folder, "server.log"));
  const file = await LogFile.open(opened);
  file.write(event("lost"));
  await expect.poll(() => errors.length).toBe(1);
  file.write(event("lost too"));
  await file.close();
  expect(file.droppedCount).toBe(2);
  expect(errors).toHaveLength(1);
  expect(errors[0]).toMatchObject({ code: "ENOSPC" });
});
