/**
 * The file of one backup: a dump, compressed with gzip.
 *
 * Invariants:
 * - A file has its final name only when all of it is durable. Until then it is called `….in-progress`, and is removed
 *   when the backup fails; what a crash leaves behind is never taken for a backup.
 */
import { createHash } from "node:crypto";
import { dirname, join } from "node:path";
import { Readable } from "node:stream";
import { createGzip } from "node:zlib";
import type { FileHandle, FileSystem } from "../../engine/base/environment.ts";
import { EngineError } from "../../engine/base/errors.ts";

const gzipLevel = 3;
/** Bytes per chunk: each costs a turn of the event loop, a task on a compression thread, and a write. */
const chunkBytes = 256 * 1024;
export const unfinishedExtension = ".in-progress";

/** A file that was written. */
export interface WrittenFile {
  readonly bytes: number;
  /** 64 hex digits. */
  readonly sha256: string;
}

/**
 * Writes `dump` to `<folder>/<name>`; creates the folder. When it resolves, the file is durable.
 * @returns what was written. @throws EngineError disk-full, file-failed, and what `dump` throws; then nothing is left of
 * it
 */
export async function writeBackupFile(
  files: FileSystem,
  folder: string,
  name: string,
  dump: AsyncIterable<Buffer>,
): Promise<WrittenFile> {
  const isNewFolder = !(await files.exists(folder));
  const path = join(folder, name);
  const unfinished = path + unfinishedExtension;
  let handle: FileHandle | undefined;
  try {
    await files.makeDirectory(folder);
    handle = await files.open(unfinished, "create");
    const written = await writeCompressed(handle, dump);
    await handle.sync();
    await handle.close();
    handle = undefined;
    await files.rename(unfinished, path);
    await files.syncDirectory(folder);
    await files.syncDirectory(dirname(folder));
    return written;
  } catch (error) {
    await handle?.close().catch(() => undefined);
    await files.unlink(unfinished).catch(() => undefined);
    if (isNewFolder) await files.removeTree(folder).catch(() => undefined);
    throw fileError(error, path);
  }
}

async function writeCompressed(
  handle: FileHandle,
  dump: AsyncIterable<Buffer>,
): Promise<WrittenFile> {
  const hash = createHash("sha256");
  const source = Readable.from(dump, { objectMode: false });
  const gzip = createGzip({ level: gzipLevel, chunkSize: chunkBytes });
  source.on("error", (error) => gzip.destroy(error));
  source.pipe(gzip);
  let at = 0;
  try {
    for await (const chunk of gzip) {
      const { length } = chunk as Buffer;
      await handle.write(chunk as Buffer, 0, length, at);
      hash.update(chunk as Buffer);
      at += length;
    }
    return { bytes: at, sha256: hash.digest("hex") };
  } finally {
    source.destroy();
    gzip.destroy();
  }
}

/** The bytes of a file. @throws (while iterating) EngineError file-failed */
export async function* readBackupFile(
  files: FileSystem,
  path: string,
  bytesMax = Number.POSITIVE_INFINITY,
): AsyncGenerator<Buffer> {
  let handle: FileHandle | undefined;
  try {
    handle = await files.open(path, "read");
    for (let at = 0; at < bytesMax; ) {
      const piece = Buffer.allocUnsafe(Math.min(chunkBytes, bytesMax - at));
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

/** Errors of the file system in words; others unchanged. */
export function fileError(error: unknown, path: string): unknown {
  const { code, message, syscall } = error as NodeJS.ErrnoException;
  if (code === "ENOSPC" || code === "EDQUOT") {
    return new EngineError(
      "disk-full",
      `The disk is full: the backup ${path} could not be completed, and what there was of it is removed. The database goes on.`,
      { cause: error },
    );
  }
  if (error instanceof EngineError || code === undefined || syscall === undefined) return error;
  return new EngineError("file-failed", `The file ${path} cannot be used: ${message}`, {
    cause: error,
  });
}
