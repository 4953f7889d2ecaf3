/**
 * The interface of a cluster for the rest of the server: its nodes, the members and leaders of databases, and changes of
 * shared values. Implemented by `Cluster`; a single node has none.
 */
import type { Database } from "../../engine/engine.ts";
import type { ClusterHealth } from "./cluster-health.ts";

/** A durably registered node. */
export interface ClusterMember {
  /** `A` to `ZZZZ`. */
  readonly tag: string;
  /** Address for clients and other nodes, without a trailing slash. */
  readonly url: string;
  /** Address for subscription workers, or null if not known. */
  readonly tcpUrl: string | null;
  /** SHA-256 of its certificate, as `AB:CD:…`, or null without TLS. */
  readonly fingerprint: string | null;
}

/** The last heartbeat of another node. A hint: no durable decision depends on it. */
export interface ReceivedHeartbeat {
  /** Milliseconds since its last heartbeat. */
  readonly ageMs: number;
  readonly version: string;
  /** Reports of its replicas, by database id. */
  readonly databases: ReadonlyMap<string, ReplicaReport>;
}

export interface ReplicaReport {
  readonly role: ReplicaRoleName;
  readonly epoch: number;
  /** Last message of the stream in its log. */
  readonly applied: number;
  /** Message at which its log would resume after a restart, which the stream must retain. Omitted or 0 if not known. */
  readonly mark?: number;
}

export type ReplicaRoleName = "follower" | "candidate" | "leader" | "stopped";

/** A durably registered database. */
export interface ClusterDatabase {
  readonly name: string;
  /** 32 hexadecimal digits: id of the database and of its stream. */
  readonly id: string;
  /** Generation of the stream. A lost stream is replaced by one of the next generation. */
  readonly generation: number;
  /** Tags of the nodes that have copies, in the order in which these were added. */
  readonly members: readonly string[];
  /** Tag in its change vectors: that of the node that created the database. */
  readonly originTag: string;
  /** Whether its stream has messages. The first one is written by the node `originTag`. */
  readonly isSeeded: boolean;
  /** Settings record that its first leader writes. */
  readonly initialRecord: Readonly<Record<string, unknown>>;
  /** Index of the command that registered or changed this entry. */
  readonly index: number;
}

/** The current state of a database of the cluster, as known to this node. */
export interface ReplicaState {
  readonly registered: ClusterDatabase;
  /** Role of this node's copy, or null if it has none. */
  readonly role: ReplicaRoleName | null;
  readonly epoch: number;
  /** Tag of the leading node, or null if not known. */
  readonly leaderTag: string | null;
  /** Last message of the stream in this node's log, or 0. */
  readonly applied: number;
  /** Increases with each change of the leader or the members. `Etag` of the topology for clients. */
  readonly topologyEtag: number;
  /** Last message of the stream that readers of this node's copy see, or 0. */
  readonly visible: number;
  /**
   * Minimum message that a copy must show to serve reads of this node's clients, because another copy may have shown it to
   * them. 0 if any copy may answer; infinite while it is not known, when only the leader may answer.
   */
  readonly mustShow: number;
  /** Whether this node's copy was complete once since its creation. Until then, reads could return very old state. */
  readonly isComplete: boolean;
  /** Reason why this node's copy has stopped, for the operator, or null. */
  readonly trouble: string | null;
}

/** A standalone database of this node. */
export interface OwnDatabase {
  readonly name: string;
  /** Reason of the last failed adoption, or null. */
  readonly failure: string | null;
}

/** One change of a shared value. Several are applied atomically. */
export interface ValueChange {
  readonly key: string;
  /** JSON text that the value must equal, null if it must not exist, or omitted for no condition. */
  readonly expected?: string | null;
  /** New JSON text, or null to remove the key. */
  readonly value: string | null;
}

export interface ClusterView {
  /** Tag of this node. */
  readonly tag: string;
  /** A GUID, or null until the cluster has been complete once. */
  readonly topologyId: string | null;
  /** Number of the last change of the shared values that this node has applied. */
  readonly index: number;
  /** Tag of the node that orders the changes of the shared values, or null if not known. */
  readonly leaderTag: string | null;
  /** Epoch of the leader of the shared values. */
  readonly epoch: number;
  /** Returns all registered nodes, including this one once registered, ordered by tag. */
  members(): readonly ClusterMember[];
  /** Returns the last heartbeat of a node, registered or not, or undefined if none was received since the start. */
  lastHeartbeat(tag: string): ReceivedHeartbeat | undefined;
  /** Returns the nodes whose heartbeats are received and which are not registered. Each can be added. */
  strangers(): readonly ClusterMember[];
  /** Returns the database registered under that name, ignoring case, or undefined. */
  find(name: string): ReplicaState | undefined;
  databases(): readonly ReplicaState[];
  /** Records the position of a copy on another node that answered a client of this node, as encoded by `positionOfReply`. */
  answered(place: string): void;
  /** Resolves to true when this node's copy shows message `sequence` of the stream, or to false after `ms` milliseconds. */
  whenVisible(name: string, sequence: number, ms: number): Promise<boolean>;
  /**
   * Changes shared values. On resolution, the change is visible on this node and on every other node that sends heartbeats
   * and is not slow, so a client that calls another node next finds the new database, or no deleted certificate.
   * @throws EngineError concurrency when an expectation is not met, not-leader, outcome-unknown, stream-unavailable
   */
  change(changes: readonly ValueChange[]): Promise<void>;
  /** Makes changes that another node requested. @returns the index that includes them @throws EngineError as `change` */
  changeHere(changes: readonly ValueChange[]): Promise<number>;
  /** Tries to replace the leader of a database by this node. */
  standFor(name: string): void;
  /** Returns the JSON text of a value, or undefined. */
  value(key: string): string | undefined;
  /** Returns the values whose key begins with `prefix`, in key order. */
  values(prefix: string): Iterable<readonly [string, string]>;
  /** State of NATS and of the replicas, if known. */
  readonly health?: ClusterHealth | undefined;
  /** Calls `listener` after changes of members, databases, leaders, or values. @returns a function that unsubscribes */
  onChange(listener: () => void): () => void;

  /** Registers a node. @throws EngineError invalid-argument if it sends no heartbeats or is already registered */
  addMember(tag: string): Promise<void>;
  /**
   * Removes a node with its copies. It cannot rejoin by itself. The caller checks whether other copies are up to date.
   * @throws EngineError invalid-operation if a database would lose its last copy
   */
  removeMember(tag: string): Promise<void>;
  /** Adds or removes a copy of a database on a node. @throws EngineError invalid-argument, invalid-operation */
  addCopy(name: string, tag: string): Promise<void>;
  removeCopy(name: string, tag: string): Promise<void>;
  /**
   * Registers a database with copies on `members`, which must include this node. Resolves when the database has a leader
   * and its record on this node. @throws EngineError database-exists, database-name-invalid, …
   */
  createDatabase(
    name: string,
    record: Readonly<Record<string, unknown>>,
    members: readonly string[],
  ): Promise<Database>;
  /** Returns the standalone databases of this node, from before it joined the cluster. */
  ownDatabases(): readonly OwnDatabase[];
  /**
   * Moves a standalone database of this node into the cluster, with copies on `members`, which must include this node.
   * Resolves when the database has a leader. @throws EngineError database-missing, database-exists, invalid-operation, …
   */
  adoptDatabase(name: string, members: readonly string[]): Promise<Database>;
  /** @returns false if no such database exists */
  deleteDatabase(name: string): Promise<boolean>;
  /** Transfers the leadership of a database to another node. @throws EngineError invalid-operation, node-unreachable, timeout */
  transfer(name: string, tag: string): Promise<void>;
  /**
   * Waits until `count` other nodes have every write that this node's copy had at the call.
   * @returns the number of these nodes, which is less than `count` after `timeoutMs`
   */
  waitForCopies(name: string, count: number, timeoutMs: number): Promise<number>;
}
