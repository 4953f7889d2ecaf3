/**
 * Removes from a stream what no node needs any more: each goes on from a message of the stream, its mark, and needs that
 * and all after it. A node that was not heard for too long, or has stopped, does not hold the stream for ever: it takes a
 * copy of another node's files when it comes back.
 *
 * Invariants:
 * - The mark of the node that trims, and of every node that is heard and goes on, stays in the stream.
 * - What is removed is in the own logs of two nodes, unless the database has one copy only.
 */
import type { ReplicatedStream, Replication, StreamBounds } from "../../engine/engine.ts";
import type { Log } from "../logging/log.ts";
import type { ReplicaReport } from "./cluster-view.ts";

/** Bytes that the stream keeps for nodes that are away. */
const absenceBytesMax = 16 * 1024 * 1024 * 1024;
/** Messages, and bytes, that stay though every node has them: a node that was restarted finds the last ones there. */
const marginCount = 1000;
const marginBytes = 16 * 1024 * 1024;
/** A removal of fewer messages is not worth it. */
const countMin = 500;
/** Messages since the own mark after which it is moved. */
const idleFramesMax = 5000;
/** Without a heartbeat for this long a node is away. */
const silentMs = 10_000;

/** A node that has, or should have, a copy. */
export interface TrimMember {
  /** 0: it has nothing yet, or nothing is known of it. */
  readonly mark: number;
  /** How long it has been away; 0: it is here and goes on. */
  readonly awayMs: number;
}

/**
 * The sequence below which everything may be removed; null: nothing worth it. Pure. @param own the mark of the leader
 * @param absenceMs how long a node may be away before the stream keeps nothing for it
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
  // Two nodes must have what is removed.
  const durable = marks[1] ?? own;
  const below = Math.min(own, durable, last - kept + 1, ...holders);
  return below - first >= removedMin ? below : null;
}

/** A database that this node leads, as the trim sees it. */
export interface TrimmedDatabase {
  readonly id: string;
  readonly name: string;
  readonly replication: Replication;
  /** Tags of the other nodes that have copies. */
  readonly others: readonly string[];
  readonly stream: ReplicatedStream;
}

export interface StreamTrimOptions {
  readonly absenceMs: number;
  readonly log: Log;
  /** What was heard last of the copy of a node, and how long ago. */
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
  /** When a copy of a node was last known to go on, by database and tag; since the start of this process at least. */
  readonly #seenMs = new Map<string, number>();

  constructor(options: StreamTrimOptions) {
    this.#options = options;
    this.#nowMs = options.nowMs ?? (() => performance.now());
  }

  /** Trims the streams of these databases, one after another. A failure is told, and left to the next time. */
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
   * Removes all that the nodes have in their own logs, without a margin: what the stream has of it is damaged.
   * @returns was anything removed? @throws EngineError
   */
  async purgeDamaged({ id, name, replication, others, stream }: TrimmedDatabase): Promise<boolean> {
    const extent = await stream.bounds();
    // The marks move only with something new; those of the others are heard, and so the next time.
    await replication.noteTrim(extent.first);
    const members = others.map((tag) => this.#member(tag, id));
    const own = replication.mark?.sequence ?? 0;
    const all = { marginMin: 0, removedMin: 1 };
    const below = planTrim(extent, own, members, this.#options.absenceMs, all);
    if (below === null) return false;
    await replication.confirm();
    await stream.purgeBelow(below);
    const { log } = this.#options;
    log.info(`The stream of ${name} begins at ${below} now, and ends at ${extent.last}`);
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
    // Only who leads knows that the marks are of this stream: not one that was replaced long ago.
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
