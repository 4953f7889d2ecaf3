/**
 * Memory of images that nobody reads any more, for the next ones. Memory that the system gives anew is paid for page by
 * page when it is first written, which costs more than what is written to it (bench/patch.bench.ts).
 *
 * Images are in shared memory, though nobody shares it: V8 leaves that out when it counts memory outside its heap, and does
 * not collect garbage each time an image is taken. Instead it is told when one is let go, for only then there is something
 * to collect.
 * They could grow, though they never do: V8 asks the system itself for such memory, and gives it back to the system. Other
 * memory of some megabytes stays in the heap of the C library, in pieces between others (bench/cold.bench.ts).
 *
 * Invariants:
 * - What was given is not taken before the next turn of the event loop: until then the bytes of a record may be read
 *   (`CommitLog.peek`).
 * - At most `idleBytesMax` bytes (or what the cache has room for) and `idleCountMax` images are kept, and none when no
 *   image was taken for a while.
 */
import { setImmediate, setTimeout } from "node:timers";
import type { Block, BlockKeeper } from "./blocks.ts";

export const idleCountMax = 32;
const idleBytesMax = 128 * 1024 * 1024;
/** Milliseconds without a new image after which none is kept. */
const idleMs = 5_000;
/**
 * V8 looks for garbage when it hears of 64 MiB more outside its heap than it knew of. Of less it hears in vain: it is told
 * of the end of that too, before it has looked. And what the C library allocates in pieces of up to 32 MiB raises the size
 * from which on it gives memory back to the system.
 */
const pressureBytes = 72 * 1024 * 1024;
/** So much may wait for V8 to collect it. A collection costs some 10 ms, most of them beside the work. */
const garbageBytesMax = 16 * 1024 * 1024;
/** What a test that reads a record too late finds. */
const poison = 0xdb;

export class ImagePool implements BlockKeeper {
  readonly poisons: boolean;
  /** Whole memories, the smallest first: when there are too many it goes. */
  readonly #idle: ArrayBufferLike[] = [];
  #idleBytes = 0;
  #idleBytesMax = idleBytesMax;
  readonly #idleMs: number;
  /** Runs while something is kept. */
  #timer: NodeJS.Timeout | null = null;
  #isTaken = false;

  /** @param poisons - overwrite what is given: for tests of those who read. */
  constructor(poisons = false, idleAfterMs = idleMs) {
    this.poisons = poisons;
    this.#idleMs = idleAfterMs;
  }

  /** Bytes that are kept for the next images. */
  get idleBytes(): number {
    return this.#idleBytes;
  }

  /** Was an image given back, and one taken, lately? */
  get isInUse(): boolean {
    return this.#timer !== null;
  }

  /** An image of `size` bytes that may be anything, aligned for typed views, from byte 0 of its memory on. */
  take(size: number): Buffer {
    this.#isTaken = true;
    const capacity = capacityFor(size);
    const found = this.#idle.findIndex(({ byteLength }) => byteLength >= size);
    const memory = this.#idle[found];
    if (memory === undefined || memory.byteLength > 2 * capacity) {
      return sharedMemory(capacity, size);
    }
    this.#idle.splice(found, 1);
    this.#idleBytes -= memory.byteLength;
    return Buffer.from(memory, 0, size);
  }

  /** Nobody will read `image` after this turn of the event loop. */
  giveImage(image: Buffer): void {
    const memory = image.buffer;
    setImmediate(() => this.#keep(memory));
  }

  /** As `giveImage`, unless somebody holds the block: then when it is released. */
  give(block: Block): void {
    setImmediate(() => {
      const image = block.isFree ? block.end() : null;
      if (image !== null) this.#keep(image.buffer);
    });
  }

  /** From now on at most `bytes` bytes are kept. */
  keepIdle(bytes: number): void {
    this.#idleBytesMax = Math.min(bytes, idleBytesMax);
    this.#dropIdle();
  }

  #keep(memory: ArrayBufferLike): void {
    if (this.poisons) new Uint8Array(memory).fill(poison);
    const next = this.#idle.findIndex(({ byteLength }) => byteLength >= memory.byteLength);
    this.#idle.splice(next < 0 ? this.#idle.length : next, 0, memory);
    this.#idleBytes += memory.byteLength;
    this.#dropIdle();
    this.#timer ??= setTimeout(() => this.#look(), this.#idleMs).unref();
  }

  /** Lets go of all when none was taken since it looked last, and of what was let go before and not collected. */
  #look(): void {
    this.#timer = null;
    if (!this.#isTaken) {
      this.#idle.length = 0;
      this.#idleBytes = 0;
      collectSoon(pressureBytes);
      return;
    }
    this.#isTaken = false;
    this.#timer = setTimeout(() => this.#look(), this.#idleMs).unref();
  }

  #dropIdle(): void {
    while (this.#idle.length > idleCountMax || this.#idleBytes > this.#idleBytesMax) {
      const dropped = this.#idle.shift();
      if (dropped === undefined) break;
      this.#idleBytes -= dropped.byteLength;
      letGo(dropped);
    }
  }
}

/** The first `size` of `capacity` bytes of memory that is the system's own again when it is collected, see above. */
export function sharedMemory(capacity: number, size: number): Buffer {
  return Buffer.from(new GrowableMemory(capacity, { maxByteLength: capacity }), 0, size);
}

const GrowableMemory = SharedArrayBuffer as new (
  bytes: number,
  options: { readonly maxByteLength: number },
) => SharedArrayBuffer;

/** Nobody has `memory` any more. */
export function letGo(memory: ArrayBufferLike): void {
  if (memory instanceof SharedArrayBuffer) collectSoon(memory.byteLength);
}

let letGoBytes = 0;

/**
 * Lets V8 look for garbage when enough was let go: it hears of an array buffer that is garbage from the beginning, and takes
 * no room, for nothing is written to it.
 */
function collectSoon(bytes: number): void {
  letGoBytes += bytes;
  if (letGoBytes < garbageBytesMax) return;
  try {
    new ArrayBuffer(pressureBytes);
  } catch {
    // Where there is no room even for that, V8 has collected already.
  }
  letGoBytes = 0;
}

/** Rounded up by at most an eighth, so that images of about the same size can take each other's place. */
function capacityFor(size: number): number {
  const step = Math.max(8, 2 ** (Math.floor(Math.log2(size)) - 3));
  return Math.ceil(size / step) * step;
}
