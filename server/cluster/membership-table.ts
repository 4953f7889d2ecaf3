/** What was heard last of the other nodes. Hints: nothing durable depends on them. */
import type { ClusterMember, ReceivedHeartbeat } from "./cluster-view.ts";
import type { NodeStatus } from "./heartbeats.ts";
import { decodeStatus, type StatusOfNode } from "./node-status.ts";

/** After this long without a heartbeat a node is not thought to be there. */
const silentMs = 3000;

interface Heard {
  readonly status: StatusOfNode;
  /** By the clock of this process that never jumps. */
  readonly atMs: number;
}

export class MembershipTable {
  readonly #heard = new Map<string, Heard>();

  /** Takes a heartbeat. @returns what it says; null: it is not understood */
  hear(tag: string, sent: NodeStatus): StatusOfNode | null {
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

  /** Those that are there now. */
  present(): ClusterMember[] {
    return this.#recent().map(({ status }) => status.member);
  }

  /** Who of `members` says that it leads, as of the newest epoch; null: nobody. */
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

  /** The last message of the stream that the node's log has. */
  appliedBy(tag: string, id: string): number {
    return this.#heard.get(tag)?.status.databases.get(id)?.applied ?? 0;
  }

  /** Does a node that is there wait for others to have more? */
  get isWaitedFor(): boolean {
    return this.#recent().some(({ status }) => status.isWaiting);
  }

  /** Has any node something of this database? */
  isKnown(id: string): boolean {
    return [...this.#heard.keys()].some((tag) => this.appliedBy(tag, id) > 0);
  }

  #recent(): Heard[] {
    const nowMs = performance.now();
    return [...this.#heard.values()].filter(({ atMs }) => nowMs - atMs < silentMs);
  }
}
