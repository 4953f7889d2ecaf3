/**
 * The chain: the frames of the stream that count, which every node determines identically from the frames themselves.
 *
 * A frame counts (is *valid*) if its previous hash is the hash of the last valid frame and its epoch is the current
 * one; an EPOCH frame, if its epoch is higher. A replaced leader may have had frames in flight: frames that still reach
 * the stream are *void*. They use a sequence and have no other effect:
 *
 *     sequence   7         8          9          10         11          12
 *     frame      commit e1 EPOCH e2   commit e1  commit e1  EPOCH e3    commit e3
 *     previous   6         7          8'         9'         8           11
 *     verdict    valid     valid      void       void       valid       valid
 *
 * Frame 9 was meant to follow a commit 8' of its own leader. The leader of e2 has lost its slot 9, and begins another
 * epoch rather than move a frame to another sequence: frames of e2 in flight can no longer be valid.
 *
 * A frame that is neither valid nor void cannot occur if nodes follow the protocol and the stream retains stored
 * frames: the stream is *broken*, for this node, and it stops.
 *
 * Invariants:
 * - `hash`, `epoch` and `tip` are of the last valid frame; `position` and `lastHash`, of the last one, valid or void.
 * - After a void frame only an EPOCH frame is valid.
 * - A group whose last frame has not arrived when an EPOCH frame arrives is dropped.
 */
import { unreachable } from "../../base/assert.ts";
import { framesInFlightMax, replicatedGroupBytesMax } from "../../base/limits.ts";
import {
  type EpochBegin,
  type Frame,
  frameTypes,
  readContent,
  readEpoch,
  readGenesis,
  zeroHash,
} from "./frame.ts";
import type { Delivery, Mark } from "./replica-types.ts";

/**
 * Maximum number of consecutive void frames: the frames in flight of one leader, the first of which lost its slot to a
 * valid frame. The limit is twice that.
 */
export const voidFramesMax = 2 * framesInFlightMax;

type Verdict =
  | { readonly kind: "valid" }
  | { readonly kind: "void" }
  | { readonly kind: "broken"; readonly reason: string }
  /** The generation begins after the end of this node's own log. */
  | { readonly kind: "behind"; readonly reason: string };

/** The delivery or settlement that a valid frame completes. */
interface Taken {
  readonly delivery: Delivery | null;
  readonly epoch: EpochBegin | null;
}

const isValid: Verdict = { kind: "valid" };
const isVoid: Verdict = { kind: "void" };
const nothingTaken: Taken = { delivery: null, epoch: null };

export class Chain {
  readonly #databaseId: string;
  readonly generation: number;
  /** Where the own log is, in an earlier generation; null: it is empty, or of this generation. */
  readonly #seed: Mark | null;
  position: number;
  /** Sequence of the last valid frame; 0 if this generation has no valid frame yet. */
  tip: number;
  epoch: number;
  hash: string;
  /** Of the frame at `position`. */
  lastHash: string;
  /** Void frames since the last valid one. */
  #voids = 0;
  /** Payloads of the parts of a group that is not complete. */
  #parts: Buffer[] = [];
  #partBytes = 0;

  /** @param mark where the own log ends, of `generation` or an earlier one; null: it is empty */
  constructor(databaseId: string, generation: number, mark: Mark | null) {
    const isSame = mark !== null && mark.generation === generation;
    this.#databaseId = databaseId;
    this.generation = generation;
    this.#seed = isSame ? null : mark;
    this.position = isSame ? mark.sequence : 0;
    this.tip = this.position;
    this.epoch = mark?.epoch ?? 0;
    this.hash = mark?.hash ?? zeroHash;
    this.lastHash = this.hash;
  }

  /** Of the last valid frame of this generation. */
  get mark(): Mark {
    return { generation: this.generation, sequence: this.tip, epoch: this.epoch, hash: this.hash };
  }

  /** Returns the verdict on the frame at the next position, which must be its own. Changes no state. */
  verdictOn(frame: Frame): Verdict {
    if (frame.sequence === 1 || frame.type === frameTypes.genesis) return this.#onGenesis(frame);
    const isLinked = frame.previous === this.hash;
    if (frame.type === frameTypes.epoch) {
      if (!isLinked) return broken(frame, "does not follow the last valid frame");
      if (frame.epoch <= this.epoch) return broken(frame, `does not follow epoch ${this.epoch}`);
      return readEpoch(frame.payload) === null ? broken(frame, "names no leader") : isValid;
    }
    if (frame.epoch > this.epoch) return broken(frame, "is of an epoch that has not begun");
    if (frame.epoch < this.epoch || this.#voids > 0) {
      if (this.#voids < voidFramesMax) return isVoid;
      return broken(frame, `is one of more than ${voidFramesMax} that do not count`);
    }
    if (!isLinked) return broken(frame, "does not follow the last valid frame");
    return this.#onContents(frame);
  }

  /** Skips the frame at the next position, whose verdict was "void". */
  skip(frame: Frame): void {
    this.position = frame.sequence;
    this.lastHash = frame.hash;
    this.#voids++;
  }

  /** Adds the frame, whose verdict was "valid". The payload is retained until its group is complete. */
  take(frame: Frame): Taken {
    this.position = frame.sequence;
    this.tip = frame.sequence;
    this.hash = frame.hash;
    this.lastHash = frame.hash;
    this.epoch = frame.epoch;
    this.#voids = 0;
    switch (frame.type) {
      case frameTypes.genesis:
      case frameTypes.barrier:
        return nothingTaken;
      case frameTypes.epoch:
        this.#dropParts();
        return { delivery: null, epoch: readEpoch(frame.payload) };
      case frameTypes.part:
        this.#parts.push(frame.payload);
        this.#partBytes += frame.payload.length;
        return nothingTaken;
      case frameTypes.commit: {
        const pieces = [...this.#parts, frame.payload];
        this.#dropParts();
        return { delivery: { kind: "group", pieces, mark: this.mark }, epoch: null };
      }
      case frameTypes.content: {
        const chunk = readContent(frame.payload);
        if (chunk === null) return nothingTaken; // the verdict would not have been "valid"
        return { delivery: { kind: "content", ...chunk, mark: this.mark }, epoch: null };
      }
      default:
        return unreachable(frame.type);
    }
  }

  #dropParts(): void {
    this.#parts = [];
    this.#partBytes = 0;
  }

  #onContents(frame: Frame): Verdict {
    if (frame.type === frameTypes.part || frame.type === frameTypes.commit) {
      if (this.#partBytes + frame.payload.length <= replicatedGroupBytesMax) return isValid;
      return broken(frame, "makes its group too large");
    }
    if (this.#parts.length > 0) return broken(frame, "is between the parts of a group");
    if (frame.type !== frameTypes.content || readContent(frame.payload) !== null) return isValid;
    return broken(frame, "has no content");
  }

  #onGenesis(frame: Frame): Verdict {
    const genesis = frame.type === frameTypes.genesis ? readGenesis(frame.payload) : null;
    if (genesis === null || frame.sequence !== 1) return broken(frame, "is not the first frame");
    if (genesis.databaseId !== this.#databaseId) {
      return broken(frame, `is of another database, ${genesis.databaseId}`);
    }
    const own = { generation: this.#seed?.generation ?? 0, sequence: this.#seed?.sequence ?? 0 };
    const isOwn = genesis.generation === own.generation && genesis.sequence === own.sequence;
    if (isOwn && frame.previous === this.hash && frame.epoch === this.epoch) return isValid;
    const begins = `sequence ${genesis.sequence} of generation ${genesis.generation}`;
    const ends = `sequence ${own.sequence} of generation ${own.generation}`;
    const isBehind =
      own.generation < genesis.generation ||
      (own.generation === genesis.generation && own.sequence < genesis.sequence);
    if (!isBehind) return broken(frame, `continues ${begins}, and the own log ends at ${ends}`);
    return {
      kind: "behind",
      reason: `generation ${this.generation} continues ${begins}, and the own log ends at ${ends}`,
    };
  }
}

function broken(frame: Frame, what: string): Verdict {
  return { kind: "broken", reason: `frame ${frame.sequence} of epoch ${frame.epoch} ${what}` };
}
