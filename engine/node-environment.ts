/**
 * The environment of a real process: node's clock, files and random bytes.
 *
 * Invariants:
 * - No call here blocks the event loop on a device.
 */
import { createHash, randomBytes } from "node:crypto";
import fs from "node:fs";
import {
  mkdir,
  open,
  readdir,
  readFile,
  realpath,
  rename,
  rm,
  statfs,
  unlink,
  writeFile,
} from "node:fs/promises";
import { createServer, type Server } from "node:net";
import { hostname } from "node:os";
import { performance } from "node:perf_hooks";
import type {
  Clock,
  DirectoryLock,
  Environment,
  FileHandle,
  FileSystem,
  OpenMode,
  Timer,
} from "./environment.ts";
import { EngineError } from "./errors.ts";

const lockFileName = "LOCK";
const openFlags: Readonly<Record<OpenMode, string>> = { read: "r", update: "r+", create: "wx+" };
const fileMode = 0o600;
const folderMode = 0o700;

export function nodeEnvironment(): Environment {
  return { clock: nodeClock, files: new NodeFileSystem(), random: (count) => randomBytes(count) };
}

const nodeClock: Clock = {
  nowMicros: () => Math.floor((performance.timeOrigin + performance.now()) * 1000),
  monotonicMs: () => performance.now(),
  setTimer(ms: number, run: () => void, isAwaited = false): Timer {
    const timer = setTimeout(run, ms);
    if (!isAwaited) timer.unref();
    return { cancel: () => clearTimeout(timer) };
  },
};

/** One descriptor, with the callback calls of `node:fs`: half the cost of the promise ones. */
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

  async makeDirectory(path: string): Promise<void> {
    await mkdir(path, { recursive: true, mode: folderMode });
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
    // Windows has no way to sync a folder, and needs none.
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
        // A file that cannot be looked at is not a file that is missing.
        else reject(error);
      }),
    );
  }

  async freeBytes(path: string): Promise<number> {
    const stats = await statfs(path);
    return stats.bavail * stats.bsize;
  }

  lockDirectory(path: string): Promise<DirectoryLock> {
    return lockDirectory(path);
  }
}

/** Who has a folder: the content of its lock file, for the message that the next one gets. */
interface Holder {
  readonly pid: number;
  readonly host: string;
  readonly startedAt: string;
}

/** Folders that this process has, by their real path. */
const held = new Set<string>();

/**
 * On Linux the lock is an abstract unix socket, named after the folder's device and number: the kernel lets one
 * process have it, and takes it back when that process ends, however it ends. Elsewhere it is the lock file and
 * whether the process that it names is alive. The file stays behind when the folder is let go; it locks nothing.
 */
async function lockDirectory(path: string): Promise<DirectoryLock> {
  const real = await realpath(path);
  const file = `${real}/${lockFileName}`;
  if (held.has(real)) throw await lockedError(path, file);
  held.add(real);
  try {
    const socket = process.platform === "linux" ? await bindName(real) : null;
    if (process.platform === "linux" && socket === null) throw await lockedError(path, file);
    if (process.platform !== "linux" && (await holderIsAlive(file))) {
      throw await lockedError(path, file);
    }
    const startedAt = new Date(performance.timeOrigin).toISOString();
    const holder: Holder = { pid: process.pid, host: hostname(), startedAt };
    await writeFile(file, `${JSON.stringify(holder)}\n`, { mode: fileMode });
    return {
      async release(): Promise<void> {
        if (socket === null) await rm(file, { force: true });
        else await new Promise<void>((resolve) => socket.close(() => resolve()));
        held.delete(real);
      },
    };
  } catch (error) {
    held.delete(real);
    throw error;
  }
}

/** Listens on a name that only one process can have. @returns null when another has it. */
async function bindName(real: string): Promise<Server | null> {
  const stats = await new Promise<fs.BigIntStats>((resolve, reject) =>
    fs.stat(real, { bigint: true }, (error, found) =>
      error === null ? resolve(found) : reject(error),
    ),
  );
  const identity = createHash("sha256").update(`${stats.dev}:${stats.ino}`).digest("hex");
  return await new Promise((resolve, reject) => {
    const server = createServer((connection) => connection.destroy());
    server.once("error", (error: NodeJS.ErrnoException) =>
      error.code === "EADDRINUSE" ? resolve(null) : reject(error),
    );
    server.listen(`\0jackdaw-${identity}`, () => {
      server.unref();
      resolve(server);
    });
  });
}

async function readHolder(file: string): Promise<Holder | null> {
  try {
    return JSON.parse(await readFile(file, "utf8")) as Holder;
  } catch {
    return null;
  }
}

async function holderIsAlive(file: string): Promise<boolean> {
  const holder = await readHolder(file);
  if (holder === null || holder.host !== hostname() || holder.pid === process.pid) return false;
  try {
    process.kill(holder.pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

async function lockedError(path: string, file: string): Promise<EngineError> {
  const holder = await readHolder(file);
  const who =
    holder === null
      ? "another process"
      : `process ${holder.pid} on ${holder.host}, started at ${holder.startedAt}`;
  return new EngineError("database-locked", `${path} is in use by ${who}.`, {
    details: { holder },
  });
}
