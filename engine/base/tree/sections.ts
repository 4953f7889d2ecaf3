/**
 * Reads a section of a snapshot from its parts, however it was split.
 *
 * Numbers are in memory format: little-endian, which the writer asserts.
 */
import { EngineError } from "../errors.ts";

/** Returns the bytes under a typed array; no copy. */
export function bytesOf(array: ArrayBufferView): Uint8Array {
  return new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
}

/** Reads a section's bytes sequentially. Every method throws EngineError database-damaged. */
export class ByteReader {
  readonly #name: string;
  readonly #parts: readonly Uint8Array[];
  #part = 0;
  #at = 0;
  #left: number;

  constructor(name: string, parts: readonly Uint8Array[]) {
    this.#name = name;
    this.#parts = parts;
    this.#left = parts.reduce((sum, part) => sum + part.length, 0);
  }

  /** Throws unless `condition`; `what` describes the invalid part of the section. */
  expect(condition: boolean, what: string): void {
    if (!condition) {
      throw new EngineError("database-damaged", `Snapshot section ${this.#name}: wrong ${what}`);
    }
  }

  /** Throws unless `length` bytes are left: to be called before allocating an array of that size. */
  reserve(length: number): void {
    this.expect(length <= this.#left, "size");
  }

  /** Copies the next `length` bytes to the front of `target`. */
  copy(target: ArrayBufferView, length: number): void {
    const bytes = bytesOf(target);
    this.reserve(length);
    this.expect(length <= bytes.length, "size");
    this.#left -= length;
    let done = 0;
    while (done < length) {
      const part = this.#parts[this.#part] as Uint8Array; // there are enough bytes left
      const count = Math.min(length - done, part.length - this.#at);
      bytes.set(part.subarray(this.#at, this.#at + count), done);
      done += count;
      this.#at += count;
      if (this.#at === part.length) {
        this.#part++;
        this.#at = 0;
      }
    }
  }

  uint32(): number {
    return this.uint32s(1)[0] as number; // has one element
  }

  float64(): number {
    return this.float64s(1)[0] as number; // has one element
  }

  uint32s(count: number): Uint32Array {
    this.reserve(count * 4);
    const array = new Uint32Array(count);
    this.copy(array, array.byteLength);
    return array;
  }

  float64s(count: number): Float64Array {
    this.reserve(count * 8);
    const array = new Float64Array(count);
    this.copy(array, array.byteLength);
    return array;
  }

  /** Throws when bytes are left over. */
  end(): void {
    this.expect(this.#left === 0, "size");
  }
}
