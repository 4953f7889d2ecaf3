/**
 * Finds incrementally the end of one long JSON object, and the ends of its long member values, so that a later scan of
 * the members can skip these. Checks nothing: see raw-scan.ts.
 *
 * Invariants:
 * - Each byte is scanned once, however the chunks are split.
 */
import { pauseIfDue } from "../scheduling/time-slices.ts";
import {
  byteArrayClose,
  byteArrayOpen,
  byteBackslash,
  byteObjectClose,
  byteObjectOpen,
  byteQuote,
} from "./bytes.ts";

/** Size of a value from which on its end is recorded. */
const longBytesMin = 16 * 1024;
/** Bytes that are scanned in one go: about half a millisecond. */
const pieceBytes = 512 * 1024;

/** Ends (exclusive) of values by their starts. */
export type ValueEnds = ReadonlyMap<number, number>;

export class ObjectScan {
  /** Bytes scanned, from the object's start. */
  #seen = 1;
  #depth = 1;
  #isInString = false;
  /** Start of the member value being scanned, relative to the object's start. */
  #valueFrom = 0;
  readonly #ends: [from: number, to: number][] = [];

  /**
   * Continues the scan, up to `to`. The object begins at `start`, which may differ between calls.
   * @returns the position after the object, or -1 when it is incomplete.
   */
  scan(bytes: Uint8Array, start: number, to: number): number {
    let depth = this.#depth;
    let isInString = this.#isInString;
    let i = start + this.#seen;
    while (i < to && depth > 0) {
      const byte = bytes[i++] as number;
      if (isInString) {
        if (byte === byteBackslash) i++;
        else if (byte === byteQuote) {
          isInString = false;
          if (depth === 1) this.#ended(i - start);
        }
      } else if (byte === byteQuote) {
        isInString = true;
        if (depth === 1) this.#valueFrom = i - 1 - start;
      } else if (byte === byteObjectOpen || byte === byteArrayOpen) {
        if (depth === 1) this.#valueFrom = i - 1 - start;
        depth++;
      } else if (byte === byteObjectClose || byte === byteArrayClose) {
        depth--;
        if (depth === 1) this.#ended(i - start);
      }
    }
    this.#depth = depth;
    this.#isInString = isInString;
    this.#seen = i - start;
    return depth === 0 ? i : -1;
  }

  /** The ends of the long values found, for an object that begins at `start`. */
  endsFrom(start: number): ValueEnds {
    return new Map(this.#ends.map(([from, to]) => [start + from, start + to]));
  }

  #ended(at: number): void {
    if (at - this.#valueFrom >= longBytesMin) this.#ends.push([this.#valueFrom, at]);
  }
}

/**
 * Scans the object at `start` in slices, yielding to the event loop. The bytes must not change.
 * @returns the position after it, or -1 when it does not end before `end`; and the ends of its long values.
 */
export async function scanObject(
  bytes: Uint8Array,
  start: number,
  end: number,
): Promise<{ readonly endAt: number; readonly ends: ValueEnds }> {
  const scan = new ObjectScan();
  for (let to = start; ; ) {
    to = Math.min(to + pieceBytes, end);
    const endAt = scan.scan(bytes, start, to);
    if (endAt >= 0 || to === end) return { endAt, ends: scan.endsFrom(start) };
    await pauseIfDue();
  }
}
