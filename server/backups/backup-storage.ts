/**
 * A storage for backup files: a folder with nested folders, on disk or in a bucket. Backups, restores, and retention access
 * their files through it only.
 *
 * Invariants:
 * - A file is visible under its name only after all of it is durable.
 */
import type { EngineError } from "../../engine/base/errors.ts";
import { decrypted, encrypted } from "./secret-stream.ts";

/** An existing file. */
export interface StoredFile {
  readonly name: string;
  readonly bytes: number;
}

export interface BackupStorage {
  /** Last segment of its path. */
  readonly name: string;
  /** Path for a restore request. */
  readonly path: string;
  /** Path of a file or folder in it, for a restore request. */
  pathOf(name: string): string;
  /** Path of a file in messages. */
  where(name: string): string;
  exists(): Promise<boolean>;
  /** Creates the folder, if the storage requires that. */
  make(): Promise<void>;
  /** Files directly in it, ordered by name; none if it does not exist. @throws EngineError file-failed */
  files(): Promise<StoredFile[]>;
  /** Names of folders directly in it, ordered; none if it does not exist. @throws EngineError file-failed */
  folders(): Promise<string[]>;
  /** Returns the folder of that name in it, which need not exist. */
  within(name: string): BackupStorage;
  /**
   * Writes a file, and replaces one of the same name. The file is durable when this resolves, and removed if it throws.
   * @returns its size in bytes @throws EngineError disk-full, file-failed, and errors of `bytes`
   */
  write(name: string, bytes: AsyncIterable<Buffer> | Iterable<Buffer>): Promise<number>;
  /** @throws (while iterating) EngineError file-failed */
  read(name: string, bytesMax?: number): AsyncGenerator<Buffer>;
  /** Removes these files, and then the folder if it is empty. */
  remove(names: readonly string[]): Promise<void>;
  /** Removes the folder with its content. */
  removeAll(): Promise<void>;
}

/** A storage that encrypts its files, but not their names and sizes. */
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

/** Returns whether the file was encrypted with `key`. Reads its first bytes. @throws EngineError file-failed */
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
