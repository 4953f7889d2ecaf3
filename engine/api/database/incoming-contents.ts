/**
 * Contents of attachments that a follower receives in chunks, before the groups that refer to them.
 *
 * Invariants:
 * - When `add` of a last chunk has resolved, the content is durable, and retained for `keptMs` until a group refers to
 *   it.
 * - Incomplete contents are not stored, and are discarded by `close`.
 */
import type { Clock, Timer } from "../../base/environment.ts";
import type { BlobStore, Lease } from "../../storage/log/blob-store.ts";
import type { ContentChunk } from "../../storage/replication/replica-types.ts";

/**
 * Retention of an unreferenced content, in milliseconds: the group that refers to it usually follows immediately,
 * unless its writer was aborted.
 */
const keptMs = 10 * 60_000;

/** One content that is on its way. */
interface Incoming {
  /** Number of bytes received. */
  at: number;
  readonly pieces: ChunkQueue;
  readonly stored: Promise<Lease>;
}

export class IncomingContents {
  readonly #blobs: BlobStore;
  readonly #clock: Clock;
  readonly #incoming = new Map<string, Incoming>();
  readonly #kept = new Map<Lease, Timer>();
  #isClosed = false;

  constructor(blobs: BlobStore, clock: Clock) {
    this.#blobs = blobs;
    this.#clock = clock;
  }

  /**
   * Adds the next chunk of a content. A content whose first chunks arrived before a restart is ignored: it is missing,
   * and is fetched from another node when it is needed.
   */
  async add({ sha256, offset, total, bytes }: ContentChunk): Promise<void> {
    if (offset === 0) this.#begin(sha256);
    const incoming = this.#incoming.get(sha256);
    if (incoming === undefined || incoming.at !== offset) return;
    incoming.at += bytes.length;
    incoming.pieces.give(bytes);
    if (incoming.at < total) return;
    this.#incoming.delete(sha256);
    incoming.pieces.end();
    const lease = await incoming.stored;
    if (this.#isClosed) lease.release();
    else this.#keep(lease);
  }

  close(): void {
    this.#isClosed = true;
    for (const { pieces } of this.#incoming.values()) pieces.abandon();
    this.#incoming.clear();
    for (const [lease, timer] of this.#kept) {
      timer.cancel();
      lease.release();
    }
    this.#kept.clear();
  }

  #begin(sha256: string): void {
    // An earlier, aborted attempt of a leader at the same content.
    this.#incoming.get(sha256)?.pieces.abandon();
    const pieces = new ChunkQueue();
    const stored = this.#blobs.store(pieces.all());
    stored.catch(() => undefined);
    this.#incoming.set(sha256, { at: 0, pieces, stored });
  }

  #keep(lease: Lease): void {
    const timer = this.#clock.setTimer(keptMs, () => {
      this.#kept.delete(lease);
      lease.release();
    });
    this.#kept.set(lease, timer);
  }
}

/** Chunks of a content, stored in arrival order. */
class ChunkQueue {
  readonly #waiting: (Buffer | "end" | "abandoned")[] = [];
  #wake: () => void = () => undefined;

  give(bytes: Buffer): void {
    this.#add(bytes);
  }

  end(): void {
    this.#add("end");
  }

  /** Aborts the content: the reader that stores it fails. */
  abandon(): void {
    this.#add("abandoned");
  }

  #add(next: Buffer | "end" | "abandoned"): void {
    this.#waiting.push(next);
    this.#wake();
  }

  async *all(): AsyncGenerator<Buffer> {
    for (;;) {
      const next = this.#waiting.shift();
      if (next === "end") return;
      if (next === "abandoned") throw new Error("The rest of the content does not come.");
      if (next !== undefined) yield next;
      else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    }
  }
}
