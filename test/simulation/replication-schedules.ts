/**
 * Runs the replication protocol under schedules generated from seeds: a few nodes over one
 * simulated stream that replies late, wrongly or not at all, nodes that crash, pause and return
 * with less data, and clocks that differ. After each step the invariants are checked against a
 * model that knows the contents of the stream (test/support/replication-truth.ts).
 *
 * For long runs: `npm run --silent build && node dist/test/simulation/replication-schedules.js
 * --schedules 1000000 --seed 1`. A failure prints its seed and its events; `--trace` shows a successful schedule, and `--shrink` searches for a shorter failing schedule.
 */
import { parseArgs } from "node:util";
import { zeroHash } from "../../engine/storage/replication/frame.ts";
import { Replica } from "../../engine/storage/replication/replica.ts";
import type {
  Delivery,
  Mark,
  Proposal,
  ReplicaEffects,
  ReplicaInputs,
  ReplicaOptions,
  ReplicaRole,
  Settlement,
} from "../../engine/storage/replication/replica-types.ts";
import type { AppendOutcome } from "../../engine/storage/replication/replicated-stream.ts";
import { SeededRandom } from "../support/random.ts";
import { type Kept, ReplicationTruth } from "../support/replication-truth.ts";

/** The replica under test, or a mutated copy of it. */
export type CreateReplica = (
  options: ReplicaOptions,
  effects: ReplicaEffects,
) => ReplicaInputs & {
  readonly role: ReplicaRole;
  readonly epoch: number;
  readonly position: number;
  readonly applied: number;
  readonly mark: Mark;
};

type Subject = ReturnType<CreateReplica>;

const createReplica: CreateReplica = (options, effects) => new Replica(options, effects);
const databaseId = "db";
const partBytesMax = 12;

/** Thrown when an invariant is violated. */
class InvariantViolation extends Error {
  override readonly name = "BrokenPromise";
}

type Operation =
  | { kind: "append"; node: Node; life: number; token: number; bytes: Buffer; last: number }
  /** Stored although no node waits for it. */
  | { kind: "late"; bytes: Buffer; last: number }
  | { kind: "appended"; node: Node; life: number; token: number; outcome: AppendOutcome }
  | { kind: "later"; node: Node; life: number }
  | { kind: "read"; node: Node; life: number; token: number; sequence: number }
  | { kind: "answer"; node: Node; life: number; token: number; answer: Answer }
  | { kind: "durable"; node: Node; life: number; sequence: number }
  | { kind: "interrupted"; node: Node; life: number; id: number }
  | { kind: "range"; node: Node; life: number; from: number; to: number };

type Answer = Buffer | null | "unavailable";

/** The severity of faults in a schedule. All values except counts are probabilities. */
interface Weather {
  readonly unknown: number;
  readonly late: number;
  readonly refused: number;
  readonly stale: number;
  readonly unavailable: number;
  readonly repeated: number;
  readonly disorder: number;
  readonly fault: number;
  /** Probability of a lost heartbeat. */
  readonly silence: number;
  readonly propose: number;
}

const calm: Weather = {
  unknown: 0,
  late: 0,
  refused: 0,
  stale: 0,
  unavailable: 0,
  repeated: 0,
  disorder: 0,
  fault: 0,
  silence: 0,
  propose: 0,
};

/** Faults of the stream in a schedule, beyond its specification. */
type Damage = "none" | "loses" | "hides";

class Node implements ReplicaEffects {
  readonly tag: string;
  readonly #world: Schedule;
  replica: Subject;
  /** The number of its starts: replies for an earlier life are dropped. */
  life = 0;
  now: number;
  isUp = true;
  isPaused = false;
  followId = 0;
  cursor = 0;
  isFollowed = false;
  isLeading = false;
  /**
   * The contents of its log, in memory and on disk: the first `durable` of them survive a crash for
   * certain.
   */
  kept: Kept[];
  durable: number;
  readonly open = new Map<number, { id: number; isContent: boolean; isBarrier: boolean }>();
  stopReason: string | null = null;
  needsSnapshot = false;
  isAskedRange = false;
  /** Not a member, so it must not lead. */
  isAbstaining = false;
  /** Reads and messages that are still answered from an old state, which ends at `view`. */
  readonly staleLeft = { reads: 0, again: 0, messages: 0 };
  view = 0;
  readonly standAfterMs: number;
  /** Starts the generation, as long as its own log is empty. */
  readonly #isSeed: boolean;

  constructor(world: Schedule, index: number, kept: readonly Kept[], isSeed: boolean) {
    this.#world = world;
    this.tag = "ABCDE"[index] as string;
    this.now = world.random.below(100_000);
    this.standAfterMs = 3000 + world.random.below(2000);
    this.kept = [...kept];
    this.durable = kept.length;
    this.#isSeed = isSeed;
    this.replica = this.start();
  }

  /** Starts from its disk. */
  start(): Subject {
    const mark = this.kept.at(-1)?.mark ?? null;
    this.life++;
    this.isUp = true;
    this.isPaused = false;
    this.isFollowed = false;
    this.isLeading = false;
    this.stopReason = null;
    this.needsSnapshot = false;
    this.isAskedRange = false;
    this.open.clear();
    const { databaseId: id, generation } = this.#world;
    const incarnation = `${this.life}-${this.#world.random.below(2 ** 30)}`;
    const options = { databaseId: id, generation, tag: this.tag, incarnation, mark };
    const { standAfterMs } = this;
    const isSeed = this.#isSeed && mark?.generation !== generation;
    this.replica = this.#world.make(
      { ...options, isSeed, standAfterMs, partBytesMax, unappliedBytesMax: 100 },
      this,
    );
    if (this.isAbstaining) this.replica.abstain(true);
    this.replica.start(this.now);
    return this.replica;
  }

  append(token: number, bytes: Buffer, last: number): void {
    this.#world.later({ kind: "append", node: this, life: this.life, token, bytes, last });
  }

  later(): void {
    this.#world.soon({ kind: "later", node: this, life: this.life });
  }

  read(token: number, sequence: number): void {
    this.#world.later({ kind: "read", node: this, life: this.life, token, sequence });
  }

  follow(id: number, from: number): void {
    this.followId = id;
    this.cursor = from;
    this.isFollowed = true;
  }

  stopFollowing(): void {
    this.isFollowed = false;
  }

  deliver(delivery: Delivery): void {
    const { mark } = delivery;
    const isContent = delivery.kind === "content";
    const id = isContent ? contentId(delivery) : groupId(delivery.pieces);
    this.#world.keep(this, { id, isContent, mark });
    this.#world.later({ kind: "durable", node: this, life: this.life, sequence: mark.sequence });
  }

  settled(token: number, settlement: Settlement, mark: Mark | null): void {
    this.#world.settle(this, token, settlement, mark);
  }

  roleChanged(role: ReplicaRole, epoch: number, leaderTag: string | null): void {
    this.#world.changed(this, role, epoch, leaderTag);
  }

  needRange(from: number, to: number): void {
    this.isAskedRange = true;
    this.#world.later({ kind: "range", node: this, life: this.life, from, to });
  }

  needSnapshot(reason: string): void {
    this.#world.note(() => `${this.tag} needs a snapshot: ${reason}`);
    this.needsSnapshot = true;
  }

  blocked(reason: string): void {
    this.#world.blocked(this, reason);
  }

  alarm(text: string): void {
    this.#world.note(() => `${this.tag} alarm: ${text}`);
  }
}

interface ScheduleReport {
  readonly steps: number;
  readonly kept: number;
  readonly epochs: number;
  readonly stopped: number;
  readonly voids: number;
}

class Schedule {
  readonly databaseId = databaseId;
  readonly random: SeededRandom;
  readonly make: CreateReplica;
  readonly trace: string[] | null;
  generation = 1;
  readonly #truth: ReplicationTruth;
  readonly #damage: Damage;
  readonly #isTrimmed: boolean;
  #weather: Weather;
  #isOver = false;
  readonly #nodes: Node[] = [];
  #pending: Operation[] = [];
  #ids = 1000;
  #step = 0;
  readonly #lost = new Set<number>();
  readonly #leaderOf = new Map<number, string>();
  /**
   * The previous payload of each payload on any node: it is unique, even if the stream loses
   * something.
   */
  readonly #before = new Map<number, number>();
  #hasLost = false;
  /** Sequences that the stream skips while it hides some: from the first to the last. */
  #hidden: readonly [number, number] | null = null;
  readonly #steps: number;
  /** Probability that a clock jumps ahead by seconds. */
  readonly #haste: number;

  constructor(seed: number, make: CreateReplica = createReplica, trace: string[] | null = null) {
    const random = new SeededRandom(seed);
    this.random = random;
    this.make = make;
    this.trace = trace;
    const weather = weatherOf(random);
    const lot = random.below(100);
    this.#damage = lot < 10 ? "loses" : lot < 22 ? "hides" : "none";
    // Wrong behaviour of the stream is injected as a fault.
    const fault = Math.max(weather.fault, this.#damage === "none" ? 0 : 0.05);
    this.#weather = { ...weather, fault };
    this.#haste = 0.1 + 0.8 * random.next();
    this.#isTrimmed = random.chance(0.25);
    this.#steps = 60 + random.below(random.chance(0.2) ? 500 : 160);
    const count = random.chance(0.15) ? 5 : 3;
    const seeds = random.chance(0.15) ? seedOf(2 + random.below(4)) : [];
    if (seeds.length > 0) this.generation = 2;
    this.#truth = new ReplicationTruth(seeds);
    for (const [at, { id }] of seeds.entries()) this.#before.set(id, seeds[at - 1]?.id ?? 0);
    for (let index = 0; index < count; index++) {
      // A node with less than the mark that the generation continues needs a snapshot.
      const isWhole = index === 0 || seeds.length === 0 || random.chance(0.8);
      const own = isWhole ? seeds : seeds.slice(0, random.below(seeds.length));
      this.#nodes.push(new Node(this, index, own, isWhole && (index === 0 || random.chance(0.3))));
    }
  }

  /** @throws BrokenPromise */
  run(): ScheduleReport {
    for (this.#step = 0; this.#step < this.#steps; this.#step++) this.#doOne();
    this.#end();
    const { last } = this.#truth;
    let voids = 0;
    for (let at = 1; at <= last; at++) if (!this.#truth.isValid(at)) voids++;
    return {
      steps: this.#step,
      kept: this.#truth.kept.length,
      epochs: this.#leaderOf.size,
      stopped: this.#nodes.filter(({ stopReason }) => stopReason !== null).length,
      voids,
    };
  }

  note(text: () => string): void {
    this.trace?.push(`${this.#step}: ${text()}`);
  }

  /** Events local to a node: usually executed before all events in flight. */
  soon(operation: Operation): void {
    if (this.random.chance(0.8)) this.#pending.unshift(operation);
    else this.#pending.push(operation);
  }

  later(operation: Operation): void {
    this.#pending.push(operation);
  }

  // Invariants

  /** A node's log stores a payload: the next one of the stream, and nothing else. */
  keep(node: Node, kept: Kept): void {
    const { id, mark } = kept;
    this.note(() => `${node.tag} keeps ${id} of ${mark.sequence}, epoch ${mark.epoch}`);
    const at = node.kept.length;
    node.kept.push(kept);
    const before = node.kept[at - 1]?.id ?? 0;
    if (this.#before.has(id)) {
      check(this.#before.get(id) === before, () => `${node.tag} has ${id} after ${before}`);
    }
    this.#before.set(id, before);
    if (this.#hasLost) return;
    check(!this.#lost.has(id), () => `${id} was lost, and ${node.tag} has it`);
    const expected = this.#truth.kept[at];
    check(expected?.id === id, () => `${node.tag} keeps ${id} at ${at}, not ${expected?.id}`);
    check(isSameMark(expected?.mark, mark), () => `${node.tag} has another mark of ${id}`);
  }

  settle(node: Node, token: number, settlement: Settlement, mark: Mark | null): void {
    const proposal = node.open.get(token);
    node.open.delete(token);
    if (proposal === undefined) throw new InvariantViolation(`${node.tag} settles ${token} again`);
    const { id, isContent, isBarrier } = proposal;
    this.note(() => `${node.tag} settles ${id}: ${settlement} ${mark?.sequence ?? ""}`);
    if (settlement === "lost") {
      check(
        this.#hasLost || !this.#truth.ids.has(id),
        () => `${id} is in the chain, and reported as lost`,
      );
      this.#lost.add(id);
    }
    if (settlement !== "committed") return;
    check(mark !== null, () => `${id} is committed without a mark`);
    if (mark === null) return;
    if (!this.#hasLost) {
      check(this.#truth.isValid(mark.sequence), () => `${id} is committed as a void frame`);
      const { hash } = this.#truth.frameAt(mark.sequence) ?? {};
      check(hash === mark.hash, () => `${id} is committed, and the stream has another frame`);
    }
    if (isBarrier) return;
    this.keep(node, { id, isContent, mark });
    this.later({ kind: "durable", node, life: node.life, sequence: mark.sequence });
  }

  changed(node: Node, role: ReplicaRole, epoch: number, leaderTag: string | null): void {
    this.note(() => `${node.tag} is ${role} in epoch ${epoch}, led by ${leaderTag}`);
    const wasLeading = node.isLeading;
    node.isLeading = role === "leader";
    const mayStand = role === "follower" || role === "stopped" || !node.isAbstaining;
    check(mayStand, () => `${node.tag} is ${role}, and no member`);
    if (role !== "leader") return;
    const isApplied = wasLeading || node.durable === node.kept.length;
    check(isApplied, () => `${node.tag} leads before its log has everything`);
    const name = `${node.tag}${node.life}`;
    const other = this.#leaderOf.get(epoch);
    if (this.#hasLost) return;
    check(other === undefined || other === name, () => `${name} and ${other} lead in ${epoch}`);
    this.#leaderOf.set(epoch, name);
    const { sequence } = node.replica.mark;
    const before = this.#truth.keptUpTo(sequence);
    check(node.kept.length === before, () => `${node.tag} leads, and has not read everything`);
    check(
      this.#truth.frameAt(sequence)?.epoch === epoch,
      () => `${node.tag} leads without a fence`,
    );
  }

  blocked(node: Node, reason: string): void {
    this.note(() => `${node.tag} is blocked: ${reason}`);
    node.stopReason = reason;
    const isHole = this.#damage === "hides" && reason.includes("does not have frame");
    check(this.#hasLost || isHole, () => `${node.tag} is blocked without a reason: ${reason}`);
  }

  // Steps

  #doOne(): void {
    const { random } = this;
    const lot = random.next();
    const node = this.#nodes[random.below(this.#nodes.length)] as Node;
    const { fault, propose } = this.#weather;
    if (lot < fault) this.#disturb(node);
    else if (lot < fault + propose) this.#propose();
    else if (lot < fault + propose + 0.17) {
      this.#tick(node, random.chance(this.#haste) ? random.below(6000) : random.below(400));
    } else if (lot < fault + propose + 0.25) this.#beat(node);
    else if (lot < fault + propose + 0.42) this.#followOne(node);
    else this.#doPending();
  }

  #isRunning(node: Node): boolean {
    return node.isUp && !node.isPaused;
  }

  #tick(node: Node, ms: number): void {
    node.now += ms;
    // A stream that loses something does so in real time.
    if (this.#damage === "loses" && !this.#isOver) {
      for (const other of this.#nodes) if (other !== node) other.now += ms;
    }
    if (this.#isRunning(node)) node.replica.tick(node.now);
  }

  /** A heartbeat of `node` reaches the other nodes, or is lost. */
  #beat(node: Node): void {
    if (!this.#isRunning(node)) return;
    const { role, epoch, applied } = node.replica;
    for (const other of this.#nodes) {
      if (other === node || !this.#isRunning(other)) continue;
      if (this.random.chance(this.#weather.silence)) continue;
      other.replica.heard({ tag: node.tag, role, epoch, applied });
    }
  }

  #propose(): void {
    const leaders = this.#nodes.filter(
      (node) => this.#isRunning(node) && node.replica.role === "leader",
    );
    const node = leaders[this.random.below(leaders.length)];
    if (node === undefined) return;
    const count = 1 + this.random.below(this.random.chance(0.3) ? 6 : 2);
    for (let at = 0; at < count; at++) this.#proposeOn(node);
  }

  #proposeOn(node: Node, lot = this.random.below(10)): void {
    const id = this.#ids++;
    const proposal = proposalOf(id, lot);
    const token = node.replica.propose(proposal);
    this.note(() => `${node.tag} proposes ${id} (${proposal.kind}): ${token}`);
    if (token === null) return;
    const isBarrier = proposal.kind === "barrier";
    node.open.set(token, { id, isContent: proposal.kind === "content", isBarrier });
  }

  /** Delivers the next message to the node. */
  #followOne(node: Node): void {
    if (!this.#isRunning(node) || !node.isFollowed) return;
    const { random } = this;
    if (this.#isRepeated(node)) return;
    if (this.#isStale(node, "messages") && node.cursor > node.view) return;
    let sequence = Math.max(node.cursor, this.#truth.first);
    if (this.#isHidden(sequence)) {
      const [from, to] = this.#hidden as readonly [number, number];
      // A damaged message, or none.
      const bytes = this.#truth.bytesAt(sequence);
      if (bytes !== undefined && from % 2 === 0) {
        node.cursor = sequence + 1;
        node.replica.message(node.followId, sequence, damaged(bytes));
        return;
      }
      sequence = to + 1;
    }
    const bytes = this.#truth.bytesAt(sequence);
    if (bytes === undefined) return;
    node.cursor = sequence + 1;
    const id = random.chance(this.#weather.repeated / 4) ? node.followId - 1 : node.followId;
    if (id !== node.followId) node.cursor = sequence;
    node.replica.message(id, sequence, Buffer.from(bytes));
  }

  #isRepeated(node: Node): boolean {
    if (!this.random.chance(this.#weather.repeated) || node.cursor <= this.#truth.first)
      return false;
    const sequence = node.cursor - 1 - this.random.below(3);
    const bytes = this.#truth.bytesAt(sequence);
    if (bytes === undefined || this.#isHidden(sequence)) return false;
    node.replica.message(node.followId, sequence, Buffer.from(bytes));
    return true;
  }

  #isHidden(sequence: number): boolean {
    return this.#hidden !== null && sequence >= this.#hidden[0] && sequence <= this.#hidden[1];
  }

  /** Whether a server that lags answers the node. */
  #isStale(node: Node, what: "reads" | "again" | "messages"): boolean {
    const left = node.staleLeft;
    // Two replies that do not follow each other.
    if (left[what] > 0) {
      left[what]--;
      return left[what] > 1;
    }
    if (!this.random.chance(this.#weather.stale)) return false;
    left[what] = 2 + this.random.below(3);
    node.view = Math.max(0, this.#truth.last - this.random.below(6));
    return true;
  }

  #doPending(): void {
    const { length } = this.#pending;
    if (length === 0) return;
    const at = this.random.chance(this.#weather.disorder) ? this.random.below(length) : 0;
    const [operation] = this.#pending.splice(at, 1);
    if (operation !== undefined) this.#do(operation);
  }

  #do(operation: Operation): void {
    if (operation.kind === "late") {
      this.#store(operation.bytes, operation.last);
      return;
    }
    if (operation.kind === "append") {
      this.#append(operation);
      return;
    }
    const { node, life } = operation;
    if (node.life !== life || !node.isUp) return;
    if (node.isPaused) {
      this.#pending.push(operation);
      return;
    }
    node.replica.tick(node.now);
    switch (operation.kind) {
      case "appended":
        node.replica.appended(operation.token, operation.outcome);
        return;
      case "later":
        node.replica.resume();
        return;
      case "read":
        this.#read(operation);
        return;
      case "answer":
        node.replica.readDone(operation.token, operation.answer);
        return;
      case "interrupted":
        node.replica.followInterrupted(operation.id);
        return;
      case "range":
        this.#answerRange(node, operation.from, operation.to);
        return;
      default: {
        const { sequence } = operation;
        const isDurable = ({ mark }: Kept) =>
          mark.generation < this.generation || mark.sequence <= sequence;
        while (node.durable < node.kept.length && isDurable(node.kept[node.durable] as Kept)) {
          node.durable++;
        }
        node.replica.durable(sequence);
      }
    }
  }

  #append(operation: Operation & { kind: "append" }): void {
    const { node, life, token, bytes, last } = operation;
    const { unknown, late, refused } = this.#weather;
    const { random } = this;
    const answer = (outcome: AppendOutcome) =>
      this.later({ kind: "appended", node, life, token, outcome });
    if (random.chance(late)) {
      this.later({ kind: "late", bytes, last });
      answer({ kind: "unknown" });
      return;
    }
    if (random.chance(unknown)) {
      if (random.chance(0.6)) this.#store(bytes, last);
      answer({ kind: "unknown" });
      return;
    }
    if (random.chance(refused)) {
      if (random.chance(0.5)) this.#store(bytes, last);
      answer({ kind: "refused" });
      return;
    }
    const isStored = this.#store(bytes, last);
    answer(isStored ? { kind: "stored", sequence: last + 1 } : { kind: "refused" });
  }

  #store(bytes: Buffer, last: number): boolean {
    if (this.#truth.last !== last) return false;
    const id = this.#truth.store(Buffer.from(bytes));
    this.note(() => {
      const frame = this.#truth.frameAt(last + 1);
      const verdict = this.#truth.isValid(last + 1) ? "valid" : "void";
      return `stream ${last + 1}: type ${frame?.type} epoch ${frame?.epoch} ${verdict} ${id ?? ""}`;
    });
    const isLost = !this.#hasLost && id !== null && this.#lost.has(id);
    check(!isLost, () => `${id} was lost, and is in the chain`);
    return true;
  }

  #read(operation: Operation & { kind: "read" }): void {
    const { node, life, token, sequence } = operation;
    const isAgain = sequence <= node.replica.position;
    let answer: Answer = this.#truth.bytesAt(sequence) ?? null;
    if (answer !== null) answer = Buffer.from(answer as Buffer);
    if (this.random.chance(this.#weather.unavailable)) answer = "unavailable";
    else if (sequence < this.#truth.first) answer = null;
    else if (this.#isHidden(sequence)) answer = null;
    else if (this.#isStale(node, isAgain ? "again" : "reads") && sequence > node.view)
      answer = null;
    this.later({ kind: "answer", node, life, token, answer });
  }

  #answerRange(node: Node, from: number, to: number): void {
    node.isAskedRange = false;
    const { random } = this;
    if (from < this.#truth.first) {
      node.replica.rangeDone(null);
      return;
    }
    if (!this.#isOver && random.chance(0.3)) {
      node.replica.rangeDone([]);
      return;
    }
    const frames: Buffer[] = [];
    const withVoids = random.chance(0.5);
    for (let at = from; at <= Math.min(to, this.#truth.last); at++) {
      const bytes = this.#truth.bytesAt(at) as Buffer;
      if (!this.#isOver && random.chance(0.05)) frames.push(damaged(bytes));
      else if (withVoids || this.#truth.isValid(at)) frames.push(Buffer.from(bytes));
    }
    node.replica.rangeDone(frames);
  }

  // Faults

  #disturb(node: Node): void {
    const { random } = this;
    const lot = random.below(116);
    if (lot < 20) this.#crashOrStart(node);
    else if (lot < 40) {
      node.isPaused = !node.isPaused;
      this.note(() => `${node.tag} is ${node.isPaused ? "stopped" : "continued"}`);
    } else if (lot < 52) this.#interrupt(node);
    else if (lot < 66) {
      if (!this.#isRunning(node)) return;
      this.note(() => `${node.tag} resigns`);
      node.replica.resign();
    } else if (lot < 70) {
      if (!this.#isRunning(node)) return;
      this.note(() => `${node.tag}'s store fails`);
      node.replica.storeFailed();
      this.#crash(node);
    } else if (lot < 82) this.#trim();
    else if (lot < 92) {
      if (!this.#isRunning(node)) return;
      this.note(() => `${node.tag} is requested to become a candidate`);
      node.replica.stand();
    } else if (lot < 98) this.#abstain(node, !node.isAbstaining);
    else if (this.#damage === "loses") this.#lose();
    else if (this.#damage === "hides") this.#hide();
  }

  #abstain(node: Node, isAbstaining: boolean): void {
    if (!this.#isRunning(node)) return;
    this.note(() => `${node.tag} is ${isAbstaining ? "no" : "a"} member`);
    node.isAbstaining = isAbstaining;
    node.replica.abstain(isAbstaining);
  }

  #crashOrStart(node: Node): void {
    if (node.isUp) this.#crash(node);
    else this.#restart(node);
  }

  #crash(node: Node): void {
    node.isUp = false;
    // Writes that were not reported may or may not have reached the disk.
    const more = this.random.below(node.kept.length - node.durable + 1);
    node.kept.length = node.durable + more;
    // Its mark is that of the last group.
    while (node.kept.at(-1)?.isContent === true) node.kept.pop();
    node.durable = node.kept.length;
    this.note(() => `${node.tag} crashes, with ${node.kept.length} on its disk`);
  }

  #restart(node: Node): void {
    this.note(() => `${node.tag} starts with ${node.kept.length}`);
    node.start();
  }

  #interrupt(node: Node): void {
    if (!this.#isRunning(node) || !node.isFollowed) return;
    node.isFollowed = false;
    this.later({ kind: "interrupted", node, life: node.life, id: node.followId });
  }

  /** Removes the common payloads of all nodes, or, sometimes, of all but one. */
  #trim(): void {
    if (!this.#isTrimmed || this.#hasLost) return;
    const marks = this.#nodes.map((node) => this.#durableSequence(node));
    marks.sort((a, b) => a - b);
    const floor = marks[this.random.chance(0.2) ? 1 : 0] ?? 0;
    if (floor <= this.#truth.first) return;
    this.#truth.first = Math.min(floor, this.#truth.last);
    this.note(() => `the stream begins at ${this.#truth.first}`);
  }

  #durableSequence(node: Node): number {
    const groups = node.kept.slice(0, node.durable).filter(({ isContent }) => !isContent);
    const mark = groups.at(-1)?.mark;
    return mark?.generation === this.generation ? mark.sequence : 0;
  }

  #lose(): void {
    const { last } = this.#truth;
    if (last === 0 || this.random.chance(0.3)) return;
    const to = this.random.chance(0.2) ? 0 : Math.max(0, last - 1 - this.random.below(6));
    this.note(() => `the stream loses ${to + 1} to ${last}`);
    this.#hasLost = true;
    this.#truth.cut(to);
    for (const node of this.#nodes) node.cursor = Math.min(node.cursor, to + 1);
  }

  #hide(): void {
    const { first, last } = this.#truth;
    const from = first + this.random.below(Math.max(1, last - first + 1));
    this.#hidden = this.random.chance(0.3) ? null : [from, from + this.random.below(4)];
    this.note(() => `the stream hides ${this.#hidden}`);
  }

  // The end: no more faults, and all nodes settle

  #end(): void {
    this.note(() => "the end begins");
    this.#weather = calm;
    this.#isOver = true;
    this.#hidden = null;
    for (const node of this.#nodes) {
      node.isPaused = false;
      if (!node.isUp) this.#restart(node);
      this.#abstain(node, false);
    }
    for (let round = 0; round < 200; round++) {
      this.#step++;
      this.#round();
      if (this.#hasLost) {
        if (round >= 80) break;
      } else if (this.#isAtRest()) break;
    }
    if (!this.#hasLost) {
      check(this.#isAtRest(), () => `does not come to rest: ${this.#picture()}`);
    }
    this.#proposeLast();
    for (const node of this.#nodes) this.#checkAtEnd(node);
  }

  /** Half a second in which all requests are answered. */
  #round(): void {
    for (const node of this.#nodes) {
      if (node.needsSnapshot) this.#takeSnapshot(node);
      else if (node.stopReason !== null && !this.#hasLost) this.#restartBlocked(node);
      this.#tick(node, 500);
    }
    for (const node of this.#nodes) this.#beat(node);
    this.#settleDown();
  }

  #settleDown(): void {
    for (let ticks = 0; ticks < 10_000; ticks++) {
      const before = this.#pending.length;
      let isMoved = before > 0;
      if (before > 0) this.#doPending();
      for (const node of this.#nodes) {
        const { cursor } = node;
        if (node.isFollowed && cursor <= this.#truth.last) this.#followOne(node);
        if (node.cursor !== cursor) isMoved = true;
      }
      if (!isMoved) return;
    }
    throw new InvariantViolation(`does not settle down: ${this.#picture()}`);
  }

  /** The cause of a hidden frame is repaired: the node retries from its own log. */
  #restartBlocked(node: Node): void {
    this.#crash(node);
    this.#restart(node);
  }

  #takeSnapshot(node: Node): void {
    const others = this.#nodes.filter((other) => other !== node && other.stopReason === null);
    const best = others.sort((a, b) => b.durable - a.durable)[0];
    if (best === undefined || this.#hasLost) return;
    const kept = best.kept.slice(0, best.durable);
    while (kept.at(-1)?.isContent === true) kept.pop();
    if (kept.length <= node.kept.length) return;
    node.kept = kept;
    node.durable = kept.length;
    this.note(() => `${node.tag} takes a snapshot of ${best.tag}: ${kept.length}`);
    node.start();
  }

  #isAtRest(): boolean {
    const { last, kept } = this.#truth;
    let leaders = 0;
    for (const { replica, open, kept: own, durable } of this.#nodes) {
      if (replica.role === "leader") leaders++;
      else if (replica.role !== "follower") return false;
      if (open.size > 0) return false;
      // A leader that has nothing to append does not read the void frames of other nodes.
      for (let at = replica.position + 1; at <= last; at++) {
        if (replica.role !== "leader" || this.#truth.isValid(at)) return false;
      }
      if (own.length !== kept.length || durable !== own.length) return false;
    }
    return leaders === 1;
  }

  /** A new leader may be replaced once more by a node that had already become a candidate. */
  #proposeLast(): void {
    const count = this.#truth.kept.length;
    for (let attempt = 0; attempt < 5; attempt++) {
      const leader = this.#nodes.find(({ replica }) => replica.role === "leader");
      if (leader !== undefined) this.#proposeOn(leader, 0);
      const rounds = this.#hasLost ? 40 : 10;
      for (let round = 0; round < rounds; round++) {
        this.#round();
        if (!this.#hasLost && this.#truth.kept.length > count && this.#isAtRest()) return;
      }
      if (this.#hasLost) return;
    }
    throw new InvariantViolation(`the last proposal does not settle: ${this.#picture()}`);
  }

  #checkAtEnd(node: Node): void {
    if (node.replica.role === "stopped") {
      check(this.#hasLost, () => `${node.tag} is stopped: ${node.stopReason}`);
      return;
    }
    const { kept } = this.#truth;
    // A gap may be filled immediately by frames of others in flight: then the other nodes stop and
    // raise the alarm.
    if (this.#nodes.some(({ stopReason }) => stopReason !== null)) return;
    const differs = node.kept.findIndex(({ id }, at) => kept[at]?.id !== id);
    check(
      differs < 0,
      () => `${node.tag} continues with data that the stream lost, from ${differs} on`,
    );
  }

  #picture(): string {
    const { last, kept } = this.#truth;
    const nodes = this.#nodes.map(
      ({ tag, replica, open, kept: own, durable, isFollowed }) =>
        `${tag} ${replica.role} epoch ${replica.epoch} at ${replica.position}, keeps ${own.length}, ${durable} durable, ${open.size} open${isFollowed ? ", follows" : ""}`,
    );
    return `stream at ${last} keeps ${kept.length}; ${nodes.join("; ")}`;
  }
}

function weatherOf(random: SeededRandom): Weather {
  const some = (most: number) => (random.chance(0.35) ? 0 : random.next() * most);
  return {
    unknown: some(0.4),
    late: some(0.25),
    refused: some(0.2),
    stale: some(0.3),
    unavailable: some(0.3),
    repeated: some(0.3),
    disorder: some(0.8),
    fault: some(0.2),
    silence: some(1),
    propose: 0.05 + random.next() * 0.15,
  };
}

/** The log entries of an earlier generation. */
function seedOf(count: number): Kept[] {
  return Array.from({ length: count }, (_, at) => ({
    id: at + 1,
    isContent: false,
    mark: { generation: 1, sequence: 3 * at + 5, epoch: 4, hash: zeroHash.replace(/^0/, `${at}`) },
  }));
}

/** Bytes that begin with the id, and are derived from it. */
function bodyOf(id: number, length: number): Buffer {
  const bytes = Buffer.alloc(length, id & 255);
  bytes.writeUInt32LE(id, 0);
  return bytes;
}

function proposalOf(id: number, lot: number): Proposal {
  if (lot === 8) return { kind: "barrier" };
  if (lot === 9) {
    const sha256 = bodyOf(id, 32).toString("hex");
    return { kind: "content", sha256, offset: 0, total: 4, bytes: bodyOf(id, 4) };
  }
  const bytes = bodyOf(id, lot < 5 ? 8 : 10 + (id % 60));
  const cut = id % bytes.length;
  const pieces = [bytes.subarray(0, cut), bytes.subarray(cut)];
  return { kind: "group", pieces };
}

function groupId(pieces: readonly Buffer[]): number {
  const bytes = Buffer.concat(pieces);
  const id = bytes.readUInt32LE(0);
  check(bodyOf(id, bytes.length).equals(bytes), () => `group ${id} is not whole`);
  const isAsProposed = bytes.length === 8 || bytes.length === 10 + (id % 60);
  check(isAsProposed, () => `group ${id} is not of its length`);
  return id;
}

function contentId({ sha256, bytes }: Delivery & { kind: "content" }): number {
  const id = bytes.readUInt32LE(0);
  check(sha256 === bodyOf(id, 32).toString("hex"), () => `content ${id} is not whole`);
  return id;
}

function damaged(bytes: Buffer): Buffer {
  const copy = Buffer.from(bytes);
  const at = copy.length >>> 1;
  copy[at] = (copy[at] as number) ^ 16;
  return copy;
}

function isSameMark(one: Mark | undefined, other: Mark): boolean {
  if (one === undefined || one.generation !== other.generation) return false;
  return one.sequence === other.sequence && one.epoch === other.epoch && one.hash === other.hash;
}

function check(condition: boolean, message: () => string): void {
  if (!condition) throw new InvariantViolation(message());
}

interface SchedulesReport {
  readonly schedules: number;
  readonly steps: number;
  readonly kept: number;
  readonly epochs: number;
  readonly stopped: number;
  readonly voids: number;
}

/**
 * The first seed that violates an invariant, of `count` seeds from `seed` on; null if there is no
 * such seed.
 */
export function findBroken(
  seed: number,
  count: number,
  make: CreateReplica = createReplica,
): { readonly seed: number; readonly error: Error } | null {
  for (let at = 0; at < count; at++) {
    try {
      new Schedule(seed + at, make).run();
    } catch (error) {
      return { seed: seed + at, error: error as Error };
    }
  }
  return null;
}

/** The events of one schedule. */
export function traceOf(seed: number, make: CreateReplica = createReplica): string[] {
  const trace: string[] = [];
  try {
    new Schedule(seed, make, trace).run();
  } catch (error) {
    trace.push(`${error}`);
  }
  return trace;
}

/** @throws Error with the seed and the trace of the first schedule that violates an invariant */
export function runSchedules(seed: number, count: number): SchedulesReport {
  let [steps, kept, epochs, stopped, voids] = [0, 0, 0, 0, 0];
  for (let at = 0; at < count; at++) {
    try {
      const report = new Schedule(seed + at).run();
      steps += report.steps;
      kept += report.kept;
      epochs += report.epochs;
      stopped += report.stopped;
      voids += report.voids;
    } catch (error) {
      const trace = traceOf(seed + at).join("\n");
      throw new Error(`seed ${seed + at}: ${error}\n${trace}`, { cause: error });
    }
  }
  return { schedules: count, steps, kept, epochs, stopped, voids };
}

/** The one with the shortest trace among the next `count` schedules that violate an invariant. */
function shortest(seed: number, count: number): string[] {
  let best = traceOf(seed);
  for (let at = 1; at < count; at++) {
    const found = findBroken(seed + at, 1);
    if (found === null) continue;
    const trace = traceOf(found.seed);
    if (trace.length < best.length) best = [`seed ${found.seed}`, ...trace];
  }
  return best;
}

function main(): void {
  const { values } = parseArgs({
    options: {
      schedules: { type: "string", default: "100000" },
      seed: { type: "string", default: "1" },
      trace: { type: "boolean", default: false },
      shrink: { type: "boolean", default: false },
    },
  });
  const [seed, count] = [Number(values.seed), Number(values.schedules)];
  if (values.trace) {
    console.log(traceOf(seed).join("\n"));
    return;
  }
  const began = performance.now();
  const batch = 10_000;
  const sum: Record<string, number> = {};
  for (let done = 0; done < count; done += batch) {
    try {
      const report = runSchedules(seed + done, Math.min(batch, count - done));
      for (const [name, value] of Object.entries(report)) sum[name] = (sum[name] ?? 0) + value;
    } catch (error) {
      console.error((error as Error).message);
      const failed = Number(/^seed (\d+)/.exec((error as Error).message)?.[1]);
      if (values.shrink) console.error(`\nshortest:\n${shortest(failed, 20_000).join("\n")}`);
      process.exitCode = 1;
      return;
    }
  }
  const seconds = (performance.now() - began) / 1000;
  const rate = Math.round(count / seconds);
  console.log(`seeds ${seed} to ${seed + count - 1}: no promise broken, ${rate} schedules/s`);
  console.log(JSON.stringify(sum));
}

if (process.argv[1]?.endsWith("replication-schedules.js") === true) main();
