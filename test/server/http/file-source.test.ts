/** Files of folders and of zip archives. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { expect, test } from "vitest";
import { ZipFile } from "yazl";
import { folderFiles, zipFiles } from "../../../server/http/file-source.ts";

const comment = "a comment after the directory";

async function archiveOf(files: Record<string, string>, compress: boolean): Promise<Buffer> {
  const zip = new ZipFile();
  zip.addEmptyDirectory("empty");
  for (const [name, text] of Object.entries(files)) {
    zip.addBuffer(Buffer.from(text), name, { compress });
  }
  zip.end({ comment, forceZip64Format: false });
  return await buffer(zip.outputStream);
}

const files = { "index.html": "<p>ä</p>", "assets/deep/main.js": "run();".repeat(1000) };

test.each([true, false])(
  "reads the files of an archive, compressed or stored: %s",
  async (compress) => {
    const source = zipFiles(await archiveOf(files, compress));
    expect([...source.names()].sort()).toEqual(Object.keys(files).sort());
    for (const [name, text] of Object.entries(files)) {
      expect(String(await source.read(name))).toBe(text);
    }
    await expect(source.read("other")).rejects.toThrow("no file other");
  },
);

test("rejects anything but an intact archive, wherever it is truncated or changed", async () => {
  expect(() => zipFiles(Buffer.from("text"))).toThrow("no zip archive");
  const whole = await archiveOf(files, true);
  for (let length = 0; length < whole.length; length++) {
    const cut = whole.subarray(0, length);
    // Only a part of the comment may be missing.
    if (length >= whole.length - comment.length) continue;
    expect(() => zipFiles(cut), `${length}`).toThrow();
  }
  for (let at = 0; at < whole.length; at++) {
    const changed = Buffer.from(whole);
    changed[at] = (changed[at] as number) ^ 0xff;
    try {
      const source = zipFiles(changed);
      for (const name of source.names()) await source.read(name);
    } catch (error) {
      expect(error).toBeInstanceOf(Error);
    }
  }
});

test("reads files of a folder, including subfolders", async () => {
  const folder = mkdtempSync(join(tmpdir(), "file-source-"));
  try {
    mkdirSync(join(folder, "inner", "most"), { recursive: true });
    writeFileSync(join(folder, "a.txt"), "a");
    writeFileSync(join(folder, "inner", "most", "b.txt"), "b");
    const source = folderFiles(folder);
    expect([...source.names()].sort()).toEqual(["a.txt", "inner/most/b.txt"]);
    expect(String(await source.read("inner/most/b.txt"))).toBe("b");
  } finally {
    rmSync(folder, { recursive: true });
  }
});
