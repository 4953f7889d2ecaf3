/**
 * Who a process is, so that another can tell from a lock file whether it still lives. What cannot be found out is null,
 * and then nothing is concluded from it.
 *
 * Invariants:
 * - `processIsGone` says true only of a process that was on this kernel, counted in the same namespace of processes.
 *   Names of machines prove nothing: they are given again, as are ids of processes.
 */
import { readFile, readlink, statfs } from "node:fs/promises";
import { hostname } from "node:os";
import { performance } from "node:perf_hooks";
import type { LockRecord } from "./lock-record.ts";

export interface HolderFacts {
  readonly pid: number;
  readonly host: string;
  readonly startedAt: string;
  /** Of this start of the machine; containers may be given one of their own. */
  readonly bootId: string | null;
  /** The namespace in which `pid` counts. */
  readonly pidNamespace: string | null;
  /** When the process started, in ticks since the boot: tells it from a later one with its id. */
  readonly startTicks: string | null;
}

/** The facts of this process. */
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

/** Is the process of `record` surely gone? False when it lives, and when nobody can say from here. */
export async function processIsGone(record: LockRecord, own: HolderFacts): Promise<boolean> {
  if (own.bootId === null || own.pidNamespace === null) return false;
  if (record.bootId !== own.bootId || record.pidNamespace !== own.pidNamespace) return false;
  if (!processExists(record.pid)) return true;
  // Of processes in /proc only when it counts them as we do.
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
    // EPERM: it is another user's.
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
}

async function startTicksOf(process: string): Promise<string | null> {
  const text = await textOf(`/proc/${process}/stat`);
  // The name of the program, in parentheses, may have blanks and parentheses itself. Field 22 of all.
  return text?.slice(text.lastIndexOf(")") + 2).split(" ")[19] ?? null;
}

async function textOf(path: string): Promise<string | null> {
  return (await readFile(path, "utf8").catch(() => null))?.trim() ?? null;
}

/**
 * File systems that one kernel alone has open: ext, xfs, btrfs, tmpfs, ramfs, f2fs, zfs, overlay, bcachefs, jfs, nilfs.
 * Not those of a network, nor FUSE, nor 9p, behind which there may be another machine.
 */
const localTypes: ReadonlySet<number> = new Set([
  0xef53, 0x58465342, 0x9123683e, 0x01021994, 0x858458f6, 0xf2f52010, 0x2fc12fc1, 0x794c7630,
  0xca451a4e, 0x3153464a, 0x3434,
]);

/** Is the folder on a file system that no other machine can reach? False when that is not known. */
export async function isLocalFolder(folder: string): Promise<boolean> {
  if (process.platform !== "linux") return false;
  const { type } = await statfs(folder);
  return localTypes.has(type >>> 0);
}
