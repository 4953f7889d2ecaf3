/**
 * Binds an open database to the protocol that replicates its log (engine/replication): the frames of its log are
 * proposed while it leads, the groups of the leader are added while it follows, and the contents of attachments precede
 * the groups that refer to them.
 *
 * A leader that stopped leading has staged groups that may never be committed: its log stops, and the database is
 * opened again from its own files, as a follower. Each opening has a `DatabaseReplication` of its own.
 *
 * Invariants:
 * - Nothing is written to the log of this node before the stream has it.
 * - The mark in the log is the position in the stream up to which the log is a copy.
 */
import { assert } from "../../base/assert.ts";
import type { Clock, Report, Timer } from "../../base/environment.ts";
import { EngineError } from "../../base/errors.ts";
import { contentChunkBytesMax, framesInFlightMax } from "../../base/limits.ts";
import { pauseIfDue } from "../../base/scheduling/time-slices.ts";
import {
  markRecord,
  type ReplicationMark,
  replicationMarkKey,
} from "../../state/keyspaces/replication-marks.ts";
import type { Lease } from "../../storage/log/blob-store.ts";
import type { LogCarrier } from "../../storage/log/log-carrier.ts";
import { Replica } from "../../storage/replication/replica.ts";
import type {
  Delivery,
  Heartbeat,
  Mark,
  Proposal,
  ReplicaEffects,
  ReplicaRole,
  Settlement,
} from "../../storage/replication/replica-types.ts";
import type { ReplicatedStream } from "../../storage/replication/replicated-stream.ts";
import { IncomingContents } from "./incoming-contents.ts";
import { type FetchContent, MissingContents } from "./missing-contents.ts";
import type { OpenDatabase } from "./open-database.ts";

/** Notifications about the replication of a database. Called in separate ticks of the event loop. */
export interface ReplicationWatcher {
  /** `leaderTag` null: not known. */
  roleChanged(role: ReplicaRole, epoch: number, leaderTag: string | null): void;
  /** Replication cannot continue from the own log: the files must be replaced by those of another node. */
  needSnapshot(reason: string): void;
  /** The stream contradicts its own log: it neither leads nor follows until an operator decides. */
  blocked(reason: string): void;
  /**
   * Fetches frames that the stream does not have, from `from` to `to`; null: no node has them; empty: they are not
   * available now. `previous` is the hash of the frame before.
   */
  fetchRange(from: number, to: number, previous: string): Promise<readonly Buffer[] | null>;
  /**
   * The own log has durably applied more of the stream. Called synchronously for each group commit: it must be quick.
   */
  progressed?(): void;
}

export interface ReplicationOptions {
  /** Of the database, which all copies share: 32 hexadecimal digits. */
  readonly databaseId: string;
  /** The node tag in change vectors, which all copies share. */
  readonly originTag: string;
  readonly stream: ReplicatedStream;
  readonly generation: number;
  /** Of this node. */
  readonly tag: string;
  /** See `ReplicaOptions`. */
  readonly standAfterMs: number;
  readonly isSeed: boolean;
  readonly watcher: ReplicationWatcher;
  /** Gets contents of attachments that are missing here from other nodes; left out: they stay missing. */
  readonly fetchContent?: FetchContent;
}

/** Replication parameters that all databases of a node share. */
interface ReplicationEnvironment {
  readonly clock: Clock;
  random(count: number): Buffer;
  readonly report: Report;
}

/** In the values of the database. */
const trimmedKey = "replication/trimmed";
const tickMs = 100;
/**
 * Time without a tick that shows that the process was suspended, in milliseconds: the protocol must be notified before
 * any other input.
 */
const sleptMs = 200;
/** Of the last frames of a leader that ends. */
const finishMs = 5_000;

/** A promise with its ends. */
interface Deferred<Value> {
  readonly promise: Promise<Value>;
  resolve(value: Value): void;
  reject(error: EngineError): void;
}

function deferred<Value>(): Deferred<Value> {
  let resolve: (value: Value) => void = () => undefined;
  let reject: (error: EngineError) => void = () => undefined;
  const promise = new Promise<Value>((onValue, onError) => {
    resolve = onValue;
    reject = onError;
  });
  return { promise: silent(promise), resolve, reject };
}

/** One that may be rejected before anybody waits for it. */
function silent<Value>(promise: Promise<Value>): Promise<Value> {
  promise.catch(() => undefined);
  return promise;
}

export class DatabaseReplication implements LogCarrier, ReplicaEffects {
  readonly #options: ReplicationOptions;
  readonly #environment: ReplicationEnvironment;
  #database: OpenDatabase | null = null;
  #replica: Replica | null = null;
  #subscription: { stop(): void } | null = null;
  #timer: Timer | null = null;
  #isLeading = false;
  #isClosed = false;
  /** Proposals that are not settled, by token. */
  readonly #proposals = new Map<number, Deferred<Mark>>();
  /** The marks of frames that the own log has not made durable yet, by their records. */
  readonly #marks = new Map<Buffer, Mark>();
  /** The mark of the newest group of another node in the log; null if the log has no such group. */
  #appended: Mark | null = null;
  readonly #deliveries: Delivery[] = [];
  #isDelivering = false;
  /** Resolves when the groups that were delivered so far are durable. */
  #groupsDurable: Promise<void> = Promise.resolve();
  #tickedMs = 0;
  /** Callbacks of readers that wait until more is visible. */
  readonly #waiting = new Set<() => void>();
  #contents: IncomingContents | null = null;
  #missing: MissingContents | null = null;

  constructor(options: ReplicationOptions, environment: ReplicationEnvironment) {
    this.#options = options;
    this.#environment = environment;
  }

  /** Of this node. */
  get tag(): string {
    return this.#options.tag;
  }

  /** Properties that all copies of the database share. */
  get identity(): Pick<ReplicationOptions, "databaseId" | "originTag"> {
    return this.#options;
  }

  /** Begins to follow. Once, when the database has been opened with this as the carrier of its log. */
  attach(database: OpenDatabase): void {
    assert(this.#database === null, "a replication is of one opening of a database");
    this.#database = database;
    database.follow();
    database.blobs.carrier = (lease) => this.#carryContent(lease);
    this.#contents = new IncomingContents(database.blobs, this.#environment.clock);
    const { fetchContent } = this.#options;
    if (fetchContent !== undefined) {
      this.#missing = new MissingContents(database.blobs, this.#environment.clock, fetchContent);
    }
    const { replication } = database.state.keyspaces;
    const mark = replication.get(replicationMarkKey) ?? null;
    this.#appended = mark;
    const { databaseId, generation, tag, standAfterMs, isSeed } = this.#options;
    this.#replica = new Replica(
      {
        databaseId,
        generation,
        tag,
        incarnation: this.#environment.random(8).toString("hex"),
        mark,
        standAfterMs,
        isSeed,
      },
      this,
    );
    this.#tickedMs = this.#environment.clock.monotonicMs();
    this.#replica.start(this.#tickedMs);
    this.#tickLater();
  }

  /**
   * The protocol, which is first notified of the time if this process was suspended. Null if this copy does not take
   * part.
   */
  get #present(): Replica | null {
    if (this.#isClosed || this.#replica === null) return null;
    const nowMs = this.#environment.clock.monotonicMs();
    if (nowMs - this.#tickedMs > sleptMs) this.#tick(this.#replica, nowMs);
    // Learning the time may have ended its part.
    return this.#isClosed ? null : this.#replica;
  }

  #tick(replica: Replica, nowMs: number): void {
    this.#tickedMs = nowMs;
    replica.tick(nowMs);
  }

  /** The heartbeat that this node sends to the others. */
  get heartbeat(): Heartbeat {
    const { tag } = this.#options;
    const replica = this.#replica;
    if (replica === null || this.#isClosed) return { tag, role: "stopped", epoch: 0, applied: 0 };
    return { tag, role: replica.role, epoch: replica.epoch, applied: replica.applied };
  }

  get role(): ReplicaRole {
    return this.#isClosed ? "stopped" : (this.#replica?.role ?? "follower");
  }

  get leaderTag(): string | null {
    return this.#replica?.leaderTag ?? null;
  }

  /** Position of the own log in the stream; null if it has no frame of it. */
  get mark(): ReplicationMark | null {
    return this.#database?.state.keyspaces.replication.get(replicationMarkKey) ?? null;
  }

  /** The last message of the stream that readers here see; 0: none of the present generation. */
  get visible(): number {
    const { mark } = this;
    return mark?.generation === this.#options.generation ? mark.sequence : 0;
  }

  /** Resolves when `visible` is at least `sequence`; false: it was not for `ms`, or this part has ended. */
  whenVisible(sequence: number, ms: number): Promise<boolean> {
    if (this.visible >= sequence) return Promise.resolve(true);
    if (this.#isClosed) return Promise.resolve(false);
    return new Promise((resolve) => {
      const look = () => {
        const isSo = this.visible >= sequence;
        if (!isSo && !this.#isClosed) return;
        end(isSo);
      };
      const end = (isSo: boolean) => {
        timer.cancel();
        this.#waiting.delete(look);
        resolve(isSo);
      };
      const timer = this.#environment.clock.setTimer(ms, () => end(false));
      this.#waiting.add(look);
    });
  }

  /** Contents of attachments that are missing on this node, as far as it knows. */
  get missingContents(): number {
    return this.#missing?.count ?? 0;
  }

  /**
   * Records in the own log how much of the stream was removed; on the leader. Frames without a group do not move the
   * mark, and frames after the mark must not be removed: this write moves it. @throws EngineError not-leader,
   * outcome-unknown
   */
  async noteTrim(below: number): Promise<void> {
    await this.#database?.write((transaction) =>
      transaction.putEntry(transaction.keyspaces.values, trimmedKey, { below }),
    );
  }

  /** Processes a heartbeat of another node. */
  heard(heartbeat: Heartbeat): void {
    this.#present?.heard(heartbeat);
  }

  /** Tries to lead in place of the node that does. */
  stand(): void {
    this.#present?.stand();
  }

  /** Excludes this node from leading until called with false. */
  abstain(isAbstaining: boolean): void {
    this.#present?.abstain(isAbstaining);
  }

  /** Has the database opened again from its files, if its part has stopped. */
  restart(): void {
    if (this.role === "stopped" && !this.#isClosed) this.#database?.stopFor(this.#unknown());
  }

  /** Lets another node lead. Writes in flight fail with an unknown outcome. */
  resign(): void {
    this.#present?.resign();
  }

  /**
   * Resolves when it is certain that this node led after the call: whatever was acknowledged before by any node is then
   * visible here. @throws EngineError not-leader, outcome-unknown
   */
  async confirm(): Promise<void> {
    await this.#propose({ kind: "barrier" });
  }

  /** Before the log is closed: waits until it is durable, a few seconds at most, and stops taking part. */
  async finish(): Promise<void> {
    const { clock } = this.#environment;
    if (this.#database !== null) {
      await Promise.race([
        this.#database.flush().catch(() => undefined),
        new Promise<void>((resolve) => clock.setTimer(finishMs, resolve)),
      ]);
    }
    this.close();
  }

  /** Stops taking part immediately. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#timer?.cancel();
    this.#replica?.resign();
    this.stopFollowing();
    this.#contents?.close();
    this.#missing?.close();
    for (const one of this.#proposals.values()) one.reject(this.#unknown());
    this.#proposals.clear();
    for (const look of [...this.#waiting]) look();
  }

  #tickLater(): void {
    const { clock } = this.#environment;
    this.#timer = clock.setTimer(tickMs, () => {
      if (this.#isClosed || this.#replica === null) return;
      this.#tick(this.#replica, clock.monotonicMs());
      if (!this.#isClosed) this.#tickLater();
    });
  }

  // From the log

  get isSending(): boolean {
    return this.#isLeading;
  }

  carry(payload: Buffer): Promise<Buffer> {
    // The frame can no longer be carried, so it must not be written here either, regardless of its origin.
    if (this.#isClosed) return silent(Promise.reject(this.#notLeading()));
    if (this.#isLeading) {
      const proposed = this.#propose({ kind: "group", pieces: [payload] });
      return silent(proposed.then((mark) => this.#recordOf(mark)));
    }
    assert(this.#appended !== null, "a follower's log has groups of others");
    return Promise.resolve(this.#recordOf(this.#appended));
  }

  durable(record: Buffer): void {
    const mark = this.#marks.get(record);
    assert(mark !== undefined, "the log returns only marks that it received");
    this.#marks.delete(record);
    this.#present?.durable(mark.sequence);
    this.#options.watcher.progressed?.();
    for (const look of [...this.#waiting]) look();
  }

  #recordOf(mark: Mark): Buffer {
    const record = markRecord(mark);
    this.#marks.set(record, mark);
    return record;
  }

  /** @throws (rejects) EngineError not-leader, outcome-unknown */
  #propose(proposal: Proposal): Promise<Mark> {
    const token = this.#present?.propose(proposal) ?? null;
    if (token === null) return silent(Promise.reject(this.#notLeading()));
    const settled = deferred<Mark>();
    this.#proposals.set(token, settled);
    return settled.promise;
  }

  /** Before a content is referred to: every node has it before the group that does. */
  async #carryContent({ hash, size }: Lease): Promise<void> {
    const database = this.#database;
    if (!this.#isLeading || database === null) return;
    const sha256 = Buffer.from(hash, "base64").toString("hex");
    const reader = await database.blobs.open(hash);
    try {
      const underWay: Promise<Mark>[] = [];
      const send = (offset: number, bytes: Buffer) =>
        underWay.push(this.#propose({ kind: "content", sha256, offset, total: size, bytes }));
      if (size === 0) send(0, Buffer.alloc(0));
      for (let offset = 0; offset < size; offset += contentChunkBytesMax) {
        const end = Math.min(offset + contentChunkBytesMax, size);
        const chunks: Buffer[] = [];
        for await (const chunk of reader.read(offset, end)) chunks.push(Buffer.from(chunk));
        send(offset, Buffer.concat(chunks));
        if (underWay.length >= framesInFlightMax) await underWay.shift();
      }
      await Promise.all(underWay);
    } finally {
      await reader.close();
    }
  }

  // Effects of the protocol

  append(token: number, bytes: Buffer, expectedLast: number): void {
    void this.#options.stream.append(bytes, expectedLast).then((outcome) => {
      this.#present?.appended(token, outcome);
    });
  }

  later(): void {
    setImmediate(() => this.#present?.resume());
  }

  read(token: number, sequence: number): void {
    const respond = (answer: Buffer | null | "unavailable") => {
      this.#present?.readDone(token, answer);
    };
    this.#options.stream.read(sequence).then(respond, () => respond("unavailable"));
  }

  follow(id: number, from: number): void {
    this.stopFollowing();
    if (this.#isClosed) return;
    this.#subscription = this.#options.stream.follow(from, {
      message: (sequence, bytes) => {
        this.#present?.message(id, sequence, bytes);
      },
      interrupted: () => {
        this.#present?.followInterrupted(id);
      },
    });
  }

  stopFollowing(): void {
    this.#subscription?.stop();
    this.#subscription = null;
  }

  deliver(delivery: Delivery): void {
    this.#deliveries.push(delivery);
    if (this.#isDelivering) return;
    this.#isDelivering = true;
    void this.#deliverAll().finally(() => {
      this.#isDelivering = false;
    });
  }

  async #deliverAll(): Promise<void> {
    // Not synchronously within the protocol's call.
    await Promise.resolve();
    try {
      for (
        let next = this.#deliveries.shift();
        next !== undefined;
        next = this.#deliveries.shift()
      ) {
        if (next.kind === "group") await this.#addGroup(next.pieces, next.mark);
        else {
          const { sequence } = next.mark;
          await this.#contents?.add(next);
          // Not before the groups in front of it, which may only be appended.
          this.#groupsDurable.then(
            () => this.#present?.durable(sequence),
            () => undefined,
          );
        }
      }
    } catch (error) {
      this.#failed(error);
    }
  }

  /** Resolves when the group is in the log: the next one need not wait until it is durable. */
  async #addGroup(pieces: readonly Buffer[], mark: Mark): Promise<void> {
    const database = this.#database;
    if (database === null || this.#isClosed) return;
    const [first, ...others] = pieces;
    const group = others.length === 0 && first !== undefined ? first : await joined(pieces);
    await new Promise<void>((resolve, reject) => {
      const whenAppended = () => {
        this.#appended = mark;
        resolve();
      };
      this.#groupsDurable = database.addGroup(group, whenAppended);
      this.#groupsDurable.catch((error: unknown) => {
        reject(error as Error);
        this.#failed(error);
      });
    });
  }

  /** The own log accepts no further groups. Its owner opens it again. */
  #failed(error: unknown): void {
    if (this.#isClosed) return;
    this.#present?.storeFailed();
    this.#database?.stopFor(error);
  }

  settled(token: number, settlement: Settlement, mark: Mark | null): void {
    const proposal = this.#proposals.get(token);
    this.#proposals.delete(token);
    if (settlement === "committed" && mark !== null) proposal?.resolve(mark);
    else proposal?.reject(settlement === "lost" ? this.#notLeading() : this.#unknown());
  }

  roleChanged(role: ReplicaRole, epoch: number, leaderTag: string | null): void {
    const hasLed = this.#isLeading;
    this.#isLeading = role === "leader";
    if (this.#isLeading && !hasLed) this.#database?.lead();
    // Its staged groups may never be committed: its memory differs from a follower's.
    if (hasLed && !this.#isLeading) this.#database?.stopFor(this.#unknown());
    this.#options.watcher.roleChanged(role, epoch, leaderTag);
  }

  needRange(from: number, to: number, previous: string): void {
    const respond = (frames: readonly Buffer[] | null) => {
      this.#present?.rangeDone(frames);
    };
    this.#options.watcher.fetchRange(from, to, previous).then(respond, () => respond([]));
  }

  needSnapshot(reason: string): void {
    this.alarm(`needs a copy of another node's files: ${reason}`);
    this.#options.watcher.needSnapshot(reason);
  }

  blocked(reason: string): void {
    this.alarm(`is blocked: ${reason}`);
    this.#options.watcher.blocked(reason);
  }

  alarm(text: string): void {
    this.#environment.report(`The replica of database '${this.#name}' on this node: ${text}`);
  }

  get #name(): string {
    return this.#database?.name ?? "";
  }

  #notLeading(): EngineError {
    return new EngineError(
      "not-leader",
      `This node does not lead database '${this.#name}' any more: nothing was written. Another node does, or will soon.`,
    );
  }

  #unknown(): EngineError {
    return new EngineError(
      "outcome-unknown",
      `This node stopped leading database '${this.#name}' before it knew what became of the write: it may have been kept or not. Read it before you write it again.`,
    );
  }
}

/** Joins the chunks in one buffer, copied in slices. */
async function joined(pieces: readonly Buffer[]): Promise<Buffer> {
  const group = Buffer.allocUnsafe(pieces.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const piece of pieces) {
    at += piece.copy(group, at);
    await pauseIfDue();
  }
  return group;
}
