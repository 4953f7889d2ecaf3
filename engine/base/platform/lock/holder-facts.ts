/**
 * The identity of a process in a lock file, from which another process can determine whether it is alive. Unknown facts
 * are null, and nothing is concluded from them.
 *
 * Invariants:
 * - `processIsGone` is true only for a process of this kernel, in the same PID namespace. Host names prove nothing:
 *   they are reused, as are process ids.
 */
import { readFile, readlink, statfs } from "node:fs/promises";
import { hostname } from "node:os";
import { performance } from "node:perf_hooks";
import type { LockRecord } from "./lock-record.ts";

export interface HolderFacts {
  readonly pid: number;
  readonly host: string;
  readonly startedAt: string;
  /** Identifies this boot of the machine; containers may have one of their own. */
  readonly bootId: string | null;
  /** The namespace of `pid`. */
  readonly pidNamespace: string | null;
  /** Start time of the process, in ticks since boot: distinguishes it from a later one with the same id. */
  readonly startTicks: string | null;
}

/** Returns the facts of this process. */
export async function ownFacts(): Promise<HolderFacts> {
  return {
    pid: process.pid,
    host: hostname(),
    startedAt: new Date(performance.timeOrigin).toISOString(),
    bootId: await textOf("/proc/sys/kernel/random/boot_id"),
    pidNamespace: await readlink("/proc/self/ns/pid").catch(() => null),
    startTicks: await startTicksOf("self"),
  };
}

/**
 * Returns whether the process of `record` has certainly ended. False when it lives, and when that cannot be determined
 * from here.
 */
export async function processIsGone(record: LockRecord, own: HolderFacts): Promise<boolean> {
  if (own.bootId === null || own.pidNamespace === null) return false;
  if (record.bootId !== own.bootId || record.pidNamespace !== own.pidNamespace) return false;
  if (!processExists(record.pid)) return true;
  // /proc is used only if its process ids are those of our namespace.
  const proc = await readlink("/proc/self").catch(() => null);
  if (record.startTicks === null || proc !== String(process.pid)) return false;
  const ticks = await startTicksOf(String(record.pid));
  return ticks !== null && ticks !== record.startTicks;
}

function processExists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM: it belongs to another user.
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
}

async function startTicksOf(process: string): Promise<string | null> {
  const text = await textOf(`/proc/${process}/stat`);
  // The name of the program, in parentheses, may itself contain spaces and parentheses. This is field 22.
  return text?.slice(text.lastIndexOf(")") + 2).split(" ")[19] ?? null;
}

async function textOf(path: string): Promise<string | null> {
  return (await readFile(path, "utf8").catch(() => null))?.trim() ?? null;
}

/**
 * File systems that only one kernel can have mounted: ext, xfs, btrfs, tmpfs, ramfs, f2fs, zfs, overlay, bcachefs, jfs,
 * nilfs. Not network file systems, FUSE or 9p, which may be backed by another machine.
 */
const localTypes: ReadonlySet<number> = new Set([
  0xef53, 0x58465342, 0x9123683e, 0x01021994, 0x858458f6, 0xf2f52010, 0x2fc12fc1, 0x794c7630,
  0xca451a4e, 0x3153464a, 0x3434,
]);

/** Returns whether the folder is on a file system that no other machine can access. False when that is unknown. */
export async function isLocalFolder(folder: string): Promise<boolean> {
  if (process.platform !== "linux") return false;
  const { type } = await statfs(folder);
  return localTypes.has(type >>> 0);
}
