/** A storage for backups in the server's file system. An incomplete file of a crashed process ends in `.in-progress`. */
import { readdir, rm, rmdir, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { FileHandle, FileSystem } from "../../engine/base/environment.ts";
import { EngineError } from "../../engine/base/errors.ts";
import type { BackupStorage, StoredFile } from "./backup-storage.ts";

/** Size of a read, in bytes. Each costs an event-loop tick. */
const pieceBytes = 256 * 1024;
export const unfinishedExtension = ".in-progress";

export class FolderStorage implements BackupStorage {
  readonly path: string;
  readonly #files: FileSystem;

  /** @param path absolute; paths from clients must have been checked */
  constructor(files: FileSystem, path: string) {
    this.#files = files;
    this.path = path;
  }

  get name(): string {
    return basename(this.path);
  }

  pathOf(name: string): string {
    return join(this.path, name);
  }

  where(name: string): string {
    return this.pathOf(name);
  }

  exists(): Promise<boolean> {
    return this.#files.exists(this.path);
  }

  async make(): Promise<void> {
    try {
      if (await this.exists()) return;
      await this.#files.makeDirectory(this.path);
      await this.#files.syncDirectory(dirname(this.path));
    } catch (error) {
      throw fileError(error, this.path);
    }
  }

  async files(): Promise<StoredFile[]> {
    const found: StoredFile[] = [];
    for (const entry of await this.#entries()) {
      if (!entry.isFile()) continue;
      const { size: bytes } = await stat(join(this.path, entry.name));
      found.push({ name: entry.name, bytes });
    }
    return found;
  }

  async folders(): Promise<string[]> {
    return (await this.#entries()).filter((one) => one.isDirectory()).map(({ name }) => name);
  }

  within(name: string): BackupStorage {
    return new FolderStorage(this.#files, join(this.path, name));
  }

  async write(name: string, bytes: AsyncIterable<Buffer> | Iterable<Buffer>): Promise<number> {
    const files = this.#files;
    const path = this.pathOf(name);
    const unfinished = path + unfinishedExtension;
    let handle: FileHandle | undefined;
    try {
      // The incomplete file of a crashed process.
      if (await files.exists(unfinished)) await files.unlink(unfinished);
      handle = await files.open(unfinished, "create");
      let at = 0;
      for await (const piece of bytes) {
        await handle.write(piece, 0, piece.length, at);
        at += piece.length;
      }
      await handle.sync();
      await handle.close();
      handle = undefined;
      await files.rename(unfinished, path);
      await files.syncDirectory(this.path);
      return at;
    } catch (error) {
      await handle?.close().catch(() => undefined);
      await files.unlink(unfinished).catch(() => undefined);
      throw fileError(error, path);
    }
  }

  async *read(name: string, bytesMax = Number.POSITIVE_INFINITY): AsyncGenerator<Buffer> {
    const path = this.pathOf(name);
    let handle: FileHandle | undefined;
    try {
      handle = await this.#files.open(path, "read");
      for (let at = 0; at < bytesMax; ) {
        const piece = Buffer.allocUnsafe(Math.min(pieceBytes, bytesMax - at));
        const read = await handle.read(piece, 0, piece.length, at);
        if (read === 0) return;
        at += read;
        yield piece.subarray(0, read);
      }
    } catch (error) {
      throw fileError(error, path);
    } finally {
      await handle?.close().catch(() => undefined);
    }
  }

  async remove(names: readonly string[]): Promise<void> {
    for (const name of names) await this.#files.unlink(this.pathOf(name));
    // Other files stay, and so does the folder.
    await rmdir(this.path).catch(() => undefined);
  }

  async removeAll(): Promise<void> {
    await rm(this.path, { recursive: true, force: true });
  }

  async #entries() {
    try {
      const entries = await readdir(this.path, { withFileTypes: true });
      return entries.sort((a, b) => (a.name < b.name ? -1 : 1));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
      throw fileError(error, this.path);
    }
  }
}

/** Converts errors of the file system to readable ones; returns other errors unchanged. */
function fileError(error: unknown, path: string): unknown {
  const { code, message, syscall } = error as NodeJS.ErrnoException;
  if (code === "ENOSPC" || code === "EDQUOT") {
    return new EngineError(
      "disk-full",
      `The disk is full: the backup ${path} could not be completed, and its incomplete file was removed. The database is not affected.`,
      { cause: error },
    );
  }
  if (error instanceof EngineError || code === undefined || syscall === undefined) return error;
  return new EngineError("file-failed", `The file ${path} cannot be used: ${message}`, {
    cause: error,
  });
}
