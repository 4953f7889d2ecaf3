/**
 * The index of administrative commands: a number that grows with each command and is never reused, even across restarts.
 * Clients know it as RaftCommandIndex. In a cluster, each node reserves blocks of numbers from a shared value.
 */
import type { ValueStore } from "../settings/value-store.ts";

export const commandIndexKey = "server/command-index";
/** Number of indexes reserved by one durable write. */
export const commandBlockSize = 256;

/** Reserves a block of numbers durably. @returns the number before its first */
type Reserve = () => Promise<number>;

export class CommandIndex {
  readonly #reserve: Reserve;
  #last = 0;
  #end = 0;
  #reserving: Promise<void> | null = null;

  constructor(reserve: Reserve) {
    this.#reserve = reserve;
  }

  /** Creates the index of a single node. */
  static of(values: ValueStore): CommandIndex {
    let end = Number(values.get(commandIndexKey) ?? "0");
    return new CommandIndex(async () => {
      const before = end;
      end += commandBlockSize;
      await values.put(commandIndexKey, String(end));
      return before;
    });
  }

  /** Last index returned by this process, or 0. */
  get last(): number {
    return this.#last;
  }

  /** Returns the next index. Resolves once no later start can return it again. */
  async next(): Promise<number> {
    while (this.#last >= this.#end) {
      this.#reserving ??= this.#takeBlock().finally(() => {
        this.#reserving = null;
      });
      await this.#reserving;
    }
    this.#last += 1;
    return this.#last;
  }

  async #takeBlock(): Promise<void> {
    const before = await this.#reserve();
    this.#last = before;
    this.#end = before + commandBlockSize;
  }
}
