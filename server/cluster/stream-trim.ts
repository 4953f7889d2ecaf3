/**
 * Removes messages from a stream that no node needs. Each node resumes from a message of the stream, its mark, and needs
 * that message and all later ones. A node that has been silent too long, or has stopped, no longer holds back the trim:
 * when it returns, it fetches a copy of another node's files.
 *
 * Invariants:
 * - The marks of the trimming node and of every running node with heartbeats stay in the stream.
 * - Removed messages are in the logs of two nodes, unless the database has only one copy.
 */
import type { ReplicatedStream, Replication, StreamBounds } from "../../engine/engine.ts";
import type { Log } from "../logging/log.ts";
import type { ReplicaReport } from "./cluster-view.ts";

/** Maximum size of the messages that the stream retains for absent nodes, in bytes. */
const absenceBytesMax = 16 * 1024 * 1024 * 1024;
/** Number of messages, and bytes, that are retained even if every node has them, so that a restarted node finds the last ones. */
const marginCount = 1000;
const marginBytes = 16 * 1024 * 1024;
/** Minimum number of messages per removal. */
const countMin = 500;
/** Number of messages after its own mark at which a node moves the mark. */
const idleFramesMax = 5000;
/** Time without a heartbeat after which a node is absent, in milliseconds. */
const silentMs = 10_000;

/** A node that has a copy, or is to have one. */
interface TrimMember {
  /** 0 if it has nothing yet, or its mark is not known. */
  readonly mark: number;
  /** Time of absence, in milliseconds; 0 if it is running. */
  readonly awayMs: number;
}

/**
 * Returns the sequence below which everything may be removed, or null if a removal is not worthwhile. Pure.
 * @param own the mark of the leader
 * @param absenceMs maximum absence for which the stream retains messages for a node
 */
export function planTrim(
  { first, last, bytes }: StreamBounds,
  own: number,
  others: readonly TrimMember[],
  absenceMs: number,
  { marginMin = marginCount, removedMin = countMin } = {},
): number | null {
  const count = last - first + 1;
  if (count <= 0 || own === 0) return null;
  const bytesEach = Math.max(1, bytes / count);
  const bytesAfter = (mark: number) => (last - Math.max(mark, first)) * bytesEach;
  const isHolding = ({ mark, awayMs }: TrimMember) =>
    awayMs === 0 || (awayMs <= absenceMs && bytesAfter(mark) <= absenceBytesMax);
  const holders = others.filter(isHolding).map(({ mark }) => mark);
  const marks = [own, ...others.map(({ mark }) => mark)].sort((one, other) => other - one);
  const margin = Math.max(marginMin, Math.ceil(marginBytes / bytesEach));
  const kept = marginMin === 0 ? 0 : margin;
  // Two nodes must have the removed messages.
  const durable = marks[1] ?? own;
  const below = Math.min(own, durable, last - kept + 1, ...holders);
  return below - first >= removedMin ? below : null;
}

/** A database that this node leads. */
export interface TrimmedDatabase {
  readonly id: string;
  readonly name: string;
  readonly replication: Replication;
  /** Tags of the other nodes with copies. */
  readonly others: readonly string[];
  readonly stream: ReplicatedStream;
}

interface StreamTrimOptions {
  readonly absenceMs: number;
  readonly log: Log;
  /** Returns the last report of a node's copy, and its age. */
  readonly lastHeartbeat: (
    tag: string,
    id: string,
  ) => { readonly ageMs: number; readonly replica: ReplicaReport } | undefined;
  /** Monotonic milliseconds. */
  readonly nowMs?: () => number;
}

export class StreamTrim {
  readonly #options: StreamTrimOptions;
  readonly #nowMs: () => number;
  /** Last time at which a node's copy was running, by database and tag; not before the start of this process. */
  readonly #seenMs = new Map<string, number>();

  constructor(options: StreamTrimOptions) {
    this.#options = options;
    this.#nowMs = options.nowMs ?? (() => performance.now());
  }

  /** Trims the streams of these databases one by one. Failures are logged; the next run retries them. */
  async run(databases: readonly TrimmedDatabase[], isEnding = () => false): Promise<void> {
    const known = new Set(databases.flatMap(({ id, others }) => others.map((tag) => id + tag)));
    for (const key of this.#seenMs.keys()) if (!known.has(key)) this.#seenMs.delete(key);
    for (const one of databases) {
      if (isEnding()) return;
      try {
        await this.#trim(one);
      } catch (error) {
        const { log } = this.#options;
        log.write("Warn", `The stream of ${one.name} was not trimmed`, undefined, error);
      }
    }
  }

  /**
   * Removes all messages that the logs of the nodes contain, without a margin, because the stream's copy of them is damaged.
   * @returns whether anything was removed @throws EngineError
   */
  async purgeDamaged({ id, name, replication, others, stream }: TrimmedDatabase): Promise<boolean> {
    const extent = await stream.bounds();
    // Marks move only with new messages. The new marks of other nodes are known at the next run.
    await replication.noteTrim(extent.first);
    const members = others.map((tag) => this.#member(tag, id));
    const own = replication.mark?.sequence ?? 0;
    const all = { marginMin: 0, removedMin: 1 };
    const below = planTrim(extent, own, members, this.#options.absenceMs, all);
    if (below === null) return false;
    await replication.confirm();
    await stream.purgeBelow(below);
    const { log } = this.#options;
    log.info(`The stream of ${name} now begins at ${below} and ends at ${extent.last}`);
    return true;
  }

  async #trim({ id, name, replication, others, stream }: TrimmedDatabase): Promise<void> {
    const members = others.map((tag) => this.#member(tag, id));
    const extent = await stream.bounds();
    const own = replication.mark?.sequence ?? 0;
    const below = planTrim(extent, own, members, this.#options.absenceMs);
    if (below === null) {
      if (extent.last - own > idleFramesMax) await replication.noteTrim(extent.first);
      return;
    }
    // Only the leader knows that the marks belong to this stream, and not to one that it replaced.
    await replication.confirm();
    await stream.purgeBelow(below);
    const removed = below - extent.first;
    this.#options.log.info(
      `${removed} messages of the stream of ${name} were removed, up to ${below - 1} of ${extent.last}`,
    );
  }

  #member(tag: string, id: string): TrimMember {
    const key = id + tag;
    const nowMs = this.#nowMs();
    const found = this.#options.lastHeartbeat(tag, id);
    const goesOn =
      found !== undefined && found.ageMs <= silentMs && found.replica.role !== "stopped";
    if (goesOn || !this.#seenMs.has(key)) this.#seenMs.set(key, nowMs);
    const mark = found?.replica.mark ?? 0;
    return { mark, awayMs: goesOn ? 0 : Math.max(1, nowMs - (this.#seenMs.get(key) ?? nowMs)) };
  }
}
