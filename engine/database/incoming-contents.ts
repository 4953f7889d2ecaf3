/**
 * Contents of attachments that come to a follower in chunks, before the groups that refer to them.
 *
 * Invariants:
 * - When `add` of a last chunk has resolved, the content is durable, and kept for `keptMs` until a group refers to it.
 */
import type { Clock, Timer } from "../base/environment.ts";
import type { BlobStore, Lease } from "../log/blob-store.ts";
import type { ContentChunk } from "../replication/replica-types.ts";

/** A group that refers to a content follows it at once, unless its writer gave up. */
const keptMs = 10 * 60_000;

/** One content that is on its way. */
interface Incoming {
  /** Bytes that have come. */
  at: number;
  take(bytes: Buffer | null): void;
  readonly stored: Promise<Lease>;
}

export class IncomingContents {
  readonly #blobs: BlobStore;
  readonly #clock: Clock;
  readonly #incoming = new Map<string, Incoming>();
  readonly #kept = new Map<Lease, Timer>();

  constructor(blobs: BlobStore, clock: Clock) {
    this.#blobs = blobs;
    this.#clock = clock;
  }

  /**
   * Takes the next chunk of a content. One whose beginning came before a restart is left out: it is missing, and fetched
   * from another node when it is needed.
   */
  async add({ sha256, offset, total, bytes }: ContentChunk): Promise<void> {
    if (offset === 0) this.#begin(sha256);
    const incoming = this.#incoming.get(sha256);
    if (incoming === undefined || incoming.at !== offset) return;
    incoming.at += bytes.length;
    incoming.take(bytes);
    if (incoming.at < total) return;
    this.#incoming.delete(sha256);
    incoming.take(null);
    this.#keep(await incoming.stored);
  }

  close(): void {
    for (const { take } of this.#incoming.values()) take(null);
    this.#incoming.clear();
    for (const [lease, timer] of this.#kept) {
      timer.cancel();
      lease.release();
    }
    this.#kept.clear();
  }

  #begin(sha256: string): void {
    // An earlier attempt at the same content: a leader that gave up.
    this.#incoming.get(sha256)?.take(null);
    const pieces = pieceQueue();
    const stored = this.#blobs.store(pieces.all());
    stored.catch(() => undefined);
    this.#incoming.set(sha256, { at: 0, take: pieces.take, stored });
  }

  #keep(lease: Lease): void {
    const timer = this.#clock.setTimer(keptMs, () => {
      this.#kept.delete(lease);
      lease.release();
    });
    this.#kept.set(lease, timer);
  }
}

/** Pieces that are taken as they come; null ends them. */
function pieceQueue(): { take(bytes: Buffer | null): void; all(): AsyncGenerator<Buffer> } {
  const waiting: (Buffer | null)[] = [];
  let wake: () => void = () => undefined;
  return {
    take(bytes) {
      waiting.push(bytes);
      wake();
    },
    async *all() {
      for (;;) {
        const next = waiting.shift();
        if (next === null) return;
        if (next !== undefined) yield next;
        else {
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
        }
      }
    },
  };
}
