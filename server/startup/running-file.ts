/**
 * `server.json` in the data folder of a running server: its address, for the command line. It contains no secrets, is removed
 * when the server stops, and is stale after a crash, which readers detect by connecting.
 */
import { readFileSync } from "node:fs";
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { replacePrivate } from "../../certs/certificate-folder.ts";

interface RunningFile {
  readonly Url: string;
  readonly ProcessId: number;
  readonly StartedAt: string;
}

const fileName = "server.json";

/**
 * Writes the file, unless `folder` is undefined. The file is a convenience: if it cannot be written, for example on a full
 * disk, the server starts anyway.
 * @returns a function that removes it, unless a successor in the folder has replaced it
 */
export async function announce(
  folder: string | undefined,
  url: string,
): Promise<() => Promise<void>> {
  if (folder === undefined) return async () => undefined;
  const path = join(folder, fileName);
  const written: RunningFile = {
    Url: url,
    ProcessId: process.pid,
    StartedAt: new Date().toISOString(),
  };
  const text = `${JSON.stringify(written)}\n`;
  await replacePrivate(path, text).catch(() => undefined);
  return async () => {
    const found = await readFile(path, "utf8").catch(() => "");
    if (found === text) await rm(path, { force: true }).catch(() => undefined);
  };
}

/** Returns undefined if the file is missing or unreadable. */
export function readRunningFile(folder: string): RunningFile | undefined {
  try {
    const content = JSON.parse(readFileSync(join(folder, fileName), "utf8")) as RunningFile;
    return typeof content.Url === "string" ? content : undefined;
  } catch {
    return undefined;
  }
}
