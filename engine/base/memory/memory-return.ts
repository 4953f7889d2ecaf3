/**
 * Returns memory to the system after large bodies and replies. V8 collects garbage when something is allocated, so an idle
 * process retains the memory of its last requests. Allocating a large buffer, which is never written, makes V8 start an
 * incremental collection.
 *
 * After that, V8's heap may still be fragmented over far more pages than it needs. V8 releases those pages under memory
 * pressure. That takes one pause, so it is done only for a small heap, and while there is little to do.
 */
import { performance } from "node:perf_hooks";
import { getHeapStatistics } from "node:v8";
import { startCollection } from "./gc-hints.ts";
import { processMemory } from "./memory-budget.ts";
import { residentBytes } from "./resident-bytes.ts";

const lookMs = 1_000;
/** Growth of the process, or of V8's heap while the thread is not busy, that makes a collection worthwhile, in bytes. */
const grownBytes = 48 * 1024 * 1024;
/** Required growth as a share of V8's heap: marking a large heap costs more. */
const grownShare = 1 / 2;
/** Work memory released since its peak that triggers a collection, in bytes. */
const returnedBytes = 32 * 1024 * 1024;
/**
 * Minimum and maximum numbers of checks between two collections while the process stays large; after the maximum, its size
 * counts as settled.
 */
const pauseMin = 1;
const pauseMax = 8;
/** External memory that makes V8 start a collection, in bytes. The pages are never touched, so no memory is used. */
const pokeBytes = 96 * 1024 * 1024;
/** Minimum unused heap for which a pause is worthwhile, in bytes. */
const scatteredBytes = 32 * 1024 * 1024;
/** Maximum used heap that an idle thread compacts, in bytes. */
const idlePauseBytes = 64 * 1024 * 1024;
/** Maximum used heap that a thread compacts while it is neither idle nor busy, in bytes. */
const shortPauseBytes = 32 * 1024 * 1024;
/** Maximum shares of the last second spent working for which the thread counts as idle, and as not busy. */
const restShare = 0.05;
const busyShare = 0.5;
/** V8 assumes memory pressure when external memory exceeds half of its heap limit by some margin. */
const heapShare = 1 / 2;

/** Checks memory every `lookMs`. @returns a function that stops the checks */
export function returnMemory(): () => void {
  let settledBytes = residentBytes(0);
  let settledHeapBytes = getHeapStatistics().used_heap_size;
  let workPeak = 0;
  let pause = pauseMin;
  let left = 0;
  const compactor = new HeapCompactor();
  let load = performance.eventLoopUtilization();
  const timer = setInterval(() => {
    const before = load;
    load = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(load, before);
    const isBusy = utilization > busyShare;
    if (utilization <= restShare) compactor.look(idlePauseBytes);
    else if (!isBusy) compactor.look(shortPauseBytes);
    const bytes = residentBytes(settledBytes);
    const work = processMemory.workBytes;
    workPeak = Math.max(workPeak, work);
    settledBytes = Math.min(settledBytes, bytes);
    const isReturned = workPeak - work > returnedBytes;
    if (isReturned) {
      workPeak = work;
      pause = pauseMin;
      left = 0;
    }
    const { used_heap_size: heapBytes } = getHeapStatistics();
    settledHeapBytes = Math.min(settledHeapBytes, heapBytes);
    // The size settles also under long load, whose garbage remains when it ends.
    const isGrown =
      bytes - settledBytes > Math.max(grownBytes, heapBytes * grownShare) ||
      (!isBusy && heapBytes - settledHeapBytes > Math.max(grownBytes, heapBytes * grownShare));
    if (!isGrown && !isReturned) {
      pause = pauseMin;
      left = 0;
      return;
    }
    if (left-- > 0) return;
    startCollection(pokeBytes);
    left = pause;
    pause *= 2;
    if (pause <= pauseMax) return;
    settledBytes = bytes;
    if (!isBusy) settledHeapBytes = heapBytes;
    pause = pauseMin;
  }, lookMs).unref();
  return () => clearInterval(timer);
}

/** Makes V8 release heap pages it does not need, while there is little to do. */
class HeapCompactor {
  /** Heap bytes after the last compaction: another one is useless until the heap grows. */
  #leftBytes = 0;

  look(usedBytesMax: number): void {
    const { used_heap_size: used, total_heap_size: total } = getHeapStatistics();
    this.#leftBytes = Math.min(this.#leftBytes, total);
    const freeBytes = total - Math.max(used, this.#leftBytes);
    if (freeBytes < scatteredBytes || used > usedBytesMax) return;
    shrinkHeap();
    this.#leftBytes = getHeapStatistics().total_heap_size;
  }
}

/** Compacts the heap immediately, in one pause. The buffer is never written, so it uses no memory, and is garbage. */
export function shrinkHeap(): void {
  const { heap_size_limit: limit, external_memory: external } = getHeapStatistics();
  try {
    new ArrayBuffer(limit * heapShare + external + pokeBytes);
  } catch {
    // If the system refuses to reserve that much, the heap is unchanged.
  }
}
