/**
 * The registry of a cluster: nodes, databases, and deleted databases, as shared values by key. It reads the values once
 * after each change.
 *
 *     cluster/topology-id         the GUID of the cluster
 *     cluster/members/A           a node
 *     cluster/removed/B           a removed node, which rejoins only if it is added
 *     cluster/databases/shop      a database, by its name in lower case
 *     cluster/founding            the bootstrap record: see cluster-bootstrap.ts
 *     cluster/deleted/<id>        a deleted database, whose copies are removed on all nodes
 */
import { foldedName } from "../../engine/base/case-folding.ts";
import type { ClusterDatabase, ClusterMember } from "./cluster-view.ts";

/** Database id of the shared values in every cluster: 32 hexadecimal digits, as for any database. */
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

/** The values that the registry reads. */
interface RegistryValues {
  get(key: string): unknown;
  entries(prefix: string): Iterable<readonly [string, unknown]>;
}

/** The state of the cluster bootstrap: see cluster-bootstrap.ts. */
export interface BootstrapRecord {
  /** Whether no node has imported its data yet. */
  readonly isOpen: boolean;
  /** Tag of the node that has imported its data, or null. */
  readonly tag: string | null;
  /** Names of its databases that are not adopted yet. */
  readonly databases: readonly string[];
}

/** A deleted database. */
interface DeletedDatabase {
  readonly name: string;
  readonly generation: number;
  /** Whether its stream was removed. Omitted means no. */
  readonly isTidied?: boolean;
}

export class Registry {
  readonly topologyId: string | null;
  /** Null in a cluster that was created before bootstrap records existed. */
  readonly bootstrap: BootstrapRecord | null;
  /** Ordered by tag. */
  readonly members: ReadonlyMap<string, ClusterMember>;
  /** Tags of removed nodes. */
  readonly removed: ReadonlySet<string>;
  /** By folded name. */
  readonly databases: ReadonlyMap<string, ClusterDatabase>;
  /** By id. */
  readonly deleted: ReadonlyMap<string, DeletedDatabase>;

  constructor(values: RegistryValues) {
    const read = <Value>(prefix: string): Map<string, Value> => {
      const found = new Map<string, Value>();
      // Only nodes of the cluster write these values, all in the same format.
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
