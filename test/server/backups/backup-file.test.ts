/**
 * The file of a backup: complete or absent, when the disk is full, the dump fails, or the process
 * ends.
 */
import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, statSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { afterAll, expect, test } from "vitest";
import type { FileHandle, FileSystem } from "../../../engine/base/environment.ts";
import { nodeEnvironment } from "../../../engine/engine.ts";
import { writeBackupFile } from "../../../server/backups/backup-file.ts";
import { FolderStorage } from "../../../server/backups/folder-storage.ts";

const base = mkdtempSync(join(tmpdir(), "jackdaw-files-"));
afterAll(() => rm(base, { recursive: true, force: true }));
const { files } = nodeEnvironment();
let count = 0;
const newFolder = () => join(base, `deep/${++count}`);

async function* dump(pieces: number): AsyncGenerator<Buffer> {
  for (let i = 0; i < pieces; i++) yield Buffer.alloc(100_000, String(Math.random()));
}

/** A file system whose calls of one type fail from the n-th on. */
function failing(
  call: "write" | "sync" | "rename" | "syncDirectory" | "open",
  code: string,
  n = 1,
): FileSystem {
  let calls = 0;
  const fail = (): void => {
    if (++calls < n) return;
    throw Object.assign(new Error(`${code}: no`), { code, syscall: call });
  };
  const wrapped = (handle: FileHandle): FileHandle =>
    new Proxy(handle, {
      get(target, key) {
        if (key === call) {
          return async (...given: never[]) => {
            fail();
            return await (target[key as "sync"] as (...args: never[]) => Promise<void>).apply(
              target,
              given,
            );
          };
        }
        const value = Reflect.get(target, key) as unknown;
        return typeof value === "function" ? (value as () => unknown).bind(target) : value;
      },
    });
  return new Proxy(files, {
    get(target, key) {
      const value = Reflect.get(target, key) as (...args: never[]) => Promise<unknown>;
      if (typeof value !== "function") return value;
      return async (...given: never[]) => {
        if (key === call) fail();
        const result = await value.apply(target, given);
        return key === "open" ? wrapped(result as FileHandle) : result;
      };
    },
  });
}

test("is a compressed dump, readable only by its owner", async () => {
  const folder = newFolder();
  const pieces: Buffer[] = [];
  for await (const piece of dump(20)) pieces.push(piece);
  const text = Buffer.concat(pieces);
  async function* again() {
    yield text;
  }
  const { bytes, sha256 } = await writeBackupFile(
    new FolderStorage(files, folder),
    "x.ravendb-full-backup",
    again(),
    null,
  );
  expect(readdirSync(folder)).toEqual(["x.ravendb-full-backup"]);
  const path = join(folder, "x.ravendb-full-backup");
  expect(readFileSync(path)).toHaveLength(bytes);
  expect(createHash("sha256").update(readFileSync(path)).digest("hex")).toBe(sha256);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(gunzipSync(readFileSync(path)).equals(text)).toBe(true);
  const read: Buffer[] = [];
  for await (const piece of new FolderStorage(files, folder).read("x.ravendb-full-backup"))
    read.push(piece);
  expect(Buffer.concat(read).equals(readFileSync(path))).toBe(true);
});

test.each([
  ["write", "ENOSPC", "disk-full"],
  ["write", "EDQUOT", "disk-full"],
  ["write", "EIO", "file-failed"],
  ["sync", "EIO", "file-failed"],
  ["rename", "EACCES", "file-failed"],
  ["open", "EROFS", "file-failed"],
] as const)("leaves no file when %s fails with %s", async (call, error, code) => {
  const folder = newFolder();
  const failed = writeBackupFile(
    new FolderStorage(failing(call, error), folder),
    "x.ravendb-full-backup",
    dump(50),
    null,
  );
  await expect(failed).rejects.toMatchObject({ code, message: expect.stringContaining(folder) });
  expect(await files.exists(folder)).toBe(false);
});

test("keeps the earlier files of the folder when a later one fails", async () => {
  const folder = newFolder();
  await writeBackupFile(new FolderStorage(files, folder), "1.ravendb-full-backup", dump(1), null);
  const full = failing("write", "ENOSPC", 2);
  const failed = writeBackupFile(
    new FolderStorage(full, folder),
    "2.ravendb-incremental-backup",
    dump(200),
    null,
  );
  await expect(failed).rejects.toMatchObject({ code: "disk-full" });
  expect(readdirSync(folder)).toEqual(["1.ravendb-full-backup"]);
});

test("rethrows the error of the dump, and leaves no file", async () => {
  const folder = newFolder();
  async function* broken(): AsyncGenerator<Buffer> {
    yield* dump(30);
    throw new Error("record damaged");
  }
  await expect(
    writeBackupFile(new FolderStorage(files, folder), "x", broken(), null),
  ).rejects.toThrow("record damaged");
  expect(await files.exists(folder)).toBe(false);
});

test("has a temporary name until it is durable", async () => {
  const folder = newFolder();
  const seen = new Set<string>();
  async function* watched(): AsyncGenerator<Buffer> {
    for await (const piece of dump(50)) {
      for (const name of readdirSync(folder)) seen.add(name);
      yield piece;
    }
  }
  await writeBackupFile(new FolderStorage(files, folder), "x.ravendb-full-backup", watched(), null);
  expect([...seen]).toEqual(["x.ravendb-full-backup.in-progress"]);
});

test("a file that cannot be read is told of", async () => {
  const reading = new FolderStorage(files, base).read("none").next();
  await expect(reading).rejects.toMatchObject({ code: "file-failed" });
});
