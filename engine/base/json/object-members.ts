/**
 * The members of one JSON object, one after the other, without parsing their values. The text must be output of the
 * parser: valid and minified.
 *
 * Invariants:
 * - The work is done in chunks: the iteration yields null from time to time, so that the caller may pause.
 */
import {
  byteArrayClose,
  byteArrayOpen,
  byteBackslash,
  byteComma,
  byteObjectClose,
  byteObjectOpen,
  byteQuote,
} from "./bytes.ts";
import { type ValueKind, valueKind } from "./field-access.ts";

/** Bytes that are scanned in one go: about half a millisecond. */
const pieceBytes = 256 * 1024;

/** One member: its key is [keyFrom, keyTo) and its value [from, to), quotes included. */
export interface Member {
  readonly keyFrom: number;
  readonly keyTo: number;
  readonly from: number;
  readonly to: number;
  readonly kind: ValueKind;
  /** Number of elements of an array, or of members of an object; 0 for other values. */
  readonly count: number;
}

/** Yields the members of the object at `start`; null where others may run. */
export function* membersOf(bytes: Uint8Array, start: number): Generator<Member | null, void> {
  let at = start + 1;
  while (bytes[at] !== byteObjectClose) {
    if (bytes[at] === byteComma) at++;
    const key = yield* scanned(bytes, at);
    const from = key.to + 1;
    const kind = valueKind(bytes, from);
    const value = yield* scanned(bytes, from);
    yield { keyFrom: at, keyTo: key.to, from, to: value.to, kind, count: value.count };
    at = value.to;
  }
}

/** Yields the end of the value at `from`, and how many parts it has. */
function* scanned(bytes: Uint8Array, from: number): Generator<null, { to: number; count: number }> {
  let depth = 0;
  let commas = 0;
  let isInString = false;
  let pauseAt = from + pieceBytes;
  for (let i = from; ; i++) {
    if (i >= pauseAt) {
      pauseAt = i + pieceBytes;
      yield null;
    }
    const byte = bytes[i] as number;
    if (isInString) {
      if (byte === byteBackslash) i++;
      else if (byte === byteQuote) {
        isInString = false;
        if (depth === 0) return { to: i + 1, count: 0 };
      }
    } else if (byte === byteQuote) isInString = true;
    else if (byte === byteObjectOpen || byte === byteArrayOpen) depth++;
    else if (byte === byteObjectClose || byte === byteArrayClose) {
      if (depth === 0) return { to: i, count: 0 }; // a number or a word, and the end of the object around it
      if (--depth === 0) return { to: i + 1, count: i === from + 1 ? 0 : commas + 1 };
    } else if (byte === byteComma) {
      if (depth === 0) return { to: i, count: 0 };
      if (depth === 1) commas++;
    }
  }
}
