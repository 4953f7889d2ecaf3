/**
 * Document changes as an asynchronous iterator.
 *
 * Invariants:
 * - Changes are delivered in log order, without gaps, from `follow` until the stream closes.
 * - At most `changesWaitingMax` changes are buffered: a stream that is not read closes with an error.
 */
import { foldedName, lowerCased } from "../engine/base/case-folding.ts";
import { changesWaitingMax } from "../engine/base/limits.ts";
import { EngineError, type Database as OpenDatabase } from "../engine/engine.ts";
import type { AbortSignalLike, Change, ChangesOptions } from "./surface.ts";

type Result = IteratorResult<Change, undefined>;

interface Reader {
  resolve(result: Result): void;
  reject(error: unknown): void;
}

export class ChangeStream implements AsyncIterableIterator<Change, undefined> {
  readonly #lowerCollection: string | undefined;
  readonly #lowerPrefix: string;
  readonly #signal: AbortSignalLike | undefined;
  readonly #lifetime: AbortSignal;
  /** Buffered changes, delivered up to `#at`. */
  #buffered: Change[] = [];
  #at = 0;
  readonly #readers: Reader[] = [];
  #stops: (() => void)[] = [];
  #isClosed = false;
  /** Error that the next read rejects with, once. */
  #failure: { readonly error: unknown } | undefined;

  /** The stream closes when `lifetime` is aborted. */
  constructor({ collection, idPrefix = "", signal }: ChangesOptions, lifetime: AbortSignal) {
    this.#lowerCollection = collection === undefined ? undefined : foldedName(collection);
    this.#lowerPrefix = lowerCased(idPrefix);
    this.#signal = signal;
    this.#lifetime = lifetime;
    if (signal?.aborted === true) this.#aborted();
    else if (lifetime.aborted) this.#close();
    else {
      signal?.addEventListener("abort", this.#aborted);
      lifetime.addEventListener("abort", this.#close);
    }
  }

  /** Subscribes to changes committed from now on. */
  follow({ changes }: OpenDatabase): void {
    if (this.#isClosed) return;
    this.#stops = [
      changes.listenToEnd((reason) => this.fail(new EngineError("database-stopped", reason))),
      changes.listen((change) => {
        if (change.kind !== "document") return;
        const { id, collection, changeVector } = change;
        const type = change.type === "Put" ? "put" : "delete";
        if (this.#isWanted(id, collection)) this.#add({ type, id, collection, changeVector });
      }),
    ];
  }

  /** Closes the stream with an error, which is delivered after the buffered changes. */
  readonly fail = (error: unknown): void => {
    if (this.#isClosed) return;
    const reader = this.#readers.shift();
    if (reader === undefined) this.#failure = { error };
    else reader.reject(error);
    this.#close();
  };

  next(): Promise<Result> {
    const value = this.#buffered[this.#at];
    if (value !== undefined) {
      this.#at++;
      if (this.#at === this.#buffered.length) this.#dropBuffered();
      return Promise.resolve({ done: false, value });
    }
    if (this.#failure !== undefined) {
      const { error } = this.#failure;
      this.#failure = undefined;
      return Promise.reject(error);
    }
    if (this.#isClosed) return Promise.resolve({ done: true, value: undefined });
    return new Promise((resolve, reject) => this.#readers.push({ resolve, reject }));
  }

  /** Closes the stream; called when the caller leaves the loop. */
  return(): Promise<Result> {
    this.#close();
    this.#dropBuffered();
    this.#failure = undefined;
    return Promise.resolve({ done: true, value: undefined });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #isWanted(id: string, collection: string): boolean {
    const wanted = this.#lowerCollection;
    if (wanted !== undefined && foldedName(collection) !== wanted) return false;
    return this.#lowerPrefix === "" || lowerCased(id).startsWith(this.#lowerPrefix);
  }

  #add(change: Change): void {
    const reader = this.#readers.shift();
    if (reader !== undefined) reader.resolve({ done: false, value: change });
    else if (this.#buffered.length - this.#at < changesWaitingMax) this.#buffered.push(change);
    else {
      const message = `The change stream was closed: ${changesWaitingMax} changes are buffered and unread.`;
      this.fail(new EngineError("overloaded", message));
    }
  }

  #dropBuffered(): void {
    this.#buffered = [];
    this.#at = 0;
  }

  readonly #aborted = (): void => {
    this.#dropBuffered();
    this.fail(
      this.#signal?.reason ??
        new EngineError("operation-cancelled", "The change stream was aborted."),
    );
  };

  readonly #close = (): void => {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#signal?.removeEventListener("abort", this.#aborted);
    this.#lifetime.removeEventListener("abort", this.#close);
    for (const stop of this.#stops) stop();
    for (const reader of this.#readers) reader.resolve({ done: true, value: undefined });
    this.#readers.length = 0;
  };
}
