/**
 * Gives memory back that large bodies and replies leave behind. V8 collects when something is allocated: an idle process keeps
 * what its last request left. A large buffer that nobody writes to makes it begin a collection that goes on beside the work,
 * in small steps.
 *
 * After that the heap of V8 may have far more pages than it needs, for what is left is scattered over them. It gives them
 * back when it believes that the process is short of memory: that takes one pause, so it is done only where it is short,
 * and nobody is served meanwhile.
 */
import { performance } from "node:perf_hooks";
import { getHeapStatistics } from "node:v8";
import { processMemory } from "../engine/memory-budget.ts";

const lookMs = 1_000;
/** Bytes by which the process must have grown for a collection to be worth it. */
const grownBytes = 48 * 1024 * 1024;
/** Parts of the heap of V8 by which the process must have grown too: marking a large heap costs more. */
const grownShare = 1 / 2;
/** Bytes of work that were given back since they were most. */
const returnedBytes = 32 * 1024 * 1024;
/** Looks between two collections while the process stays large, at first and at most; after the last it is its size. */
const pauseMin = 1;
const pauseMax = 8;
/** As much outside of the heap makes V8 begin. Its pages are never touched: it takes no memory. */
const pokeBytes = 96 * 1024 * 1024;
/** Bytes of the heap that are not used, for which a pause is worth it, and bytes that are used for which it is short. */
const scatteredBytes = 32 * 1024 * 1024;
const shortPauseBytes = 64 * 1024 * 1024;
/** The part of the last second in which the process had something to do, below which it is at rest. */
const restShare = 0.05;
/** V8 believes it when it hears of half as much outside of its heap as that may have, and some more. */
const heapShare = 1 / 2;

/** Looks now and then. @returns a function that ends it */
export function returnMemory(): () => void {
  let settledBytes = process.memoryUsage.rss();
  let workPeak = 0;
  let pause = pauseMin;
  let left = 0;
  const compactor = new HeapCompactor();
  const timer = setInterval(() => {
    compactor.look();
    const bytes = process.memoryUsage.rss();
    const work = processMemory.workBytes;
    workPeak = Math.max(workPeak, work);
    settledBytes = Math.min(settledBytes, bytes);
    const isReturned = workPeak - work > returnedBytes;
    if (isReturned) {
      workPeak = work;
      pause = pauseMin;
      left = 0;
    }
    const { heapUsed } = process.memoryUsage();
    const isGrown = bytes - settledBytes > Math.max(grownBytes, heapUsed * grownShare);
    if (!isGrown && !isReturned) {
      pause = pauseMin;
      return;
    }
    if (left-- > 0) return;
    Buffer.allocUnsafeSlow(pokeBytes);
    left = pause;
    pause *= 2;
    if (pause <= pauseMax) return;
    settledBytes = bytes;
    pause = pauseMin;
  }, lookMs).unref();
  return () => clearInterval(timer);
}

/** Makes V8 give back what its heap does not need, when the process is at rest. */
class HeapCompactor {
  #load = performance.eventLoopUtilization();
  /** Bytes of the heap after the last time: until it grows, another does not help. */
  #leftBytes = 0;

  look(): void {
    const before = this.#load;
    this.#load = performance.eventLoopUtilization();
    if (performance.eventLoopUtilization(this.#load, before).utilization > restShare) return;
    const { used_heap_size: used, total_heap_size: total } = getHeapStatistics();
    this.#leftBytes = Math.min(this.#leftBytes, total);
    const freeBytes = total - Math.max(used, this.#leftBytes);
    if (freeBytes < scatteredBytes || used > shortPauseBytes) return;
    shrinkHeap();
    this.#leftBytes = getHeapStatistics().total_heap_size;
  }
}

/** At once, in one pause. The buffer is never written to: it takes no memory, and is garbage from the beginning. */
export function shrinkHeap(): void {
  const { heap_size_limit: limit, external_memory: external } = getHeapStatistics();
  try {
    new ArrayBuffer(limit * heapShare + external + pokeBytes);
  } catch {
    // Where the system does not even promise so much, the heap stays as it is.
  }
}
