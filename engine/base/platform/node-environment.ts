/**
 * The environment of a real process: Node's clock, files and random bytes.
 *
 * Invariants:
 * - No call here blocks the event loop on a device.
 */
import { randomBytes } from "node:crypto";
import fs from "node:fs";
import { mkdir, open, readdir, rename, rm, stat, statfs, unlink } from "node:fs/promises";
import { dirname } from "node:path";
import { performance } from "node:perf_hooks";
import type {
  Clock,
  DirectoryLock,
  Environment,
  FileHandle,
  FileSystem,
  OpenMode,
  Timer,
} from "../environment.ts";
import { FolderLock, type FolderLockOptions, lockFolder } from "./lock/folder-lock.ts";

const openFlags: Readonly<Record<OpenMode, string>> = { read: "r", update: "r+", create: "wx+" };
const fileMode = 0o600;
const folderMode = 0o700;

/** `locks`: non-default options of folder locks. */
export function nodeEnvironment(locks: FolderLockOptions = {}): Environment {
  const files = new NodeFileSystem(locks);
  return { clock: nodeClock, files, random: (count) => randomBytes(count) };
}

/** A difference from the system's clock that is a step, and no drift. */
const stepMsMin = 1000;

/**
 * Returns the time in microseconds since 1970: the start time plus a monotonic microsecond clock, adjusted to the
 * system's clock when that was set, or advanced while the computer slept.
 * @param wallMs the system's clock, @param finerMs another one, in milliseconds since 1970
 */
export function steppedMicros(wallMs: () => number, finerMs: () => number): () => number {
  let stepMs = 0;
  return () => {
    const nowMs = finerMs() + stepMs;
    const differenceMs = wallMs() - nowMs;
    if (differenceMs < stepMsMin && differenceMs > -stepMsMin) return Math.floor(nowMs * 1000);
    stepMs += differenceMs;
    return Math.floor((nowMs + differenceMs) * 1000);
  };
}

/** Maximum delay of a timer in Node, about 25 days. Node replaces longer delays with 1 ms. */
const timerMsMax = 2 ** 31 - 1;

const nodeClock: Clock = {
  nowMicros: steppedMicros(
    () => Date.now(),
    () => performance.timeOrigin + performance.now(),
  ),
  monotonicMs: () => performance.now(),
  setTimer(ms: number, run: () => void, isAwaited = false): Timer {
    // An exception in a timer would end the process. As an unhandled rejection it is reported, and the embedding
    // program decides.
    const timer = setTimeout(
      () => {
        try {
          run();
        } catch (error) {
          void Promise.reject(error);
        }
      },
      Math.min(ms, timerMsMax),
    );
    if (!isAwaited) timer.unref();
    return { cancel: () => clearTimeout(timer) };
  },
};

/** One descriptor, with the callback API of `node:fs`: half the cost of the promise API. */
class NodeFileHandle implements FileHandle {
  readonly #descriptor: number;

  constructor(descriptor: number) {
    this.#descriptor = descriptor;
  }

  async read(
    target: Uint8Array,
    offset: number,
    length: number,
    position: number,
  ): Promise<number> {
    let done = 0;
    while (done < length) {
      const count = await this.#readSome(target, offset + done, length - done, position + done);
      if (count === 0) break;
      done += count;
    }
    return done;
  }

  async write(source: Uint8Array, offset: number, length: number, position: number): Promise<void> {
    let done = 0;
    while (done < length) {
      const count = await this.#writeSome(source, offset + done, length - done, position + done);
      if (count === 0) throw Object.assign(new Error("a write took no bytes"), { code: "EIO" });
      done += count;
    }
  }

  sync(): Promise<void> {
    return new Promise((resolve, reject) =>
      fs.fdatasync(this.#descriptor, (error) => (error === null ? resolve() : reject(error))),
    );
  }

  truncate(length: number): Promise<void> {
    return new Promise((resolve, reject) =>
      fs.ftruncate(this.#descriptor, length, (error) =>
        error === null ? resolve() : reject(error),
      ),
    );
  }

  size(): Promise<number> {
    return new Promise((resolve, reject) =>
      fs.fstat(this.#descriptor, (error, stats) =>
        error === null ? resolve(stats.size) : reject(error),
      ),
    );
  }

  close(): Promise<void> {
    return new Promise((resolve, reject) =>
      fs.close(this.#descriptor, (error) =>
        error === null || error === undefined ? resolve() : reject(error),
      ),
    );
  }

  #readSome(target: Uint8Array, offset: number, length: number, position: number): Promise<number> {
    return new Promise((resolve, reject) =>
      fs.read(this.#descriptor, target, offset, length, position, (error, count) =>
        error === null ? resolve(count) : reject(error),
      ),
    );
  }

  #writeSome(
    source: Uint8Array,
    offset: number,
    length: number,
    position: number,
  ): Promise<number> {
    return new Promise((resolve, reject) =>
      fs.write(this.#descriptor, source, offset, length, position, (error, count) =>
        error === null ? resolve(count) : reject(error),
      ),
    );
  }
}

class NodeFileSystem implements FileSystem {
  readonly #locks: FolderLockOptions;

  constructor(locks: FolderLockOptions) {
    this.#locks = locks;
  }

  open(path: string, mode: OpenMode): Promise<FileHandle> {
    return new Promise((resolve, reject) =>
      fs.open(path, openFlags[mode], fileMode, (error, descriptor) =>
        error === null ? resolve(new NodeFileHandle(descriptor)) : reject(error),
      ),
    );
  }

  list(path: string): Promise<string[]> {
    return readdir(path);
  }

  makeDirectory(path: string): Promise<void> {
    return makeFolders(path, folderMode);
  }

  rename(source: string, target: string): Promise<void> {
    return rename(source, target);
  }

  unlink(path: string): Promise<void> {
    return unlink(path);
  }

  removeTree(path: string): Promise<void> {
    return rm(path, { recursive: true, force: true });
  }

  async syncDirectory(path: string): Promise<void> {
    // Windows has no way to sync a folder, and does not need it.
    if (process.platform === "win32") return;
    const folder = await open(path, "r");
    try {
      await folder.sync();
    } finally {
      await folder.close();
    }
  }

  exists(path: string): Promise<boolean> {
    return new Promise((resolve, reject) =>
      fs.stat(path, (error) => {
        if (error === null) resolve(true);
        else if (error.code === "ENOENT" || error.code === "ENOTDIR") resolve(false);
        // A file that cannot be examined is not a missing file.
        else reject(error);
      }),
    );
  }

  async freeBytes(path: string): Promise<number> {
    const stats = await statfs(path);
    return stats.bavail * stats.bsize;
  }

  lockDirectory(path: string, under?: DirectoryLock): Promise<DirectoryLock> {
    return lockFolder(path, under instanceof FolderLock ? under : null, this.#locks);
  }
}

/**
 * Creates a folder and its missing parents; no error when it exists. (Recursive `mkdir` loops forever where creating
 * something in an existing folder fails with ENOENT, as in /proc.)
 */
export async function makeFolders(path: string, mode = 0o777): Promise<void> {
  try {
    await mkdir(path, mode);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" && dirname(path) !== path && !(await isFolder(dirname(path)))) {
      await makeFolders(dirname(path), mode);
      await makeFolders(path, mode);
    } else if (!(await isFolder(path))) throw error;
  }
}

async function isFolder(path: string): Promise<boolean> {
  return await stat(path).then(
    (stats) => stats.isDirectory(),
    () => false,
  );
}
