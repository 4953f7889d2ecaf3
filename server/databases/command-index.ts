/**
 * The index of administrative commands: a number that grows with each command and is never reused, across restarts
 * either. Clients know it as RaftCommandIndex.
 */
import type { ValueStore } from "../settings/value-store.ts";

const key = "server/command-index";
/** Numbers reserved by one durable write. */
const blockSize = 256;

export class CommandIndex {
  readonly #values: ValueStore;
  #last: number;
  #reserved: number;

  constructor(values: ValueStore) {
    this.#values = values;
    this.#reserved = Number(values.get(key) ?? "0");
    this.#last = this.#reserved;
  }

  /** The last that was given out, or that may have been before this start. */
  get last(): number {
    return this.#last;
  }

  /** The next index. Resolves once no later start can return it again. */
  async next(): Promise<number> {
    this.#last += 1;
    const index = this.#last;
    if (index > this.#reserved) {
      this.#reserved = index + blockSize;
      await this.#values.put(key, String(this.#reserved));
    }
    return index;
  }
}
