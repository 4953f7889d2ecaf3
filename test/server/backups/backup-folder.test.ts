/** Permitted paths of backup folders, and detection of backups by their names. */
import { mkdirSync, mkdtempSync, realpathSync, symlinkSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { nodeEnvironment } from "../../../engine/engine.ts";
import {
  backupFilesIn,
  backupFoldersIn,
  checkedFolder,
  folderName,
  stampOf,
  timeOfStamp,
} from "../../../server/backups/backup-folder.ts";
import { FolderStorage } from "../../../server/backups/folder-storage.ts";

const base = realpathSync(mkdtempSync(join(tmpdir(), "jackdaw-folders-")));
afterAll(() => rm(base, { recursive: true, force: true }));
const root = join(base, "root");
const data = join(base, "data");
for (const folder of [root, data, join(base, "outside"), join(base, "rooted")]) mkdirSync(folder);
writeFileSync(join(root, "file"), "");
symlinkSync(join(base, "outside"), join(root, "out"));
symlinkSync(root, join(base, "into"));
symlinkSync(join(base, "nothing"), join(root, "dangling"));
const rules = { root, dataFolder: data };

test.each([root, join(root, "new"), join(root, "new/er/folder"), join(base, "into", "x")])(
  "%s is permitted",
  async (path) => {
    expect(await checkedFolder(path, rules)).toBe(path.replace(join(base, "into"), root));
  },
);

test.each([
  ["relative/path", "must be an absolute path"],
  [".", "must be an absolute path"],
  [`${root}/../outside`, "must not contain '..'"],
  [`${root}/a\\..\\b`, "must not contain '..'"],
  [join(base, "outside"), "must be within"],
  [join(base, "rooted"), "must be within"],
  [base, "must be within"],
  ["/", "must be within"],
  [join(root, "out"), "must be within"],
  [join(root, "out", "new"), "must be within"],
  [join(root, "file"), "is a file"],
  [join(root, "file", "new"), "Cannot write to directory path"],
  [`${root}/a\0b`, "zero character"],
  [`/${"x".repeat(5000)}`, "too long"],
])("%s is not permitted", async (path, message) => {
  await expect(checkedFolder(path, rules)).rejects.toMatchObject({
    code: "invalid-argument",
    message: expect.stringContaining(message),
  });
});

test("without a root, any folder except the data folder is permitted", async () => {
  const free = { root: undefined, dataFolder: data };
  expect(await checkedFolder(join(base, "outside"), free)).toBe(join(base, "outside"));
  await expect(checkedFolder(join(data, "x"), free)).rejects.toThrow("within the data folder");
  await expect(checkedFolder(data, free)).rejects.toThrow("within the data folder");
});

test("finds backups by their names, in time order", async () => {
  const folder = join(base, "backups");
  const own = join(folder, folderName("2026-11-23-02-17-01", "my-db.x-1", "A"));
  mkdirSync(own, { recursive: true });
  mkdirSync(join(folder, "other"));
  for (const name of [
    "2026-11-23-03-00-00.ravendb-incremental-backup",
    "2026-11-23-02-17-01.ravendb-full-backup",
    "2026-11-23-04-00-00.ravendb-incremental-backup.in-progress",
    "2026-11-23-04-00-00.ravendb-encrypted-full-backup",
    "2026-11-23-04-00-00.ravendb-snapshot",
    "notes.txt",
  ]) {
    writeFileSync(join(own, name), "");
  }
  const place = new FolderStorage(nodeEnvironment().files, folder);
  const folders = await backupFoldersIn(place);
  expect(folders.map(({ place: { path }, ...name }) => ({ path, ...name }))).toEqual([
    { path: folder, stamp: null, database: null, nodeTag: null },
    { path: own, stamp: "2026-11-23-02-17-01", database: "my-db.x-1", nodeTag: "A" },
  ]);
  const found = await backupFilesIn(place.within("2026-11-23-02-17-01.ravendb-my-db.x-1-A-backup"));
  expect(
    found.map(({ isIncremental, isEncrypted, isSnapshot }) => [
      isIncremental,
      isEncrypted,
      isSnapshot,
    ]),
  ).toEqual([
    [false, false, false],
    [true, false, false],
    [false, true, false],
    [false, false, true],
  ]);
  const ms = Date.UTC(2026, 10, 23, 2, 17, 1);
  expect(stampOf(ms)).toBe("2026-11-23-02-17-01");
  expect(timeOfStamp(stampOf(ms))).toBe(ms);
});
