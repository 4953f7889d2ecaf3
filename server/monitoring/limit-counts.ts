/**
 * Counts requests that a limit has refused, by limit, and logs a limited number of them. The error message contains the
 * remedy.
 *
 * Invariants:
 * - The names of limits are fixed, whatever callers send.
 */
import { EngineError, type ErrorCode } from "../../engine/base/errors.ts";
import { RequestError } from "../http/request-error.ts";
import { LineLimit } from "../logging/line-limit.ts";
import type { Log } from "../logging/log.ts";

const byCode: Partial<Readonly<Record<ErrorCode, LimitName>>> = {
  "work-limit": "query-work",
  "memory-full": "memory",
  overloaded: "memory",
  "disk-full": "disk",
  "too-large": "size",
};
const byStatus: Readonly<Record<number, LimitName>> = {
  413: "size",
  414: "size",
  503: "load",
};

const limitNames = ["query-work", "memory", "disk", "size", "load"] as const;
type LimitName = (typeof limitNames)[number];

/** Maximum burst of log lines per limit, and milliseconds until the next line. */
const burstMax = 3;
const pauseMs = 10_000;

export class LimitCounts {
  readonly counts: Record<LimitName, number>;
  readonly #log: Log;
  readonly #lines = new Map<LimitName, LineLimit>();

  constructor(log: Log) {
    this.#log = log;
    this.counts = Object.fromEntries(limitNames.map((name) => [name, 0])) as Record<
      LimitName,
      number
    >;
  }

  /** Counts a failed request. `route` is the path of its route. */
  failed(error: unknown, route: string | null, database: string | null): void {
    const limit = limitOf(error);
    if (limit === undefined) return;
    this.counts[limit]++;
    let lines = this.#lines.get(limit);
    if (lines === undefined) {
      lines = new LineLimit(burstMax, pauseMs);
      this.#lines.set(limit, lines);
    }
    const leftOut = lines.take();
    if (leftOut === null) return;
    const { message } = error as Error;
    const fields = { event: "limit-hit", limit, route, database, leftOut };
    this.#log.warn(`A request was refused by a limit: ${message}`, fields);
  }
}

/** Returns undefined if the error is not that of a limit. */
export function limitOf(error: unknown): LimitName | undefined {
  if (error instanceof EngineError) return byCode[error.code];
  if (!(error instanceof RequestError)) return undefined;
  // A disabled database, or one being restored, is not a limit.
  return error.type.includes("Database") ? undefined : byStatus[error.status];
}
