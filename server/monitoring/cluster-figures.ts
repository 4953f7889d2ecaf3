/** What monitoring is told of a cluster; a single node tells nothing. */
export interface ClusterSource {
  /** The log is told what changes, until `stop`. */
  start(): void;
  stop(): void;
  /** undefined: a single node. */
  figures(): ClusterFigures | undefined;
}

export interface ClusterFigures {
  /** null: not known. */
  readonly leaderTag: string | null;
  readonly epoch: number;
  readonly nodes: readonly {
    readonly tag: string;
    readonly isHere: boolean;
    readonly isRegistered: boolean;
    /** Milliseconds since the last heartbeat; null: there was none since the start. */
    readonly heardMs: number | null;
  }[];
  /** This node's copies. */
  readonly copies: readonly CopyFigures[];
  /** Of databases that nobody is known to lead. */
  readonly leaderlessCount: number;
  /** null: not told. */
  readonly nats: NatsFigures | null;
}

export interface CopyFigures {
  readonly database: string;
  readonly role: string;
  readonly epoch: number;
  readonly applied: number;
  /** Messages, and seconds since which. */
  readonly behind: number;
  readonly behindSeconds: number;
  /** Since the start. */
  readonly gaps: number;
}

export interface NatsFigures {
  readonly isConnected: boolean;
  readonly restarts: number;
  /** null: there was none yet, or another node does it. */
  readonly scrub: {
    readonly atMs: number;
    readonly problems: readonly { readonly kind: string }[];
    readonly failure: string | null;
  } | null;
}
