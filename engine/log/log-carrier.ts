/**
 * The interface of a log to what replicates it: each frame is carried to other nodes before it is written here, so that
 * this log is always a beginning of theirs, and nothing in it is ever taken back.
 */
import type { Position } from "./log.ts";

/** Bytes of the record of a mark: room for it is reserved before it is known. */
export const markBytes = 192;

export interface LogCarrier {
  /**
   * Do frames go to other nodes now? Otherwise they come from another one, and are carried at once: nothing is gained by
   * sealing them before the device is idle.
   */
  readonly isSending: boolean;
  /**
   * A frame was sealed. Called in the order of the frames. Resolves, in the same order, when it may be written here. When
   * it rejects, the log stops.
   * @param payload the records that were appended to it. They stay as they are until it was carried.
   * @returns the record of its mark, `markBytes` long: how far the log is a copy of what is replicated. It becomes the
   * last one of the frame.
   */
  carry(payload: Buffer): Promise<Buffer>;
  /** The frame with this mark is durable here, and visible. */
  durable(mark: Buffer): void;
}

/** The mark of a frame that is durable. */
export interface PlacedMark {
  readonly record: Buffer;
  readonly position: Position;
}
