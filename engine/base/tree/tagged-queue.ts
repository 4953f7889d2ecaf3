/**
 * A queue of document numbers, each with a tag, packed in recycled chunks.
 *
 * Invariants:
 * - The first chunk is filled from `#head`, the last up to `#tail`, those between them entirely.
 */
import { assert } from "../assert.ts";

const entriesPerChunk = 4096;

interface Chunk {
  readonly numbers: Uint32Array;
  readonly tags: Float64Array;
}

export class TaggedQueue {
  #chunks: Chunk[] = [];
  #spare: Chunk | undefined;
  #head = 0;
  #tail = entriesPerChunk;

  get length(): number {
    return this.#chunks.length * entriesPerChunk - this.#head - (entriesPerChunk - this.#tail);
  }

  push(number: number, tag: number): void {
    if (this.#tail === entriesPerChunk) {
      this.#chunks.push(
        this.#spare ?? {
          numbers: new Uint32Array(entriesPerChunk),
          tags: new Float64Array(entriesPerChunk),
        },
      );
      this.#spare = undefined;
      this.#tail = 0;
    }
    const chunk = this.#chunks[this.#chunks.length - 1] as Chunk; // created above at the latest
    chunk.numbers[this.#tail] = number;
    chunk.tags[this.#tail] = tag;
    this.#tail++;
  }

  /** Returns the tag of the first entry; there must be one. */
  firstTag(): number {
    return (this.#chunks[0] as Chunk).tags[this.#head] as number;
  }

  /** Removes the first entry; there must be one. @returns its number. */
  shift(): number {
    assert(this.length > 0, "the queue has an entry");
    const chunk = this.#chunks[0] as Chunk;
    const number = chunk.numbers[this.#head++] as number;
    if (this.#head === entriesPerChunk || this.length === 0) {
      this.#spare = this.#chunks.shift();
      this.#head = 0;
      if (this.#chunks.length === 0) this.#tail = entriesPerChunk;
    }
    return number;
  }

  memoryBytes(): number {
    return (this.#chunks.length + (this.#spare === undefined ? 0 : 1)) * entriesPerChunk * 12;
  }
}
