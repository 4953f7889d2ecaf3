/**
 * Accounts for the bytes of replies that the kernel has not accepted yet, of all connections, against
 * `Http.MaxHeldRepliesInMb`. Applies back-pressure to connections that hold much, and closes those that hold most and do
 * not read.
 *
 * Knows nothing of protocols: a connection reports what it holds. Bytes that the kernel accepts immediately are not
 * reported, so that they cost nothing.
 *
 * Invariants:
 * - What a connection holds is counted when it reports `reportedBytesMin` or more, and within one sweep in any case.
 * - A connection that holds `connectionBytesMax` begins no further requests until its client has read.
 * - Over the limit the connection that holds most of those that do not read is closed: between two sweeps, or, beyond
 *   twice the limit, since the last one. Connections that read are never closed, nor is the only one that holds something.
 */
import { countDropped } from "../../engine/base/memory/gc-hints.ts";

/** Bytes from which on a connection reports what it holds by itself. */
export const reportedBytesMin = 64 * 1024;
/** Bytes that a connection may hold before its requests wait; less while the limit is exceeded. */
const connectionBytesMax = 256 * 1024;
const contendedBytesMax = 64 * 1024;
/** A client reads if it took at least this share of what its connection held since the last sweep, or this many bytes. */
const readShare = 1 / 16;
const readBytesMin = 64 * 1024;

/** A connection that holds replies. */
export interface ReplyHolder {
  /** Bytes of replies that the kernel has not accepted. */
  readonly heldBytes: number;
  /** Bytes that the kernel has accepted so far. */
  readonly takenBytes: number;
  /** The connection is full: it begins no further request. Or it is not any more. */
  setFull(isFull: boolean): void;
  /** Closes the connection. */
  endHolding(): void;
}

export class HeldReplies {
  /** Bytes over which connections that do not read are closed. */
  readonly bytesMax: number;
  readonly #shares = new Set<HeldShare>();
  #bytes = 0;
  #isScheduled = false;

  constructor(bytesMax: number) {
    this.bytesMax = bytesMax;
  }

  /** Bytes counted. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Bytes at which a connection is full. */
  get connectionBytesMax(): number {
    return this.#bytes > this.bytesMax ? contendedBytesMax : connectionBytesMax;
  }

  /** To be closed with the connection. */
  shareOf(holder: ReplyHolder): HeldShare {
    const share = new HeldShare(this, holder);
    this.#shares.add(share);
    return share;
  }

  /** Counts what every connection holds. To be called twice a second. */
  sweep(): void {
    for (const share of this.#shares) share.sweep();
    this.#closeWorst();
  }

  /** For `HeldShare`. */
  add(bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes <= 2 * this.bytesMax || this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#closeWorst();
    });
  }

  /** For `HeldShare`. */
  remove(share: HeldShare): void {
    this.#shares.delete(share);
  }

  #closeWorst(): void {
    if (this.#bytes <= this.bytesMax) return;
    // What was reported may have been read by now.
    for (const share of this.#shares) share.report();
    const shares = [...this.#shares].sort((one, other) => other.bytes - one.bytes);
    for (const share of shares) {
      if (this.#bytes <= this.bytesMax || share.bytes === this.#bytes) return;
      if (share.bytes > 0 && !share.isReading) share.end();
    }
    for (const share of shares) {
      if (this.#bytes <= 2 * this.bytesMax || share.bytes === this.#bytes) return;
      if (share.bytes > 0 && !share.readsSinceSweep) share.end();
    }
  }
}

/** The replies that one connection holds. */
export class HeldShare {
  readonly holder: ReplyHolder;
  readonly #all: HeldReplies;
  /** Bytes counted. */
  bytes = 0;
  /** Did the client read between the last two sweeps, as far as there was something to read? */
  isReading = true;
  /** Bytes taken, and bytes counted, at the last sweep. */
  #takenBytes = 0;
  #sweptBytes = 0;
  #isFull = false;
  #isClosed = false;

  constructor(all: HeldReplies, holder: ReplyHolder) {
    this.#all = all;
    this.holder = holder;
  }

  /** Counts what the connection holds now. */
  report(): void {
    if (this.#isClosed) return;
    const bytes = this.holder.heldBytes;
    const more = bytes - this.bytes;
    this.bytes = bytes;
    if (more !== 0) this.#all.add(more);
    const bytesMax = this.#all.connectionBytesMax;
    const isFull = this.#isFull ? bytes > bytesMax / 2 : bytes >= bytesMax;
    if (isFull === this.#isFull) return;
    this.#isFull = isFull;
    this.holder.setFull(isFull);
  }

  /** Did the client read since the last sweep, for what is held now? */
  get readsSinceSweep(): boolean {
    return this.#hasRead(this.bytes);
  }

  #hasRead(heldBytes: number): boolean {
    const read = this.holder.takenBytes - this.#takenBytes;
    return read >= Math.min(readBytesMin, heldBytes * readShare);
  }

  sweep(): void {
    this.report();
    this.isReading = this.#hasRead(this.#sweptBytes);
    this.#takenBytes = this.holder.takenBytes;
    this.#sweptBytes = this.bytes;
  }

  /** For `HeldReplies`: closes the connection. */
  end(): void {
    this.holder.endHolding();
    this.close();
  }

  /** The connection is closed. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#all.remove(this);
    if (this.bytes === 0) return;
    countDropped(this.bytes);
    this.#all.add(-this.bytes);
    this.bytes = 0;
  }
}
