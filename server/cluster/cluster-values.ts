/**
 * The durable values of a cluster node: shared values come from the cluster, all others from the node itself. Until the
 * cluster bootstrap, the node's own values apply (cluster-bootstrap.ts).
 */
import { type DiskWrite, EngineError, type LogFigures } from "../../engine/engine.ts";
import { CommandIndex, commandBlockSize, commandIndexKey } from "../databases/command-index.ts";
import type { ValueStore } from "../settings/value-store.ts";
import { type ClusterBootstrap, sharedPrefixes } from "./cluster-bootstrap.ts";
import type { ClusterView } from "./cluster-view.ts";

export class ClusterValues implements ValueStore {
  readonly #own: ValueStore;
  readonly #cluster: ClusterView;
  readonly #bootstrap: Pick<ClusterBootstrap, "isAlone" | "settled">;

  constructor(
    own: ValueStore,
    cluster: ClusterView,
    bootstrap: Pick<ClusterBootstrap, "isAlone" | "settled">,
  ) {
    this.#own = own;
    this.#cluster = cluster;
    this.#bootstrap = bootstrap;
  }

  get(key: string): string | undefined {
    if (!isShared(key)) return this.#own.get(key);
    const value = this.#cluster.value(key);
    return value === undefined && this.#bootstrap.isAlone ? this.#own.get(key) : value;
  }

  async put(key: string, jsonText: string): Promise<void> {
    if (isShared(key)) await this.#change(key, jsonText);
    else await this.#own.put(key, jsonText);
  }

  async delete(key: string): Promise<void> {
    if (isShared(key)) await this.#change(key, null);
    else await this.#own.delete(key);
  }

  async #change(key: string, value: string | null): Promise<void> {
    await this.#bootstrap.settled();
    await this.#cluster.change([{ key, value }]);
  }

  /** All keys with `prefix` must be shared, or none. */
  entries(prefix: string): Iterable<[string, string]> {
    if (!isShared(prefix)) return this.#own.entries(prefix);
    const shared = this.#cluster.values(prefix) as Iterable<[string, string]>;
    return this.#bootstrap.isAlone ? new Map([...this.#own.entries(prefix), ...shared]) : shared;
  }

  diskWrites(after: number): DiskWrite[] {
    return this.#own.diskWrites(after);
  }

  logFigures(): LogFigures {
    return this.#own.logFigures();
  }
}

/** Returns whether all nodes of a cluster share the value of this key. */
export function isShared(key: string): boolean {
  return sharedPrefixes.some((prefix) => key.startsWith(prefix));
}

/** Creates a command index whose numbers are unique in the cluster. */
export function clusterCommandIndex(
  cluster: ClusterView,
  bootstrap: Pick<ClusterBootstrap, "settled">,
): CommandIndex {
  return new CommandIndex(async () => {
    await bootstrap.settled();
    for (;;) {
      const text = cluster.value(commandIndexKey);
      const before = Number(text ?? "0");
      try {
        const value = String(before + commandBlockSize);
        await cluster.change([{ key: commandIndexKey, expected: text ?? null, value }]);
        return before;
      } catch (error) {
        // Another node has changed it first.
        if (!(error instanceof EngineError) || error.code !== "concurrency") throw error;
      }
    }
  });
}
