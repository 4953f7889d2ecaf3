/** Writes the file of one backup: a dump, compressed with gzip, and encrypted if a key is given. */
import { createHash, type Hash } from "node:crypto";
import { Readable } from "node:stream";
import { createGzip } from "node:zlib";
import type { BackupStorage } from "./backup-storage.ts";
import { encrypted } from "./secret-stream.ts";

const gzipLevel = 3;
/** Chunk size, in bytes. A chunk costs an event-loop tick, a task on a compression thread, and a write. */
const chunkBytes = 256 * 1024;

/** A written file. */
export interface WrittenFile {
  readonly bytes: number;
  /** 64 hex digits. */
  readonly sha256: string;
}

/**
 * Writes `dump` to the file `name` of `place`, which is created if needed. The file is durable when this resolves.
 * @param key 32 bytes, or null for no encryption
 * @throws EngineError disk-full, file-failed, and errors of `dump`; the file is then removed
 */
export async function writeBackupFile(
  place: BackupStorage,
  name: string,
  dump: AsyncIterable<Buffer>,
  key: Buffer | null,
): Promise<WrittenFile> {
  const isNew = !(await place.exists());
  try {
    await place.make();
    const file = compressed(dump);
    const hash = createHash("sha256");
    const written = key === null ? file : encrypted(key, file);
    const bytes = await place.write(name, hashed(hash, written));
    return { bytes, sha256: hash.digest("hex") };
  } catch (error) {
    if (isNew) await place.removeAll().catch(() => undefined);
    throw error;
  }
}

async function* hashed(hash: Hash, bytes: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  for await (const piece of bytes) {
    hash.update(piece);
    yield piece;
  }
}

async function* compressed(dump: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const source = Readable.from(dump, { objectMode: false });
  const gzip = createGzip({ level: gzipLevel, chunkSize: chunkBytes });
  source.on("error", (error) => gzip.destroy(error));
  source.pipe(gzip);
  try {
    for await (const chunk of gzip) yield chunk as Buffer;
  } finally {
    source.destroy();
    gzip.destroy();
  }
}
