/**
 * The inputs and outputs of a `Replica`, as plain data. See replica.ts.
 *
 * Names: a *frame* is a message of the stream, with its position in the chain; a *group* is one group commit of the
 * leader's log, carried by one frame or several; a *mark* is a position in the chain.
 */
import type { AppendOutcome } from "./replicated-stream.ts";

/** A position in the chain: the last frame of a group that was applied as a whole. Stored by a node's own log. */
export interface Mark {
  /** Of the stream; from 1. A stream that was lost is replaced by one of the next generation. */
  readonly generation: number;
  /** Of the frame in the stream; from 1. */
  readonly sequence: number;
  readonly epoch: number;
  /** SHA-256 of the frame: 64 hexadecimal digits. */
  readonly hash: string;
}

/**
 * Data that a leader wants to replicate. Its bytes must not change until it is settled: frames are created from them
 * more than once.
 */
export type Proposal =
  /** The bytes of one group commit, in chunks. At most `replicatedGroupBytesMax` in all; at least one byte. */
  | { readonly kind: "group"; readonly pieces: readonly Buffer[] }
  /** A part of an attachment's content: at most `contentChunkBytesMax` bytes from `offset` on. */
  | ({ readonly kind: "content" } & ContentChunk)
  /** Nothing: that it is committed proves that this node still led after it was proposed. */
  | { readonly kind: "barrier" };

export interface ContentChunk {
  /** Of the whole content: 64 hexadecimal digits. */
  readonly sha256: string;
  readonly offset: number;
  /** Bytes of the whole content. */
  readonly total: number;
  readonly bytes: Buffer;
}

/** Data that a follower's own log must apply, in the order of the stream. The bytes belong to the callee. */
export type Delivery =
  | { readonly kind: "group"; readonly pieces: readonly Buffer[]; readonly mark: Mark }
  /** Must be durable before a group with a later mark is: it is not delivered again after a restart. */
  | ({ readonly kind: "content"; readonly mark: Mark } & ContentChunk);

/**
 * - `committed`: in the chain, and every node applies it, now and after any change of the leader.
 * - `lost`: not in the chain, and it never will be.
 * - `unknown`: either of the two. If it is in the chain, it is delivered later.
 */
export type Settlement = "committed" | "lost" | "unknown";

/**
 * - `follower`: applies the frames of the stream.
 * - `candidate`: tries to become the leader; applies the frames of the stream in the meantime.
 * - `leader`: may propose.
 * - `stopped`: blocked, in need of a snapshot, or its store failed. Applies no further frames: a new `Replica` from the
 *   mark of the node's own log may try again at any time.
 */
export type ReplicaRole = "follower" | "candidate" | "leader" | "stopped";

/** State that a node broadcasts every half second; not stored anywhere. A hint: no guarantee depends on it. */
export interface Heartbeat {
  readonly tag: string;
  readonly role: ReplicaRole;
  readonly epoch: number;
  /** The sequence up to which its own log is durable, of the present generation; 0: nothing. */
  readonly applied: number;
}

export interface ReplicaOptions {
  readonly databaseId: string;
  readonly generation: number;
  /** Of this node. */
  readonly tag: string;
  /** Random, and another one for each `Replica` that is ever made: at most 32 bytes of UTF-8. */
  readonly incarnation: string;
  /** The last mark in this node's own log; null if it has no mark. */
  readonly mark: Mark | null;
  /** Milliseconds without a leader's heartbeat after which this node stands: 3,000 to 5,000, another for each node. */
  readonly standAfterMs: number;
  /** Appends the first frame of the generation, which continues `mark`, when the stream is empty. */
  readonly isSeed?: boolean;
  /** Maximum size of a group's section in one frame, in bytes; `framePartBytesMax` by default, less in tests. */
  readonly partBytesMax?: number;
  /** Number of bytes delivered and not durable at which it stops following; `unappliedBytesMax` by default. */
  readonly unappliedBytesMax?: number;
}

/** Requests to the node that contains the replica. None of these may call the replica synchronously. */
export interface ReplicaEffects {
  /** Append `bytes` to the stream if its last sequence is `expectedLast`, and answer by `appended`. */
  append(token: number, bytes: Buffer, expectedLast: number): void;
  /** Read from the stream's leader, and answer by `readDone`. */
  read(token: number, sequence: number): void;
  /** Requests a call of `resume` in a later tick: more is to be appended than one tick may process. */
  later(): void;
  /** Requests the frames of the stream from the sequence `from`; replaces the previous subscription. */
  follow(id: number, from: number): void;
  stopFollowing(): void;
  /** For the own log, in this order. When it is durable there: `durable`. */
  deliver(delivery: Delivery): void;
  /** Called in the order of the proposals. `mark` is set for `committed`, and must be stored in the own log. */
  settled(token: number, settlement: Settlement, mark: Mark | null): void;
  /** `leaderTag`: leader of that epoch, if it is known. Also called when only the epoch or the tag changed. */
  roleChanged(role: ReplicaRole, epoch: number, leaderTag: string | null): void;
  /**
   * The stream does not have the frames from `from` to `to` (inclusive), or not undamaged. Get them, from a peer or from
   * another server of the stream; `previous` is the hash of the valid frame before. Answer by `rangeDone`.
   */
  needRange(from: number, to: number, previous: string): void;
  /** This node cannot go on from its own log. It is stopped. */
  needSnapshot(reason: string): void;
  /** The stream contradicts this node's own log: it has lost something or is another one. It is stopped. */
  blocked(reason: string): void;
  /** Something that an operator should know of. */
  alarm(text: string): void;
}

/** The inputs of a `Replica`. All are synchronous; their effects are returned through `ReplicaEffects`. */
export interface ReplicaInputs {
  /** Called once, before all others. Times are milliseconds of a monotonic clock. */
  start(nowMs: number): void;
  /** Called ten times a second, and before any other input that arrives more than 200 ms after the last tick. */
  tick(nowMs: number): void;
  /** Of the subscription `id`. `bytes` belongs to the replica. */
  message(id: number, sequence: number, bytes: Buffer): void;
  followInterrupted(id: number): void;
  appended(token: number, outcome: AppendOutcome): void;
  /** After `later`. */
  resume(): void;
  /** Null: the stream's leader reports that the message does not exist. */
  readDone(token: number, answer: Buffer | null | "unavailable"): void;
  /**
   * Valid frames in order, from the first requested one; void frames may be omitted. Empty: no peer was reachable, or
   * none has them yet: the replica requests them again. Null: they were removed, and no node has them.
   */
  rangeDone(frames: readonly Buffer[] | null): void;
  /** Deliveries and commits are durable in the own log, up to `sequence`. */
  durable(sequence: number): void;
  heard(heartbeat: Heartbeat): void;
  /** @returns the token by which it is settled; null: this node does not lead. */
  propose(proposal: Proposal): number | null;
  /** Try to lead, although another node does, as soon as this one has all that it has. */
  stand(): void;
  /** Excludes this node from elections until it is called with false: the node is no longer a member. */
  abstain(isAbstaining: boolean): void;
  /** Stops leading: open proposals are settled immediately. Another node gets time to start an election. */
  resign(): void;
  /** The own log failed: nothing more is delivered. */
  storeFailed(): void;
}
