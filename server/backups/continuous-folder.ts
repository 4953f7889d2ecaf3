/**
 * The files of a continuous backup: a folder for each base and what continues it.
 *
 *   <folder>/<stamp>.jackdaw-<database>-<node>-continuous/<first>-<last>.jackdaw-base      commits as 12 digits
 *                                                         <first>-<last>.jackdaw-frames
 *                                                         contents/<hash>                  of attachments
 *                                                         newest.json                      the last file written
 *
 * Invariants:
 * - A file has its name only when all of it is durable.
 * - `newest.json` is written after the file that it names: that one is missed when it is gone.
 */
import { readdir, readFile, rm, stat } from "node:fs/promises";
import { join, sep } from "node:path";
import type { FileSystem } from "../../engine/base/environment.ts";
import { EngineError, invalidArgument } from "../../engine/base/errors.ts";
import { type LogPoint, type ShippedHead, shippedHeadOf } from "../../engine/engine.ts";
import { fileError, readBackupFile, unfinishedExtension } from "./backup-file.ts";
import { stampOf, timeOfStamp } from "./backup-folder.ts";

const folderPattern = /^(\d{4}(?:-\d\d){5})\.jackdaw-(.+)-([A-Za-z]{1,4})-continuous$/;
const filePattern = /^(\d{12,16})-(\d{12,16})\.jackdaw-(base|frames)$/;
const contentPattern = /^[0-9a-f]{64}$/;
const newestName = "newest.json";
const contentsName = "contents";

/** A file of the folder; commits from `first` to `last`. */
export interface ContinuousFile {
  readonly name: string;
  readonly kind: "base" | "frames";
  readonly first: number;
  readonly last: number;
  readonly bytes: number;
}

/** What a folder has. */
export interface ContinuousFiles {
  /** Null: it was never completed. */
  readonly base: ContinuousFile | null;
  /** In order. */
  readonly frames: readonly ContinuousFile[];
  /** Names of contents. */
  readonly contents: ReadonlySet<string>;
}

/** The last file, as its writer has seen it. */
export interface NewestFile {
  readonly name: string;
  readonly through: LogPoint;
  /** ISO time. */
  readonly at: string;
}

export class ContinuousFolder {
  readonly path: string;
  /** Of the name of the folder. */
  readonly database: string;
  readonly nodeTag: string;
  /** Milliseconds since 1970 at which it was begun. */
  readonly begunMs: number;
  readonly #files: FileSystem;

  constructor(files: FileSystem, path: string) {
    this.#files = files;
    this.path = path;
    const found = folderPattern.exec(path.slice(path.lastIndexOf(sep) + 1));
    this.database = found?.[2] ?? "";
    this.nodeTag = found?.[3] ?? "";
    this.begunMs = found === null ? 0 : timeOfStamp(found[1] as string); // the pattern has it
  }

  /** A new one in `folder`. */
  static async make(
    files: FileSystem,
    folder: string,
    database: string,
    nodeTag: string,
    nowMs: number,
  ): Promise<ContinuousFolder> {
    for (let ms = nowMs; ; ms += 1000) {
      const path = join(folder, `${stampOf(ms)}.jackdaw-${database}-${nodeTag}-continuous`);
      if (await files.exists(path)) continue;
      await files.makeDirectory(join(path, contentsName));
      await files.syncDirectory(folder);
      await files.syncDirectory(path);
      return new ContinuousFolder(files, path);
    }
  }

  /** `folder` itself, or those in it, oldest first. Empty: there are none. */
  static async within(files: FileSystem, folder: string): Promise<ContinuousFolder[]> {
    if (folderPattern.test(folder.slice(folder.lastIndexOf(sep) + 1))) {
      return [new ContinuousFolder(files, folder)];
    }
    const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
    return entries
      .filter((entry) => entry.isDirectory() && folderPattern.test(entry.name))
      .map(({ name }) => new ContinuousFolder(files, join(folder, name)))
      .sort((a, b) => (a.path < b.path ? -1 : 1));
  }

  async list(): Promise<ContinuousFiles> {
    const found: ContinuousFile[] = [];
    for (const name of (await readdir(this.path)).sort()) {
      const [, first, last, kind] = filePattern.exec(name) ?? [];
      if (kind === undefined) continue;
      const { size: bytes } = await stat(join(this.path, name));
      found.push({
        name,
        kind: kind === "base" ? "base" : "frames",
        first: Number(first),
        last: Number(last),
        bytes,
      });
    }
    const contents = await readdir(join(this.path, contentsName)).catch(() => []);
    return {
      base: found.find(({ kind }) => kind === "base") ?? null,
      frames: found
        .filter(({ kind }) => kind === "frames")
        .sort((a, b) => a.first - b.first || a.last - b.last),
      contents: new Set(contents.filter((name) => contentPattern.test(name))),
    };
  }

  /** Writes a base, or frames; then it is durable. @returns its bytes */
  async write(head: ShippedHead, bytes: AsyncIterable<Buffer>): Promise<number> {
    const digits = (number: number) => String(number).padStart(12, "0");
    const first = digits(head.after.number + 1);
    const name = `${first}-${digits(head.through.number)}.jackdaw-${head.kind}`;
    const written = await this.#write(this.path, name, bytes);
    const newest: NewestFile = {
      name,
      through: head.through,
      at: new Date(head.takenMicros / 1000).toISOString(),
    };
    await this.#write(this.path, newestName, [Buffer.from(`${JSON.stringify(newest)}\n`)]);
    return written;
  }

  async writeContent(name: string, bytes: AsyncIterable<Buffer>): Promise<void> {
    await this.#write(join(this.path, contentsName), name, bytes);
  }

  /** The bytes of a file. @throws (while iterating) EngineError file-failed */
  read(name: string): AsyncGenerator<Buffer> {
    return readBackupFile(this.#files, join(this.path, name));
  }

  readContent(name: string): AsyncGenerator<Buffer> {
    return this.read(join(contentsName, name));
  }

  /** @throws EngineError backup-damaged, file-failed */
  async headOf(name: string): Promise<ShippedHead> {
    return await shippedHeadOf(join(this.path, name), this.read(name));
  }

  /** @throws EngineError backup-damaged */
  async newest(): Promise<NewestFile> {
    const path = join(this.path, newestName);
    try {
      return JSON.parse(await readFile(path, "utf8")) as NewestFile;
    } catch (cause) {
      throw new EngineError(
        "backup-damaged",
        `The file ${path} of the backup is missing or damaged: it says which file is the last one. Restore to a moment (PointInTime) to do without it.`,
        { cause },
      );
    }
  }

  async remove(): Promise<void> {
    await rm(this.path, { recursive: true, force: true });
  }

  async #write(
    folder: string,
    name: string,
    bytes: AsyncIterable<Buffer> | Iterable<Buffer>,
  ): Promise<number> {
    const files = this.#files;
    const path = join(folder, name);
    const unfinished = path + unfinishedExtension;
    try {
      // What a crash, or a failure before, has left.
      if (await files.exists(unfinished)) await files.unlink(unfinished);
      const handle = await files.open(unfinished, "create");
      let at = 0;
      try {
        for await (const piece of bytes) {
          await handle.write(piece, 0, piece.length, at);
          at += piece.length;
        }
        await handle.sync();
      } finally {
        await handle.close();
      }
      await files.rename(unfinished, path);
      await files.syncDirectory(folder);
      return at;
    } catch (error) {
      await files.unlink(unfinished).catch(() => undefined);
      throw fileError(error, path);
    }
  }
}

/** The files to restore a moment from. */
export interface ChosenFiles {
  readonly folder: ContinuousFolder;
  readonly base: ContinuousFile;
  /** In order, without gaps; as many as there are. */
  readonly frames: readonly ContinuousFile[];
  readonly contents: ReadonlySet<string>;
}

/**
 * Chooses the newest base of that moment or earlier, and what continues it.
 * @param throughMicros null: the newest moment. @throws EngineError invalid-argument, backup-damaged
 */
export async function continuousToRestore(
  folders: readonly ContinuousFolder[],
  throughMicros: number | null,
): Promise<ChosenFiles> {
  let earliestMicros = Number.POSITIVE_INFINITY;
  for (const folder of [...folders].reverse()) {
    const { base, frames, contents } = await folder.list();
    if (base === null) continue;
    const { takenMicros } = await folder.headOf(base.name);
    earliestMicros = Math.min(earliestMicros, takenMicros);
    if (throughMicros !== null && takenMicros > throughMicros) continue;
    if (throughMicros === null) await requireNewest(folder, base, frames);
    return { folder, base, frames, contents };
  }
  if (!Number.isFinite(earliestMicros)) {
    throw invalidArgument(
      `There is no whole base in the backup location, path: ${folders[0]?.path}`,
    );
  }
  throw invalidArgument(
    `The continuous backup begins at ${new Date(earliestMicros / 1000).toISOString()}: an earlier moment cannot be restored.`,
  );
}

/** @throws EngineError backup-damaged when the last file that was written is not there */
async function requireNewest(
  folder: ContinuousFolder,
  base: ContinuousFile,
  frames: readonly ContinuousFile[],
): Promise<void> {
  const newest = await folder.newest();
  const last = frames.at(-1) ?? base;
  if (newest.through.number <= last.last) return;
  throw new EngineError(
    "backup-damaged",
    `The file ${join(folder.path, newest.name)} of the backup is missing: it was the last one. Restore to a moment (PointInTime) to do without it.`,
  );
}
