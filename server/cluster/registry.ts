/**
 * What the nodes of a cluster have agreed on, as values by key: its nodes, its databases and what was deleted. Reads the
 * values once for each change of them.
 *
 *     cluster/topology-id         the GUID of the cluster
 *     cluster/members/A           a node
 *     cluster/removed/B           a node that was removed, and comes back only when it is added
 *     cluster/databases/shop      a database, by its name in lower case
 *     cluster/founding            who has brought databases and certificates to it: see cluster-bootstrap.ts
 *     cluster/deleted/<id>        a database that was deleted: its copies are removed wherever they are found
 */
import { foldedName } from "../../engine/base/case-folding.ts";
import type { ClusterDatabase, ClusterMember } from "./cluster-view.ts";

/** Of the values, in every cluster. 32 hexadecimal digits, as of any database. */
export const sharedValuesId = Buffer.from("jackdaw-cluster\n").toString("hex");

export const topologyIdKey = "cluster/topology-id";
export const bootstrapKey = "cluster/founding";
const memberPrefix = "cluster/members/";
const removedPrefix = "cluster/removed/";
const databasePrefix = "cluster/databases/";
const deletedPrefix = "cluster/deleted/";

export const memberKey = (tag: string) => memberPrefix + tag;
export const removedKey = (tag: string) => removedPrefix + tag;
export const databaseKey = (name: string) => databasePrefix + foldedName(name);
export const deletedKey = (id: string) => deletedPrefix + id;

/** The values that it reads. */
export interface RegistryValues {
  get(key: string): unknown;
  entries(prefix: string): Iterable<readonly [string, unknown]>;
}

/** What a node has brought to the cluster that it had before: see cluster-bootstrap.ts. */
export interface BootstrapRecord {
  /** Has nobody yet, so that somebody may? */
  readonly isOpen: boolean;
  /** The node that has; null: none. */
  readonly tag: string | null;
  /** Names of its databases that are not registered yet. */
  readonly databases: readonly string[];
}

/** A database that was deleted. */
export interface DeletedDatabase {
  readonly name: string;
  readonly generation: number;
  /** Was its stream removed, too? Left out: not yet. */
  readonly isTidied?: boolean;
}

export class Registry {
  readonly topologyId: string | null;
  /** Null: the cluster is older than that it could be founded so. */
  readonly bootstrap: BootstrapRecord | null;
  /** By tag, in their order. */
  readonly members: ReadonlyMap<string, ClusterMember>;
  /** Tags of nodes that were removed. */
  readonly removed: ReadonlySet<string>;
  /** By name in lower case. */
  readonly databases: ReadonlyMap<string, ClusterDatabase>;
  /** By id. */
  readonly deleted: ReadonlyMap<string, DeletedDatabase>;

  constructor(values: RegistryValues) {
    const read = <Value>(prefix: string): Map<string, Value> => {
      const found = new Map<string, Value>();
      // Only nodes of the cluster write these, all in the same form.
      for (const [key, value] of values.entries(prefix)) {
        found.set(key.slice(prefix.length), value as Value);
      }
      return found;
    };
    this.topologyId = (values.get(topologyIdKey) as string | undefined) ?? null;
    this.bootstrap = (values.get(bootstrapKey) as BootstrapRecord | undefined) ?? null;
    this.members = read<ClusterMember>(memberPrefix);
    this.removed = new Set(read<unknown>(removedPrefix).keys());
    this.databases = read<ClusterDatabase>(databasePrefix);
    this.deleted = read<DeletedDatabase>(deletedPrefix);
  }
}

export function isSameMember(one: ClusterMember, other: ClusterMember): boolean {
  return (
    one.url === other.url && one.tcpUrl === other.tcpUrl && one.fingerprint === other.fingerprint
  );
}
