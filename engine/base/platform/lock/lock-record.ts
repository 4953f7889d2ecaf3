/**
 * The content and names of a folder's lock files.
 *
 *   LOCK.<generation>     the owner of the folder: the one with the highest number
 *   LOCK.<nonce>.sock     the socket on which that process answers while it lives (presence.ts)
 *   LOCK.<nonce>.tmp      a lock file being created
 *
 * A lock file is a line of JSON, then 16 characters that change: a count of heartbeats, or `released`.
 *
 * Invariants:
 * - A generation is used once: the next owner creates the file of the next generation, which only one process can do
 *   (`link`), and the newest is never removed. So an owner is replaced exactly when the file of a later generation
 *   exists.
 * - Only its owner writes to a lock file.
 */
import { open, readdir } from "node:fs/promises";

export interface LockRecord {
  /** Unique to this acquisition of the folder; constant through its generations. */
  readonly nonce: string;
  readonly pid: number;
  readonly host: string;
  readonly startedAt: string;
  /** See `HolderFacts`. */
  readonly bootId: string | null;
  readonly pidNamespace: string | null;
  readonly startTicks: string | null;
  /** The socket's file in the same folder; null: none. */
  readonly socket: string | null;
  /** Milliseconds without a heartbeat, by the observer's clock, after which the lock may be acquired. */
  readonly silenceMs: number;
  /** The lock of the enclosing folder, if that has the heartbeats. */
  readonly under: { readonly folder: string; readonly nonce: string } | null;
}

/** A lock file as found. */
export interface FoundLock {
  readonly generation: number;
  /** Null: unreadable, e.g. because it is being written. */
  readonly record: LockRecord | null;
  readonly isReleased: boolean;
  /** Changes with each heartbeat. */
  readonly fingerprint: string;
}

const stateBytes = 16;
export const releasedState = "released".padEnd(stateBytes);
const lockBytesMax = 64 * 1024;

export function lockPath(folder: string, generation: number): string {
  return `${folder}/LOCK.${generation}`;
}

/** Returns whether this is the name of a file of the lock, also of older versions. */
export function isLockName(name: string): boolean {
  return name === "LOCK" || /^LOCK\.(\d+|[0-9a-f]+\.(sock|tmp))$/.test(name);
}

/** Returns the generation of a lock file; 0 for other names. */
export function generationOf(name: string): number {
  const match = /^LOCK\.(\d{1,15})$/.exec(name);
  return match === null ? 0 : Number(match[1]);
}

/** Returns the first line, without its newline. */
export function encodeRecord(record: LockRecord): string {
  return JSON.stringify(record);
}

/** Returns the initial content of a lock file. */
export function encodeLock(record: LockRecord): string {
  return `${encodeRecord(record)}\n${"0".padStart(stateBytes, "0")}\n`;
}

export async function highestGeneration(folder: string): Promise<number> {
  let highest = 0;
  for (const name of await readdir(folder)) highest = Math.max(highest, generationOf(name));
  return highest;
}

/** Returns the newest lock file of the folder; null if it has no lock file. @throws the errors of the file system. */
export async function findLock(folder: string): Promise<FoundLock | null> {
  for (;;) {
    const generation = await highestGeneration(folder);
    if (generation === 0) return null;
    const found = await readLock(folder, generation);
    // Missing: it was replaced by another generation in the meantime.
    if (found !== null) return found;
  }
}

/**
 * One lock file; null when it does not exist. It is opened each time: network file systems check for changes by other
 * machines when a file is opened, and perhaps only then.
 */
export async function readLock(folder: string, generation: number): Promise<FoundLock | null> {
  let text: string;
  let changed: bigint;
  try {
    const file = await open(lockPath(folder, generation), "r");
    try {
      changed = (await file.stat({ bigint: true })).mtimeNs;
      const bytes = Buffer.alloc(lockBytesMax);
      const { bytesRead } = await file.read(bytes, 0, bytes.length, 0);
      text = bytes.toString("utf8", 0, bytesRead);
    } finally {
      await file.close();
    }
  } catch (error) {
    if (isGone(error)) return null;
    throw error;
  }
  const [line = "", state = ""] = text.split("\n");
  const record = parseRecord(line);
  return {
    generation,
    record,
    isReleased: record !== null && state.trim() === releasedState.trim(),
    fingerprint: `${generation} ${changed} ${state} ${line.length}`,
  };
}

/** ESTALE: another machine removed the file while it was being read. */
export function isGone(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException | null)?.code;
  return code === "ENOENT" || code === "ESTALE";
}

function parseRecord(line: string): LockRecord | null {
  try {
    const record = JSON.parse(line) as LockRecord | null;
    return typeof record?.nonce === "string" && record.silenceMs > 0 ? record : null;
  } catch {
    return null;
  }
}
