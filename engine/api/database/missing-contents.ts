/**
 * Contents of attachments that other nodes have and this one lacks: their chunks arrived before it was restarted, or
 * they were not available when its files were copied. They are fetched from another node, until they are stored here or
 * no longer referenced; readers wait for them in the meantime.
 *
 * Invariants:
 * - A stored content has the bytes of its hash.
 */
import type { Clock, Timer } from "../../base/environment.ts";
import { EngineError } from "../../base/errors.ts";
import { type BlobStore, contentName } from "../../storage/log/blob-store.ts";

/** Fetches the bytes of a content, by its name; null: every other node was queried, and none has it. */
export type FetchContent = (name: string) => Promise<AsyncIterable<Buffer> | null>;

/** Number of contents that are fetched in parallel. */
const parallelMax = 4;
const retryMsMin = 500;
const retryMsMax = 60_000;
/** How long a reader waits. */
const readerMs = 20_000;

export class MissingContents {
  readonly #blobs: BlobStore;
  readonly #clock: Clock;
  readonly #fetch: FetchContent;
  /** Missing contents without an attempt in progress. */
  readonly #waiting = new Set<string>();
  readonly #missing = new Set<string>();
  readonly #underWay = new Map<string, Promise<boolean>>();
  #retryMs = retryMsMin;
  #timer: Timer | null = null;
  #isClosed = false;

  /** Fetches the contents that are missing now or found missing later. */
  constructor(blobs: BlobStore, clock: Clock, fetch: FetchContent) {
    this.#blobs = blobs;
    this.#clock = clock;
    this.#fetch = fetch;
    blobs.whenReferred = (hash) => void this.#look(hash);
    blobs.fetchMissing = (hash) => this.#awaited(hash);
    void this.#lookAtAll();
  }

  /** Contents that are known to be missing. */
  get count(): number {
    return this.#missing.size;
  }

  close(): void {
    this.#isClosed = true;
    this.#timer?.cancel();
    this.#blobs.whenReferred = null;
    this.#blobs.fetchMissing = null;
  }

  async #lookAtAll(): Promise<void> {
    try {
      for (const hash of await this.#blobs.findMissing()) this.#want(hash);
    } catch {
      // The folder cannot be read: readers of contents will report it.
    }
  }

  async #look(hash: string): Promise<void> {
    const isHere = await this.#blobs.hasFile(hash).catch(() => true);
    if (!isHere) this.#want(hash);
  }

  #want(hash: string): void {
    if (this.#isClosed || this.#missing.has(hash)) return;
    this.#missing.add(hash);
    this.#waiting.add(hash);
    this.#fetchNext();
  }

  #fetchNext(): void {
    if (this.#isClosed || this.#timer !== null) return;
    while (this.#underWay.size < parallelMax) {
      const [hash] = this.#waiting;
      if (hash === undefined) return;
      this.#waiting.delete(hash);
      if (!this.#missing.has(hash)) continue;
      void this.#try(hash).then(
        (isHere) => {
          if (!isHere) this.#later(hash);
          else {
            this.#retryMs = retryMsMin;
            this.#fetchNext();
          }
        },
        () => this.#later(hash),
      );
    }
  }

  /** All wait when one could not be fetched: it is the other nodes that are not there. */
  #later(hash: string): void {
    if (this.#isClosed) return;
    this.#waiting.add(hash);
    if (this.#timer !== null) return;
    this.#timer = this.#clock.setTimer(this.#retryMs, () => {
      this.#timer = null;
      this.#fetchNext();
    });
    this.#retryMs = Math.min(2 * this.#retryMs, retryMsMax);
  }

  /** @returns false: it is on no node. @throws (rejects) when it could not be fetched */
  #try(hash: string): Promise<boolean> {
    const present = this.#underWay.get(hash);
    if (present !== undefined) return present;
    const attempt = this.#attempt(hash).finally(() => this.#underWay.delete(hash));
    this.#underWay.set(hash, attempt);
    return attempt;
  }

  async #attempt(hash: string): Promise<boolean> {
    if (this.#blobs.isReferred(hash)) {
      const bytes = await this.#fetch(contentName(hash));
      if (bytes === null) return false;
      await this.#blobs.fill(hash, bytes);
    }
    this.#missing.delete(hash);
    return true;
  }

  /**
   * Waits for a content on behalf of a reader; afterward it is still missing if no node has it. @throws EngineError
   * node-unreachable
   */
  async #awaited(hash: string): Promise<void> {
    this.#missing.add(hash);
    const attempt = this.#try(hash);
    attempt.then(
      (isHere) => isHere || this.#later(hash),
      () => this.#later(hash),
    );
    let timer: Timer | null = null;
    const late = new Promise<never>((_, reject) => {
      timer = this.#clock.setTimer(readerMs, () => reject(absent(hash)));
    });
    try {
      await Promise.race([attempt, late]);
    } catch (error) {
      throw absent(hash, error);
    } finally {
      (timer as Timer | null)?.cancel();
    }
  }
}

function absent(hash: string, cause?: unknown): EngineError {
  return new EngineError(
    "node-unreachable",
    `The content ${hash} of an attachment is not on this node yet, and could not be fetched from another one. Try again.`,
    { cause },
  );
}
