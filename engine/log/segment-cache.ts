/**
 * The memory that images of segments may take, shared by all logs of a process. Segments that are being written
 * are not in it; those of in-memory logs never are.
 *
 * Invariants:
 * - Images in the cache take at most `bytesMax` bytes, or there is only one.
 * - The one that was not used for longest goes first.
 */
import { ImagePool } from "./image-pool.ts";
import type { Segment } from "./segment.ts";

export class SegmentCache {
  readonly bytesMax: number;
  /** Where images come from, and where those of segments that are gone go. */
  readonly images: ImagePool;
  readonly #segments = new Set<Segment>();
  #bytes = 0;
  #ticks = 0;

  constructor(bytesMax: number, images = new ImagePool()) {
    this.bytesMax = bytesMax;
    this.images = images;
  }

  /** Bytes of the images that it holds now. */
  get bytes(): number {
    return this.#bytes;
  }

  touch(segment: Segment): void {
    segment.usedAt = ++this.#ticks;
  }

  /** Takes charge of the image of `segment`, which is final, and drops others until it fits. */
  add(segment: Segment): void {
    if (this.#segments.has(segment) || segment.image === null) return;
    this.touch(segment);
    this.#segments.add(segment);
    this.#bytes += segment.size;
    while (this.#bytes > this.bytesMax && this.#segments.size > 1) this.#evictOldest();
  }

  /** Is there room for `bytes` without dropping anything? */
  hasRoom(bytes: number): boolean {
    return this.#bytes + bytes <= this.bytesMax;
  }

  /** Drops the image: the segment is gone, or its log is closed. */
  remove(segment: Segment): void {
    if (this.#segments.delete(segment)) this.#bytes -= segment.size;
    if (segment.image !== null) this.images.letGo(segment.image);
    segment.image = null;
  }

  #evictOldest(): void {
    let oldest: Segment | null = null;
    for (const segment of this.#segments) {
      if (oldest === null || segment.usedAt < oldest.usedAt) oldest = segment;
    }
    if (oldest !== null) this.remove(oldest);
  }
}
