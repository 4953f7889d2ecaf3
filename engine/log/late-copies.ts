/**
 * Large records that a transaction appended, on their way into the image of their segment: copied in pieces before their
 * frame is written, so that the turn of the event loop in which they are appended is short. Who looks at one of them sooner
 * has it copied at once.
 *
 * Invariants:
 * - The bytes of a source do not change until they are copied.
 */
import { assert } from "../assert.ts";

/** Bytes that are copied in one go. */
const pieceBytes = 1024 * 1024;

interface LateCopy {
  readonly source: Buffer;
  /** Where the source's byte 0 stands in the image. */
  readonly origin: number;
  /** What is left: `[from, to)` of the image. */
  from: number;
  readonly to: number;
}

export class LateCopies {
  readonly #image: Buffer;
  #copies: LateCopy[] = [];

  constructor(image: Buffer) {
    this.#image = image;
  }

  get isEmpty(): boolean {
    return this.#copies.length === 0;
  }

  /** `[from, to)` of the image will be what `source` has there, whose byte 0 stands at `origin`. */
  add(source: Buffer, origin: number, from: number, to: number): void {
    assert(from >= origin && to - origin <= source.length && to <= this.#image.length, "it fits");
    this.#copies.push({ source, origin, from, to });
  }

  /** Copies one piece. @returns whether there is more to copy. */
  step(): boolean {
    const copy = this.#copies[0];
    if (copy === undefined) return false;
    this.#advance(copy, pieceBytes);
    if (copy.from === copy.to) this.#copies.shift();
    return this.#copies.length > 0;
  }

  /** Copies now what is wanted of `[from, to)`. */
  finish(from: number, to: number): void {
    for (const copy of this.#copies) {
      if (copy.from < to && from < copy.to) this.#advance(copy, copy.to - copy.from);
    }
    this.#copies = this.#copies.filter((copy) => copy.from < copy.to);
  }

  #advance(copy: LateCopy, bytes: number): void {
    const end = Math.min(copy.from + bytes, copy.to);
    copy.source.copy(this.#image, copy.from, copy.from - copy.origin, end - copy.origin);
    copy.from = end;
  }
}
