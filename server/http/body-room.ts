/**
 * Accounts for the process memory of one body while it is collected and processed.
 *
 * Invariants:
 * - All memory held for a body is counted, except `freeBodyBytes`.
 * - Small bodies have a reserve, so that they do not wait for large ones.
 */
import { processMemory } from "../../engine/base/memory/memory-budget.ts";
import { forceRoom, takeRoom, type Waiter } from "./reply-room.ts";

/** Bytes of each body that are not counted. */
export const freeBodyBytes = 16 * 1024;
/** Bytes up to which a body is small, and the reserve of all small bodies, as a share of the limit for bodies. */
const smallBytes = 1024 * 1024;
const smallShare = 1 / 4;
/** A body of unknown length reserves this many bytes first, then doubles, by at most `stepBytesMax` a step. */
const firstBytes = 64 * 1024;
const stepBytesMax = 16 * 1024 * 1024;

/**
 * Returns the memory to reserve for a body of `length` bytes: a large body is in memory a second time as its record, and the
 * record as the image of its segment after the body was dropped.
 */
export function memoryOfBody(length: number): number {
  return length <= smallBytes ? length : 2 * length;
}

export class BodyRoom {
  #bytes = 0;
  #givers: (() => void)[] = [];
  #isReleased = false;

  /** Reserved memory, in bytes. */
  get bytes(): number {
    return freeBodyBytes + this.#bytes;
  }

  /** Whether another body waits for memory while this body holds some. */
  get isPressed(): boolean {
    return this.#bytes > 0 && processMemory.waitersOf("bodies") > 0;
  }

  /**
   * Reserves memory for a body of `length` bytes in total. @returns undefined if it is available immediately
   * @throws RequestError 503 (in the promise) if it does not become available in time
   */
  grow(length: number, isExact: boolean, waiter?: Waiter): Promise<void> | undefined {
    if (length <= this.bytes) return undefined;
    const step = Math.min(stepBytesMax, Math.max(firstBytes, this.#bytes));
    const wanted = (isExact ? length : Math.max(length, this.#bytes + step)) - this.#bytes;
    const held = processMemory.workBytesOf("bodies");
    const reserve = processMemory.useBytesMax("bodies") * (1 + smallShare);
    if (length <= smallBytes && held + wanted <= reserve) {
      this.#add(wanted, forceRoom("bodies", wanted));
      return undefined;
    }
    if (processMemory.tryReserve("bodies", wanted, this.#bytes)) {
      this.#add(wanted, () => processMemory.release("bodies", wanted));
      return undefined;
    }
    return takeRoom("bodies", wanted, waiter, this.#bytes).then((give) => this.#add(wanted, give));
  }

  release(): void {
    this.#isReleased = true;
    for (const give of this.#givers) give();
    this.#givers = [];
    this.#bytes = 0;
  }

  #add(bytes: number, give: () => void): void {
    if (this.#isReleased) {
      give();
      return;
    }
    this.#bytes += bytes;
    this.#givers.push(give);
  }
}
