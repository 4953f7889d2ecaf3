/**
 * The stream of simulated schedules and the meaning of its frames, computed in the simplest way:
 * the model with which every replica is compared.
 */
import {
  decodeFrame,
  type Frame,
  frameTypes,
  zeroHash,
} from "../../engine/storage/replication/frame.ts";
import type { Mark } from "../../engine/storage/replication/replica-types.ts";

/** A group or a chunk of content: the payloads stored by nodes, in order. */
export interface Kept {
  readonly id: number;
  readonly isContent: boolean;
  readonly mark: Mark;
}

interface Slot {
  readonly bytes: Buffer;
  readonly frame: Frame;
  readonly isValid: boolean;
  /** The number of payloads in the stream up to here. */
  readonly keptCount: number;
  readonly epoch: number;
  readonly hash: string;
  readonly isSpoiled: boolean;
  /** The first payload of an incomplete group. */
  readonly started: Buffer | null;
}

export class ReplicationTruth {
  readonly #seed: readonly Kept[];
  readonly #slots: Slot[] = [];
  readonly kept: Kept[];
  /** Proposals that are in the chain. */
  readonly ids = new Set<number>();
  /** The first remaining sequence. */
  first = 1;

  /** @param seed contents of the log before this generation of the stream */
  constructor(seed: readonly Kept[]) {
    this.#seed = seed;
    this.kept = [...seed];
  }

  get last(): number {
    return this.#slots.length;
  }

  /** Returns the message, also if it was trimmed. */
  bytesAt(sequence: number): Buffer | undefined {
    return this.#slots[sequence - 1]?.bytes;
  }

  frameAt(sequence: number): Frame | undefined {
    return this.#slots[sequence - 1]?.frame;
  }

  isValid(sequence: number): boolean {
    return this.#slots[sequence - 1]?.isValid === true;
  }

  keptUpTo(sequence: number): number {
    return this.#slots[sequence - 1]?.keptCount ?? this.#seed.length;
  }

  /** Appends a frame. @returns the id of the group or content that is complete now, or null */
  store(bytes: Buffer): number | null {
    const frame = decodeFrame(bytes);
    if (frame === null || frame.sequence !== this.last + 1)
      throw new Error("the frame is not the next one");
    const before = this.#slots.at(-1);
    const seed = this.#seed.at(-1)?.mark;
    const last = {
      epoch: before?.epoch ?? seed?.epoch ?? 0,
      hash: before?.hash ?? seed?.hash ?? zeroHash,
      isSpoiled: before?.isSpoiled === true,
      started: before?.started ?? null,
    };
    const { type, epoch, sequence, generation, hash } = frame;
    const begins = type === frameTypes.epoch && epoch > last.epoch;
    const goesOn = epoch === last.epoch && frame.previous === last.hash && !last.isSpoiled;
    const isValid = begins || goesOn;
    if (!isValid) {
      const keptCount = this.kept.length;
      this.#slots.push({ bytes, frame, isValid, keptCount, ...last, isSpoiled: true });
      return null;
    }
    const isContent = type === frameTypes.content;
    let started = begins ? null : last.started;
    let id: number | null = null;
    if (type === frameTypes.part) started ??= frame.payload;
    if (type === frameTypes.commit || isContent) {
      id = (started ?? frame.payload).readUInt32LE(0);
      this.kept.push({ id, isContent, mark: { generation, sequence, epoch, hash } });
      this.ids.add(id);
      started = null;
    }
    const keptCount = this.kept.length;
    this.#slots.push({ bytes, frame, isValid, keptCount, epoch, hash, isSpoiled: false, started });
    return id;
  }

  /** Drops everything after `last`. */
  cut(last: number): void {
    const count = this.keptUpTo(last);
    for (const { id } of this.kept.splice(count)) this.ids.delete(id);
    this.#slots.length = last;
    this.first = Math.min(this.first, last + 1);
  }
}
