/**
 * What goes into a `Replica` and what comes out of it, as plain data. See replica.ts.
 *
 * Names: a *frame* is a message of the stream, with its place in the chain; a *group* is what one group commit of the
 * leader's log wrote, carried by one frame or several; a *mark* is a place in the chain.
 */
import type { AppendOutcome } from "./replicated-stream.ts";

/** A place in the chain: the last frame of something that was taken whole. What a node's own log keeps of the stream. */
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
 * What a leader wants carried. Its bytes must not change until it is settled: frames are made of them more than once.
 */
export type Proposal =
  /** The bytes of one group commit, in pieces. At most `replicatedGroupBytesMax` in all; at least one byte. */
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

/** What a follower's own log must take, in the order of the stream. The bytes belong to the callee. */
export type Delivery =
  | { readonly kind: "group"; readonly pieces: readonly Buffer[]; readonly mark: Mark }
  /** Kept durably before a group with a later mark is: a restart does not ask for it again. */
  | ({ readonly kind: "content"; readonly mark: Mark } & ContentChunk);

/**
 * - `committed`: in the chain, and every node takes it, now and after any change of the leader.
 * - `lost`: not in the chain, and it never will be.
 * - `unknown`: either of the two. If it is in the chain, it comes back as a delivery.
 */
export type Settlement = "committed" | "lost" | "unknown";

/**
 * - `follower`: takes what the stream has.
 * - `candidate`: tries to become the leader; takes what the stream has meanwhile.
 * - `leader`: may propose.
 * - `stopped`: blocked, in need of a snapshot, or its store failed. Takes nothing more: a new `Replica` from the mark of
 *   the node's own log may try again at any time.
 */
export type ReplicaRole = "follower" | "candidate" | "leader" | "stopped";

/** What a node says of itself every half second, not stored anywhere. Hints: no promise depends on them. */
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
  /** The last mark in this node's own log; null: it has none. */
  readonly mark: Mark | null;
  /** Milliseconds without a leader's heartbeat after which this node stands: 3,000 to 5,000, another for each node. */
  readonly standAfterMs: number;
  /** Appends the first frame of the generation, which continues `mark`, when the stream is empty. */
  readonly isSeed?: boolean;
  /** Bytes of a group that one frame takes; `framePartBytesMax` when not given, less in tests. */
  readonly partBytesMax?: number;
  /** Bytes delivered and not durable at which it stops following; `unappliedBytesMax` when not given. */
  readonly unappliedBytesMax?: number;
}

/** What it asks of the node that it is part of. None of these may call the replica back in the same turn. */
export interface ReplicaEffects {
  /** Append `bytes` to the stream if its last sequence is `expectedLast`, and answer by `appended`. */
  append(token: number, bytes: Buffer, expectedLast: number): void;
  /** Read from the stream's leader, and answer by `readDone`. */
  read(token: number, sequence: number): void;
  /** Call `goOn` in a later turn: there is more to append than one turn may take. */
  later(): void;
  /** Follow the stream from the sequence `from`, which replaces what was followed before. */
  follow(id: number, from: number): void;
  stopFollowing(): void;
  /** For the own log, in this order. When it is durable there: `durable`. */
  deliver(delivery: Delivery): void;
  /** In the order of the proposals. `mark` is given with `committed`, and belongs into the own log. */
  settled(token: number, settlement: Settlement, mark: Mark | null): void;
  /** `leaderTag`: who leads in that epoch, as far as it is known. Also called when only the epoch or the tag changed. */
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

/** What a `Replica` is told. All are synchronous; what they cause comes through the effects. */
export interface ReplicaInputs {
  /** Once, before all others. Times are milliseconds of a clock that never goes back. */
  start(nowMs: number): void;
  /** Ten times a second, and before any other input that comes more than 200 ms after the last tick. */
  tick(nowMs: number): void;
  /** Of the subscription `id`. `bytes` belongs to the replica. */
  message(id: number, sequence: number, bytes: Buffer): void;
  followInterrupted(id: number): void;
  appended(token: number, outcome: AppendOutcome): void;
  /** After `later`. */
  goOn(): void;
  /** Null: the stream's leader says that it has none. */
  readDone(token: number, answer: Buffer | null | "unavailable"): void;
  /**
   * Valid frames in order, from the first that was asked for; those that are void may be left out. None: nobody could be
   * asked, or has them yet: it asks again. Null: they were removed, and nobody has them any more.
   */
  rangeDone(frames: readonly Buffer[] | null): void;
  /** What was delivered or settled as committed is durable in the own log, up to `sequence`. */
  durable(sequence: number): void;
  heard(heartbeat: Heartbeat): void;
  /** @returns the token by which it is settled; null: this node does not lead. */
  propose(proposal: Proposal): number | null;
  /** Try to lead, although another node does, as soon as this one has all that it has. */
  stand(): void;
  /** Never try to lead, from now on or until it may again: this node is no member any more. */
  abstain(isAbstaining: boolean): void;
  /** Stop leading: what is under way is settled at once. Another node gets the time to stand. */
  resign(): void;
  /** The own log failed: nothing more is delivered. */
  storeFailed(): void;
}
