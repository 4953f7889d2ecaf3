/**
 * Cluster bootstrap. A server may have databases, registered certificates, and settings before it joins a cluster. The
 * first node of a new cluster that has any of these imports its certificates and settings into the shared values, and
 * lists its databases, which are then adopted one by one (adoption.ts). Nodes that join later with data of their own
 * import nothing by themselves.
 *
 *     cluster/founding     {"isOpen":true, "tag":null, "databases":[]}       new cluster, nothing imported yet
 *                          {"isOpen":false,"tag":"A", "databases":["shop"]}  node A has imported; shop is not adopted yet
 *                          {"isOpen":false,"tag":null,"databases":[]}        a database was created before any import
 *
 * Invariants:
 * - The bootstrap is one change: the certificates and settings apply to the cluster from that change on.
 * - Before it, a node that may import uses its own certificates and settings; after it, those of the cluster.
 * - The names of databases that are not adopted yet are taken.
 */
import { setTimeout as pause } from "node:timers/promises";
import { EngineError } from "../../engine/engine.ts";
import type { Log } from "../logging/log.ts";
import type { ValueStore } from "../settings/value-store.ts";
import type { ValueChange } from "./cluster-view.ts";
import type { BootstrapRecord, Registry } from "./registry.ts";
import { bootstrapKey } from "./registry.ts";

/** Key prefixes of the values that all nodes share. */
export const sharedPrefixes = [
  "certificates/",
  "server/first-admin",
  "server/client-configuration",
  "server/command-index",
  "server/periodic-backups/",
  "server/backup-secrets/",
] as const;

const certificatePrefix = "certificates/";
const firstAdminKey = "server/first-admin";
const commandIndexKey = "server/command-index";
const settleMs = 15_000;
const pollMs = 100;

/** Bootstrap record of a new cluster. */
export const openBootstrap: BootstrapRecord = { isOpen: true, tag: null, databases: [] };

interface ClusterBootstrapOptions {
  readonly tag: string;
  readonly registry: () => Registry;
  /** Values of the cluster, as JSON text. */
  readonly shared: {
    readonly get: (key: string) => string | undefined;
    readonly entries: (prefix: string) => Iterable<readonly [string, string]>;
  };
  /** Values of this node alone. */
  readonly own: () => ValueStore;
  /** Names of the standalone databases of this node. */
  readonly ownDatabases: () => readonly string[];
  readonly change: (changes: readonly ValueChange[]) => Promise<unknown>;
  readonly log: Log;
}

export class ClusterBootstrap {
  readonly #options: ClusterBootstrapOptions;
  #hasCleared = false;
  #hasLoggedSkipped = false;

  constructor(options: ClusterBootstrapOptions) {
    this.#options = options;
  }

  /** Whether this node may still import its data. Its own values then apply where the cluster has no value. */
  get isAlone(): boolean {
    const { topologyId, bootstrap, databases } = this.#options.registry();
    const isNew = topologyId === null || (bootstrap?.isOpen === true && databases.size === 0);
    return isNew && this.#hasData();
  }

  /** Runs the bootstrap if this node has to. @throws EngineError not-leader, outcome-unknown, … */
  async work(): Promise<void> {
    const { tag, registry } = this.#options;
    const { bootstrap, topologyId } = registry();
    if (topologyId === null || bootstrap === null) return;
    if (bootstrap.isOpen && this.isAlone) await this.#import(bootstrap);
    else if (bootstrap.tag === tag && !this.#hasCleared) await this.#clear();
    else if (bootstrap.tag !== tag && !this.#hasLoggedSkipped) this.#logSkipped();
  }

  /** Waits until this node has imported its values. Called before a shared value changes here. @throws EngineError stream-unavailable */
  async settled(): Promise<void> {
    const untilMs = performance.now() + settleMs;
    while (this.isAlone) {
      await this.work().catch(() => undefined);
      if (!this.isAlone) return;
      if (performance.now() > untilMs) {
        throw new EngineError(
          "stream-unavailable",
          "This node is joining a cluster, and most of its nodes are not available yet, so shared values cannot be changed. Start the other nodes, or start this one without its Cluster settings.",
        );
      }
      await pause(pollMs);
    }
  }

  /** Returns whether this node has more than every new server creates for itself. */
  #hasData(): boolean {
    const { own, ownDatabases } = this.#options;
    if (ownDatabases().length > 0) return true;
    const admin = own().get(firstAdminKey);
    for (const [, text] of own().entries(certificatePrefix)) {
      const { Thumbprint } = JSON.parse(text) as { readonly Thumbprint: string };
      if (JSON.stringify(Thumbprint) !== admin) return true;
    }
    return false;
  }

  async #import(before: BootstrapRecord): Promise<void> {
    const { tag, change, ownDatabases, log } = this.#options;
    const databases = ownDatabases();
    const after: BootstrapRecord = { isOpen: false, tag, databases };
    const values = this.#importedValues();
    await change([
      { key: bootstrapKey, expected: JSON.stringify(before), value: JSON.stringify(after) },
      ...values,
    ]);
    const names =
      databases.length === 0 ? "" : `, and will import its databases: ${databases.join(", ")}`;
    log.info(`This node has bootstrapped the cluster with its certificates and settings${names}`);
  }

  /** Returns the changes to import. Values of the cluster are kept, except the administrator that a new node has registered. */
  #importedValues(): ValueChange[] {
    const { own, shared } = this.#options;
    const changes: ValueChange[] = [];
    const hasCertificates = [...own().entries(certificatePrefix)].length > 0;
    for (const prefix of sharedPrefixes) {
      for (const [key, value] of own().entries(prefix)) {
        const known = shared.get(key);
        if (key === firstAdminKey) continue;
        if (key !== commandIndexKey && known !== undefined) continue;
        if (key === commandIndexKey && Number(known ?? "0") >= Number(value)) continue;
        changes.push({ key, expected: known ?? null, value });
      }
    }
    if (!hasCertificates) return changes;
    const made = shared.get(firstAdminKey);
    // Even if this server has no first administrator, the other nodes must not register one from now on.
    const admin = own().get(firstAdminKey) ?? JSON.stringify("");
    changes.push({ key: firstAdminKey, expected: made ?? null, value: admin });
    if (made !== undefined && made !== admin) {
      const key = certificatePrefix + String(JSON.parse(made));
      if (own().get(key) === undefined) changes.push({ key, value: null });
    }
    return changes;
  }

  /** Deletes the imported values of this node, which would apply again if it became a single node. */
  async #clear(): Promise<void> {
    const own = this.#options.own();
    for (const prefix of sharedPrefixes) {
      for (const [key] of [...own.entries(prefix)]) await own.delete(key);
    }
    this.#hasCleared = true;
  }

  #logSkipped(): void {
    const { ownDatabases, log } = this.#options;
    this.#hasLoggedSkipped = true;
    const names = ownDatabases();
    if (names.length === 0) return;
    log.warn(
      `Databases of this node alone, which the cluster bootstrap did not include: ${names.join(", ")}. To move one into the cluster: jackdaw cluster adopt NAME. Certificates that were registered on this node alone have no rights`,
    );
  }
}
