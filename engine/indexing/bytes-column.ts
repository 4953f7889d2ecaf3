/**
 * Some bytes, or none, for each entry of a store, in chunks: texts that an index keeps are nothing that the collector has to see.
 *
 *   place of an entry: 0 for none, else chunk * 2^32 + offset + 1
 *   in the chunk:      | length u32 | bytes |
 *
 * Hot: bench/query.bench.ts.
 */
import { assert } from "../assert.ts";
import { grownFloat64 } from "./packed.ts";
import type { PartReader, PartWriter } from "./saved-parts.ts";
import type { StoreColumn } from "./store-column.ts";

const chunkBytesMin = 4096;
const chunkBytesMax = 1024 * 1024;
const chunkFactor = 2 ** 32;
const lengthBytes = 4;

export class BytesColumn implements StoreColumn {
  entryCount = 0;
  #places: Float64Array = new Float64Array(16);
  readonly #chunks: Buffer[] = [];
  /** By chunk: bytes in use. */
  readonly #used: number[] = [];
  #pending = 0;
  /** Entries that have bytes. */
  #filled = 0;

  /** Has any entry bytes, living or dead? */
  get isEmpty(): boolean {
    return this.#filled === 0;
  }

  /** Makes room for the bytes of the entry that `endEntry` will end. @returns where to put them, at once */
  reserve(length: number): Buffer {
    const needed = lengthBytes + length;
    let chunk = this.#chunks.length - 1;
    if (chunk < 0 || (this.#used[chunk] as number) + needed > this.#chunk(chunk).length) {
      const size = Math.min(chunkBytesMax, 2 * (this.#chunks.at(-1)?.length ?? chunkBytesMin / 2));
      this.#chunks.push(Buffer.allocUnsafeSlow(Math.max(size, needed)));
      this.#used.push(0);
      chunk++;
    }
    const bytes = this.#chunk(chunk);
    const at = this.#used[chunk] as number;
    bytes.writeUInt32LE(length, at);
    this.#used[chunk] = at + needed;
    this.#pending = chunk * chunkFactor + at + 1;
    return bytes.subarray(at + lengthBytes, at + needed);
  }

  setText(text: string): void {
    this.reserve(Buffer.byteLength(text)).write(text);
  }

  endEntry(): void {
    const entry = this.entryCount++;
    this.#places = grownFloat64(this.#places, entry + 1);
    this.#places[entry] = this.#pending;
    if (this.#pending !== 0) this.#filled++;
    this.#pending = 0;
  }

  /** A view of an entry's bytes, or null. */
  bytesOf(entry: number): Buffer | null {
    const place = (this.#places[entry] ?? 0) - 1;
    if (place < 0) return null;
    const chunk = Math.floor(place / chunkFactor);
    const at = place - chunk * chunkFactor;
    const bytes = this.#chunk(chunk);
    const length = bytes.readUInt32LE(at);
    return bytes.subarray(at + lengthBytes, at + lengthBytes + length);
  }

  textOf(entry: number): string | null {
    return this.bytesOf(entry)?.toString() ?? null;
  }

  empty(): BytesColumn {
    return new BytesColumn();
  }

  copierTo(target: BytesColumn): (entry: number) => void {
    return (entry) => {
      const bytes = this.bytesOf(entry);
      if (bytes !== null) bytes.copy(target.reserve(bytes.length));
    };
  }

  save(parts: PartWriter): void {
    // Most indexes keep nothing.
    const isEmpty = this.#filled === 0;
    parts.add("places", this.#places.subarray(0, isEmpty ? 0 : this.entryCount));
    parts.add("bytes", ...this.#chunks.map((chunk, at) => chunk.subarray(0, this.#used[at])));
    parts.set("column", { entryCount: this.entryCount, used: [...this.#used] });
  }

  // biome-ignore lint/correctness/useYield: there is nothing to do for each entry
  *restore(parts: PartReader): Generator<void> {
    const { entryCount, used } = parts.get<{ entryCount: number; used: number[] }>("column");
    this.entryCount = entryCount;
    const places = parts.float64("places");
    this.#places = places.length === entryCount ? places : new Float64Array(entryCount);
    this.#filled = places.length;
    const bytes = parts.bytes("bytes");
    let at = 0;
    for (const length of used) {
      this.#chunks.push(bytes.subarray(at, at + length));
      this.#used.push(length);
      at += length;
    }
  }

  checkInvariants(): void {
    for (let entry = 0; entry < this.entryCount; entry++) {
      const place = (this.#places[entry] as number) - 1;
      if (place < 0) continue;
      const chunk = Math.floor(place / chunkFactor);
      const end = place - chunk * chunkFactor + lengthBytes + (this.bytesOf(entry)?.length ?? 0);
      assert(end <= (this.#used[chunk] as number), "bytes of an entry are in their chunk");
    }
  }

  #chunk(number: number): Buffer {
    return this.#chunks[number] as Buffer; // places name chunks that are there
  }
}
