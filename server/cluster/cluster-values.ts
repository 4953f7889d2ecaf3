/**
 * The durable values of a server that is a node of a cluster: those that all nodes must agree on are the cluster's, the
 * others its own. Until a node that had some before has brought them (cluster-bootstrap.ts), its own ones are in force.
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

  /** `prefix` is of shared keys, or of none. */
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

/** Is it a value that all nodes of a cluster share? */
export function isShared(key: string): boolean {
  return sharedPrefixes.some((prefix) => key.startsWith(prefix));
}

/** Numbers of commands that no other node gives, either. */
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
        // Another node was first.
        if (!(error instanceof EngineError) || error.code !== "concurrency") throw error;
      }
    }
  });
}
