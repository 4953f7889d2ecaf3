/**
 * The outside world as one value: clock, random bytes, files. Everything in engine/ that depends on
 * them takes an `Environment`, so that a test can run a database in simulated time on a simulated disk.
 */

/** Wall time and timers. */
export interface Clock {
  /** Microseconds since 1970-01-01 UTC: an integer below 2^53. May go backward when the host's clock is set. */
  nowMicros(): number;
  /** Returns milliseconds of a monotonic clock; only differences are meaningful. */
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
  /** Writes all bytes or throws (a short write is continued, then an error is thrown). */
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
  /** Returns the names in a folder, in no order. */
  list(path: string): Promise<string[]>;
  /** Creates the folder and its parents; no error when it exists. */
  makeDirectory(path: string): Promise<void>;
  /** Replaces `target` atomically. Durable only after `syncDirectory` of the folder. */
  rename(source: string, target: string): Promise<void>;
  unlink(path: string): Promise<void>;
  /** Removes a folder and everything in it; no error when it does not exist. */
  removeTree(path: string): Promise<void>;
  syncDirectory(path: string): Promise<void>;
  exists(path: string): Promise<boolean>;
  /** Returns the bytes that can still be written on the device that holds `path`. */
  freeBytes(path: string): Promise<number>;
  /**
   * Locks the folder for this process until `release`. `under`: the lock of an enclosing folder, if there is one.
   * @throws EngineError database-locked, naming the holder, within about a second. If it cannot be determined whether
   * the holder is alive, the lock is acquired after some seconds without a heartbeat.
   */
  lockDirectory(path: string, under?: DirectoryLock): Promise<DirectoryLock>;
}

/** A folder locked by this process. It is used through `FencedFiles`. */
export interface DirectoryLock {
  /** Unique to this lock: for names of temporary files that no other process uses. */
  readonly nonce: string;
  /**
   * Whether the lock was acquired from a silent owner that may still be running: its pending calls may still reach the
   * disk. Files that it may have open are therefore never written to, and names that it may be about to use are not
   * used.
   */
  readonly mayHaveRival: boolean;
  /** False if several machines can lock the folder: `prove` is then called before anything is acknowledged. */
  readonly leaseSuffices: boolean;
  /** Returns whether the lease is certainly still held, as far as clocks can be trusted. Cheap. */
  isLeased(): boolean;
  /** Verifies that the folder is still held, and renews the lease. @throws EngineError folder-lost */
  prove(): Promise<void>;
  /** Calls `listener` once when another process is found to hold the folder. */
  onLost(listener: (error: Error) => void): void;
  release(): Promise<void>;
}

/** Type of an event for which operators are given instructions. */
export type ReportEvent =
  | "damage"
  | "database-closed"
  | "database-reopened"
  | "database-stopped"
  | "disk-full"
  | "disk-has-room"
  | "writers-held";

/** Reports to the operator: one line for people, and its cause when that is an error. */
export type Report = (message: string, cause?: unknown, event?: ReportEvent) => void;

export interface Environment {
  readonly clock: Clock;
  readonly files: FileSystem;
  /** Cryptographically random bytes. */
  random(count: number): Buffer;
}
