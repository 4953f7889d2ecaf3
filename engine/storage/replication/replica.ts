/**
 * One node's part in the replication of a database's log: a state machine that receives events and returns effects. It
 * waits for nothing, reads no clock and performs no I/O, so every schedule of events can be simulated
 * (test/simulation/replication-schedules.ts).
 *
 * A follower applies the frames of the stream to its own log. To lead, a node appends an EPOCH frame after all frames
 * that it has read: a successful append proves that it has read everything, and makes frames that an earlier leader has
 * in flight void (chain.ts). Heartbeats only determine when to try.
 *
 * A leader has up to `framesInFlightMax` frames in flight, each appended for a given sequence. Replies other than
 * "stored" prove nothing, so the leader reads the first open sequence until the stream returns its content:
 *
 *     its own frame           in the chain: committed
 *     a later EPOCH frame     another node leads: its open frames can no longer be valid
 *     a void frame            the same, but it still leads: it begins another epoch, and proposes them again
 *     nothing                 it repeats the append of the same message, for the same sequence
 *
 * Invariants:
 * - A proposal is settled as committed when the frames before it are known to be in the chain, and its own are stored.
 * - Under one epoch, a sequence has one frame: a failed append never moves a frame to another sequence.
 * - A node starts an election only if the stream has just confirmed this node's last valid frame, and if no other node
 *   reports to have applied more than this node has read. It serves once the stream has confirmed that frame again
 *   after the fence.
 * - It continues from the last valid frame, or stops: no frame is skipped.
 */
import { assert } from "../../base/assert.ts";
import {
  framePartBytesMax,
  replicaBehindMs,
  replicaMissingMs,
  replicaProbeMs,
  replicaRetryMs,
  replicaStallMs,
  replicaVerifiedMs,
  unappliedBytesMax,
} from "../../base/limits.ts";
import { AppendWindow, type InFlight } from "./append-window.ts";
import { Chain } from "./chain.ts";
import {
  decodeFrame,
  type EncodedFrame,
  encodeFrame,
  epochPayload,
  type Frame,
  frameTypes,
  genesisPayload,
} from "./frame.ts";
import type {
  Delivery,
  Heartbeat,
  Mark,
  Proposal,
  ReplicaEffects,
  ReplicaInputs,
  ReplicaOptions,
  ReplicaRole,
} from "./replica-types.ts";
import type { AppendOutcome } from "./replicated-stream.ts";
import { UnappliedBytes } from "./unapplied-bytes.ts";

interface Checkpoint {
  readonly sequence: number;
  readonly hash: string;
}

const checkpointsMax = 8;

/** Number of frames of the largest size that are created in one tick of the event loop: each takes some 1.5 ms. */
const framesPerTick = 2;

/**
 * Number of consecutive times that a frame must be missing before it counts as lost: a server of the stream may lag.
 */
const missesMin = 5;

export class Replica implements ReplicaInputs {
  readonly #options: ReplicaOptions;
  readonly #effects: ReplicaEffects;
  readonly #chain: Chain;
  readonly #window: AppendWindow;
  readonly #unapplied: UnappliedBytes;
  #role: ReplicaRole = "follower";
  #leaderTag: string | null = null;
  #now = 0;
  #tokens = 0;

  /** The present subscription; earlier ones are not listened to. */
  #followId = 0;
  #isFollowing = false;
  /** When to follow again; null: it follows, or may not. */
  #followAt: number | null = null;
  /** Whether it has stopped following because the own log lags. */
  #isPaused = false;

  /** Until when it leaves leading to others. */
  #standAt = 0;
  /** Whether this node is excluded from leading until further notice. */
  #isAbstaining = false;
  /** Until when it tries to lead although another node does. */
  #askedUntil = 0;
  /** Positions that other nodes report to have applied. */
  readonly #appliedByOthers = new Map<string, number>();

  /** The frame that it wants at the next position: an EPOCH frame to lead, or the first frame of all. */
  #claim: EncodedFrame | null = null;
  #claimToken = 0;
  /** Its EPOCH frame is in the chain, and the own log has to catch up. */
  #isFenced = false;
  /** The frame before that, until the stream has shown that it still has it. */
  #fencedOn: Checkpoint | null = null;
  readonly #sent = new Map<number, InFlight>();
  /** Whether it has requested another tick to append more. */
  #hasRequestedTick = false;
  /** The read of the next position. */
  #readToken = 0;
  #readSequence = 0;
  /** When to repeat open appends; null: a reply is expected, or nothing is open. */
  #retryAt: number | null = null;
  #retries = 0;
  /** Number of consecutive refusals of the claim while the stream had no message at that position. */
  #hidden = 0;
  #isRefused = false;
  /** Whether another node reports that it leads in a later epoch. */
  #isDoubted = false;
  /** Time of the last acknowledgment of an open append by the stream. */
  #progressAt = 0;
  /** When the stream was last known to have the last valid frame. */
  #verifiedAt = 0;

  /** The stream passed over frames up to this one; 0: over none that it knows. */
  #gapEnd = 0;
  #gapTries = 0;
  #isRequestingRange = false;
  /** Time since which others are known to have more frames, without any arriving. */
  #behindSince: number | null = null;

  /** The read by which it compares a frame with the stream's: the last one, then one of the checkpoints. */
  #probeToken = 0;
  #probed: Checkpoint = { sequence: 0, hash: "" };
  #probeAt = 0;
  /** Frames that the stream had: the EPOCH frames, and the last frame at regular intervals. */
  readonly #checkpoints: Checkpoint[] = [];
  /** How often in a row, and since when, the last valid frame was missing in the stream. */
  #misses = 0;
  #missing = 0;
  #missingSince = 0;

  constructor(options: ReplicaOptions, effects: ReplicaEffects) {
    this.#options = options;
    this.#effects = effects;
    this.#chain = new Chain(options.databaseId, options.generation, options.mark);
    this.#window = new AppendWindow(options.partBytesMax ?? framePartBytesMax);
    const bytesMax = options.unappliedBytesMax ?? unappliedBytesMax;
    this.#unapplied = new UnappliedBytes(this.#chain.tip, bytesMax);
  }

  get role(): ReplicaRole {
    return this.#role;
  }

  /** Of the last valid frame. */
  get epoch(): number {
    return this.#chain.epoch;
  }

  /** Tag of the leader, if it is known. */
  get leaderTag(): string | null {
    return this.#leaderTag;
  }

  /** The last sequence of the stream that it has applied, or skipped as void. */
  get position(): number {
    return this.#chain.position;
  }

  /** Of the last valid frame. */
  get mark(): Mark {
    return this.#chain.mark;
  }

  /** The sequence up to which its own log is durable, for heartbeats. */
  get applied(): number {
    return this.#unapplied.durable;
  }

  /** Whether it waits for frames that the stream does not have. */
  get hasGap(): boolean {
    return this.#gapEnd > this.#chain.position;
  }

  start(nowMs: number): void {
    this.#now = nowMs;
    this.#probeAt = nowMs;
    this.#postpone(1);
    const { mark, generation, databaseId } = this.#options;
    if (mark !== null && mark.generation > generation) {
      this.#block(`the own log is of generation ${mark.generation}, the stream of ${generation}`);
      return;
    }
    this.#follow();
    if (this.#options.isSeed !== true || this.#chain.position > 0) return;
    const { epoch, hash } = this.#chain;
    const place = { generation, epoch, sequence: 1, previous: hash };
    this.#claim = encodeFrame(frameTypes.genesis, place, [genesisPayload(databaseId, mark)]);
    this.#appendClaim();
  }

  tick(nowMs: number): void {
    if (this.#role === "stopped") return;
    this.#now = Math.max(this.#now, nowMs);
    if (this.#retryAt !== null && this.#now >= this.#retryAt) {
      this.#retryAt = null;
      this.#appendAgain();
    }
    if (this.#followAt !== null && this.#now >= this.#followAt) this.#follow();
    const isDue = this.#now >= this.#probeAt;
    if (isDue || (this.#role === "follower" && this.#mayStand())) this.#probe();
    if (this.#role === "follower") this.#watchForMore();
    if (this.#role === "leader" && this.#isStalled()) {
      this.#effects.alarm(
        `the stream took nothing for ${replicaStallMs} ms: this node stops leading`,
      );
      this.resign();
    }
  }

  // Following

  #follow(): void {
    this.#followAt = null;
    this.#isPaused = false;
    this.#isFollowing = true;
    this.#behindSince = null;
    this.#followId++;
    this.#effects.follow(this.#followId, this.#chain.position + 1);
  }

  #stopFollowing(): void {
    this.#followAt = null;
    this.#isPaused = false;
    if (!this.#isFollowing) return;
    this.#isFollowing = false;
    this.#effects.stopFollowing();
  }

  followInterrupted(id: number): void {
    if (id !== this.#followId || !this.#isFollowing) return;
    this.#isFollowing = false;
    this.#followAt = this.#now + replicaRetryMs;
  }

  message(id: number, sequence: number, bytes: Buffer): void {
    if (id !== this.#followId || !this.#isFollowing) return;
    const next = this.#chain.position + 1;
    if (sequence < next) return;
    const frame = sequence === next ? this.#decode(sequence, bytes) : null;
    if (frame === null) this.#framesMissing(sequence === next ? next : sequence - 1);
    else this.#takeFrame(frame);
  }

  /** Null: it is not the frame of that sequence. */
  #decode(sequence: number, bytes: Buffer): Frame | null {
    const frame = decodeFrame(bytes);
    const isOf = frame?.sequence === sequence && frame.generation === this.#chain.generation;
    if (isOf) return frame;
    this.#effects.alarm(`the stream has no undamaged frame ${sequence}`);
    return null;
  }

  /** Called when frames up to `end` are missing: the stream delivered later frames, or was silent for long. */
  #framesMissing(end: number, how: "passed" | "silent" = "passed"): void {
    if (this.#role === "candidate" || this.#claim !== null) this.#withdraw();
    this.#gapEnd = Math.max(this.#gapEnd, end);
    this.#gapTries++;
    if (this.#gapTries === 1) {
      this.#follow();
      return;
    }
    this.#stopFollowing();
    this.#isRequestingRange = true;
    const from = this.#chain.position + 1;
    this.#effects.alarm(
      how === "silent"
        ? `the stream delivers nothing, but other nodes have frames ${from} to ${this.#gapEnd}`
        : `the stream skips frames ${from} to ${this.#gapEnd}`,
    );
    this.#effects.needRange(from, this.#gapEnd, this.#chain.hash);
  }

  rangeDone(frames: readonly Buffer[] | null): void {
    if (!this.#isRequestingRange) return;
    this.#isRequestingRange = false;
    const from = this.#chain.position + 1;
    if (frames === null) {
      this.#stop();
      this.#effects.needSnapshot(`frame ${from} is neither in the stream nor with another node`);
      return;
    }
    for (const bytes of frames) if (!this.#takeFromPeer(bytes)) break;
    this.#gapTries = 1;
    if (this.#chain.position >= from) {
      this.#gapTries = 0;
      this.#follow();
      return;
    }
    // The extent of the gap is unknown: the stream will reveal it again.
    this.#gapEnd = 0;
    this.#followAt = this.#now + replicaRetryMs * 5;
  }

  /** Applies a frame that is valid at its sequence; void frames before it may be missing. */
  #takeFromPeer(bytes: Buffer): boolean {
    const frame = decodeFrame(bytes);
    const next = this.#chain.position + 1;
    if (frame !== null && frame.sequence < next) return true;
    const isNext = frame?.sequence === next || frame?.type === frameTypes.epoch;
    const isOf = frame?.generation === this.#chain.generation;
    if (frame !== null && isNext && isOf) {
      const { kind } = this.#chain.verdictOn(frame);
      if (kind === "void") return true;
      if (kind === "valid") {
        this.#takeValid(frame);
        return true;
      }
    }
    this.#effects.alarm(`the fetched frames do not continue frame ${this.#chain.tip}`);
    return false;
  }

  /** Checks whether others have more frames than this node: if none arrives for long, the stream may be hiding them. */
  #watchForMore(): void {
    const isBehind = this.#isFollowing && this.#knownEnd() > this.#chain.position;
    if (!isBehind) this.#behindSince = null;
    else if (this.#behindSince === null) this.#behindSince = this.#now;
    else if (this.#now - this.#behindSince >= replicaBehindMs) {
      this.#behindSince = null;
      this.#framesMissing(this.#knownEnd(), "silent");
    }
  }

  /** Returns the last sequence that is known to exist. */
  #knownEnd(): number {
    return Math.max(this.#gapEnd, ...this.#appliedByOthers.values());
  }

  durable(sequence: number): void {
    if (this.#role === "stopped") return;
    this.#unapplied.release(sequence);
    if (this.#isPaused && this.#unapplied.isLow) this.#follow();
    this.#serveWhenApplied();
  }

  // The chain

  /** Applies the frame at the next position, from any source. */
  #takeFrame(frame: Frame): void {
    const base = this.#window.frames[0];
    if (base !== undefined && base.frame.hash === frame.hash) {
      base.state = "stored";
      this.#confirmStored();
      return;
    }
    const verdict = this.#chain.verdictOn(frame);
    switch (verdict.kind) {
      case "valid":
        this.#takeValid(frame);
        return;
      case "void":
        this.#chain.skip(frame);
        this.#progressed();
        if (this.#isFenced || this.#role === "leader") this.#fenceAgain();
        return;
      case "behind":
        this.#stop();
        this.#effects.needSnapshot(verdict.reason);
        return;
      default:
        this.#block(verdict.reason);
    }
  }

  #takeValid(frame: Frame): void {
    const isClaim = this.#claim?.hash === frame.hash;
    const isLeading = this.#role === "candidate" || this.#role === "leader";
    const isReplaced = isLeading && !isClaim && frame.type === frameTypes.epoch;
    if (this.#role === "leader" && !isClaim && !isReplaced) {
      this.#block(`frame ${frame.sequence} is of this node's epoch, and not its own`);
      return;
    }
    const before = { sequence: this.#chain.position, hash: this.#chain.lastHash };
    const { delivery, epoch } = this.#chain.take(frame);
    this.#progressed();
    if (epoch !== null) this.#remember(frame);
    if (delivery !== null) this.#deliver(delivery);
    if (isClaim) {
      this.#claimed(frame, before);
      return;
    }
    if (this.#claim?.type === frameTypes.genesis) this.#dropClaim();
    if (epoch === null) return;
    // The frame may be an abandoned one of this node: the epoch then has no leader.
    const isOwn = epoch.tag === this.#options.tag;
    this.#leaderTag = isOwn ? null : epoch.tag;
    if (!isOwn) this.#postpone(1);
    if (isReplaced) this.#stepDown("lost");
    else this.#announce();
  }

  #deliver(delivery: Delivery): void {
    const bytes = delivery.kind === "content" ? delivery.bytes.length : totalBytes(delivery.pieces);
    this.#unapplied.add(delivery.mark.sequence, bytes);
    this.#effects.deliver(delivery);
    if (!this.#unapplied.isFull || !this.#isFollowing) return;
    this.#stopFollowing();
    this.#isPaused = true;
  }

  #progressed(): void {
    this.#gapTries = 0;
    this.#behindSince = null;
    this.#retries = 0;
    this.#hidden = 0;
    this.#misses = 0;
  }

  // Becoming the leader

  heard({ tag, role, epoch, applied }: Heartbeat): void {
    if (this.#role === "stopped" || tag === this.#options.tag) return;
    this.#appliedByOthers.set(tag, applied);
    const end = this.#chain.position + this.#window.frames.length;
    const isLeader = role === "leader" && epoch >= this.#chain.epoch;
    if (this.#role === "leader") {
      // The stream says whether this node is replaced, or has lost something.
      if (isLeader || applied > end) {
        if (isLeader && epoch > this.#chain.epoch) this.#isDoubted = true;
        this.#probe();
        this.#readNext();
      }
      return;
    }
    if (!isLeader) {
      if (tag === this.#leaderTag && epoch >= this.#chain.epoch) this.#succeed(role);
      return;
    }
    this.#postpone(1);
    if (this.#claim?.type === frameTypes.epoch && !this.#isAsked) this.#withdraw();
    if (this.#leaderTag === tag || this.#isFenced) return;
    this.#leaderTag = tag;
    this.#announce();
  }

  /** The leader has announced that it stopped leading: an election need not wait for the timeout. */
  #succeed(role: ReplicaRole): void {
    if (role !== "follower" && role !== "stopped") return;
    const { standAfterMs } = this.#options;
    // The delay staggers the nodes, and lets slower ones receive the announcement first.
    this.#standAt = Math.min(this.#standAt, this.#now + standAfterMs / 8);
  }

  /** Leaves it to others for so many times of its own patience. */
  #postpone(times: number): void {
    const until = this.#now + times * this.#options.standAfterMs;
    this.#standAt = Math.max(this.#standAt, until);
  }

  #mayStand(): boolean {
    if (this.#isAbstaining) return false;
    if ((this.#now < this.#standAt && !this.#isAsked) || this.#claim !== null) return false;
    if (this.#chain.position === 0) return false;
    if (this.#isPaused || this.#isRequestingRange) return false;
    return this.#knownEnd() <= this.#chain.position;
  }

  abstain(isAbstaining: boolean): void {
    this.#isAbstaining = isAbstaining;
    if (isAbstaining) this.resign();
  }

  get #isAsked(): boolean {
    return this.#now < this.#askedUntil;
  }

  stand(): void {
    if (this.#role !== "follower") return;
    this.#askedUntil = this.#now + this.#options.standAfterMs;
    this.#probe();
  }

  #stand(): void {
    this.#role = "candidate";
    this.#leaderTag = null;
    this.#announce();
    this.#claim = this.#epochFrame();
    this.#appendClaim();
  }

  /** Its slot was lost to a void frame: all frames in flight are void, too, and are proposed again in another epoch. */
  #fenceAgain(): void {
    if (this.#claim !== null) return;
    this.#isFenced = false;
    this.#fencedOn = null;
    this.#sent.clear();
    this.#window.rewind();
    this.#claim = this.#epochFrame();
    this.#appendClaim();
  }

  #epochFrame(): EncodedFrame {
    const { generation, epoch, position, hash } = this.#chain;
    const place = { generation, epoch: epoch + 1, sequence: position + 1, previous: hash };
    const { tag, incarnation } = this.#options;
    return encodeFrame(frameTypes.epoch, place, [epochPayload(tag, incarnation)]);
  }

  #appendClaim(): void {
    let claim = this.#claim;
    assert(claim !== null, "there is something to claim");
    if (claim.sequence !== this.#chain.position + 1) {
      claim = this.#epochFrame();
      this.#claim = claim;
    }
    this.#claimToken = ++this.#tokens;
    this.#effects.append(this.#claimToken, claim.bytes, claim.sequence - 1);
  }

  #dropClaim(): void {
    this.#claim = null;
    this.#claimToken = 0;
    this.#readToken = 0;
    this.#retryAt = null;
  }

  /** Its claim is in the chain. */
  #claimed(frame: Frame, before: Checkpoint): void {
    this.#dropClaim();
    if (frame.type === frameTypes.genesis) {
      // No successor exists yet.
      this.#standAt = this.#now;
      return;
    }
    this.#leaderTag = this.#options.tag;
    this.#progressAt = this.#now;
    this.#verifiedAt = this.#now;
    this.#isFenced = this.#role === "candidate";
    this.#fencedOn = before;
    // A pending reply is older than the fence.
    this.#probeToken = 0;
    this.#probe();
  }

  #serveWhenApplied(): void {
    if (!this.#isFenced || this.#fencedOn !== null || !this.#unapplied.isEmpty) return;
    this.#isFenced = false;
    this.#fencedOn = null;
    this.#isDoubted = false;
    this.#role = "leader";
    this.#stopFollowing();
    this.#announce();
  }

  #announce(): void {
    this.#effects.roleChanged(this.#role, this.#chain.epoch, this.#leaderTag);
  }

  /** Abandons its claim. The frame may still become part of the chain: it then begins an epoch without a leader. */
  #withdraw(): void {
    this.#dropClaim();
    this.#isFenced = false;
    this.#fencedOn = null;
    if (this.#role !== "candidate") return;
    this.#role = "follower";
    this.#announce();
    if (!this.#isFollowing && !this.#isPaused) this.#follow();
  }

  // Leading

  propose(proposal: Proposal): number | null {
    if (this.#role !== "leader") return null;
    if (this.#window.isEmpty) {
      this.#progressAt = this.#now;
      // Asked now, the stream has shown its last frame before it answers to this one.
      if (this.#now - this.#verifiedAt >= replicaVerifiedMs / 2) this.#probe();
    }
    const token = ++this.#tokens;
    this.#window.add(token, proposal);
    this.#pump();
    return token;
  }

  /** Appends frames, up to a number of bytes per tick of the event loop, because they are copied and hashed. */
  #pump(): void {
    if (this.#claim !== null || this.#fencedOn !== null || this.#hasRequestedTick) return;
    if (this.#window.frames.some(({ state }) => state === "doubtful")) return;
    const { generation, epoch, position: sequence, hash: previous } = this.#chain;
    const after = { generation, epoch, sequence, previous };
    let bytes = 0;
    for (let next = this.#window.next(after); next !== null; next = this.#window.next(after)) {
      this.#send(next);
      bytes += next.frame.payload.length;
      if (bytes < framesPerTick * this.#window.partBytesMax) continue;
      this.#hasRequestedTick = true;
      this.#effects.later();
      return;
    }
  }

  resume(): void {
    this.#hasRequestedTick = false;
    if (this.#role === "leader") this.#pump();
  }

  #send(inFlight: InFlight): void {
    inFlight.state = "sent";
    const token = ++this.#tokens;
    this.#sent.set(token, inFlight);
    this.#effects.append(token, inFlight.frame.bytes, inFlight.frame.sequence - 1);
  }

  appended(token: number, outcome: AppendOutcome): void {
    if (this.#role === "stopped") return;
    if (token === this.#claimToken) {
      this.#claimToken = 0;
      this.#claimAppended(outcome);
      return;
    }
    const inFlight = this.#sent.get(token);
    this.#sent.delete(token);
    if (inFlight === undefined || inFlight.state === "stored") return;
    const isStored = isStoredAt(outcome, inFlight.frame.sequence);
    inFlight.state = isStored ? "stored" : "doubtful";
    if (inFlight !== this.#window.frames[0]) return;
    if (isStored) this.#confirmStored();
    else this.#readNext();
  }

  #claimAppended(outcome: AppendOutcome): void {
    const claim = this.#claim;
    assert(claim !== null, "only a claim is appended");
    const isNext = claim.sequence === this.#chain.position + 1;
    this.#isRefused = outcome.kind === "refused";
    if (isNext && isStoredAt(outcome, claim.sequence)) this.#takeFrame(claim);
    else this.#readNext();
  }

  /**
   * The frames at the beginning of the window that are stored are in the chain. After a pause, in which the stream could
   * have lost its end and another node could have filled the same places, it must show the frame before them first.
   */
  #confirmStored(): void {
    while (this.#window.frames[0]?.state === "stored") {
      if (this.#now - this.#verifiedAt >= replicaVerifiedMs) {
        this.#probe();
        return;
      }
      const { frame, completes } = this.#window.confirm();
      assert(this.#chain.verdictOn(frame).kind === "valid", "a leader's frame is valid");
      const { delivery } = this.#chain.take(frame);
      this.#progressed();
      this.#progressAt = this.#now;
      this.#verifiedAt = this.#now;
      this.#retryAt = null;
      if (completes === null) continue;
      if (delivery !== null) this.#unapplied.add(frame.sequence, 0);
      this.#effects.settled(completes, "committed", this.#chain.mark);
    }
    // Refused because the preceding frames were not stored yet.
    for (const inFlight of this.#window.frames) {
      if (inFlight.state === "doubtful") this.#send(inFlight);
    }
    this.#pump();
  }

  /** Requests the message at the next position from the stream. */
  #readNext(): void {
    if (this.#readToken !== 0) return;
    this.#retryAt = null;
    if (this.#unapplied.isFull) {
      this.#retryLater();
      return;
    }
    this.#readToken = ++this.#tokens;
    this.#readSequence = this.#chain.position + 1;
    this.#effects.read(this.#readToken, this.#readSequence);
  }

  readDone(token: number, answer: Buffer | null | "unavailable"): void {
    if (this.#role === "stopped") return;
    if (token === this.#probeToken) {
      this.#probeToken = 0;
      this.#probeDone(answer);
      return;
    }
    if (token !== this.#readToken) return;
    this.#readToken = 0;
    const sequence = this.#readSequence;
    if (sequence === this.#chain.position + 1) {
      if (answer === null || answer === "unavailable") {
        this.#hidden = answer === null && this.#isRefused ? this.#hidden + 1 : 0;
        // The stream has something there that it does not show.
        if (this.#hidden >= missesMin && this.#role === "candidate") this.#unreadable(sequence);
        else if (this.#isDoubted && this.#role === "leader") this.resign();
        else if (this.#isOpen()) this.#retryLater();
        return;
      }
      const frame = this.#decode(sequence, answer);
      if (frame === null) {
        this.#unreadable(sequence);
        return;
      }
      this.#takeFrame(frame);
    }
    // There may be more to read before the claimed position.
    if (this.#isOpen() && this.#retryAt === null) this.#readNext();
  }

  /** Returns whether an open frame or claim has no append in flight. */
  #isOpen(): boolean {
    if (this.#claim !== null) return this.#claimToken === 0;
    return this.#window.frames[0]?.state === "doubtful";
  }

  #retryLater(): void {
    this.#retryAt = this.#now + replicaRetryMs * 2 ** Math.min(this.#retries, 4);
    this.#retries++;
  }

  #appendAgain(): void {
    if (this.#claim !== null) {
      this.#appendClaim();
      return;
    }
    for (const inFlight of this.#window.frames) {
      if (inFlight.state === "doubtful") this.#send(inFlight);
    }
  }

  /** The frame at the next position cannot be read from the stream: this node needs it from elsewhere. */
  #unreadable(sequence: number): void {
    if (this.#role === "leader") this.#stepDown("unknown");
    this.#framesMissing(sequence);
  }

  #isStalled(): boolean {
    if (this.#window.isEmpty && this.#claim === null) return false;
    return this.#now - this.#progressAt >= replicaStallMs;
  }

  resign(): void {
    if (this.#role !== "leader" && this.#role !== "candidate") return;
    this.#postpone(2);
    this.#leaderTag = null;
    this.#stepDown("unknown");
  }

  /** @param sent settlement of proposals whose frames were all appended */
  #stepDown(sent: "lost" | "unknown"): void {
    this.#settleAll(sent);
    this.#dropClaim();
    this.#isFenced = false;
    this.#fencedOn = null;
    this.#role = "follower";
    this.#announce();
    if (!this.#isFollowing && !this.#isPaused) this.#follow();
  }

  #settleAll(sent: "lost" | "unknown"): void {
    this.#sent.clear();
    for (const { token, wasSent } of this.#window.drain()) {
      this.#effects.settled(token, wasSent ? sent : "lost", null);
    }
  }

  // Guards

  /** Compares the last frame, or the frame before its fence, with the stream's. */
  #probe(): void {
    if (this.#probeToken !== 0 || this.#chain.position === 0) return;
    this.#probeAt = this.#now + replicaProbeMs;
    const { position: sequence, lastHash: hash } = this.#chain;
    this.#compare(this.#fencedOn ?? { sequence, hash });
  }

  #compare(checkpoint: Checkpoint): void {
    this.#probed = checkpoint;
    this.#probeToken = ++this.#tokens;
    this.#effects.read(this.#probeToken, checkpoint.sequence);
  }

  #probeDone(answer: Buffer | null | "unavailable"): void {
    const { sequence, hash } = this.#probed;
    const isLast = sequence === (this.#fencedOn?.sequence ?? this.#chain.position);
    if (answer === null || answer === "unavailable") {
      if (answer === null && isLast) this.#missed(sequence);
      this.#probeAt = Math.min(this.#probeAt, this.#now + replicaRetryMs * 2);
      return;
    }
    const frame = this.#decode(sequence, answer);
    if (frame === null) return;
    if (frame.hash !== hash) {
      this.#block(`the stream has another frame ${sequence} than the own log: it lost what it had`);
      return;
    }
    if (isLast) {
      this.#misses = 0;
      this.#verifiedAt = this.#now;
      this.#probeCheckpoint();
    }
    if (isLast && this.#fencedOn !== null) {
      this.#fencedOn = null;
      if (this.#role === "leader") this.#announce();
      this.#serveWhenApplied();
    }
    if (this.#role === "leader") this.#confirmStored();
    else if (isLast && this.#role === "follower" && this.#mayStand()) this.#stand();
  }

  /** Compares the next of the frames that the stream had earlier, which it may have lost in the meantime. */
  #probeCheckpoint(): void {
    const checkpoint = this.#checkpoints.shift();
    this.#remember(this.#probed);
    if (checkpoint === undefined || checkpoint.sequence === this.#probed.sequence) return;
    this.#remember(checkpoint);
    this.#compare(checkpoint);
  }

  #remember({ sequence, hash }: Checkpoint): void {
    if (this.#checkpoints.some((one) => one.sequence === sequence)) return;
    this.#checkpoints.push({ sequence, hash });
    if (this.#checkpoints.length > checkpointsMax) this.#checkpoints.shift();
  }

  #missed(sequence: number): void {
    if (this.#misses === 0 || sequence !== this.#missing) {
      this.#missing = sequence;
      this.#missingSince = this.#now;
      this.#misses = 0;
    }
    this.#misses++;
    if (this.#misses < missesMin || this.#now - this.#missingSince < replicaMissingMs) return;
    this.#block(`the stream does not have frame ${sequence} of the own log: it lost what it had`);
  }

  #block(reason: string): void {
    this.#stop();
    this.#effects.blocked(reason);
  }

  storeFailed(): void {
    if (this.#role !== "stopped") this.#stop();
  }

  #stop(): void {
    this.#settleAll("unknown");
    this.#dropClaim();
    this.#stopFollowing();
    this.#isRequestingRange = false;
    this.#role = "stopped";
    this.#leaderTag = null;
    this.#announce();
  }
}

function isStoredAt(outcome: AppendOutcome, sequence: number): boolean {
  return outcome.kind === "stored" && outcome.sequence === sequence;
}

function totalBytes(pieces: readonly Buffer[]): number {
  let total = 0;
  for (const piece of pieces) total += piece.length;
  return total;
}
