/**
 * An id as a lookup key: its lower-cased UTF-8 bytes and their hash, in one reused scratch buffer, so that a lookup of
 * an ASCII id allocates nothing.
 *
 * Lower-casing follows base/case-folding.ts, unit by unit.
 *
 * Invariants:
 * - Two ids that lower-case to the same text have the same bytes and hash, whether given as text or as bytes.
 */
import { lowerCased } from "../case-folding.ts";
import { nameBytesMax } from "../limits.ts";

/** Half a surrogate pair. Text that contains one has no UTF-8 encoding. */
const loneSurrogate = /\p{Surrogate}/u;

export class IdKey {
  readonly bytes: Buffer = Buffer.alloc(nameBytesMax);
  readonly seed: number;
  length = 0;
  /** 32 bits, signed. */
  hash = 0;

  /** @param seed - 32 bits, the initial state of the hash; fixed for the life of the structures keyed by it. */
  constructor(seed: number) {
    this.seed = seed | 0;
  }

  /**
   * Sets the key to `id`. Hot: one pass over the units of an ASCII id.
   * @returns false when it is not a valid id: over `nameBytesMax` bytes, or with half a surrogate pair.
   */
  set(id: string): boolean {
    const length = id.length;
    if (length > nameBytesMax) return this.#setAny(id);
    const bytes = this.bytes;
    let hash = this.seed;
    for (let at = 0; at < length; at++) {
      let unit = id.charCodeAt(at);
      if (unit > 127) return this.#setAny(id);
      if (unit >= 65 && unit <= 90) unit |= 32;
      bytes[at] = unit;
      hash = Math.imul(hash ^ unit, 0x01000193);
    }
    this.length = length;
    this.hash = finish(hash);
    return true;
  }

  /** `set` for the UTF-8 bytes `source[start, end)`, which are decoded only when they are not ASCII. */
  setBytes(source: Buffer, start: number, end: number): boolean {
    const length = end - start;
    if (length > nameBytesMax) return this.#setAny(source.toString("utf8", start, end));
    const bytes = this.bytes;
    let hash = this.seed;
    for (let at = 0; at < length; at++) {
      let byte = source[start + at] as number; // the caller's range is within the source
      if (byte > 127) return this.#setAny(source.toString("utf8", start, end));
      if (byte >= 65 && byte <= 90) byte |= 32;
      bytes[at] = byte;
      hash = Math.imul(hash ^ byte, 0x01000193);
    }
    this.length = length;
    this.hash = finish(hash);
    return true;
  }

  #setAny(id: string): boolean {
    const lower = lowerCased(id);
    if (Buffer.byteLength(lower) > nameBytesMax || loneSurrogate.test(lower)) return false;
    const length = this.bytes.write(lower);
    let hash = this.seed;
    for (let at = 0; at < length; at++) {
      hash = Math.imul(hash ^ (this.bytes[at] as number), 0x01000193); // at < length <= bytes.length
    }
    this.length = length;
    this.hash = finish(hash);
    return true;
  }
}

/** Mixes FNV-1a's bits, so that the upper ones are well distributed too (MurmurHash3's finalizer). */
function finish(hash: number): number {
  let mixed = hash;
  mixed ^= mixed >>> 16;
  mixed = Math.imul(mixed, 0x85ebca6b);
  mixed ^= mixed >>> 13;
  mixed = Math.imul(mixed, 0xc2b2ae35);
  return mixed ^ (mixed >>> 16);
}
