/** The state of the components below the cluster, for operators: NATS, the scrub of replicas, and gaps. */
import type { StreamProblem } from "./nats/replica-scrub.ts";

export interface ClusterHealth {
  readonly nats: NatsState;
  /**
   * Number of times since the start that this node's copy of the database fetched frames from another node, because the
   * stream did not deliver them.
   */
  gaps(id: string): number;
}

interface NatsState {
  readonly isConnected: boolean;
  /** Name of the nats-server that this node is connected to, or null if disconnected. */
  readonly server: string | null;
  readonly version: string | null;
  /** Number of replicas of each stream. */
  readonly replicas: number;
  /** Number of restarts of this node's nats-server after unexpected exits. */
  readonly restarts: number;
  /** Result of the last scrub, or null before the first one, and on nodes that do not scrub. */
  readonly scrub: ScrubState | null;
}

export interface ScrubState {
  /** Milliseconds since the Unix epoch. */
  readonly atMs: number;
  readonly problems: readonly StreamProblem[];
  /** Reason why the replicas could not be checked, or null. */
  readonly failure: string | null;
}
