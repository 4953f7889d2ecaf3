/**
 * Positions of each database that copies on other nodes have shown to clients of this node. A copy at an earlier position
 * does not answer them, so that the reads of a client never go backwards.
 *
 *   1f…9a/1/4711   database id, generation of its stream, last message of the stream that the copy shows
 *
 * Invariants:
 * - A position only grows. All copies number the messages alike, and a new leader has everything that the old one has shown.
 * - Positions shown before this node's start are unknown until the leader reports its own position, which is not lower.
 */
import type { ClusterDatabase } from "./cluster-view.ts";

/** A database and its current stream. */
type StreamName = Pick<ClusterDatabase, "id" | "generation">;

const pattern = /^([0-9a-f]{32}\/\d{1,15})\/(\d{1,15})$/;

/** Encodes the position of the copy that answers a request of another node. */
export function positionOfReply(stream: StreamName, visible: number): string {
  return `${keyOf(stream)}/${visible}`;
}

export class ReplicaPositions {
  readonly #sequences = new Map<string, number>();
  /** Streams whose leader has reported its position. */
  readonly #known = new Set<string>();

  /** Returns the minimum position for reads, or infinity if it is not known. */
  of(stream: StreamName): number {
    const key = keyOf(stream);
    return this.#known.has(key) ? (this.#sequences.get(key) ?? 0) : Number.POSITIVE_INFINITY;
  }

  /** Records the position of a local copy that answered. */
  record(stream: StreamName, sequence: number): void {
    this.#raise(keyOf(stream), sequence);
  }

  /** Records the position in another node's reply. Invalid text is ignored. */
  recordReply(position: string): void {
    const [, key, sequence] = pattern.exec(position) ?? [];
    if (key !== undefined) this.#raise(key, Number(sequence));
  }

  /** Records the first position that the leader has reported since the start. */
  recordLeader(stream: StreamName, sequence: number): void {
    const key = keyOf(stream);
    if (this.#known.has(key)) return;
    this.#known.add(key);
    this.#raise(key, sequence);
  }

  /** Removes all other streams. */
  keep(streams: Iterable<StreamName>): void {
    const kept = new Set([...streams].map(keyOf));
    for (const key of this.#sequences.keys()) if (!kept.has(key)) this.#sequences.delete(key);
    for (const key of this.#known) if (!kept.has(key)) this.#known.delete(key);
  }

  #raise(key: string, sequence: number): void {
    if (sequence > (this.#sequences.get(key) ?? 0)) this.#sequences.set(key, sequence);
  }
}

function keyOf({ id, generation }: StreamName): string {
  return `${id}/${generation}`;
}
