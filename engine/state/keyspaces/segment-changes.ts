/**
 * The segments of time series that changed, by key, in the order in which that became visible: for indexes that map
 * series. A deleted segment is listed like a written one.
 *
 * A follower remembers how many changes it has seen. Nothing is recorded before the first follower, only a limited
 * number of the newest changes is retained, and nothing survives a restart: a follower with older progress compares the
 * etags of all segments with its own progress.
 *
 * Invariants:
 * - All changes but the first `forgotten` are listed.
 * - The list has at most `listMax` items.
 */
import type { EntryKeyspace } from "./entry-keyspace.ts";
import type { Segment } from "./time-series/series-segment.ts";

/** Changes that are kept, some megabytes. */
const listMax = 65_536;

export class SegmentChanges {
  /** The number of all changes since the first follower began. */
  count = 0;
  #forgotten = 0;
  #isFollowed = false;
  #keys: string[] = [];
  readonly #listMax: number;

  /** Listens to `segments`, which must be empty. */
  constructor(segments: EntryKeyspace<Segment>, keptMax = listMax) {
    this.#listMax = keptMax;
    segments.listen((key) => {
      if (this.#isFollowed) this.#note(key);
    });
  }

  /** Changes are recorded from now on. @returns `count` */
  follow(): number {
    this.#isFollowed = true;
    return this.count;
  }

  /**
   * Returns the keys of all changes except the first `seen`, some more than once; null if some of these are no longer
   * recorded. Nothing may be committed during the iteration.
   */
  since(seen: number): Iterable<string> | null {
    if (seen < this.#forgotten) return null;
    return keysFrom(this.#keys, seen - this.#forgotten);
  }

  #note(key: string): void {
    this.count++;
    this.#keys.push(key);
    if (this.#keys.length <= this.#listMax) return;
    const dropped = this.#keys.length >>> 1;
    this.#keys = this.#keys.slice(dropped);
    this.#forgotten += dropped;
  }
}

function* keysFrom(keys: readonly string[], from: number): Generator<string> {
  for (let at = from; at < keys.length; at++) yield keys[at] as string; // at < length
}
