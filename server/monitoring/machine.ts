/** The processors, memory, and disk of the machine, as far as the system reports them. */
import { readFileSync, statSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { availableParallelism, cpus, freemem, totalmem } from "node:os";
import { residentBytes } from "../../engine/base/memory/resident-bytes.ts";

interface ProcessorShares {
  /** Percentage of all processors since the last call. */
  readonly process: number;
  readonly machine: number;
  readonly cores: number;
}

/** Measures processor use between calls. */
export class ProcessorWatch {
  #before = processorTimes();

  look(): ProcessorShares {
    const before = this.#before;
    const now = processorTimes();
    this.#before = now;
    const cores = availableParallelism();
    const all = Math.max(1, now.allMs - before.allMs);
    const passed = Math.max(1, now.atMs - before.atMs) * cores;
    const percent = (share: number) => Math.min(100, Math.max(0, Math.round(share * 100)));
    return {
      process: percent((now.processMs - before.processMs) / passed),
      machine: percent((now.busyMs - before.busyMs) / all),
      cores,
    };
  }
}

function processorTimes() {
  const { user, system } = process.cpuUsage();
  let busyMs = 0;
  let allMs = 0;
  for (const { times } of cpus()) {
    const busy = times.user + times.nice + times.sys + times.irq;
    busyMs += busy;
    allMs += busy + times.idle;
  }
  return { atMs: performance.now(), processMs: (user + system) / 1000, busyMs, allMs };
}

interface MachineMemory {
  readonly totalBytes: number;
  readonly freeBytes: number;
  readonly residentBytes: number;
  readonly heapBytes: number;
  /** Memory of buffers outside the heap. */
  readonly externalBytes: number;
  readonly swapUsedBytes: number;
  readonly commitLimitBytes: number;
}

export function machineMemory(): MachineMemory {
  const { heapUsed, external } = process.memoryUsage();
  const meminfo = textOf("/proc/meminfo");
  const bytesOf = (name: string) => {
    const found = new RegExp(`^${name}: +(\\d+) kB`, "m").exec(meminfo);
    return found === null ? null : Number(found[1]) * 1024;
  };
  return {
    totalBytes: totalmem(),
    freeBytes: freemem(),
    residentBytes: residentBytes(0),
    heapBytes: heapUsed,
    externalBytes: external,
    swapUsedBytes: (bytesOf("SwapTotal") ?? 0) - (bytesOf("SwapFree") ?? 0),
    commitLimitBytes: bytesOf("CommitLimit") ?? totalmem(),
  };
}

interface DiskRates {
  readonly readsPerSecond: number;
  readonly writesPerSecond: number;
  readonly readBytesPerSecond: number;
  readonly writtenBytesPerSecond: number;
  /** Number of requests in progress. */
  readonly queueLength: number;
}

/** Measures the activity of the device with a folder between calls; Linux only. */
export class DiskWatch {
  readonly #device: string | null;
  #before: DeviceCounts | null;

  constructor(folder: string) {
    this.#device = deviceOf(folder);
    this.#before = this.#counts();
  }

  /** Returns null if the system does not report it. */
  look(): DiskRates | null {
    const before = this.#before;
    const now = this.#counts();
    this.#before = now;
    if (before === null || now === null) return null;
    const seconds = Math.max(1, now.atMs - before.atMs) / 1000;
    const rate = (of: "reads" | "readSectors" | "writes" | "writtenSectors") =>
      Math.max(0, now[of] - before[of]) / seconds;
    return {
      readsPerSecond: rate("reads"),
      writesPerSecond: rate("writes"),
      readBytesPerSecond: rate("readSectors") * sectorBytes,
      writtenBytesPerSecond: rate("writtenSectors") * sectorBytes,
      queueLength: now.underWay,
    };
  }

  #counts(): DeviceCounts | null {
    return this.#device === null ? null : deviceCounts(textOf("/proc/diskstats"), this.#device);
  }
}

interface DeviceCounts {
  readonly atMs: number;
  readonly reads: number;
  readonly readSectors: number;
  readonly writes: number;
  readonly writtenSectors: number;
  readonly underWay: number;
}

/** Unit of /proc/diskstats, whatever the sector size of the device. */
const sectorBytes = 512;

/** Parses the line of `device`, `major:minor`, in the text of /proc/diskstats. */
export function deviceCounts(text: string, device: string): DeviceCounts | null {
  for (const line of text.split("\n")) {
    const [major, minor, , ...counts] = line.trim().split(/\s+/);
    if (`${major}:${minor}` !== device) continue;
    const [reads = 0, , readSectors = 0, , writes = 0, , writtenSectors = 0, , underWay = 0] =
      counts.map(Number);
    return { atMs: performance.now(), reads, readSectors, writes, writtenSectors, underWay };
  }
  return null;
}

function deviceOf(folder: string): string | null {
  try {
    const { dev } = statSync(folder, { bigint: true });
    // The encoding of both numbers by glibc.
    const major = ((dev >> 8n) & 0xfffn) | ((dev >> 32n) & ~0xfffn);
    const minor = (dev & 0xffn) | ((dev >> 12n) & ~0xffn);
    return `${major}:${minor & 0xffffffffn}`;
  } catch {
    return null;
  }
}

interface DiskRoom {
  readonly totalBytes: number;
  /** Bytes available to users other than the superuser. */
  readonly freeBytes: number;
}

/** Measures the free space of the device with a folder. It never blocks: a failing disk may answer late or never. */
export class RoomWatch {
  readonly #folder: string;
  #answer: DiskRoom | null | undefined;
  #isAsking = false;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Returns each result once. Undefined if the result is pending, null if the system does not report it. */
  look(): DiskRoom | null | undefined {
    const answer = this.#answer;
    this.#answer = undefined;
    if (answer === undefined && !this.#isAsking) void this.#request();
    return answer;
  }

  async #request(): Promise<void> {
    this.#isAsking = true;
    try {
      const { bavail, blocks, bsize } = await statfs(this.#folder);
      this.#answer = { totalBytes: blocks * bsize, freeBytes: bavail * bsize };
    } catch {
      this.#answer = null;
    }
    this.#isAsking = false;
  }
}

/** Returns the mount point of the file system with `folder`. */
export function mountPointOf(folder: string, mounts = textOf("/proc/self/mounts")): string {
  let best = "/";
  for (const line of mounts.split("\n")) {
    const point = (line.split(" ")[1] ?? "").replace(/\\040/g, " ");
    const isAbove = folder === point || folder.startsWith(point === "/" ? "/" : `${point}/`);
    if (isAbove && point.length > best.length) best = point;
  }
  return best;
}

/** Reads a file of the system. Returns "" if it does not exist or no file handle is available. */
function textOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
