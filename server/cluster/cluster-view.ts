/**
 * What the rest of the server sees of a cluster: who its nodes are, where each database is and who leads it, and how its
 * durable values are changed. Implemented by `Cluster`; a single node has none.
 */
import type { Database } from "../../engine/engine.ts";
import type { ClusterHealth } from "./cluster-health.ts";

/** A node as the cluster has registered it, durably. */
export interface ClusterMember {
  /** `A` to `ZZZZ`. */
  readonly tag: string;
  /** Where clients and other nodes reach it, without a slash at the end. */
  readonly url: string;
  /** Where workers of subscriptions reach it; null: not told. */
  readonly tcpUrl: string | null;
  /** SHA-256 of the certificate that it presents, as `AB:CD:…`; null: it is without TLS. */
  readonly fingerprint: string | null;
}

/** What was heard of another node. Hints: nothing durable depends on them. */
export interface ReceivedHeartbeat {
  /** Milliseconds since its last heartbeat. */
  readonly ageMs: number;
  readonly version: string;
  /** How far it is, by the id of the database. */
  readonly databases: ReadonlyMap<string, ReplicaReport>;
}

export interface ReplicaReport {
  readonly role: ReplicaRoleName;
  readonly epoch: number;
  /** The last message of the stream that its own log has. */
  readonly applied: number;
  /** Where its own log would go on after a restart: the stream must keep this message. Left out, or 0: not known. */
  readonly mark?: number;
}

export type ReplicaRoleName = "follower" | "candidate" | "leader" | "stopped";

/** A database that the cluster knows, as registered, durably. */
export interface ClusterDatabase {
  readonly name: string;
  /** 32 hexadecimal digits: of the database and of its stream. */
  readonly id: string;
  /** Of the stream: a lost one is replaced by the next. */
  readonly generation: number;
  /** Tags of the nodes that have copies, in the order of their joining. */
  readonly members: readonly string[];
  /** The tag in its change vectors: of the node that created it. */
  readonly originTag: string;
  /** Does its stream have anything? Until then the node `originTag` begins it. */
  readonly isSeeded: boolean;
  /** The settings record that its first leader writes. */
  readonly initialRecord: Readonly<Record<string, unknown>>;
  /** The index of the command that registered or changed this entry. */
  readonly index: number;
}

/** The state of one database of the cluster, as this node knows it now. */
export interface ReplicaState {
  readonly registered: ClusterDatabase;
  /** Of this node; null: it has no copy. */
  readonly role: ReplicaRoleName | null;
  readonly epoch: number;
  /** Who leads; null: not known now. */
  readonly leaderTag: string | null;
  /** The last message of the stream that this node's log has; 0: none. */
  readonly applied: number;
  /** Grows with each change of the leader or the members: the `Etag` of the topology for clients. */
  readonly topologyEtag: number;
  /** The last message of the stream that readers of this node's copy see; 0: none. */
  readonly visible: number;
  /**
   * What a copy must show for a read of this node's clients: what they may have been answered by another copy. 0: any may
   * answer; infinite: it is not known yet, and the leader has it.
   */
  readonly mustShow: number;
  /** Had this node's copy all that there was, once since it was made? Until then, reads here could see what was long ago. */
  readonly isComplete: boolean;
  /** Why this node's copy does not go on, for the operator; null: it does. */
  readonly trouble: string | null;
}

/** A database that this node has for itself. */
export interface OwnDatabase {
  readonly name: string;
  /** Why it could not be adopted; null: it was not tried. */
  readonly failure: string | null;
}

/** One change of the cluster's values; several are made together or not at all. */
export interface ValueChange {
  readonly key: string;
  /** JSON text that must be there now; null: there must be nothing; left out: anything may be. */
  readonly expected?: string | null;
  /** JSON text; null: the key is removed. */
  readonly value: string | null;
}

export interface ClusterView {
  /** Of this node. */
  readonly tag: string;
  /** A GUID; null: the cluster has never been complete yet. */
  readonly topologyId: string | null;
  /** The number of the last change of the cluster's own values that this node has. */
  readonly index: number;
  /** Who orders the changes of the cluster's own values; null: not known now. */
  readonly leaderTag: string | null;
  /** Of the cluster's own values. */
  readonly epoch: number;
  /** All registered nodes, by tag, this one too once it is registered. In the order of their tags. */
  members(): readonly ClusterMember[];
  /** The last that was heard of a node, registered or not; undefined: nothing since the start. */
  lastHeartbeat(tag: string): ReceivedHeartbeat | undefined;
  /** Tags of nodes that were heard and are not registered: each could be added. */
  strangers(): readonly ClusterMember[];
  /** Databases that the cluster has registered, by name in any case; undefined: it has none of that name. */
  find(name: string): ReplicaState | undefined;
  databases(): readonly ReplicaState[];
  /** Notes that a client of this node was answered by a copy that shows so much, as `positionOfReply` tells it. */
  answered(place: string): void;
  /** Resolves when this node's copy shows the message `sequence` of the stream; false: it did not for `ms`. */
  whenVisible(name: string, sequence: number, ms: number): Promise<boolean>;
  /**
   * Changes values of the cluster; when it resolves, that is done, and visible on this node and on all others that are
   * heard and not slow: who then asks another one finds the new database there, and no deleted certificate.
   * @throws EngineError concurrency when an expectation is not met, not-leader, outcome-unknown, stream-unavailable
   */
  change(changes: readonly ValueChange[]): Promise<void>;
  /** Makes changes that another node asked for. @returns the index that has them @throws EngineError as `change` */
  changeHere(changes: readonly ValueChange[]): Promise<number>;
  /** Tries to lead a database in place of the node that does. */
  standFor(name: string): void;
  /** Text of a value; undefined: none. */
  value(key: string): string | undefined;
  /** Values whose key begins with `prefix`, in order. */
  values(prefix: string): Iterable<readonly [string, string]>;
  /** What is below it; undefined: not told. */
  readonly health?: ClusterHealth | undefined;
  /** Calls `listener` after the members, the databases, the leaders or values have changed. @returns unsubscribes */
  onChange(listener: () => void): () => void;

  /** Registers a node that is heard. @throws EngineError invalid-argument when it is not, or is registered */
  addMember(tag: string): Promise<void>;
  /**
   * Removes a node; it has no copy any more, and may not come back by itself.
   * @throws EngineError invalid-operation when a database would lose its last copy; whether others are up to date is asked by whoever calls this
   */
  removeMember(tag: string): Promise<void>;
  /** Gives a node a copy of a database, or takes it away. @throws EngineError invalid-argument, invalid-operation */
  addCopy(name: string, tag: string): Promise<void>;
  removeCopy(name: string, tag: string): Promise<void>;
  /**
   * Registers a database with copies on `members`, of which this node must be one; resolves when it has a leader and its
   * record, on this node. @throws EngineError database-exists, database-name-invalid, …
   */
  createDatabase(
    name: string,
    record: Readonly<Record<string, unknown>>,
    members: readonly string[],
  ): Promise<Database>;
  /** Databases of this node alone, which it had before it was one of the cluster. */
  ownDatabases(): readonly OwnDatabase[];
  /**
   * Makes a database of this node alone one of the cluster, with copies on `members`, of which this node must be one;
   * resolves when it has a leader. @throws EngineError database-missing, database-exists, invalid-operation, …
   */
  adoptDatabase(name: string, members: readonly string[]): Promise<Database>;
  /** @returns false: there is none */
  deleteDatabase(name: string): Promise<boolean>;
  /** Lets another node lead a database. @throws EngineError invalid-operation, node-unreachable, timeout */
  transfer(name: string, tag: string): Promise<void>;
  /**
   * Waits until `count` other nodes have all that this node's copy had written at the call.
   * @returns how many had, which is less than `count` when `timeoutMs` ended first
   */
  waitForCopies(name: string, count: number, timeoutMs: number): Promise<number>;
}
