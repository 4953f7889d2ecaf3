/**
 * A place for the files of backups: a folder, with folders in it. Backups, restores and what removes old ones know no
 * other way to their files.
 *
 * Invariants:
 * - A file has its name only when all of it is durable.
 */
import type { EngineError } from "../../engine/base/errors.ts";
import { decrypted, encrypted } from "./secret-stream.ts";

/** A file that is there. */
export interface StoredFile {
  readonly name: string;
  readonly bytes: number;
}

export interface BackupStorage {
  /** The last part of its path. */
  readonly name: string;
  /** As a restore takes it. */
  readonly path: string;
  /** As a restore takes it, too. */
  pathOf(name: string): string;
  /** For messages. */
  where(name: string): string;
  exists(): Promise<boolean>;
  /** Makes the folder, if places of this kind have to be made. */
  make(): Promise<void>;
  /** Files directly in it, in the order of their names; none when it does not exist. @throws EngineError file-failed */
  files(): Promise<StoredFile[]>;
  /** Names of folders directly in it, in order; none when it does not exist. @throws EngineError file-failed */
  folders(): Promise<string[]>;
  /** The folder of that name in it, which need not exist. */
  within(name: string): BackupStorage;
  /**
   * Writes a file, in place of one of the same name. When it resolves, the file is durable; when it throws, nothing of it
   * is left. @returns its bytes. @throws EngineError disk-full, file-failed, and what `bytes` throws
   */
  write(name: string, bytes: AsyncIterable<Buffer> | Iterable<Buffer>): Promise<number>;
  /** @throws (while iterating) EngineError file-failed */
  read(name: string, bytesMax?: number): AsyncGenerator<Buffer>;
  /** Removes these files, and then the folder, if it is empty. */
  remove(names: readonly string[]): Promise<void>;
  /** Removes the folder with all that is in it. */
  removeAll(): Promise<void>;
}

/** A place whose files are encrypted: their names and sizes are not. */
export class EncryptedStorage implements BackupStorage {
  readonly #inner: BackupStorage;
  readonly #key: Buffer;

  constructor(inner: BackupStorage, key: Buffer) {
    this.#inner = inner;
    this.#key = key;
  }

  get name(): string {
    return this.#inner.name;
  }

  get path(): string {
    return this.#inner.path;
  }

  pathOf(name: string): string {
    return this.#inner.pathOf(name);
  }

  where(name: string): string {
    return this.#inner.where(name);
  }

  exists(): Promise<boolean> {
    return this.#inner.exists();
  }

  make(): Promise<void> {
    return this.#inner.make();
  }

  files(): Promise<StoredFile[]> {
    return this.#inner.files();
  }

  folders(): Promise<string[]> {
    return this.#inner.folders();
  }

  within(name: string): BackupStorage {
    return new EncryptedStorage(this.#inner.within(name), this.#key);
  }

  write(name: string, bytes: AsyncIterable<Buffer> | Iterable<Buffer>): Promise<number> {
    return this.#inner.write(name, encrypted(this.#key, bytes));
  }

  read(name: string): AsyncGenerator<Buffer> {
    return decrypted(this.#key, this.#inner.read(name), this.where(name));
  }

  remove(names: readonly string[]): Promise<void> {
    return this.#inner.remove(names);
  }

  removeAll(): Promise<void> {
    return this.#inner.removeAll();
  }
}

/** Is the file one that was encrypted with `key`? Reads its beginning. @throws EngineError file-failed */
export async function isEncryptedWith(
  key: Buffer,
  place: BackupStorage,
  name: string,
): Promise<boolean> {
  try {
    for await (const _ of decrypted(key, place.read(name), name)) break;
    return true;
  } catch (error) {
    if ((error as EngineError).code === "backup-damaged") return false;
    throw error;
  }
}
