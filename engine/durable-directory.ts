/**
 * Makes folders that a loss of power does not take back: a new folder is on the device when the folder that names it
 * was synced.
 */
import { dirname } from "node:path";
import type { FileSystem } from "./environment.ts";

/** Creates `path` and the parents that are missing. When it resolves, all of them are on the device. */
export async function makeDurableDirectory(files: FileSystem, path: string): Promise<void> {
  const made: string[] = [];
  for (let at = path; !(await files.exists(at)); at = dirname(at)) made.push(at);
  await files.makeDirectory(path);
  for (const folder of made) await files.syncDirectory(dirname(folder));
  // A process that was killed right after making it left it unsynced.
  if (made.length === 0) await syncIfAllowed(files, dirname(path));
}

/** The parent of a folder that somebody else made may be closed to us; then it is their care. */
async function syncIfAllowed(files: FileSystem, path: string): Promise<void> {
  try {
    await files.syncDirectory(path);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code !== "EACCES" && code !== "EPERM" && code !== "ENOENT") throw error;
  }
}
