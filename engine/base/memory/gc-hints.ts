/**
 * Collects buffers that were dropped. V8 collects when its own heap grows, and hardly counts the memory of buffers: for
 * a large body that arrives in small chunks, some hundred megabytes of consumed chunks would wait for a collection.
 *
 * Chunks that are consumed immediately are young: a minor collection frees them, in less than a millisecond, whatever
 * the size of the heap. Objects that survived two of these require a major collection, which takes about 0.7 ms for
 * each megabyte of the heap: it runs immediately while the heap is small; for a larger heap V8 marks in steps, beside
 * other work.
 *
 * Invariants:
 * - Only unreferenced memory is freed: these are requests to the collector, and only its timing depends on them.
 */
import { getHeapStatistics, setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/**
 * Bytes of consumed chunks after which they are collected. V8 counts young buffers as if they had been promoted: with
 * twice this value it begins a major collection every twenty batches of 300 KB, which costs far more than the minor
 * ones.
 */
const passingBytesMax = 4 * 1024 * 1024;
/** Bytes of dropped large buffers after which they are collected. */
const droppedBytesMax = 16 * 1024 * 1024;
/** A major collection of a heap of this size takes about 20 ms. */
const smallHeapBytes = 32 * 1024 * 1024;
/** V8 starts a collection in steps when external memory has grown by 64 MiB. */
const pressureBytes = 72 * 1024 * 1024;

/** Without options it is a major collection; Node 20 makes a minor one with any. */
type Collect = (options?: { readonly type: "minor" }) => void;

const forgetters: (() => void)[] = [];
let collector: Collect | undefined;
let passingBytes = 0;
let droppedBytes = 0;
let isScheduled = false;

/** Counts `bytes` of small, recently created buffers that are no longer needed. */
export function countPassing(bytes: number): void {
  passingBytes += bytes;
  if (passingBytes < passingBytesMax) return;
  passingBytes = 0;
  collector ??= exposedCollector();
  collector?.({ type: "minor" });
}

/** Counts a large buffer of `bytes` bytes that is unreferenced after this tick of the event loop. */
export function countDropped(bytes: number): void {
  droppedBytes += bytes;
  if (droppedBytes < droppedBytesMax || isScheduled) return;
  isScheduled = true;
  setImmediate(() => {
    isScheduled = false;
    droppedBytes = 0;
    for (const forget of forgetters) forget();
    if (getHeapStatistics().used_heap_size > smallHeapBytes) return startCollection();
    collector ??= exposedCollector();
    if (collector === undefined) startCollection();
    else collector();
  });
}

/** `forget` is called before dropped buffers are collected: for a module that keeps a reference to the last one used. */
export function whenCollecting(forget: () => void): void {
  forgetters.push(forget);
}

/**
 * Makes V8 start a collection in steps, by allocating a buffer that is immediately garbage. The buffer uses no physical
 * memory, because it is never written. A smaller buffer has no effect: it is freed, and subtracted, before V8 checks.
 * And freeing a block of up to 32 MiB raises the size from which on the C library returns memory to the system.
 */
export function startCollection(bytes = pressureBytes): void {
  try {
    new ArrayBuffer(bytes);
  } catch {
    // When even this allocation fails, V8 has already collected.
  }
}

/**
 * V8 exposes its collector only to contexts that are created while the flag is set. The flag is that of the process, and
 * another thread may clear it at the same moment: then undefined, and the next call tries again.
 */
function exposedCollector(): Collect | undefined {
  setFlagsFromString("--expose-gc");
  try {
    return runInNewContext("globalThis.gc") as Collect | undefined;
  } finally {
    setFlagsFromString("--no-expose-gc");
  }
}
