/**
 * Contents of attachments while the map of one document is run. Maps are synchronous and contents are in files: a content that
 * is not here is awaited, and then the map is run again from its beginning.
 *
 * Invariant: after the map has succeeded or failed nothing is kept.
 */
import type { BlobStore } from "./blob-store.ts";
import { EngineError } from "./errors.ts";
import { indexedContentBytesMax } from "./limits.ts";

/** A map needs a content that must be read first. */
export class ContentAwaited extends Error {
  readonly hash: string;

  constructor(hash: string) {
    super("the content of an attachment is in a file");
    this.hash = hash;
  }
}

export class IndexContents {
  readonly #blobs: BlobStore;
  /** By hash: the content, or why there is none. */
  readonly #contents = new Map<string, Buffer | EngineError>();
  #bytes = 0;

  constructor(blobs: BlobStore) {
    this.#blobs = blobs;
  }

  /** @throws ContentAwaited, EngineError record-damaged, too-large for more than a map may look at */
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
    throw new ContentAwaited(hash);
  }

  /** Reads what a map awaits. That it cannot be read is for the map to say. */
  async load({ hash }: ContentAwaited): Promise<void> {
    try {
      const reader = await this.#blobs.open(hash);
      const chunks: Buffer[] = [];
      try {
        for await (const chunk of reader.read(0, reader.size)) chunks.push(chunk);
      } finally {
        await reader.close();
      }
      const content = Buffer.concat(chunks);
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
