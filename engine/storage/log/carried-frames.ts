/**
 * The frames of a log on their way to other nodes. While a frame is being carried the open frame grows; it is sealed
 * early, and sent after the others, when it is large enough to be worth a message of its own, or when so little is in
 * flight that its transactions would only wait.
 *
 * Invariants:
 * - Frames are carried in the order in which they were sealed, and when all their bytes are in the image.
 */
import { assert } from "../../base/assert.ts";
import { framesInFlightMax } from "../../base/limits.ts";
import { pauseIfDue } from "../../base/scheduling/time-slices.ts";
import type { DeferredCopies } from "../segments/deferred-copies.ts";
import type { Segment } from "../segments/segment.ts";
import type { Health } from "./health.ts";
import type { LogCarrier } from "./log-carrier.ts";

/** A frame has at most so many bytes, unless one transaction has more: it fits into one message. */
export const carriedFrameBytes = 1024 * 1024;
/** From this size on a frame is worth a message of its own: eight of them keep the servers of a stream busy. */
export const largeFrameBytes = 128 * 1024;
/** Maximum number of smaller frames in flight: writers need not wait for the acknowledgment of an earlier frame. */
export const smallFramesMax = 4;

export class CarriedFrames {
  readonly #carrier: LogCarrier;
  readonly #health: Health;
  /** Called when one was carried, or never will be. */
  readonly #whenCarried: () => void;
  #underWay = 0;
  /** Number of frames whose bytes are being completed; later frames wait. */
  #fillingCount = 0;
  #filled: Promise<void> = Promise.resolve();

  constructor(carrier: LogCarrier, health: Health, whenCarried: () => void) {
    this.#carrier = carrier;
    this.#health = health;
    this.#whenCarried = whenCarried;
  }

  /** Returns whether an open frame of this size is sealed before a transaction of `length` bytes. */
  isFull(bytes: number, length: number): boolean {
    return this.#carrier.isSending && bytes > 0 && bytes + length > carriedFrameBytes;
  }

  /** Returns whether an open frame of this size is sealed although earlier frames are in flight. */
  mayFollow(bytes: number): boolean {
    if (!this.#carrier.isSending || bytes === 0) return false;
    return this.#underWay < (bytes < largeFrameBytes ? smallFramesMax : framesInFlightMax);
  }

  /** @returns the record of the mark of the frame whose payload is `[from, to)` of the image; may reject at any time */
  carry(segment: Segment, from: number, to: number): Promise<Buffer> {
    this.#underWay++;
    const carried = this.#whenFilled(segment, from, to);
    const settled = () => {
      this.#underWay--;
    };
    carried
      .then(settled, settled)
      .then(() => this.#whenCarried())
      .catch((error: unknown) => this.#health.stop(error));
    return carried;
  }

  /** The frame with this mark is durable. */
  durable(mark: Buffer): void {
    this.#carrier.durable(mark);
  }

  #whenFilled(segment: Segment, from: number, to: number): Promise<Buffer> {
    const { image, deferredCopies } = segment;
    assert(image !== null, "a segment that is written to is in memory");
    const payload = image.subarray(from, to);
    const isDeferred =
      deferredCopies !== null && this.#carrier.isSending && deferredCopies.isPending(from, to);
    if (!isDeferred && this.#fillingCount === 0) return this.#carrier.carry(payload);
    this.#fillingCount++;
    this.#filled = this.#filled.then(async () => {
      if (isDeferred) await this.#fill(deferredCopies, from, to);
      this.#fillingCount--;
    });
    return this.#filled.then(() => this.#carrier.carry(payload));
  }

  /** Makes the deferred copies of a frame, in slices. */
  async #fill(deferredCopies: DeferredCopies, from: number, to: number): Promise<void> {
    while (deferredCopies.isPending(from, to)) {
      this.#health.check();
      deferredCopies.step();
      await pauseIfDue();
    }
    this.#health.check();
  }
}
