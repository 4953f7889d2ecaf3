/**
 * Replaces the folder of a database by a folder that was written beside it: after a crash one of the two is complete.
 *
 *     <parent>/<name>                    the database
 *     <parent>/<made>                    the new one, all of it durable
 *     <parent>/.replaced-<hex>-<name>    the old one, until the new one has its name for good
 *
 * Invariants:
 * - While there is no folder `<name>`, there is one of the third kind, whole, which gets its name back at the next start.
 */
import type { Environment, FileSystem } from "../../base/environment.ts";

const replacedPattern = /^\.replaced-[0-9a-f]{16}-(.+)$/;

/**
 * Renames `made`, a path in the same folder, to the name; the old folder is removed. If it throws, the old folder has
 * its name.
 */
export async function swapFolders(
  { files, random }: Environment,
  parent: string,
  name: string,
  made: string,
): Promise<void> {
  const present = `${parent}/${name}`;
  // A new random name for each swap: remains of one swap are never mistaken for another's.
  const replaced = `${parent}/.replaced-${random(8).toString("hex")}-${name}`;
  await settleSwap(files, parent, name);
  await files.rename(present, replaced);
  let hasNewName = false;
  try {
    // The old one must be found under its other name before the new one can be.
    await files.syncDirectory(parent);
    await files.rename(made, present);
    hasNewName = true;
    await files.syncDirectory(parent);
  } catch (error) {
    if (hasNewName) await files.rename(present, made);
    await files.rename(replaced, present);
    await files.syncDirectory(parent);
    throw error;
  }
  // Its remains are removed by the next `settleSwap`.
  await files.removeTree(replaced).catch(() => undefined);
}

/**
 * Completes a swap that a crash, or a failed call, left unfinished: durably, so that the folder may be deleted or
 * swapped afterward. Also called at the start.
 */
export async function settleSwap(files: FileSystem, parent: string, name: string): Promise<void> {
  for (const other of await files.list(parent)) {
    if (nameOfReplaced(other) !== name) continue;
    const replaced = `${parent}/${other}`;
    if (await files.exists(`${parent}/${name}`)) await files.removeTree(replaced);
    else await files.rename(replaced, `${parent}/${name}`);
  }
  // Its removal after the swap may be pending, too.
  await files.syncDirectory(parent);
}

/** Returns the name of the database whose old folder this is; null: it is something else. */
export function nameOfReplaced(folder: string): string | null {
  return replacedPattern.exec(folder)?.[1] ?? null;
}
