/**
 * Contents of attachments while the map of one document runs. Maps are synchronous and contents are in files: a content
 * that is not in memory is awaited, and the map is then rerun from its beginning.
 *
 * Invariant: nothing is kept after the map has succeeded or failed.
 */

import { EngineError } from "../../base/errors.ts";
import { indexedContentBytesMax } from "../../base/limits.ts";
import { collectBytes } from "../../base/memory/collect-bytes.ts";
import type { BlobStore } from "../../storage/log/blob-store.ts";

/** Thrown when a map needs a content that must first be read. */
export class ContentNotLoaded extends Error {
  readonly hash: string;

  constructor(hash: string) {
    super("the content of an attachment is in a file");
    this.hash = hash;
  }
}

export class IndexContents {
  readonly #blobs: BlobStore;
  /** By hash: the content, or the error of reading it. */
  readonly #contents = new Map<string, Buffer | EngineError>();
  #bytes = 0;

  constructor(blobs: BlobStore) {
    this.#blobs = blobs;
  }

  /** @throws ContentNotLoaded, EngineError record-damaged, too-large when a map exceeds its quota */
  get(hash: string, size: number): Buffer {
    const known = this.#contents.get(hash);
    if (known instanceof EngineError) throw known;
    if (known !== undefined) return known;
    if (this.#bytes + size > indexedContentBytesMax) {
      throw new EngineError(
        "too-large",
        `A map may look at ${indexedContentBytesMax} bytes of attachments of one document.`,
      );
    }
    throw new ContentNotLoaded(hash);
  }

  /** Reads the content that a map awaits. A read error is kept for the map to throw. */
  async load({ hash }: ContentNotLoaded): Promise<void> {
    try {
      const reader = await this.#blobs.open(hash);
      const content = await collectBytes(reader.read(0, reader.size)).finally(() => reader.close());
      this.#bytes += content.length;
      this.#contents.set(hash, content);
    } catch (error) {
      if (!(error instanceof EngineError)) throw error;
      this.#contents.set(hash, error);
    }
  }

  clear(): void {
    this.#contents.clear();
    this.#bytes = 0;
  }
}
