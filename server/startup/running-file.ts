/**
 * `server.json` in the data folder of a running server: where it listens, for the command line. It has no secrets, is
 * removed at the stop, and is stale after a crash: who reads it finds out by asking.
 */
import { readFileSync } from "node:fs";
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { replacePrivate } from "../../certs/certificate-folder.ts";

export interface RunningFile {
  readonly Url: string;
  readonly ProcessId: number;
  readonly StartedAt: string;
}

const fileName = "server.json";

/**
 * Writes the file; `folder` undefined: nothing is kept, and nothing is written. It is a convenience: where it cannot be
 * written, as on a full disk, the server starts all the same.
 * @returns removes it, unless a successor in the folder has written its own
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

/** Undefined when there is none that can be read. */
export function readRunningFile(folder: string): RunningFile | undefined {
  try {
    const content = JSON.parse(readFileSync(join(folder, fileName), "utf8")) as RunningFile;
    return typeof content.Url === "string" ? content : undefined;
  } catch {
    return undefined;
  }
}
