/** Metrics of a cluster. A single node has none. */
export interface ClusterSource {
  /** Starts to log changes of the cluster, until `stop`. */
  start(): void;
  stop(): void;
  /** Returns undefined on a single node. */
  figures(): ClusterFigures | undefined;
}

export interface ClusterFigures {
  /** Tag of the leader of the shared values, or null if not known. */
  readonly leaderTag: string | null;
  readonly epoch: number;
  readonly nodes: readonly {
    readonly tag: string;
    readonly isHere: boolean;
    readonly isRegistered: boolean;
    /** Milliseconds since the last heartbeat, or null without any since the start. */
    readonly heardMs: number | null;
  }[];
  /** This node's copies. */
  readonly copies: readonly CopyFigures[];
  /** Number of databases without a known leader. */
  readonly leaderlessCount: number;
  /** Null if not available. */
  readonly nats: NatsFigures | null;
}

export interface CopyFigures {
  readonly database: string;
  readonly role: string;
  readonly epoch: number;
  readonly applied: number;
  /** Lag in messages, and the duration of the lag in seconds. */
  readonly behind: number;
  readonly behindSeconds: number;
  /** Number of gaps since the start. */
  readonly gaps: number;
}

interface NatsFigures {
  readonly isConnected: boolean;
  readonly restarts: number;
  /** Null before the first scrub, and on nodes that do not scrub. */
  readonly scrub: {
    readonly atMs: number;
    readonly problems: readonly { readonly kind: string }[];
    readonly failure: string | null;
  } | null;
}
