/**
 * The files of a folder that this process has locked: each change asks first whether the folder is still ours, and what
 * was synced is reported only if it was ours then. A process that was stopped, while another took its folder, so changes
 * nothing when it goes on, but for the one call that each thread of the pool was in the middle of.
 *
 * What such a late call can do is made harmless where the log is opened: see `DirectoryLock.mayHaveRival`.
 */
import type { DirectoryLock, FileHandle, FileSystem, OpenMode } from "./environment.ts";

export class FencedFiles implements FileSystem {
  readonly #files: FileSystem;
  readonly #lock: DirectoryLock;

  /** `lock` is of the folder in which files are changed, or of one around it. */
  constructor(files: FileSystem, lock: DirectoryLock) {
    // The lock inside a lock answers for both.
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
