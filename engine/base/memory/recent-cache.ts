/**
 * A cache of values by text: the least recently used ones are dropped first. Callers determine its contents, so it is
 * bounded by the size of the values in bytes, not by their number.
 *
 * Invariants:
 * - The entries use at most `bytesMax` together, unless there is only one: the newest is retained whatever its size, so
 *   that a value in use is computed once.
 */

/** Bytes of an entry besides its key's text and its value. */
const entryBytes = 128;

interface Entry<Value> {
  readonly value: Value;
  readonly bytes: number;
}

export class RecentCache<Value> {
  readonly #bytesMax: number;
  /** Least recently used first: maps keep insertion order. */
  readonly #entries = new Map<string, Entry<Value>>();
  /** The most recently used entry, which need not be moved when it is used again. */
  #newest: Entry<Value> | undefined;
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Bytes of all entries. */
  get bytes(): number {
    return this.#bytes;
  }

  get(key: string): Value | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    if (entry !== this.#newest) {
      this.#entries.delete(key);
      this.#entries.set(key, entry);
      this.#newest = entry;
    }
    return entry.value;
  }

  /** @param bytes approximate size of the value */
  set(key: string, value: Value, bytes: number): void {
    this.#delete(key);
    const entry = { value, bytes: entryBytes + 2 * key.length + bytes };
    this.#entries.set(key, entry);
    this.#newest = entry;
    this.#bytes += entry.bytes;
    for (const oldest of this.#entries.keys()) {
      if (this.#bytes <= this.#bytesMax || this.#entries.size === 1) return;
      this.#delete(oldest);
    }
  }

  /** Yields all of them, the least recently used first. */
  *entries(): Generator<readonly [string, Value]> {
    for (const [key, { value }] of this.#entries) yield [key, value];
  }

  #delete(key: string): void {
    this.#bytes -= this.#entries.get(key)?.bytes ?? 0;
    this.#entries.delete(key);
  }
}
