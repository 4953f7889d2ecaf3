/**
 * Changes of documents for a loop of the program.
 *
 * Invariants:
 * - Changes come in the order of the log, and none is left out between `follow` and the end.
 * - At most `changesWaitingMax` wait for the loop: a stream that nobody reads ends by itself.
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
  readonly #life: AbortSignal;
  /** Read up to `#at`. */
  #waiting: Change[] = [];
  #at = 0;
  readonly #readers: Reader[] = [];
  #stops: (() => void)[] = [];
  #hasEnded = false;
  /** What the next reader is told, once; undefined: nothing. */
  #failure: { readonly error: unknown } | undefined;

  /** `life`: the stream ends when it is aborted. */
  constructor({ collection, idPrefix = "", signal }: ChangesOptions, life: AbortSignal) {
    this.#lowerCollection = collection === undefined ? undefined : foldedName(collection);
    this.#lowerPrefix = lowerCased(idPrefix);
    this.#signal = signal;
    this.#life = life;
    if (signal?.aborted === true) this.#aborted();
    else if (life.aborted) this.#end();
    else {
      signal?.addEventListener("abort", this.#aborted);
      life.addEventListener("abort", this.#end);
    }
  }

  /** Takes what becomes visible from now on. */
  follow({ changes }: OpenDatabase): void {
    if (this.#hasEnded) return;
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

  /** Ends the stream with an error, behind what waits. */
  readonly fail = (error: unknown): void => {
    if (this.#hasEnded) return;
    const reader = this.#readers.shift();
    if (reader === undefined) this.#failure = { error };
    else reader.reject(error);
    this.#end();
  };

  next(): Promise<Result> {
    const value = this.#waiting[this.#at];
    if (value !== undefined) {
      this.#at++;
      if (this.#at === this.#waiting.length) this.#forget();
      return Promise.resolve({ done: false, value });
    }
    if (this.#failure !== undefined) {
      const { error } = this.#failure;
      this.#failure = undefined;
      return Promise.reject(error);
    }
    if (this.#hasEnded) return Promise.resolve({ done: true, value: undefined });
    return new Promise((resolve, reject) => this.#readers.push({ resolve, reject }));
  }

  /** The loop was left. */
  return(): Promise<Result> {
    this.#end();
    this.#forget();
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
    else if (this.#waiting.length - this.#at < changesWaitingMax) this.#waiting.push(change);
    else {
      const message = `A loop over changes is ${changesWaitingMax} changes behind: it gets no more.`;
      this.fail(new EngineError("overloaded", message));
    }
  }

  #forget(): void {
    this.#waiting = [];
    this.#at = 0;
  }

  readonly #aborted = (): void => {
    this.#forget();
    this.fail(this.#signal?.reason ?? new EngineError("operation-cancelled", "It was aborted."));
  };

  readonly #end = (): void => {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#signal?.removeEventListener("abort", this.#aborted);
    this.#life.removeEventListener("abort", this.#end);
    for (const stop of this.#stops) stop();
    for (const reader of this.#readers) reader.resolve({ done: true, value: undefined });
    this.#readers.length = 0;
  };
}
