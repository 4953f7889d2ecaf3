/**
 * Accounts for the process memory of replies: output that is not read yet is counted, and large output waits a limited
 * time for memory.
 *
 * Invariants:
 * - Memory that was taken is returned exactly once, however the reply ends.
 */
import { roomWaitersMax, roomWaitMs } from "../../engine/base/limits.ts";
import { processMemory, type WorkUse } from "../../engine/base/memory/memory-budget.ts";
import { noRoomForBodies, noRoomForReplies } from "./request-error.ts";

/** Who waits for memory, until its signal is aborted. The signal is made when it is first read, so only who waits reads it. */
export interface Waiter {
  readonly signal: AbortSignal;
}

/**
 * Waits for `bytes` of memory for a reply or body. @returns a function that returns them, once
 * @throws RequestError 503 when there is none in time, or the waiter has gone
 */
export async function takeRoom(
  use: WorkUse & ("replies" | "bodies"),
  bytes: number,
  waiter?: Waiter,
  ownBytes = 0,
): Promise<() => void> {
  if (processMemory.tryReserve(use, bytes, ownBytes)) return giverOf(use, bytes);
  const refusal = () => (use === "replies" ? noRoomForReplies() : noRoomForBodies());
  if (processMemory.waitersOf(use) >= roomWaitersMax) throw refusal();
  const late = AbortSignal.timeout(roomWaitMs);
  const either = waiter === undefined ? late : AbortSignal.any([late, waiter.signal]);
  if (await processMemory.reserve(use, bytes, either)) return giverOf(use, bytes);
  throw refusal();
}

/** Waits for the memory of a large document in a reply. @throws RequestError 503 */
export function reserveForReply(bytes: number, signal: AbortSignal): Promise<() => void> {
  return takeRoom("replies", bytes, { signal });
}

/** Counts `bytes` of a reply or body already in memory. @returns a function that returns them, once */
export function forceRoom(use: WorkUse, bytes: number): () => void {
  processMemory.force(use, bytes);
  return giverOf(use, bytes);
}

function giverOf(use: WorkUse, bytes: number): () => void {
  let isGiven = false;
  return () => {
    if (isGiven) return;
    isGiven = true;
    processMemory.release(use, bytes);
  };
}

/** As `takeRoom`, without waiting: for data already in memory that can be dropped. @throws RequestError 503 */
export function takeRoomNow(bytes: number): () => void {
  if (!processMemory.tryReserve("replies", bytes)) throw noRoomForReplies();
  return giverOf("replies", bytes);
}

/** Bytes that any reply may buffer without being counted. */
const gatheredBytesFree = 64 * 1024;

/** Memory for the buffered part of a reply: beyond `gatheredBytesFree` only while memory is available. */
export class GatheringRoom {
  readonly #bytesMax: number;
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** May `length` bytes in all be buffered? */
  holds(length: number): boolean {
    if (length <= gatheredBytesFree) return true;
    if (length > this.#bytesMax) return false;
    while (this.#bytes < length) {
      const wanted = Math.max(gatheredBytesFree, this.#bytes);
      if (!processMemory.tryReserve("replies", wanted, this.#bytes)) return false;
      this.#bytes += wanted;
    }
    return true;
  }

  release(): void {
    if (this.#bytes === 0) return;
    processMemory.release("replies", this.#bytes);
    this.#bytes = 0;
  }
}
