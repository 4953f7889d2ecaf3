/**
 * The room that one body takes in the memory of the process while it is collected and worked on.
 *
 * Invariants:
 * - What is held of a body is counted, but for `freeBytes`.
 * - Small bodies find room when large ones wait for it: they have a reserve of their own.
 */
import { processMemory } from "../engine/memory-budget.ts";
import { forceRoom, takeRoom } from "./reply-room.ts";

/** Bytes that any body may have without being counted. */
const freeBytes = 16 * 1024;
/** Bytes up to which a body is small, and of what all small ones may take beyond the room for bodies. */
const smallBytes = 1024 * 1024;
const smallShare = 1 / 4;
/** The room of a body of unknown length becomes so many bytes, then twice as many each time, by at most so many. */
const firstBytes = 64 * 1024;
const stepBytesMax = 16 * 1024 * 1024;

export class BodyRoom {
  #bytes = 0;
  #givers: (() => void)[] = [];
  #isReleased = false;

  /** Bytes that it may hold now. */
  get bytes(): number {
    return freeBytes + this.#bytes;
  }

  /** Is somebody else waiting for the room that this one has? */
  get isPressed(): boolean {
    return this.#bytes > 0 && processMemory.waitersOf("bodies") > 0;
  }

  /**
   * Makes room for a body of `length` bytes in all. @returns undefined when there is at once.
   * @throws RequestError 503 (in the promise) when there is none in time
   */
  grow(length: number, isExact: boolean, signal?: AbortSignal): Promise<void> | undefined {
    if (length <= this.bytes) return undefined;
    const step = Math.min(stepBytesMax, Math.max(firstBytes, this.#bytes));
    const wanted = (isExact ? length : Math.max(length, this.#bytes + step)) - this.#bytes;
    const held = processMemory.workBytesOf("bodies");
    const reserve = processMemory.useBytesMax("bodies") * (1 + smallShare);
    if (length <= smallBytes && held + wanted <= reserve) {
      this.#add(wanted, forceRoom("bodies", wanted));
      return undefined;
    }
    if (processMemory.tryTake("bodies", wanted, this.#bytes)) {
      this.#add(wanted, () => processMemory.give("bodies", wanted));
      return undefined;
    }
    return takeRoom("bodies", wanted, signal, this.#bytes).then((give) => this.#add(wanted, give));
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
