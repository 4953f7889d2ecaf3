/**
 * Counts, results, and durations of requests per route. Stored in plain arrays by route number, so that counting a request
 * costs a few additions; `latencyBounds` are the buckets of the histogram.
 */
import { LatencyCounts } from "../../engine/base/scheduling/latency-counts.ts";

/** Status classes; "aborted" means that the client or the server closed the request before its reply. */
export const statusClasses = ["aborted", "1xx", "2xx", "3xx", "4xx", "5xx"] as const;

interface RouteFigures {
  /** Position in the route table, or -1 for requests without a route, or refused before matching. */
  readonly route: number;
  /** Requests by `statusClasses`. */
  readonly byStatus: readonly number[];
  readonly latency: LatencyCounts;
  readonly replyBytes: number;
}

interface Slot {
  readonly byStatus: number[];
  readonly latency: LatencyCounts;
  replyBytes: number;
}

export class RequestStats {
  /** By route number plus one. */
  readonly #slots: (Slot | undefined)[];
  /** Number of all requests. */
  count = 0;
  /** Sum of their durations, in milliseconds. */
  totalMs = 0;

  constructor(routeCount: number) {
    this.#slots = new Array<Slot | undefined>(routeCount + 1).fill(undefined);
  }

  /** Hot. */
  add(route: number, status: number, ms: number, replyBytes: number): void {
    let slot = this.#slots[route + 1];
    if (slot === undefined) {
      slot = { byStatus: statusClasses.map(() => 0), latency: new LatencyCounts(), replyBytes: 0 };
      this.#slots[route + 1] = slot;
    }
    const kind = Math.min(5, (status / 100) | 0);
    slot.byStatus[kind] = (slot.byStatus[kind] as number) + 1; // it has all classes
    slot.latency.add(ms);
    slot.replyBytes += replyBytes;
    this.count++;
    this.totalMs += ms;
  }

  /** Yields the routes with requests. */
  *figures(): Generator<RouteFigures> {
    for (const [at, slot] of this.#slots.entries()) {
      if (slot !== undefined) yield { route: at - 1, ...slot };
    }
  }
}
