/**
 * The queries of one database that run now: who asks sees them, and may end one.
 *
 * Invariants:
 * - A query is listed from its analysis until its last row was taken, whatever it waits for in between.
 * - A query that was killed ends where it would pause next, or at once where it waits for an index.
 *
 * Every query is entered, most for some microseconds only: a linked list, whose entries are what the query is stopped by.
 */

import { assert } from "../base/assert.ts";
import { foldedName } from "../base/case-folding.ts";
import { EngineError } from "../base/errors.ts";
import type { Abortable } from "../base/work-budget.ts";
import type { AnalyzedQuery } from "../rql/analyzed-query.ts";
import { sourceNameOf } from "../rql/query.ts";

/** UTF-16 units of a query's text that are shown. */
const shownLengthMax = 8_192;

/** The options of a query that are shown, and what ends it. */
export interface RunningOptions {
  readonly start?: number | undefined;
  readonly pageSize?: number | undefined;
  readonly waitForNonStale?: boolean | undefined;
  readonly timeoutMs?: number | undefined;
  readonly skipDuplicateChecking?: boolean | undefined;
  readonly isStream?: boolean | undefined;
  readonly signal?: Abortable | undefined;
  readonly taker?: QueryTaker | undefined;
}

/** Who takes the rows of a query, perhaps slowly. */
export interface QueryTaker {
  /** Called once when the query is killed: it must not wait for its rows to be taken. */
  queryKilled(): void;
}

/** A query as it is shown. */
export interface RunningQueryInfo {
  readonly id: number;
  /** The index that it uses, or `collection/Name`. */
  readonly indexName: string;
  readonly text: string;
  readonly durationMs: number;
  readonly skip: number;
  /** null: as many as there are. */
  readonly take: number | null;
  readonly waitsForNonStale: boolean;
  /** How long it waits for that; null: not told, or it does not. */
  readonly timeoutMs: number | null;
  readonly skipsDuplicateChecking: boolean;
  readonly isStream: boolean;
}

/** One of them. It is aborted when it was killed, or when its caller no longer wants the answer. */
export class RunningQuery implements Abortable {
  readonly id: number;
  readonly startMs: number;
  readonly query: AnalyzedQuery;
  readonly options: RunningOptions;
  isKilled: boolean;
  /** The index that was chosen for it; null: not yet, or none is used. */
  indexName: string | null;
  /** Ends what the query waits for. */
  wake: (() => void) | null;
  next: RunningQuery | null;
  previous: RunningQuery | null;

  constructor(id: number, startMs: number, query: AnalyzedQuery, options: RunningOptions) {
    this.id = id;
    this.startMs = startMs;
    this.query = query;
    this.options = options;
    this.isKilled = false;
    this.indexName = null;
    this.wake = null;
    this.next = null;
    this.previous = null;
  }

  get aborted(): boolean {
    return this.isKilled || this.options.signal?.aborted === true;
  }

  /** Waits for what cannot be stopped; a kill ends the waiting. @throws EngineError query-killed */
  async orKilled<Result>(waiting: Promise<Result>): Promise<Result> {
    if (this.isKilled) throw queryKilled();
    const killed = new Promise<never>((_, reject) => {
      this.wake = () => reject(queryKilled());
    });
    try {
      return await Promise.race([waiting, killed]);
    } finally {
      this.wake = null;
    }
  }

  kill(): void {
    if (this.isKilled) return;
    this.isKilled = true;
    this.wake?.();
    this.options.taker?.queryKilled();
  }
}

/** What the caller of a query that was killed gets, in RavenDB's words. */
export function queryKilled(): EngineError {
  return new EngineError("query-killed", "The operation was canceled.");
}

export class RunningQueries {
  /** The newest; null: none runs. */
  #newest: RunningQuery | null = null;
  #lastId = 0;

  /** Hot. */
  add(query: AnalyzedQuery, options: RunningOptions, nowMs: number): RunningQuery {
    const running = new RunningQuery(++this.#lastId, nowMs, query, options);
    const before = this.#newest;
    running.previous = before;
    if (before !== null) before.next = running;
    this.#newest = running;
    return running;
  }

  /** It has ended. Hot. */
  remove(running: RunningQuery): void {
    const { next, previous } = running;
    if (next !== null) next.previous = previous;
    else {
      assert(this.#newest === running, "a query ends once");
      this.#newest = previous;
    }
    if (previous !== null) previous.next = next;
    running.next = null;
    running.previous = null;
  }

  /** The newest first. */
  list(nowMs: number): RunningQueryInfo[] {
    const found: RunningQueryInfo[] = [];
    for (let one = this.#newest; one !== null; one = one.previous) found.push(infoOf(one, nowMs));
    return found;
  }

  /** Ends the query that has this number and uses this index. @returns false when there is none */
  kill(indexName: string, id: number): boolean {
    const wanted = foldedName(indexName);
    for (let one = this.#newest; one !== null; one = one.previous) {
      if (one.id !== id || foldedName(nameOf(one)) !== wanted) continue;
      one.kill();
      return true;
    }
    return false;
  }
}

/** The name of what a query is answered from, as its answer will have it. */
function nameOf({ query, indexName }: RunningQuery): string {
  return indexName ?? sourceNameOf(query);
}

function infoOf(running: RunningQuery, nowMs: number): RunningQueryInfo {
  const { id, startMs, query, options } = running;
  const { skip, take } = query.paging;
  return {
    id,
    indexName: nameOf(running),
    text: query.text.slice(0, shownLengthMax),
    durationMs: nowMs - startMs,
    skip,
    take: take >= Number.MAX_SAFE_INTEGER ? null : take,
    waitsForNonStale: options.waitForNonStale === true,
    timeoutMs: options.waitForNonStale === true ? (options.timeoutMs ?? null) : null,
    skipsDuplicateChecking: options.skipDuplicateChecking === true,
    isStream: options.isStream === true,
  };
}
