/**
 * Additional heartbeats while writers wait for other copies. A node with a waiting writer reports it in its heartbeat, and the
 * others then report their progress immediately instead of within half a second.
 *
 * Invariants:
 * - Additional heartbeats are at least `beatMs` apart.
 * - After `stop`, no writer waits.
 */
import type { Heartbeats } from "./heartbeats.ts";
import type { MembershipTable } from "./membership-table.ts";

/** Minimum interval of additional heartbeats, in milliseconds. */
const beatMs = 20;

export class ProgressReports {
  readonly #membership: MembershipTable;
  #heartbeats: Heartbeats | null = null;
  #isStopped = false;
  /** Callbacks of writers that wait for other copies, called after each heartbeat of another node. */
  readonly #waiting = new Set<() => void>();
  /** Whether the last heartbeat reported that a writer waits. */
  #isKnownToWait = false;
  /** Whether a local copy has advanced since the last heartbeat. */
  #hasMore = false;
  #beatMs = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | null = null;

  constructor(membership: MembershipTable) {
    this.#membership = membership;
  }

  start(heartbeats: Heartbeats): void {
    this.#heartbeats = heartbeats;
  }

  stop(): void {
    this.#isStopped = true;
    for (const wake of [...this.#waiting]) wake();
  }

  /** Sends a last heartbeat. */
  close(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#heartbeats?.beat();
    this.#heartbeats?.stop();
  }

  beat(): void {
    this.#heartbeats?.beat();
  }

  /** Called when a heartbeat is composed. @returns whether a writer of this node waits */
  reported(): boolean {
    this.#hasMore = false;
    this.#isKnownToWait = this.#waiting.size > 0;
    return this.#isKnownToWait;
  }

  /** Called after each heartbeat of another node, with whether a writer of that node waits. */
  heard(isWaiting: boolean): void {
    for (const wake of [...this.#waiting]) wake();
    if (isWaiting && this.#hasMore) this.#beatSoon();
  }

  /** Called when a local copy has advanced. */
  progressed(): void {
    this.#hasMore = true;
    if (this.#membership.isWaitedFor) this.#beatSoon();
  }

  /** Waits for `count` of the nodes to apply the message `wanted`. @returns how many have, fewer after `untilMs` */
  async haveCopies(
    others: readonly string[],
    id: string,
    { wanted, count, untilMs }: { wanted: number; count: number; untilMs: number },
  ): Promise<number> {
    for (;;) {
      const have = others.filter((tag) => this.#membership.appliedBy(tag, id) >= wanted).length;
      const leftMs = untilMs - performance.now();
      if (have >= count || leftMs <= 0 || this.#isStopped) return have;
      const heard = this.#whenHeard(leftMs);
      // Nodes that know of the waiting writer report progress immediately.
      if (!this.#isKnownToWait) this.#beatSoon();
      await heard;
    }
  }

  /** Resolves after the next heartbeat of another node, or after `ms`. */
  #whenHeard(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        clearTimeout(timer);
        this.#waiting.delete(wake);
        resolve();
      };
      const timer = setTimeout(wake, ms);
      this.#waiting.add(wake);
    });
  }

  /** Sends a heartbeat immediately instead of within half a second, but at least `beatMs` after the last one. */
  #beatSoon(): void {
    if (this.#timer !== null || this.#heartbeats === null) return;
    const waitMs = Math.max(0, this.#beatMs + beatMs - performance.now());
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.#beatMs = performance.now();
      this.#heartbeats?.beat();
    }, waitMs).unref();
  }
}
