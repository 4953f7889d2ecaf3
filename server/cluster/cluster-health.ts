/** What a cluster tells of the machinery below it, for whoever operates it: NATS, the scrub of its replicas, and gaps. */
import type { StreamProblem } from "./nats/replica-scrub.ts";

export interface ClusterHealth {
  readonly nats: NatsState;
  /**
   * How often this node's copy of a database, by its id, has had to get frames from another node, because the stream did
   * not have them. Since the start.
   */
  gaps(id: string): number;
}

export interface NatsState {
  readonly isConnected: boolean;
  /** The server of NATS that this node is connected to; null: to none at the moment. */
  readonly server: string | null;
  readonly version: string | null;
  /** Copies that each stream has. */
  readonly replicas: number;
  /** How often the nats-server of this node has ended by itself and was started again. */
  readonly restarts: number;
  /** The last scrub; null: there was none yet, or another node does it. */
  readonly scrub: ScrubState | null;
}

export interface ScrubState {
  /** Milliseconds since 1970. */
  readonly atMs: number;
  readonly problems: readonly StreamProblem[];
  /** Why the replicas could not be looked at; null: they were. */
  readonly failure: string | null;
}
