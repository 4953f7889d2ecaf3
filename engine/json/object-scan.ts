/**
 * Finds where one long JSON object ends, piece by piece, and where its long members' values do, so that whoever reads the
 * members afterwards need not look at those again. Checks nothing: see raw-scan.ts.
 *
 * Invariants:
 * - Each byte is looked at once, however the pieces are cut.
 */
import { turnIsOver } from "../turns.ts";
import {
  byteArrayClose,
  byteArrayOpen,
  byteBackslash,
  byteObjectClose,
  byteObjectOpen,
  byteQuote,
} from "./bytes.ts";

/** Bytes of a value from which on its end is kept. */
const longBytesMin = 16 * 1024;
/** Bytes that are looked at in one go: about half a millisecond. */
const pieceBytes = 512 * 1024;

/** Ends (exclusive) of values by where they begin. */
export type ValueEnds = ReadonlyMap<number, number>;

export class ObjectScan {
  /** Bytes from the object's begin that were looked at. */
  #seen = 1;
  #depth = 1;
  #isInString = false;
  /** Where the member's value began that is being looked at, from the object's begin. */
  #valueFrom = 0;
  readonly #ends: [from: number, to: number][] = [];

  /**
   * Looks on, up to `to`. The object begins at `start`, which may be another place each time.
   * @returns the position behind the object, or -1 when it goes on.
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

  /** The ends of the long values that were found, when the object begins at `start`. */
  endsFrom(start: number): ValueEnds {
    return new Map(this.#ends.map(([from, to]) => [start + from, start + to]));
  }

  #ended(at: number): void {
    if (at - this.#valueFrom >= longBytesMin) this.#ends.push([this.#valueFrom, at]);
  }
}

/**
 * Looks through the object at `start` in slices, others being served meanwhile. The bytes must not change.
 * @returns the position behind it, or -1 when it does not end before `end`; and the ends of its long values.
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
    await turnIsOver();
  }
}
