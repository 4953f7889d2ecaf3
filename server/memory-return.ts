/**
 * Gives memory back that large bodies and replies leave behind. V8 collects when something is allocated: an idle process keeps
 * what its last request left. Large buffers that nobody writes to make it begin a collection that goes on beside the work,
 * in small steps.
 */

const lookMs = 1_000;
/** Bytes by which the process grew since the last look that found it settled. */
const grownBytes = 48 * 1024 * 1024;
/** Parts of the heap of V8 by which the process must have grown too: marking a large heap costs more. */
const grownShare = 1 / 2;
/** As much outside of the heap makes V8 begin. Its pages are never touched: it takes no memory. */
const pokeBytes = 96 * 1024 * 1024;

/** Looks now and then. @returns a function that ends it */
export function returnMemory(): () => void {
  let settledBytes = process.memoryUsage.rss();
  let hasPoked = false;
  const timer = setInterval(() => {
    const bytes = process.memoryUsage.rss();
    if (hasPoked || bytes < settledBytes) {
      settledBytes = bytes;
      hasPoked = false;
      return;
    }
    const { heapUsed } = process.memoryUsage();
    if (bytes - settledBytes < Math.max(grownBytes, heapUsed * grownShare)) return;
    Buffer.allocUnsafeSlow(pokeBytes);
    hasPoked = true;
  }, lookMs).unref();
  return () => clearInterval(timer);
}
