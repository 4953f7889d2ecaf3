/**
 * Recycles the memory of segment images that are no longer read. Fresh memory costs a page fault for each page that is
 * first written, which is more than the writes themselves cost (bench/patch.bench.ts).
 *
 * Images are in `SharedArrayBuffer`s, though no thread shares them: V8 does not count these as external memory, so it
 * does not collect garbage each time an image is allocated. Instead a collection is triggered once enough of them has
 * been dropped: only then is there something to collect. The buffers are growable, though they never grow: V8 maps such
 * memory itself, and unmaps it when it is collected. Other allocations of some megabytes stay in the heap of the C
 * library, fragmented (bench/cold.bench.ts).
 *
 * Invariants:
 * - Released memory is not reused before the next tick of the event loop: until then the bytes of a record may be read
 *   (`CommitLog.peek`).
 * - At most `idleBytesMax` bytes (less if the cache leaves less) and `idleCountMax` images are retained, and none if no
 *   image was acquired for a while.
 */

import { type BorrowedBytes, borrowed } from "../../base/memory/borrowed-bytes.ts";
import { countDropped, startCollection } from "../../base/memory/gc-hints.ts";
import type { Block, BlockKeeper } from "./blocks.ts";

export const idleCountMax = 32;
const idleBytesMax = 128 * 1024 * 1024;
/** Larger images, of single large transactions, are not kept. */
const pooledBytesMax = 64 * 1024 * 1024;
/** Milliseconds without a new image after which all idle memory is dropped. */
const idleMs = 5_000;
/** Dropped bytes after which a collection is requested. It costs some 10 ms, most of them on other threads. */
const garbageBytesMax = 16 * 1024 * 1024;
/** Tests overwrite released memory with this byte, to detect late reads. */
const poison = 0xdb;

export class ImagePool implements BlockKeeper {
  readonly poisons: boolean;
  /** Idle buffers by size; the smallest is dropped when there are too many. */
  readonly #idle: ArrayBufferLike[] = [];
  #idleBytes = 0;
  #idleBytesMax = idleBytesMax;
  readonly #idleMs: number;
  /** Set while images are in use, see `isInUse`. */
  #timer: NodeJS.Timeout | null = null;
  #isTaken = false;

  /** @param poisons overwrite released memory: for tests of readers */
  constructor(poisons = false, idleAfterMs = idleMs) {
    this.poisons = poisons;
    this.#idleMs = idleAfterMs;
  }

  /** Bytes of idle memory, kept for new images. */
  get idleBytes(): number {
    return this.#idleBytes;
  }

  /** Whether images have been released and acquired recently. */
  get isInUse(): boolean {
    return this.#timer !== null;
  }

  /** Returns an image of `size` bytes with undefined content, aligned for typed views, at byte 0 of its memory. */
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

  /** Releases `image`: it must not be read after this tick of the event loop. */
  releaseImage(image: Buffer): void {
    const memory = image.buffer;
    setImmediate(() => this.#keep(memory));
  }

  /** As `releaseImage`, for a block's image; if a reader holds the block, once that releases it. */
  give(block: Block): void {
    setImmediate(() => {
      const image = block.isFree ? block.end() : null;
      if (image !== null) this.#keep(image.buffer);
    });
  }

  /** Sets the maximum of idle bytes, at most `idleBytesMax`. */
  keepIdle(bytes: number): void {
    this.#idleBytesMax = Math.min(bytes, idleBytesMax);
    this.#dropIdle();
  }

  #keep(memory: ArrayBufferLike): void {
    if (this.poisons) new Uint8Array(memory).fill(poison);
    if (memory.byteLength > pooledBytesMax) {
      countDropped(memory.byteLength);
      return;
    }
    const next = this.#idle.findIndex(({ byteLength }) => byteLength >= memory.byteLength);
    this.#idle.splice(next < 0 ? this.#idle.length : next, 0, memory);
    this.#idleBytes += memory.byteLength;
    this.#dropIdle();
    this.#timer ??= setTimeout(() => this.#look(), this.#idleMs).unref();
  }

  /** Drops all idle memory, and triggers collection of dropped memory, if no image was acquired since the last call. */
  #look(): void {
    this.#timer = null;
    if (!this.#isTaken) {
      this.#idle.length = 0;
      this.#idleBytes = 0;
      collectSoon(garbageBytesMax);
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

/**
 * For tests: replaces recycled memory by a copy that is overwritten at the end of the tick of the event loop. So a late
 * read is detected whether or not the memory was in fact recycled.
 */
export function poisonedAfterTick(bytes: BorrowedBytes): BorrowedBytes {
  const copy = Buffer.allocUnsafeSlow(bytes.length); // aligned, as records are
  bytes.copy(copy);
  setImmediate(() => copy.fill(poison));
  return borrowed(copy);
}

/**
 * Returns the first `size` of `capacity` bytes of memory that is returned to the system when it is collected, see
 * above.
 */
export function sharedMemory(capacity: number, size: number): Buffer {
  return Buffer.from(new GrowableMemory(capacity, { maxByteLength: capacity }), 0, size);
}

const GrowableMemory = SharedArrayBuffer as new (
  bytes: number,
  options: { readonly maxByteLength: number },
) => SharedArrayBuffer;

/** Counts `memory`, which must be unreferenced, as garbage for V8 to collect. */
export function letGo(memory: ArrayBufferLike): void {
  if (memory instanceof SharedArrayBuffer) collectSoon(memory.byteLength);
}

let letGoBytes = 0;

/** Makes V8 collect garbage when enough memory was dropped. */
function collectSoon(bytes: number): void {
  letGoBytes += bytes;
  if (letGoBytes < garbageBytesMax) return;
  startCollection();
  letGoBytes = 0;
}

/** Rounds up by at most an eighth, so that images of similar size can reuse each other's memory. */
function capacityFor(size: number): number {
  const step = Math.max(8, 2 ** (Math.floor(Math.log2(size)) - 3));
  return Math.ceil(size / step) * step;
}
