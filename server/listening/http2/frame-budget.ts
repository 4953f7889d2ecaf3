/**
 * What a peer may send that costs it nothing and serves nothing: pings, settings, priorities, window updates, empty or
 * unknown frames, and streams that it takes back. Each request and each byte of a body earns it some.
 *
 * Invariants:
 * - A peer that only requests, replies and transfers never exhausts it, however fast.
 */

/** Frames in a burst, and how many more with time, with each request, and with each piece of a body. */
const framesMax = 1_000;
const framesPerLook = 50;
const framesPerRequest = 10;
const framesPerPiece = 2;
/** Bytes of a body for which a peer may tell once that it has taken them. */
const bytesPerFrame = 512;
/** Streams that may be taken back in a burst, and how many more with time. */
const resetsMax = 900;
const resetsPerLook = 16;

export class FrameBudget {
  #frames = framesMax;
  #resets = resetsMax;

  /** A frame without use has come. @returns false when there were too many. Hot. */
  spend(): boolean {
    return --this.#frames >= 0;
  }

  /** A stream has ended before its time, because of the peer. @returns false when there were too many */
  spendReset(): boolean {
    return --this.#resets >= 0;
  }

  request(): void {
    this.#frames = Math.min(framesMax, this.#frames + framesPerRequest);
  }

  /** A piece of a body was sent or received. */
  piece(bytes: number): void {
    const earned = framesPerPiece + Math.floor(bytes / bytesPerFrame);
    this.#frames = Math.min(framesMax, this.#frames + earned);
  }

  /** To be called twice a second. */
  look(): void {
    this.#frames = Math.min(framesMax, this.#frames + framesPerLook);
    this.#resets = Math.min(resetsMax, this.#resets + resetsPerLook);
  }
}
