/** Creates folders that survive a power loss: a new folder is durable only after its parent folder was synced. */
import { dirname } from "node:path";
import type { FileSystem } from "../environment.ts";

/** Creates `path` and its missing parents. When it resolves, all of them are durable. */
export async function makeDurableDirectory(files: FileSystem, path: string): Promise<void> {
  const made: string[] = [];
  for (let at = path; !(await files.exists(at)); at = dirname(at)) made.push(at);
  await files.makeDirectory(path);
  for (const folder of made) await files.syncDirectory(dirname(folder));
  // A process that was killed after creating the folder may have left it unsynced.
  if (made.length === 0) await syncIfAllowed(files, dirname(path));
}

/** Access to the parent of an existing folder may be denied; then its creator is responsible for the sync. */
async function syncIfAllowed(files: FileSystem, path: string): Promise<void> {
  try {
    await files.syncDirectory(path);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code !== "EACCES" && code !== "EPERM" && code !== "ENOENT") throw error;
  }
}
