/**
 * The durable values of a server that is a node of a cluster: those that all nodes must agree on are the cluster's, the
 * others its own.
 */
import { type DiskWrite, EngineError, type LogFigures } from "../../engine/engine.ts";
import { CommandIndex, commandBlockSize, commandIndexKey } from "../databases/command-index.ts";
import type { ValueStore } from "../settings/value-store.ts";
import type { ClusterView } from "./cluster-view.ts";

/** Beginnings of the keys that all nodes share. */
const sharedPrefixes = [
  "certificates/",
  "server/first-admin",
  "server/client-configuration",
  "server/command-index",
  "server/periodic-backups/",
  "server/backup-secrets/",
];

export class ClusterValues implements ValueStore {
  readonly #own: ValueStore;
  readonly #cluster: ClusterView;

  constructor(own: ValueStore, cluster: ClusterView) {
    this.#own = own;
    this.#cluster = cluster;
  }

  get(key: string): string | undefined {
    return isShared(key) ? this.#cluster.value(key) : this.#own.get(key);
  }

  async put(key: string, jsonText: string): Promise<void> {
    if (isShared(key)) await this.#cluster.change([{ key, value: jsonText }]);
    else await this.#own.put(key, jsonText);
  }

  async delete(key: string): Promise<void> {
    if (isShared(key)) await this.#cluster.change([{ key, value: null }]);
    else await this.#own.delete(key);
  }

  /** `prefix` is of shared keys, or of none. */
  entries(prefix: string): Iterable<[string, string]> {
    if (!isShared(prefix)) return this.#own.entries(prefix);
    return this.#cluster.values(prefix) as Iterable<[string, string]>;
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
export function clusterCommandIndex(cluster: ClusterView): CommandIndex {
  return new CommandIndex(async () => {
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
