/** The files of a zip archive by name. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export function unzip(archive: Buffer): Record<string, Buffer> {
  const folder = mkdtempSync(join(tmpdir(), "jackdaw-zip-"));
  try {
    const file = join(folder, "x.zip");
    writeFileSync(file, archive);
    const names = execFileSync("unzip", ["-Z1", file], { encoding: "utf8" }).trim().split("\n");
    return Object.fromEntries(
      names.map((name) => [
        name,
        execFileSync("unzip", ["-p", file, name.replace(/[[\]]/g, "\\$&")]),
      ]),
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
