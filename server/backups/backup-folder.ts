/**
 * Rules for backup folders on disk, and the names of backup files in any storage.
 *
 *   <folder>/<stamp>.ravendb-<database>-<node>-backup/<stamp>.ravendb-full-backup
 *                                                    /<stamp>.ravendb-incremental-backup
 *
 * Files of encrypted backups end in `.ravendb-encrypted-full-backup` and `.ravendb-encrypted-incremental-backup`.
 *
 * A stamp is `yyyy-MM-dd-HH-mm-ss`, in UTC, so names sort by time. Names are those of RavenDB 7.2.7.
 *
 * Invariants:
 * - Clients with the right to back up reach no folder outside of `Backup.LocalRootPath`, if that is set, not even through
 *   symbolic links, and never the data folder.
 */
import { constants } from "node:fs";
import { access, readdir, realpath, stat, statfs } from "node:fs/promises";
import { dirname, isAbsolute, join, relative, sep } from "node:path";
import { invalidArgument } from "../../engine/base/errors.ts";
import type { BackupStorage } from "./backup-storage.ts";

const pathLengthMax = 2048;
const folderPattern = /^(\d{4}(?:-\d\d){5})\.ravendb-(.+)-([A-Za-z]{1,4})-(?:backup|snapshot)$/;
const filePattern =
  /^(\d{4}(?:-\d\d){5})(?:-\d+)?\.ravendb-(encrypted-)?(full-backup|incremental-backup|full-snapshot|snapshot)$/;

/** A parsed file name of a backup. */
export interface BackupFileName {
  readonly name: string;
  readonly stamp: string;
  readonly isIncremental: boolean;
  readonly isSnapshot: boolean;
  readonly isEncrypted: boolean;
}

/** A folder with one full backup and the incremental ones that continue it. */
export interface BackupFolderName {
  readonly place: BackupStorage;
  /** Null if the folder's name has no stamp. */
  readonly stamp: string | null;
  readonly database: string | null;
  readonly nodeTag: string | null;
}

/** `yyyy-MM-dd-HH-mm-ss` */
export function stampOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 19).replace(/[T:]/g, "-");
}

/** Returns milliseconds since the Unix epoch. */
export function timeOfStamp(stamp: string): number {
  return Date.parse(`${stamp.slice(0, 10)}T${stamp.slice(11).replaceAll("-", ":")}Z`);
}

export function backupFileName(stamp: string, isFull: boolean, isEncrypted: boolean): string {
  const kind = isFull ? "full-backup" : "incremental-backup";
  return `${stamp}.ravendb-${isEncrypted ? "encrypted-" : ""}${kind}`;
}

export function folderName(stamp: string, database: string, nodeTag: string): string {
  return `${stamp}.ravendb-${database}-${nodeTag}-backup`;
}

/** Returns the files of a backup in `place`, in chronological order. @throws EngineError file-failed */
export async function backupFilesIn(place: BackupStorage): Promise<BackupFileName[]> {
  return (await place.files()).flatMap(({ name }) => {
    const found = filePattern.exec(name);
    if (found === null) return [];
    const [, stamp = "", encrypted, kind = ""] = found;
    return [
      {
        name,
        stamp,
        isIncremental: kind === "incremental-backup",
        isSnapshot: kind.endsWith("snapshot"),
        isEncrypted: encrypted !== undefined,
      },
    ];
  });
}

/** Returns `place` itself, and the folders in it that have names of backups. @throws EngineError file-failed */
export async function backupFoldersIn(place: BackupStorage): Promise<BackupFolderName[]> {
  const inside = (await place.folders())
    .filter((name) => folderPattern.test(name))
    .map((name) => describedFolder(place.within(name)));
  return [describedFolder(place), ...inside];
}

function describedFolder(place: BackupStorage): BackupFolderName {
  const found = folderPattern.exec(place.name);
  const [, stamp = null, database = null, nodeTag = null] = found ?? [];
  return { place, stamp, database, nodeTag };
}

/** Restrictions on folders. */
export interface FolderRules {
  /** `Backup.LocalRootPath`, or undefined for any folder. */
  readonly root: string | undefined;
  /** Must contain no backups. Undefined if databases are in memory. */
  readonly dataFolder: string | undefined;
}

/**
 * Validates a path sent by a client, and resolves its symbolic links. The path need not exist.
 * @throws EngineError invalid-argument
 */
export async function checkedFolder(path: string, rules: FolderRules): Promise<string> {
  if (path.length > pathLengthMax || path.includes("\0")) {
    throw invalidArgument(
      "The path of the backup folder is too long, or contains a zero character.",
    );
  }
  if (!isAbsolute(path)) {
    throw invalidArgument(`The backup folder must be an absolute path, but is: ${path}`);
  }
  if (path.split(/[\\/]/).includes("..")) {
    throw invalidArgument(`The path of a backup folder must not contain '..', but is: ${path}`);
  }
  const real = await resolved(path);
  if (rules.root !== undefined) {
    const root = await resolved(rules.root);
    if (!isWithin(root, real)) {
      throw invalidArgument(
        `The backup folder must be within ${rules.root} (Backup.LocalRootPath), but is: ${path}`,
      );
    }
  }
  if (rules.dataFolder !== undefined && isWithin(await resolved(rules.dataFolder), real)) {
    throw invalidArgument(`The backup folder must not be within the data folder, but is: ${path}`);
  }
  return real;
}

const foldersMax = 1_000;

/** Returns the paths of the folders in `path`, by name, at most `foldersMax`; none if it is not allowed or not readable. */
export async function foldersIn(path: string, rules: FolderRules): Promise<string[]> {
  try {
    const folder = await checkedFolder(path, rules);
    const entries = await readdir(folder, { withFileTypes: true });
    const names = entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
    return names
      .sort()
      .slice(0, foldersMax)
      .map((name) => join(folder, name));
  } catch {
    // Clients query incomplete paths while the user types.
    return [];
  }
}

interface FolderRoom {
  readonly path: string;
  readonly freeBytes: number;
  readonly totalBytes: number;
}

/**
 * Returns the free space for backups in a folder, which need not exist.
 * @throws EngineError invalid-argument if the folder is not allowed; errors of the system if the space is not available
 */
export async function roomIn(path: string, rules: FolderRules): Promise<FolderRoom> {
  const folder = await checkedFolder(path, rules);
  let above = folder;
  for (;;) {
    try {
      const { bavail, blocks, bsize } = await statfs(above);
      return { path: folder, freeBytes: bavail * bsize, totalBytes: blocks * bsize };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT" || dirname(above) === above)
        throw error;
      above = dirname(above);
    }
  }
}

/** @throws EngineError invalid-argument if the existing folder is not writable */
export async function requireWritable(folder: string, path: string): Promise<void> {
  try {
    await access(folder, constants.W_OK | constants.X_OK);
  } catch (cause) {
    throw unwritable(path, cause);
  }
}

export function unwritable(path: string, cause: unknown): Error {
  const { code } = cause as NodeJS.ErrnoException;
  return invalidArgument(`Cannot write to directory path: ${path} (${code ?? String(cause)})`);
}

export async function isFolder(path: string): Promise<boolean> {
  return await stat(path).then(
    (stats) => stats.isDirectory(),
    () => false,
  );
}

/** Resolves the links of the existing part. @throws EngineError invalid-argument if a file is in the path */
async function resolved(path: string): Promise<string> {
  try {
    const real = await realpath(path);
    if (await isFolder(real)) return real;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" && dirname(path) !== path) {
      const parent = await resolved(dirname(path));
      return join(parent, path.slice(dirname(path).length));
    }
    throw unwritable(path, error);
  }
  throw invalidArgument(`The backup folder is a file: ${path}`);
}

function isWithin(root: string, path: string): boolean {
  const way = relative(root, path);
  return way === "" || (way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way));
}
