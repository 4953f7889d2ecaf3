/**
 * What a server had before it was a node of a cluster: databases, registered certificates, settings. The first node of a
 * new cluster that has any of it founds the cluster: it brings the certificates and settings to the values that all nodes
 * share, and its databases, which are then adopted one after another (adoption.ts). Nodes that come with data later bring
 * nothing by themselves.
 *
 *     cluster/founding     {"isOpen":true, "tag":null, "databases":[]}       nobody has yet: of a new cluster only
 *                          {"isOpen":false,"tag":"A", "databases":["shop"]}  A has; of its databases, shop is not adopted yet
 *                          {"isOpen":false,"tag":null,"databases":[]}        the cluster had a database before anybody did
 *
 * Invariants:
 * - BootstrapRecord is one change: the certificates and settings are those of the cluster when it is made, and not before.
 * - Until then, a node that may found the cluster lets in whom it let in before; from then on the cluster decides.
 * - The names of databases that are brought are taken.
 */
import { setTimeout as pause } from "node:timers/promises";
import { EngineError } from "../../engine/engine.ts";
import type { Log } from "../logging/log.ts";
import type { ValueStore } from "../settings/value-store.ts";
import type { ValueChange } from "./cluster-view.ts";
import type { BootstrapRecord, Registry } from "./registry.ts";
import { bootstrapKey } from "./registry.ts";

/** Beginnings of the keys that all nodes share. */
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

/** Of a new cluster. */
export const openBootstrap: BootstrapRecord = { isOpen: true, tag: null, databases: [] };

export interface ClusterBootstrapOptions {
  readonly tag: string;
  readonly registry: () => Registry;
  /** Values of the cluster, as text. */
  readonly shared: {
    readonly get: (key: string) => string | undefined;
    readonly entries: (prefix: string) => Iterable<readonly [string, string]>;
  };
  /** Of this node alone. */
  readonly own: () => ValueStore;
  /** Databases of this node alone. */
  readonly ownDatabases: () => readonly string[];
  readonly change: (changes: readonly ValueChange[]) => Promise<unknown>;
  readonly log: Log;
}

export class ClusterBootstrap {
  readonly #options: ClusterBootstrapOptions;
  #hasCleared = false;
  #hasTold = false;

  constructor(options: ClusterBootstrapOptions) {
    this.#options = options;
  }

  /** May this node bring what it has? Its own values are then in force where the cluster has none. */
  get isAlone(): boolean {
    const { topologyId, bootstrap, databases } = this.#options.registry();
    const isNew = topologyId === null || (bootstrap?.isOpen === true && databases.size === 0);
    return isNew && this.#brings();
  }

  /** Founds the cluster, if that is for this node to do. @throws EngineError not-leader, outcome-unknown, … */
  async work(): Promise<void> {
    const { tag, registry } = this.#options;
    const { bootstrap, topologyId } = registry();
    if (topologyId === null || bootstrap === null) return;
    if (bootstrap.isOpen && this.isAlone) await this.#found(bootstrap);
    else if (bootstrap.tag === tag && !this.#hasCleared) await this.#clear();
    else if (bootstrap.tag !== tag && !this.#hasTold) this.#tell();
  }

  /** Before a shared value is changed here: waits until the own ones are brought. @throws EngineError stream-unavailable */
  async settled(): Promise<void> {
    const untilMs = performance.now() + settleMs;
    while (this.isAlone) {
      await this.work().catch(() => undefined);
      if (!this.isAlone) return;
      if (performance.now() > untilMs) {
        throw new EngineError(
          "stream-unavailable",
          "This node is becoming one of a cluster, and most of the nodes are not there yet: nothing that they share is changed. Start the others, or start this one without its Cluster settings.",
        );
      }
      await pause(pollMs);
    }
  }

  /** More than what every new server makes for itself? */
  #brings(): boolean {
    const { own, ownDatabases } = this.#options;
    if (ownDatabases().length > 0) return true;
    const admin = own().get(firstAdminKey);
    for (const [, text] of own().entries(certificatePrefix)) {
      const { Thumbprint } = JSON.parse(text) as { readonly Thumbprint: string };
      if (JSON.stringify(Thumbprint) !== admin) return true;
    }
    return false;
  }

  async #found(before: BootstrapRecord): Promise<void> {
    const { tag, change, ownDatabases, log } = this.#options;
    const databases = ownDatabases();
    const after: BootstrapRecord = { isOpen: false, tag, databases };
    const values = this.#brought();
    await change([
      { key: bootstrapKey, expected: JSON.stringify(before), value: JSON.stringify(after) },
      ...values,
    ]);
    const names =
      databases.length === 0 ? "" : `, and will bring its databases: ${databases.join(", ")}`;
    log.info(`This node has founded the cluster with its certificates and settings${names}`);
  }

  /** What the cluster has already stays, but for the administrator that a new node has made for itself. */
  #brought(): ValueChange[] {
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
    // Whether this server had one or not, the other nodes register none from now on.
    const admin = own().get(firstAdminKey) ?? JSON.stringify("");
    changes.push({ key: firstAdminKey, expected: made ?? null, value: admin });
    if (made !== undefined && made !== admin) {
      const key = certificatePrefix + String(JSON.parse(made));
      if (own().get(key) === undefined) changes.push({ key, value: null });
    }
    return changes;
  }

  /** The cluster has them: an own one would be in force again, were this ever a single node. */
  async #clear(): Promise<void> {
    const own = this.#options.own();
    for (const prefix of sharedPrefixes) {
      for (const [key] of [...own.entries(prefix)]) await own.delete(key);
    }
    this.#hasCleared = true;
  }

  #tell(): void {
    const { ownDatabases, log } = this.#options;
    this.#hasTold = true;
    const names = ownDatabases();
    if (names.length === 0) return;
    log.warn(
      `Databases of this node alone, which the cluster was not founded with: ${names.join(", ")}. To give them to the cluster: jackdaw cluster adopt NAME. Certificates that were registered on this node alone have no rights`,
    );
  }
}
