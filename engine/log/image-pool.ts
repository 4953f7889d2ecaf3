/**
 * Memory of images that nobody reads any more, for the next ones. Memory that the system gives anew is paid for page by
 * page when it is first written, which costs more than what is written to it (bench/patch.bench.ts).
 *
 * Images are in shared memory, though nobody shares it: V8 leaves that out when it counts memory outside its heap, and does
 * not collect garbage each time an image is taken. Instead it is told when one is let go, for only then there is something
 * to collect.
 *
 * Invariants:
 * - What was given is not taken before the next turn of the event loop: until then the bytes of a record may be read
 *   (`CommitLog.peek`).
 * - At most `idleBytesMax` bytes and `idleCountMax` images are kept.
 */
import { setImmediate } from "node:timers";

const idleCountMax = 4;
const idleBytesMax = 128 * 1024 * 1024;
/** What a test that reads a record too late finds. */
const poison = 0xdb;

export class ImagePool {
  readonly poisons: boolean;
  /** Whole memories, the smallest first: when there are too many it goes. */
  readonly #idle: ArrayBufferLike[] = [];
  #idleBytes = 0;

  /** @param poisons - overwrite what is given: for tests of those who read. */
  constructor(poisons = false) {
    this.poisons = poisons;
  }

  /** Bytes that are kept for the next images. */
  get idleBytes(): number {
    return this.#idleBytes;
  }

  /** An image of `size` bytes that may be anything, aligned for typed views, from byte 0 of its memory on. */
  take(size: number): Buffer {
    const capacity = capacityFor(size);
    const found = this.#idle.findIndex(({ byteLength }) => byteLength >= size);
    const memory = this.#idle[found];
    if (memory === undefined || memory.byteLength > 2 * capacity) {
      return Buffer.from(new SharedArrayBuffer(capacity), 0, size);
    }
    this.#idle.splice(found, 1);
    this.#idleBytes -= memory.byteLength;
    return Buffer.from(memory, 0, size);
  }

  /** Nobody will read `image` after this turn of the event loop. */
  give(image: Buffer): void {
    const memory = image.buffer;
    setImmediate(() => this.#keep(memory));
  }

  /** Nobody needs `image` any more, and it is not to be kept. */
  letGo(image: Buffer): void {
    collectSoon(image.buffer);
  }

  #keep(memory: ArrayBufferLike): void {
    if (this.poisons) new Uint8Array(memory).fill(poison);
    const next = this.#idle.findIndex(({ byteLength }) => byteLength >= memory.byteLength);
    this.#idle.splice(next < 0 ? this.#idle.length : next, 0, memory);
    this.#idleBytes += memory.byteLength;
    while (this.#idle.length > idleCountMax || this.#idleBytes > idleBytesMax) {
      const dropped = this.#idle.shift();
      if (dropped === undefined) break;
      this.#idleBytes -= dropped.byteLength;
      collectSoon(dropped);
    }
  }
}

/**
 * Lets V8 know of as many bytes outside its heap as `memory` has: an array buffer that is garbage from the beginning, and
 * takes no room, for nothing is written to it.
 */
export function collectSoon(memory: ArrayBufferLike): void {
  if (!(memory instanceof SharedArrayBuffer)) return;
  try {
    new ArrayBuffer(memory.byteLength);
  } catch {
    // Where there is no room even for that, V8 has collected already.
  }
}

/** Rounded up by at most an eighth, so that images of about the same size can take each other's place. */
function capacityFor(size: number): number {
  const step = Math.max(8, 2 ** (Math.floor(Math.log2(size)) - 3));
  return Math.ceil(size / step) * step;
}
