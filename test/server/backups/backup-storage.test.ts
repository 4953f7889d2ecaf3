/**
 * An encrypted destination over a folder: files that are read, written and named, in it and in
 * subfolders.
 */
import { mkdtempSync, readFileSync, realpathSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { nodeEnvironment } from "../../../engine/engine.ts";
import { EncryptedStorage, isEncryptedWith } from "../../../server/backups/backup-storage.ts";
import { FolderStorage } from "../../../server/backups/folder-storage.ts";

const base = realpathSync(mkdtempSync(join(tmpdir(), "jackdaw-place-")));
afterAll(() => rm(base, { recursive: true, force: true }));
const key = Buffer.alloc(32, 5);
const { files } = nodeEnvironment();

test("what is written is encrypted on the disk, and read with the key alone", async () => {
  const folder = new FolderStorage(files, join(base, "one"));
  const place = new EncryptedStorage(folder, key);
  await place.make();
  const inner = place.within("inner");
  await inner.make();
  for (const one of [place, inner]) {
    await one.write("x", [Buffer.from("in clear")]);
    const path = one.pathOf("x");
    expect(readFileSync(path)).toHaveLength(24 + 8 + 17);
    expect(readFileSync(path).includes("clear")).toBe(false);
    for await (const piece of one.read("x")) expect(piece.toString()).toBe("in clear");
  }
  expect(await place.folders()).toEqual(["inner"]);
  expect((await place.files()).map(({ name }) => name)).toEqual(["x"]);
  expect(await isEncryptedWith(key, folder, "x")).toBe(true);
  expect(await isEncryptedWith(Buffer.alloc(32), folder, "x")).toBe(false);
  await expect(isEncryptedWith(key, folder, "none")).rejects.toMatchObject({ code: "file-failed" });
  const other = new EncryptedStorage(folder, Buffer.alloc(32)).read("x");
  await expect(other.next()).rejects.toThrow("the key is wrong");
  await inner.removeAll();
  await place.remove(["x"]);
  expect(await place.exists()).toBe(false);
});
