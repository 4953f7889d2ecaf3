/**
 * The proposals of a leader that are not settled: the queue of proposals, and the window of frames of the first of them
 * that are appended and whose outcomes are unknown.
 *
 *     proposals   [A: 3 frames, all sent] [B: 2 frames, 1 sent] [C] [D]
 *     window      A1 A2 A3 B1              the slots position + 1, position + 2, …
 *
 * Invariants:
 * - The frames of the window have consecutive sequences, and each has the hash of the one before.
 * - A frame is created once for its sequence: repeating an append sends the same message.
 */
import { assert } from "../../base/assert.ts";
import { framesInFlightMax, replicatedGroupBytesMax } from "../../base/limits.ts";
import {
  contentChunks,
  type EncodedFrame,
  encodeFrame,
  type FramePlace,
  type FrameType,
  frameTypes,
} from "./frame.ts";
import type { Proposal } from "./replica-types.ts";

/** A frame that was appended. */
export interface InFlight {
  readonly frame: EncodedFrame;
  /**
   * - `sent`: the stream has not acknowledged the last append of it.
   * - `stored`: the stream has acknowledged it.
   * - `doubtful`: the stream has refused it, or has not replied.
   */
  state: "sent" | "stored" | "doubtful";
  /** The token of its proposal, when it is the last frame of that; otherwise null. */
  readonly completes: number | null;
}

interface Queued {
  readonly token: number;
  readonly payloads: readonly Payload[];
  /** How many of its frames are appended. */
  sent: number;
}

interface Payload {
  readonly type: FrameType;
  readonly pieces: readonly Buffer[];
}

export class AppendWindow {
  /** Bytes of a group in one frame. */
  readonly partBytesMax: number;
  readonly #queue: Queued[] = [];
  /** Index in the queue of the first proposal whose frames are not all sent. */
  #next = 0;
  readonly frames: InFlight[] = [];

  constructor(partBytesMax: number) {
    this.partBytesMax = partBytesMax;
  }

  /** Whether all proposals are settled. */
  get isEmpty(): boolean {
    return this.#queue.length === 0;
  }

  add(token: number, proposal: Proposal): void {
    this.#queue.push({ token, payloads: payloadsOf(proposal, this.partBytesMax), sent: 0 });
  }

  /**
   * Returns the next frame that may be appended, which enters the window; null if all are sent, or the window is full.
   */
  next(after: FramePlace): InFlight | null {
    const queued = this.#queue[this.#next];
    if (queued === undefined || this.frames.length >= framesInFlightMax) return null;
    const last = this.frames.at(-1)?.frame;
    const place = {
      generation: after.generation,
      epoch: after.epoch,
      sequence: (last?.sequence ?? after.sequence) + 1,
      previous: last?.hash ?? after.previous,
    };
    const payload = queued.payloads[queued.sent];
    assert(payload !== undefined, "completely sent proposals are skipped");
    queued.sent++;
    const isWhole = queued.sent === queued.payloads.length;
    if (isWhole) this.#next++;
    const frame = encodeFrame(payload.type, place, payload.pieces);
    const inFlight: InFlight = { frame, state: "sent", completes: isWhole ? queued.token : null };
    this.frames.push(inFlight);
    return inFlight;
  }

  /** The first frame of the window is in the chain. */
  confirm(): InFlight {
    const first = this.frames.shift();
    assert(first !== undefined, "a confirmed frame is in the window");
    if (first.completes !== null) {
      const settled = this.#queue.shift();
      assert(settled?.token === first.completes, "proposals are settled in their order");
      this.#next--;
    }
    return first;
  }

  /** None of the window's frames can become part of the chain: all proposals start over. */
  rewind(): void {
    this.frames.length = 0;
    for (const queued of this.#queue) queued.sent = 0;
    this.#next = 0;
  }

  /**
   * Empties the queue. @returns the tokens in order, and whether each proposal may still become part of the chain
   * because all its frames were appended
   */
  drain(): { readonly token: number; readonly wasSent: boolean }[] {
    const all = this.#queue.map(({ token, payloads, sent }) => ({
      token,
      wasSent: sent === payloads.length,
    }));
    this.rewind();
    this.#queue.length = 0;
    return all;
  }
}

function payloadsOf(proposal: Proposal, partBytesMax: number): Payload[] {
  if (proposal.kind === "barrier") return [{ type: frameTypes.barrier, pieces: [] }];
  if (proposal.kind === "content") {
    return [{ type: frameTypes.content, pieces: contentChunks(proposal) }];
  }
  const parts = partsOf(proposal.pieces, partBytesMax);
  return parts.map((pieces, at) => ({
    type: at === parts.length - 1 ? frameTypes.commit : frameTypes.part,
    pieces,
  }));
}

/** Cuts the bytes into parts of at most `partBytesMax`, without copying them. */
function partsOf(pieces: readonly Buffer[], partBytesMax: number): Buffer[][] {
  const parts: Buffer[][] = [];
  let part: Buffer[] = [];
  let [room, total] = [partBytesMax, 0];
  for (const piece of pieces) {
    total += piece.length;
    for (let from = 0; from < piece.length; ) {
      if (room === 0) {
        parts.push(part);
        part = [];
        room = partBytesMax;
      }
      const cut = piece.subarray(from, from + room);
      part.push(cut);
      room -= cut.length;
      from += cut.length;
    }
  }
  assert(total > 0, "a group has bytes");
  assert(total <= replicatedGroupBytesMax, "a group that is replicated has a limit");
  parts.push(part);
  return parts;
}
