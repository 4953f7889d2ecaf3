/**
 * How many requests each route had, how they ended and how long they took. Plain arrays by the number of the route, so that
 * counting one costs a few additions; `latencyBounds` are the buckets of the histogram.
 */
import { LatencyCounts } from "../../engine/base/latency-counts.ts";

/** Kinds of statuses; "aborted": the client or the server ended the request before its reply. */
export const statusClasses = ["aborted", "1xx", "2xx", "3xx", "4xx", "5xx"] as const;

export interface RouteFigures {
  /** Its position in the route table; -1: requests that matched no route, or were refused before that. */
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
  /** By the number of the route plus one. */
  readonly #slots: (Slot | undefined)[];
  /** All requests. */
  count = 0;
  /** Their milliseconds. */
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
    slot.byStatus[kind] = (slot.byStatus[kind] as number) + 1; // it has all kinds
    slot.latency.add(ms);
    slot.replyBytes += replyBytes;
    this.count++;
    this.totalMs += ms;
  }

  /** Of the routes that had any. */
  *figures(): Generator<RouteFigures> {
    for (const [at, slot] of this.#slots.entries()) {
      if (slot !== undefined) yield { route: at - 1, ...slot };
    }
  }
}
