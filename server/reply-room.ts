/**
 * Room for replies in the memory of the process: what is made and not taken yet is counted, and what is large waits until
 * there is room for it, for a while.
 *
 * Invariants:
 * - Who has taken room gives it back once, however the reply ends.
 */
import { roomWaitersMax, roomWaitMs } from "../engine/limits.ts";
import { processMemory, type WorkUse } from "../engine/memory-budget.ts";
import { noRoomForBodies, noRoomForReplies } from "./request-error.ts";

/**
 * Waits for room for `bytes` of a reply or body. @returns a function that gives it back, once.
 * @throws RequestError 503 when there is none in time, or `signal` was aborted
 */
export async function takeRoom(
  use: WorkUse & ("replies" | "bodies"),
  bytes: number,
  signal?: AbortSignal,
  ownBytes = 0,
): Promise<() => void> {
  if (processMemory.tryTake(use, bytes, ownBytes)) return giverOf(use, bytes);
  const refusal = () => (use === "replies" ? noRoomForReplies() : noRoomForBodies());
  if (processMemory.waitersOf(use) >= roomWaitersMax) throw refusal();
  const late = AbortSignal.timeout(roomWaitMs);
  const either = signal === undefined ? late : AbortSignal.any([late, signal]);
  if (await processMemory.take(use, bytes, either)) return giverOf(use, bytes);
  throw refusal();
}

/** Counts `bytes` of a reply or body that are there already. @returns a function that gives the room back, once. */
export function forceRoom(use: WorkUse, bytes: number): () => void {
  processMemory.force(use, bytes);
  return giverOf(use, bytes);
}

function giverOf(use: WorkUse, bytes: number): () => void {
  let isGiven = false;
  return () => {
    if (isGiven) return;
    isGiven = true;
    processMemory.give(use, bytes);
  };
}

/** As `takeRoom`, without waiting: for what is there already and can be dropped. @throws RequestError 503 */
export function takeRoomNow(bytes: number): () => void {
  if (!processMemory.tryTake("replies", bytes)) throw noRoomForReplies();
  return giverOf("replies", bytes);
}

/** Bytes that any reply may gather before it is sent. */
const gatheredBytesFree = 64 * 1024;

/** The room of what a reply gathers before it is sent: more than a little only while there is room for it. */
export class GatheringRoom {
  readonly #bytesMax: number;
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** May `length` bytes in all be gathered? */
  holds(length: number): boolean {
    if (length <= gatheredBytesFree) return true;
    if (length > this.#bytesMax) return false;
    while (this.#bytes < length) {
      const wanted = Math.max(gatheredBytesFree, this.#bytes);
      if (!processMemory.tryTake("replies", wanted, this.#bytes)) return false;
      this.#bytes += wanted;
    }
    return true;
  }

  release(): void {
    processMemory.give("replies", this.#bytes);
    this.#bytes = 0;
  }
}
