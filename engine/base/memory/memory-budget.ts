/**
 * The memory budget of the process and its holders: the record cache uses the rest of the budget, and shrinks when
 * other holders need it; replies, bodies and work in progress reserve and release parts of the budget.
 *
 * Independent of the contents of the memory, and of V8's heap statistics: it counts large allocations, to within a few
 * percent.
 *
 * Invariants:
 * - Work holds at most `workBytesMax` in total, and for each use at most that use's limit, except that a sole holder is
 *   always admitted when nothing else is held for its use.
 * - Waiters for the same use are served first come, first served.
 */
import { totalmem } from "node:os";
import { assert } from "../assert.ts";

/** Use for which work reserves bytes. */
export type WorkUse = "replies" | "bodies" | "snapshots" | "scripts" | "queries";

/** Default budget as a share of the memory that the process may use. */
const defaultShare = 1 / 4;
const defaultBytesMax = 4 * 1024 ** 3;
/** Share of the budget that work may hold. */
const workShare = 1 / 2;

/** Returns the bytes of memory that this process may use: the machine's, or the container's when that is less. */
export function memoryOfProcess(
  machineBytes = totalmem(),
  constrainedBytes = process.constrainedMemory(),
): number {
  // Node returns 0 for "unknown" and about 2^64 for "unlimited".
  return constrainedBytes > 0 ? Math.min(machineBytes, constrainedBytes) : machineBytes;
}

/** Returns the default budget in bytes. */
export function defaultMemoryBudget(processBytes = memoryOfProcess()): number {
  return Math.min(defaultBytesMax, Math.floor(processBytes * defaultShare));
}

interface Waiter {
  readonly bytes: number;
  readonly use: WorkUse;
  readonly resolve: () => void;
}

export class MemoryBudget {
  #bytesMax: number;
  #workBytes = 0;
  readonly #workByUse: Record<WorkUse, number> = {
    replies: 0,
    bodies: 0,
    snapshots: 0,
    scripts: 0,
    queries: 0,
  };
  readonly #useBytesMax: Partial<Record<WorkUse, number>> = {};
  #waiters: Waiter[] = [];
  readonly #caches = new Set<() => void>();

  constructor(bytesMax: number = defaultMemoryBudget()) {
    this.#bytesMax = bytesMax;
  }

  /** The budget in bytes, for all uses and caches together. */
  get bytesMax(): number {
    return this.#bytesMax;
  }

  /** Takes effect immediately: caches are notified, and waiters re-examined. */
  set bytesMax(bytesMax: number) {
    this.#bytesMax = bytesMax;
    this.#notifyCaches();
    this.#serve();
  }

  /** Bytes that work may hold. */
  get workBytesMax(): number {
    return Math.floor(this.#bytesMax * workShare);
  }

  /** Limits the bytes held for `use`; the default is the limit of all work. */
  limitUse(use: WorkUse, bytesMax: number): void {
    this.#useBytesMax[use] = bytesMax;
    this.#serve();
  }

  /** Returns the bytes that work may hold for `use`. */
  useBytesMax(use: WorkUse): number {
    return Math.min(this.workBytesMax, this.#useBytesMax[use] ?? this.workBytesMax);
  }

  /** Returns the number of waiters for `use`. */
  waitersOf(use: WorkUse): number {
    let count = 0;
    for (const waiter of this.#waiters) if (waiter.use === use) count++;
    return count;
  }

  /** Bytes that work holds now. */
  get workBytes(): number {
    return this.#workBytes;
  }

  workBytesOf(use: WorkUse): number {
    return this.#workByUse[use];
  }

  /** Bytes that caches may hold now, all together. */
  get cacheBytesMax(): number {
    return Math.max(0, this.#bytesMax - this.#workBytes);
  }

  /** `shrink` is called when the limit of the caches may have decreased. @returns a function that removes it. */
  addCache(shrink: () => void): () => void {
    this.#caches.add(shrink);
    return () => this.#caches.delete(shrink);
  }

  /**
   * Reserves `bytes` if they are available and no one waits for the same use; `ownBytes`: the bytes that the caller
   * already holds for it, and the caller is the sole holder if nothing else is held. @returns whether the bytes were
   * reserved.
   */
  tryReserve(use: WorkUse, bytes: number, ownBytes = 0): boolean {
    if (!this.#hasRoom(use, bytes, ownBytes)) return false;
    if (this.waitersOf(use) > 0 && (ownBytes === 0 || this.#workByUse[use] > ownBytes))
      return false;
    this.#add(use, bytes);
    return true;
  }

  /** Reserves `bytes` even beyond the budget: they are already allocated. */
  force(use: WorkUse, bytes: number): void {
    this.#add(use, bytes);
  }

  /**
   * Waits until memory is available and reserves it. @returns false if `signal` was aborted first: then nothing is
   * reserved.
   */
  reserve(use: WorkUse, bytes: number, signal?: AbortSignal): Promise<boolean> {
    if (signal?.aborted === true) return Promise.resolve(false);
    if (this.tryReserve(use, bytes)) return Promise.resolve(true);
    return new Promise((resolve) => {
      const abort = () => {
        this.#waiters = this.#waiters.filter((other) => other !== waiter);
        resolve(false);
        this.#serve();
      };
      const waiter: Waiter = {
        bytes,
        use,
        resolve: () => {
          signal?.removeEventListener("abort", abort);
          resolve(true);
        },
      };
      signal?.addEventListener("abort", abort, { once: true });
      this.#waiters.push(waiter);
    });
  }

  release(use: WorkUse, bytes: number): void {
    assert(bytes <= this.#workByUse[use], "no more memory is released than was reserved");
    this.#workByUse[use] -= bytes;
    this.#workBytes -= bytes;
    this.#serve();
  }

  #hasRoom(use: WorkUse, bytes: number, ownBytes = 0): boolean {
    const held = this.#workByUse[use];
    if (held <= ownBytes) {
      // A sole holder is admitted whatever its size, but not beyond the limit of all work while others hold much.
      const others = this.#workBytes - held;
      if (others === 0 || this.#workBytes + bytes <= this.workBytesMax) return true;
      return held + bytes > this.workBytesMax && others <= this.workBytesMax / 2;
    }
    return held + bytes <= this.useBytesMax(use) && this.#workBytes + bytes <= this.workBytesMax;
  }

  #add(use: WorkUse, bytes: number): void {
    this.#workByUse[use] += bytes;
    this.#workBytes += bytes;
    this.#notifyCaches();
  }

  #notifyCaches(): void {
    for (const shrink of this.#caches) shrink();
  }

  #serve(): void {
    if (this.#waiters.length === 0) return;
    const blocked = new Set<WorkUse>();
    const served: Waiter[] = [];
    this.#waiters = this.#waiters.filter((waiter) => {
      if (blocked.has(waiter.use) || !this.#hasRoom(waiter.use, waiter.bytes)) {
        blocked.add(waiter.use);
        return true;
      }
      this.#add(waiter.use, waiter.bytes);
      served.push(waiter);
      return false;
    });
    for (const waiter of served) waiter.resolve();
  }
}

/** The budget of this process: every engine and server in it shares it. */
export const processMemory = new MemoryBudget();
