/**
 * Fencing of the files in a folder that this process has locked: each change first checks that the lock is still held,
 * and a sync is reported only if it still was afterward. So a process that was suspended while another took its folder
 * changes nothing when it resumes, except for the one call in progress on each thread of the pool.
 *
 * Opening the log makes the effects of such a late call harmless: see `DirectoryLock.mayHaveRival`.
 */
import type { DirectoryLock, FileHandle, FileSystem, OpenMode } from "../environment.ts";

export class FencedFiles implements FileSystem {
  readonly #files: FileSystem;
  readonly #lock: DirectoryLock;

  /** `lock`: lock of the folder in which files are changed, or of an enclosing one. */
  constructor(files: FileSystem, lock: DirectoryLock) {
    // An inner lock covers its outer lock.
    this.#files = files instanceof FencedFiles ? files.#files : files;
    this.#lock = lock;
  }

  async open(path: string, mode: OpenMode): Promise<FileHandle> {
    if (mode === "read") return await this.#files.open(path, mode);
    await this.#prove();
    return new FencedFile(await this.#files.open(path, mode), this.#lock);
  }

  list(path: string): Promise<string[]> {
    return this.#files.list(path);
  }

  async makeDirectory(path: string): Promise<void> {
    await this.#prove();
    await this.#files.makeDirectory(path);
  }

  async rename(source: string, target: string): Promise<void> {
    await this.#prove();
    await this.#files.rename(source, target);
  }

  async unlink(path: string): Promise<void> {
    await this.#prove();
    await this.#files.unlink(path);
  }

  async removeTree(path: string): Promise<void> {
    await this.#prove();
    await this.#files.removeTree(path);
  }

  async syncDirectory(path: string): Promise<void> {
    await this.#files.syncDirectory(path);
    await this.#prove();
  }

  exists(path: string): Promise<boolean> {
    return this.#files.exists(path);
  }

  freeBytes(path: string): Promise<number> {
    return this.#files.freeBytes(path);
  }

  lockDirectory(path: string): Promise<DirectoryLock> {
    return this.#files.lockDirectory(path, this.#lock);
  }

  async #prove(): Promise<void> {
    if (!this.#lock.leaseSuffices || !this.#lock.isLeased()) await this.#lock.prove();
  }
}

class FencedFile implements FileHandle {
  readonly #file: FileHandle;
  readonly #lock: DirectoryLock;

  constructor(file: FileHandle, lock: DirectoryLock) {
    this.#file = file;
    this.#lock = lock;
  }

  read(target: Uint8Array, offset: number, length: number, position: number): Promise<number> {
    return this.#file.read(target, offset, length, position);
  }

  // Hot: each group commit writes and syncs once.
  write(source: Uint8Array, offset: number, length: number, position: number): Promise<void> {
    if (this.#lock.isLeased()) return this.#file.write(source, offset, length, position);
    return this.#lock.prove().then(() => this.#file.write(source, offset, length, position));
  }

  sync(): Promise<void> {
    return this.#file.sync().then(() => {
      const { leaseSuffices } = this.#lock;
      return leaseSuffices && this.#lock.isLeased() ? undefined : this.#lock.prove();
    });
  }

  async truncate(length: number): Promise<void> {
    if (!this.#lock.isLeased()) await this.#lock.prove();
    await this.#file.truncate(length);
  }

  size(): Promise<number> {
    return this.#file.size();
  }

  close(): Promise<void> {
    return this.#file.close();
  }
}
