/**
 * Gives memory back that large bodies and replies leave behind. V8 collects when something is allocated: an idle process keeps
 * what its last request left. A large buffer that nobody writes to makes it begin a collection that goes on beside the work,
 * in small steps.
 */
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

/** Looks now and then. @returns a function that ends it */
export function returnMemory(): () => void {
  let settledBytes = process.memoryUsage.rss();
  let workPeak = 0;
  let pause = pauseMin;
  let left = 0;
  const timer = setInterval(() => {
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
