/**
 * Deferred copies of large appended records into the image of their segment: they are copied in chunks before their
 * frame is written, so that the append itself is short. A read of such a record copies it immediately.
 *
 * Invariants:
 * - The bytes of a source do not change until they are copied.
 */
import { assert } from "../../base/assert.ts";

/** Bytes copied without a pause. */
const pieceBytes = 1024 * 1024;

interface DeferredCopy {
  readonly source: Buffer;
  /** Offset of the source's byte 0 in the image. */
  readonly origin: number;
  /** The part not copied yet: `[from, to)` of the image. */
  from: number;
  readonly to: number;
}

export class DeferredCopies {
  readonly #image: Buffer;
  #copies: DeferredCopy[] = [];

  constructor(image: Buffer) {
    this.#image = image;
  }

  get isEmpty(): boolean {
    return this.#copies.length === 0;
  }

  /** Schedules the copy of `[from, to)` of the image from `source`, whose byte 0 is at `origin`. */
  add(source: Buffer, origin: number, from: number, to: number): void {
    assert(from >= origin && to - origin <= source.length && to <= this.#image.length, "it fits");
    this.#copies.push({ source, origin, from, to });
  }

  /** Returns whether any byte of `[from, to)` is not copied yet. */
  isPending(from: number, to: number): boolean {
    return this.#copies.some((copy) => copy.from < to && from < copy.to);
  }

  /** Copies one chunk. @returns whether there is more to copy. */
  step(): boolean {
    const copy = this.#copies[0];
    if (copy === undefined) return false;
    this.#advance(copy, pieceBytes);
    if (copy.from === copy.to) this.#copies.shift();
    return this.#copies.length > 0;
  }

  /** Copies now whatever is pending for `[from, to)`. */
  finish(from: number, to: number): void {
    for (const copy of this.#copies) {
      if (copy.from < to && from < copy.to) this.#advance(copy, copy.to - copy.from);
    }
    this.#copies = this.#copies.filter((copy) => copy.from < copy.to);
  }

  #advance(copy: DeferredCopy, bytes: number): void {
    const end = Math.min(copy.from + bytes, copy.to);
    copy.source.copy(this.#image, copy.from, copy.from - copy.origin, end - copy.origin);
    copy.from = end;
  }
}
