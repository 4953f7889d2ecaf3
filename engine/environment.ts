/**
 * The outside world as one value: clock, random bytes, files. Everything in engine/ that depends on
 * them takes an `Environment`, so that a test can run a database in simulated time on a simulated disk.
 */

/** Wall time and timers. */
export interface Clock {
  /** Microseconds since 1970-01-01 UTC: an integer below 2^53. May go backward when the host's clock is set. */
  nowMicros(): number;
  /** Milliseconds of a clock that never goes backward; only differences mean something. */
  monotonicMs(): number;
  /** Calls `run` once after `ms` milliseconds. Keeps the process alive only if `isAwaited`. */
  setTimer(ms: number, run: () => void, isAwaited?: boolean): Timer;
}

export interface Timer {
  cancel(): void;
}

/** One open file. Reads and writes are positional; calls on one handle may overlap. */
export interface FileHandle {
  /** @returns bytes read, less than `length` only at the end of the file. */
  read(target: Uint8Array, offset: number, length: number, position: number): Promise<number>;
  /** Writes all of it or throws (a short write is continued, then an error is thrown). */
  write(source: Uint8Array, offset: number, length: number, position: number): Promise<void>;
  /** fdatasync: the file's bytes and length are on the device when it resolves. */
  sync(): Promise<void>;
  truncate(length: number): Promise<void>;
  size(): Promise<number>;
  close(): Promise<void>;
}

/** "read": existing, read-only; "update": existing, read and write; "create": new, fails when it exists. */
export type OpenMode = "read" | "update" | "create";

/** The file operations the engine needs. Errors are Node's, with `code` (`ENOENT`, `ENOSPC`, `EIO`, ...). */
export interface FileSystem {
  open(path: string, mode: OpenMode): Promise<FileHandle>;
  /** Names in a folder, in no order. */
  list(path: string): Promise<string[]>;
  /** Creates the folder and its parents; no error when it is there. */
  makeDirectory(path: string): Promise<void>;
  /** Replaces `target` atomically. Durable only after `syncDirectory` of the folder. */
  rename(source: string, target: string): Promise<void>;
  unlink(path: string): Promise<void>;
  /** Removes a folder and all below it; no error when it is not there. */
  removeTree(path: string): Promise<void>;
  syncDirectory(path: string): Promise<void>;
  exists(path: string): Promise<boolean>;
  /** Bytes that can still be written on the device that holds `path`. */
  freeBytes(path: string): Promise<number>;
  /**
   * Takes the folder for this process until `release`. `under`: the lock of a folder around it, if there is one.
   * @throws EngineError database-locked, naming the holder, within about a second; after a holder that was lost
   *   without anybody being able to say so, the folder is taken when that was silent for some seconds.
   */
  lockDirectory(path: string, under?: DirectoryLock): Promise<DirectoryLock>;
}

/** A folder that this process has. It is used through `FencedFiles`. */
export interface DirectoryLock {
  /** No other lock has it: for names of temporary files that nobody else knows. */
  readonly nonce: string;
  /**
   * It was taken from an owner that was silent and may go on: calls that it had begun may still reach the disk. So no
   * file that it may have open is written to, and no name that it may be about to use is given.
   */
  readonly mayHaveRival: boolean;
  /** False where several machines can have the folder: then `prove` is called before anything is promised. */
  readonly leaseSuffices: boolean;
  /** Is the folder surely ours now, as far as clocks can be trusted? Cheap. */
  isLeased(): boolean;
  /** Finds out whether the folder is ours, and keeps it so. @throws EngineError folder-lost */
  prove(): Promise<void>;
  /** Calls `listener` once when the folder is found to be another's. */
  onLost(listener: (error: Error) => void): void;
  release(): Promise<void>;
}

/** Tells the operator, in one line for people, and of what caused it when that is an error. */
export type Report = (message: string, cause?: unknown) => void;

export interface Environment {
  readonly clock: Clock;
  readonly files: FileSystem;
  /** Cryptographically random bytes. */
  random(count: number): Buffer;
}
