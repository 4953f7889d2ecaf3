/**
 * How much of each database clients of this node have been shown by copies of other nodes: a copy that shows less does not
 * answer them, so that what one of them reads does not go back.
 *
 *   1f…9a/1/4711   the id of the database, the generation of its stream, the last message of it that a copy shows
 *
 * Invariants:
 * - A place only grows. All copies number the messages alike, and a new leader has all that the one before has shown.
 * - What clients were shown before this node was started is not known, until a leader that is heard says what it shows:
 *   that is at least as much.
 */
import type { ClusterDatabase } from "./cluster-view.ts";

/** A database and the stream that it has now. */
export type StreamName = Pick<ClusterDatabase, "id" | "generation">;

const pattern = /^([0-9a-f]{32}\/\d{1,15})\/(\d{1,15})$/;

/** Tells another node how much the copy that answers it shows. */
export function positionOfReply(stream: StreamName, visible: number): string {
  return `${keyOf(stream)}/${visible}`;
}

export class ReplicaPositions {
  readonly #sequences = new Map<string, number>();
  /** Streams of which a leader was heard. */
  readonly #known = new Set<string>();

  /** Infinite: it is not known. */
  of(stream: StreamName): number {
    const key = keyOf(stream);
    return this.#known.has(key) ? (this.#sequences.get(key) ?? 0) : Number.POSITIVE_INFINITY;
  }

  /** Notes what a copy of this node has shown. */
  shown(stream: StreamName, sequence: number): void {
    this.#raise(keyOf(stream), sequence);
  }

  /** Takes what another node has told with a reply. What is not in that form is ignored. */
  told(place: string): void {
    const [, key, sequence] = pattern.exec(place) ?? [];
    if (key !== undefined) this.#raise(key, Number(sequence));
  }

  /** Takes what the node that leads has said since this one was started. */
  heard(stream: StreamName, sequence: number): void {
    const key = keyOf(stream);
    if (this.#known.has(key)) return;
    this.#known.add(key);
    this.#raise(key, sequence);
  }

  /** Forgets all but these. */
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
