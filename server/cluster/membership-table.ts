/** The last heartbeats of the other nodes. Hints: no durable decision depends on them. */
import type { ClusterMember, ReceivedHeartbeat } from "./cluster-view.ts";
import type { NodeStatus } from "./heartbeats.ts";
import { decodeStatus, type StatusOfNode } from "./node-status.ts";

/** Time without a heartbeat after which a node counts as absent, in milliseconds. */
const silentMs = 3000;
/** Maximum number of nodes; heartbeats of others are dropped. */
const nodeCountMax = 100;

interface Heard {
  readonly status: StatusOfNode;
  /** Time of receipt, on the monotonic clock. */
  readonly atMs: number;
}

export class MembershipTable {
  readonly #heard = new Map<string, Heard>();

  /** Records a heartbeat. @returns its status, or null if it cannot be decoded, or there are too many nodes */
  record(tag: string, sent: NodeStatus): StatusOfNode | null {
    if (!this.#heard.has(tag) && this.#heard.size >= nodeCountMax) return null;
    const status = decodeStatus(tag, sent);
    if (status !== null) this.#heard.set(tag, { status, atMs: performance.now() });
    return status;
  }

  of(tag: string): ReceivedHeartbeat | undefined {
    const found = this.#heard.get(tag);
    if (found === undefined) return undefined;
    const { version, databases } = found.status;
    return { ageMs: performance.now() - found.atMs, version, databases };
  }

  /** Returns the nodes with recent heartbeats. */
  present(): ClusterMember[] {
    return this.#recent().map(({ status }) => status.member);
  }

  /** Returns the member that reports leadership in the newest epoch, or null. */
  leaderOf(id: string, members: readonly string[]): string | null {
    let found: string | null = null;
    let newest = -1;
    for (const { status } of this.#recent()) {
      const { tag } = status.member;
      const report = status.databases.get(id);
      if (report?.role !== "leader" || !members.includes(tag)) continue;
      if (report.epoch <= newest) continue;
      newest = report.epoch;
      found = tag;
    }
    return found;
  }

  epochOf(id: string): number {
    const epochs = [...this.#heard.values()].map(({ status }) => status.databases.get(id)?.epoch);
    return Math.max(0, ...epochs.map((epoch) => epoch ?? 0));
  }

  /** Returns the last message of the stream in the node's log. */
  appliedBy(tag: string, id: string): number {
    return this.#heard.get(tag)?.status.databases.get(id)?.applied ?? 0;
  }

  /** Whether any present node waits for the progress of others. */
  get isWaitedFor(): boolean {
    return this.#recent().some(({ status }) => status.isWaiting);
  }

  /** Returns whether any node has messages of this database. */
  isKnown(id: string): boolean {
    return [...this.#heard.keys()].some((tag) => this.appliedBy(tag, id) > 0);
  }

  #recent(): Heard[] {
    const nowMs = performance.now();
    return [...this.#heard.values()].filter(({ atMs }) => nowMs - atMs < silentMs);
  }
}
