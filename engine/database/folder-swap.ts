/**
 * Replaces the folder of a database by one that was written beside it: a crash leaves one of the two, whole.
 *
 *     <parent>/<name>                    the database
 *     <parent>/<made>                    the new one, all of it durable
 *     <parent>/.replaced-<hex>-<name>    the old one, until the new one has its name for good
 *
 * Invariants:
 * - While there is no folder `<name>`, there is one of the third kind, whole, which gets its name back at the next start.
 */
import type { Environment, FileSystem } from "../base/environment.ts";

const replacedPattern = /^\.replaced-[0-9a-f]{16}-(.+)$/;

/** Gives `made`, a path beside it, the name; the old folder is removed. When it throws, the old one has its name. */
export async function swapFolders(
  { files, random }: Environment,
  parent: string,
  name: string,
  made: string,
): Promise<void> {
  const present = `${parent}/${name}`;
  // Another name each time: what a crash leaves of one swap is never taken for another's.
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
  // What is left of it is removed by the next `settleSwap`.
  await files.removeTree(replaced).catch(() => undefined);
}

/**
 * Ends what a crash, or a call that failed, has left of a swap: durably, so that the folder may be deleted or swapped
 * afterward. Also at the start.
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

/** The name of the database whose old folder this is; null: it is something else. */
export function nameOfReplaced(folder: string): string | null {
  return replacedPattern.exec(folder)?.[1] ?? null;
}
