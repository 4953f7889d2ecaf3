/**
 * The running queries of one database, which callers can list and kill.
 *
 * Invariants:
 * - A query is listed from its analysis until its last row was read, including any waits in between.
 * - A killed query stops at its next pause, or immediately if it is waiting for an index.
 *
 * Every query is listed, most of them for some microseconds only: the list is a linked list, and its entries are the
 * abort signals of the queries.
 */

import { assert } from "../../base/assert.ts";
import { foldedName } from "../../base/case-folding.ts";
import { EngineError } from "../../base/errors.ts";
import type { Abortable } from "../../base/scheduling/work-budget.ts";
import type { AnalyzedQuery } from "../../queries/analysis/analyzed-query.ts";
import { sourceNameOf } from "../../queries/analysis/query.ts";

/** UTF-16 units of a query's text that are shown. */
const shownLengthMax = 8_192;

/** Options of a query that are reported, and its abort signal and reader. */
interface RunningOptions {
  readonly start?: number | undefined;
  readonly pageSize?: number | undefined;
  readonly waitForNonStale?: boolean | undefined;
  readonly timeoutMs?: number | undefined;
  readonly skipDuplicateChecking?: boolean | undefined;
  readonly isStream?: boolean | undefined;
  readonly signal?: Abortable | undefined;
  readonly taker?: QueryTaker | undefined;
}

/** The reader of a query's rows, which may be slow. */
export interface QueryTaker {
  /** Called once when the query is killed: it must not wait until its rows are read. */
  queryKilled(): void;
}

/** A running query, as reported to callers. */
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
  /** Maximum wait for the index; null if unspecified, or if the query does not wait. */
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
  /** Stops the query's current wait. */
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

  /** Waits for a promise that cannot be cancelled; a kill stops the wait. @throws EngineError query-killed */
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

/** Returns the error for the caller of a killed query, in RavenDB's words. */
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

  /** Returns the newest first. */
  list(nowMs: number): RunningQueryInfo[] {
    const found: RunningQueryInfo[] = [];
    for (let one = this.#newest; one !== null; one = one.previous) found.push(infoOf(one, nowMs));
    return found;
  }

  /** Kills the query that has this number and uses this index. @returns false if no such query exists */
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

/** Returns the source of a query's rows, under the name that its reply uses. */
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
