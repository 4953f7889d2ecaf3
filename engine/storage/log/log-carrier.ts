/**
 * The interface of a log to its replication: each frame is carried to other nodes before it is written here, so that
 * this log is always a prefix of the replicated stream, and nothing in it is ever rolled back.
 */
import type { Position } from "./log.ts";

/** Bytes of the record of a mark: room for it is reserved before it is known. */
export const markBytes = 192;

export interface LogCarrier {
  /**
   * Whether this node sends frames to other nodes. Otherwise frames are received from another node, and count as
   * carried already: sealing them before the device is idle has no benefit.
   */
  readonly isSending: boolean;
  /**
   * A frame was sealed. Called in the order of the frames. Resolves, in the same order, when it may be written here. When
   * it rejects, the log stops.
   * @param payload the records that were appended to it. They must not change until the frame was carried.
   * @returns the record of its mark, `markBytes` long: the position in the stream up to which the log is a copy. It
   * becomes the last one of the frame.
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
