/**
 * The interface of a log to what replicates it: each frame is carried to other nodes before it is written here, so that
 * this log is always a beginning of theirs, and nothing in it is ever taken back.
 */
import type { Position } from "./log.ts";

/** Bytes of the record of a mark: room for it is reserved before it is known. */
export const markBytes = 192;
/**
 * A frame that is carried is sealed when it has this many bytes, even while an earlier one is on its way: several are
 * then under way at once.
 */
export const carriedFrameBytes = 4 * 1024 * 1024;

export interface LogCarrier {
  /**
   * The open frame was sealed. Synchronous, in the order of the frames.
   * @param payload the records that were appended to it. They stay as they are until it was carried.
   */
  sealed(payload: Buffer): void;
  /**
   * Resolves when the oldest frame that `sealed` has seen, and that was not asked for yet, may be written here. When it
   * rejects, the log stops.
   * @returns the record of its mark, `markBytes` long: how far the log is a copy of what is replicated. It becomes the
   * last one of the frame.
   */
  carried(): Promise<Buffer>;
  /** The frame with this mark is durable here, and visible. */
  durable(mark: Buffer): void;
}

/** The mark of a frame that is durable. */
export interface PlacedMark {
  readonly record: Buffer;
  readonly position: Position;
}
