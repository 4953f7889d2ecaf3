/** What a replica does in single situations; test/simulation/replication-schedules.test.ts puts them together. */
import { expect, test } from "vitest";
import {
  replicaMissingMs,
  replicaStallMs,
  replicaVerifiedMs,
} from "../../../engine/base/limits.ts";
import {
  decodeFrame,
  type EncodedFrame,
  encodeFrame,
  epochPayload,
  type FrameType,
  frameTypes,
  genesisPayload,
  zeroHash,
} from "../../../engine/replication/frame.ts";
import { Replica } from "../../../engine/replication/replica.ts";
import type {
  Mark,
  Proposal,
  ReplicaEffects,
  ReplicaOptions,
} from "../../../engine/replication/replica-types.ts";

/** A replica and a stream that does nothing by itself; what it asks for is written down. */
class Bench {
  readonly stream: Buffer[] = [];
  readonly said: string[] = [];
  readonly reads: { token: number; sequence: number }[] = [];
  readonly appends: { token: number; bytes: Buffer; last: number }[] = [];
  followId = 0;
  isLater = false;
  now = 1000;
  readonly replica: Replica;

  constructor(options: Partial<ReplicaOptions> = {}) {
    const { appends, reads, said } = this;
    const say = (text: string) => said.push(text);
    const effects: ReplicaEffects = {
      append: (token, bytes, last) => appends.push({ token, bytes, last }),
      later: () => {
        this.isLater = true;
      },
      read: (token, sequence) => reads.push({ token, sequence }),
      follow: (id, from) => {
        this.followId = id;
        say(`follow from ${from}`);
      },
      stopFollowing: () => say("stop following"),
      deliver: (delivery) => {
        const what = delivery.kind === "group" ? Buffer.concat(delivery.pieces) : delivery.bytes;
        say(`deliver ${what} of ${delivery.mark.sequence}`);
      },
      settled: (_token, settlement, mark) => say(`${settlement} ${mark?.sequence ?? ""}`.trim()),
      roleChanged: (role, epoch, leader) => say(`${role} in ${epoch}, led by ${leader}`),
      needRange: (from, to) => say(`need ${from} to ${to}`),
      needSnapshot: (reason) => say(`need a snapshot: ${reason}`),
      blocked: (reason) => say(`blocked: ${reason}`),
      alarm: (text) => say(`alarm: ${text}`),
    };
    this.replica = new Replica(
      {
        databaseId: "db",
        generation: 1,
        tag: "A",
        incarnation: "1",
        mark: null,
        standAfterMs: 3000,
        ...options,
      },
      effects,
    );
    this.replica.start(this.now);
  }

  /** A frame behind all others, of another node when the epoch is another one. */
  put(type: FrameType, epoch: number, ...pieces: Buffer[]): EncodedFrame {
    const last = this.stream.at(-1);
    const previous = last === undefined ? zeroHash : (decodeFrame(last)?.hash ?? "");
    const sequence = this.stream.length + 1;
    const frame = encodeFrame(type, { generation: 1, epoch, sequence, previous }, pieces);
    this.stream.push(frame.bytes);
    return frame;
  }

  putCommit(epoch: number, text: string): EncodedFrame {
    return this.put(frameTypes.commit, epoch, Buffer.from(text));
  }

  putEpoch(epoch: number, tag: string): EncodedFrame {
    return this.put(frameTypes.epoch, epoch, epochPayload(tag, "x"));
  }

  putGenesis(): EncodedFrame {
    return this.put(frameTypes.genesis, 0, genesisPayload("db", null));
  }

  send(sequence: number, bytes = this.stream[sequence - 1] as Buffer): void {
    this.replica.message(this.followId, sequence, bytes);
  }

  sendAll(): void {
    for (let at = this.replica.position + 1; at <= this.stream.length; at++) this.send(at);
  }

  pass(ms: number): void {
    this.now += ms;
    this.replica.tick(this.now);
  }

  /** Answers the reads that are open. */
  answerReads(): void {
    for (const { token, sequence } of this.reads.splice(0)) {
      this.replica.readDone(token, this.stream[sequence - 1] ?? null);
    }
  }

  /** Answers the next append as the stream would. */
  store(): void {
    const { token, bytes, last } = this.takeAppend();
    if (last !== this.stream.length) {
      this.replica.appended(token, { kind: "refused" });
      return;
    }
    this.stream.push(bytes);
    this.replica.appended(token, { kind: "stored", sequence: last + 1 });
  }

  takeAppend(): { token: number; bytes: Buffer; last: number } {
    const append = this.appends.shift();
    if (append === undefined) throw new Error("nothing is appended");
    return append;
  }

  /** What it said since the last time. */
  heard(): string[] {
    return this.said.splice(0);
  }
}

/** One that leads in epoch 1, behind a first frame. */
function leading(options: Partial<ReplicaOptions> = {}): Bench {
  const bench = new Bench(options);
  bench.putGenesis();
  bench.sendAll();
  bench.pass(3000);
  bench.answerReads();
  bench.store();
  bench.answerReads();
  expect(bench.replica.role).toBe("leader");
  bench.heard();
  return bench;
}

const group = (text: string): Proposal => ({ kind: "group", pieces: [Buffer.from(text)] });

/** A mark, and the frame that it is of. */
function marked(): { bench: Bench; mark: Mark } {
  const source = new Bench();
  source.putGenesis();
  source.putEpoch(1, "B");
  const { hash } = source.putCommit(1, "one");
  const mark = { generation: 1, sequence: 3, epoch: 1, hash };
  const bench = new Bench({ mark });
  bench.stream.push(...source.stream);
  bench.heard();
  return { bench, mark };
}

test("a follower delivers what the stream has, each once", () => {
  const bench = new Bench();
  bench.putGenesis();
  bench.putEpoch(1, "B");
  bench.putCommit(1, "one");
  bench.putCommit(1, "two");
  bench.sendAll();
  bench.send(3);
  bench.send(4);
  expect(bench.heard()).toEqual([
    "follow from 1",
    "follower in 1, led by B",
    "deliver one of 3",
    "deliver two of 4",
  ]);
});

test("one that starts again goes on behind its mark, and listens to its own subscription", () => {
  const { bench } = marked();
  bench.putCommit(1, "two");
  bench.replica.message(bench.followId - 1, 4, bench.stream[3] as Buffer);
  expect(bench.heard()).toEqual([]);
  bench.sendAll();
  expect(bench.heard()).toEqual(["deliver two of 4"]);
});

test("a seed appends the first frame until it is there, and does not lead by that", () => {
  const bench = new Bench({ isSeed: true });
  const { token, bytes, last } = bench.takeAppend();
  expect(last).toBe(0);
  bench.replica.appended(token, { kind: "unknown" });
  bench.answerReads();
  bench.pass(100);
  expect(bench.appends[0]?.bytes).toEqual(bytes);
  bench.store();
  expect([bench.replica.role, bench.replica.position]).toEqual(["follower", 1]);
});

test("a node stands when nobody leads, once the stream has shown its last frame", () => {
  const bench = new Bench();
  bench.putGenesis();
  bench.sendAll();
  bench.pass(2999);
  bench.answerReads();
  expect(bench.appends).toEqual([]);
  bench.replica.heard({ tag: "B", role: "leader", epoch: 0, applied: 0 });
  bench.pass(2999);
  bench.answerReads();
  expect(bench.appends).toEqual([]);
  bench.pass(1);
  expect(bench.appends).toEqual([]);
  bench.answerReads();
  bench.store();
  // The stream must have the frame before its fence still.
  expect(bench.replica.role).toBe("candidate");
  bench.answerReads();
  expect(bench.heard().slice(2)).toEqual([
    "candidate in 0, led by null",
    "stop following",
    "leader in 1, led by A",
  ]);
});

test("a node does not stand while another has applied more than it has read", () => {
  const bench = new Bench();
  bench.putGenesis();
  bench.sendAll();
  bench.replica.heard({ tag: "B", role: "follower", epoch: 1, applied: 2 });
  bench.pass(3000);
  bench.answerReads();
  expect(bench.appends).toEqual([]);
});

test("a node leads when its own log has all that it was given", () => {
  const { bench } = marked();
  bench.putCommit(1, "two");
  bench.sendAll();
  bench.pass(6000);
  bench.answerReads();
  bench.store();
  bench.answerReads();
  expect(bench.replica.role).toBe("candidate");
  expect(bench.replica.propose(group("x"))).toBeNull();
  bench.replica.durable(4);
  expect(bench.replica.role).toBe("leader");
  expect(bench.replica.applied).toBe(4);
});

test("a candidate whose place is taken reads on, and gives way to another leader", () => {
  const { bench } = marked();
  bench.pass(3000);
  bench.answerReads();
  bench.putCommit(1, "two");
  bench.putEpoch(2, "C");
  bench.store();
  bench.answerReads();
  bench.answerReads();
  expect(bench.heard()).toEqual([
    "candidate in 1, led by null",
    "deliver two of 4",
    "follower in 2, led by C",
  ]);
  expect(bench.appends).toEqual([]);
});

test("a leader appends without waiting, and settles in order", () => {
  const bench = leading();
  for (const text of ["one", "two", "three"]) bench.replica.propose(group(text));
  expect(bench.appends.map(({ last }) => last)).toEqual([2, 3, 4]);
  const [one, two] = bench.appends;
  for (const { bytes } of bench.appends) bench.stream.push(bytes);
  bench.replica.appended(two?.token ?? 0, { kind: "stored", sequence: 4 });
  expect(bench.heard()).toEqual([]);
  bench.replica.appended(one?.token ?? 0, { kind: "stored", sequence: 3 });
  expect(bench.heard()).toEqual(["committed 3", "committed 4"]);
});

test("a leader appends two frames' worth of bytes in a turn, and the rest later", () => {
  const bench = leading({ partBytesMax: 4 });
  bench.replica.propose(group("one two three"));
  bench.replica.propose(group("four"));
  const sent = () => bench.appends.map(({ bytes }) => String(decodeFrame(bytes)?.payload));
  expect([sent(), bench.isLater]).toEqual([["one ", "two "], true]);
  bench.replica.resume();
  expect(sent().slice(2)).toEqual(["thre", "e", "four"]);
  while (bench.appends.length > 0) bench.store();
  expect(bench.heard()).toEqual(["committed 6", "committed 7"]);
});

test("a leader that stopped leading meanwhile appends nothing more", () => {
  const bench = leading({ partBytesMax: 4 });
  bench.replica.propose(group("one two three"));
  bench.replica.resign();
  bench.replica.resume();
  expect(bench.appends).toHaveLength(2);
});

test("after a pause a leader asks for its last frame together with what it appends", () => {
  const bench = leading();
  bench.replica.propose(group("one"));
  bench.store();
  expect([bench.heard(), bench.reads]).toEqual([["committed 3"], []]);
  bench.pass(replicaVerifiedMs);
  bench.replica.propose(group("two"));
  expect(bench.reads.map(({ sequence }) => sequence)).toEqual([3]);
  bench.answerReads();
  bench.store();
  expect(bench.heard()).toEqual(["committed 4"]);
});

test("an append that was refused though an earlier one was stored is committed", () => {
  const bench = leading();
  bench.replica.propose(group("one"));
  const { token, bytes } = bench.takeAppend();
  bench.replica.appended(token, { kind: "unknown" });
  bench.answerReads();
  bench.stream.push(bytes);
  bench.pass(100);
  expect(bench.appends[0]?.bytes).toEqual(bytes);
  bench.store();
  expect(bench.heard()).toEqual([]);
  bench.answerReads();
  expect(bench.heard()).toEqual(["committed 3"]);
});

test("a leader that finds a later epoch has lost what was open, and follows", () => {
  const bench = leading();
  bench.replica.propose(group("one"));
  bench.replica.propose(group("two"));
  bench.putEpoch(2, "B");
  bench.store();
  bench.answerReads();
  expect(bench.heard()).toEqual(["lost", "lost", "follower in 2, led by B", "follow from 4"]);
  // What it has under way may still be stored: it is void.
  bench.stream.push(bench.takeAppend().bytes);
  bench.putCommit(2, "x");
  bench.send(4);
  expect(bench.replica.position).toBe(4);
  expect(bench.heard()).toEqual([]);
});

test("a leader whose place was taken by a void frame proposes again in another epoch", () => {
  const bench = leading();
  const stale = encodeFrame(
    frameTypes.commit,
    { generation: 1, epoch: 0, sequence: 3, previous: zeroHash },
    [Buffer.from("stale")],
  );
  bench.stream.push(stale.bytes);
  bench.replica.propose(group("one"));
  bench.store();
  bench.answerReads();
  bench.store();
  expect(bench.heard()).toEqual([]);
  bench.answerReads();
  bench.store();
  expect(bench.heard()).toEqual(["leader in 2, led by A", "committed 5"]);
  expect(decodeFrame(bench.stream[4] as Buffer)?.epoch).toBe(2);
});

test("what a leader leaves open when it resigns is unknown, and comes back if it is in the stream", () => {
  const bench = leading();
  bench.replica.propose(group("one"));
  for (let at = 0; at < 8; at++) bench.replica.propose(group(`${at}`));
  const { bytes } = bench.takeAppend();
  bench.replica.resign();
  expect(bench.heard()).toEqual([
    ...Array(8).fill("unknown"),
    "lost",
    "follower in 1, led by null",
    "follow from 3",
  ]);
  bench.stream.push(bytes);
  bench.sendAll();
  expect(bench.heard()).toEqual(["deliver one of 3"]);
});

test("a leader to which the stream answers nothing for long stops leading", () => {
  const bench = leading();
  bench.replica.propose(group("one"));
  bench.pass(replicaStallMs - 1);
  expect(bench.replica.role).toBe("leader");
  bench.pass(1);
  expect(bench.heard().slice(1, 3)).toEqual(["unknown", "follower in 1, led by null"]);
});

test("a leader that hears a leader of a later epoch asks the stream, and resigns when that shows nothing", () => {
  const bench = leading();
  bench.replica.heard({ tag: "B", role: "leader", epoch: 1, applied: 0 });
  bench.answerReads();
  expect(bench.replica.role).toBe("leader");
  bench.replica.heard({ tag: "B", role: "leader", epoch: 2, applied: 0 });
  bench.replica.heard({ tag: "C", role: "follower", epoch: 2, applied: 9 });
  bench.answerReads();
  expect(bench.replica.role).toBe("follower");
});

test("a leader believes nothing after a pause, before the stream has shown its last frame", () => {
  const bench = leading();
  bench.replica.propose(group("one"));
  bench.pass(replicaVerifiedMs);
  bench.store();
  expect(bench.heard()).toEqual([]);
  // Another one has been at its place.
  bench.stream[1] = encodeFrame(
    frameTypes.epoch,
    {
      generation: 1,
      epoch: 1,
      sequence: 2,
      previous: decodeFrame(bench.stream[0] as Buffer)?.hash ?? "",
    },
    [epochPayload("B", "1")],
  ).bytes;
  bench.answerReads();
  expect(bench.heard()).toEqual([
    "unknown",
    "stopped in 1, led by null",
    "blocked: the stream has another frame 2 than the own log: it lost what it had",
  ]);
  expect(bench.replica.propose(group("two"))).toBeNull();
});

test("frames that are passed over are asked for again, then elsewhere", () => {
  const { bench } = marked();
  bench.putCommit(1, "two");
  bench.putCommit(1, "three");
  bench.putCommit(1, "four");
  bench.send(6);
  expect(bench.heard()).toEqual(["follow from 4"]);
  bench.send(6);
  expect(bench.heard()).toEqual([
    "stop following",
    "alarm: the stream skips frames 4 to 5",
    "need 4 to 5",
  ]);
  bench.pass(60_000);
  bench.answerReads();
  expect([bench.appends.length, bench.replica.hasGap]).toEqual([0, true]);
  bench.replica.rangeDone(bench.stream.slice(3, 5));
  expect(bench.heard()).toEqual(["deliver two of 4", "deliver three of 5", "follow from 6"]);
});

test("a stream that is silent, of which others have more, is told of as that", () => {
  const { bench } = marked();
  bench.heard();
  bench.replica.heard({ tag: "B", role: "follower", epoch: 1, applied: 9 });
  for (let silences = 0; silences < 2; silences++) {
    bench.pass(100);
    bench.pass(2_000);
  }
  expect(bench.heard()).toEqual([
    "follow from 4",
    "stop following",
    "alarm: the stream delivers nothing, but other nodes have frames 4 to 9",
    "need 4 to 9",
  ]);
});

test("what is fetched is taken as far as it follows", () => {
  const { bench } = marked();
  const two = bench.putCommit(1, "two").bytes;
  const wrong = bench.putCommit(0, "wrong").bytes;
  bench.putCommit(1, "three");
  bench.send(6);
  bench.send(6);
  bench.heard();
  const damaged = Buffer.from(two);
  damaged[80] = (damaged[80] as number) ^ 1;
  bench.replica.rangeDone([damaged, two]);
  expect(bench.heard()).toEqual(["alarm: the fetched frames do not continue frame 3"]);
  bench.pass(500);
  bench.send(6);
  expect(bench.heard()).toContain("need 4 to 5");
  bench.replica.rangeDone([two, wrong]);
  expect(bench.heard()).toEqual(["deliver two of 4", "follow from 5"]);
});

test("frames that nobody has any more need a snapshot", () => {
  const { bench } = marked();
  bench.putCommit(1, "two");
  bench.putCommit(1, "three");
  bench.send(5);
  bench.send(5);
  bench.heard();
  bench.replica.rangeDone(null);
  expect(bench.heard()).toEqual([
    "stopped in 1, led by null",
    "need a snapshot: frame 4 is neither in the stream nor with another node",
  ]);
});

test("a damaged message is asked for again, then elsewhere", () => {
  const { bench } = marked();
  const bytes = Buffer.from(bench.putCommit(1, "two").bytes);
  bytes[80] = (bytes[80] as number) ^ 1;
  bench.send(4, bytes);
  bench.send(4, bytes);
  expect(bench.heard().at(-1)).toBe("need 4 to 4");
});

test("a stream without the own last frame is not written", () => {
  const { bench } = marked();
  bench.stream.length = 0;
  for (let ms = 0; ms < replicaMissingMs + 1000; ms += 500) {
    bench.pass(500);
    bench.answerReads();
  }
  expect(bench.appends).toEqual([]);
  expect(bench.heard()).toEqual([
    "stop following",
    "stopped in 1, led by null",
    "blocked: the stream does not have frame 3 of the own log: it lost what it had",
  ]);
});

test("a follower of another history stops when it sees it", () => {
  const { bench } = marked();
  bench.stream[2] = encodeFrame(
    frameTypes.commit,
    {
      generation: 1,
      epoch: 1,
      sequence: 3,
      previous: decodeFrame(bench.stream[1] as Buffer)?.hash ?? "",
    },
    [Buffer.from("other")],
  ).bytes;
  bench.putCommit(1, "two");
  bench.sendAll();
  expect(bench.heard().at(-1)).toBe(
    "blocked: frame 4 of epoch 1 does not follow the last valid frame",
  );
});

test("a log of a later generation blocks at once", () => {
  const mark = { generation: 2, sequence: 3, epoch: 1, hash: zeroHash };
  const bench = new Bench({ mark });
  expect(bench.heard().at(-1)).toBe("blocked: the own log is of generation 2, the stream of 1");
});

test("a follower whose log is behind stops following until it has caught up", () => {
  const bench = new Bench({ unappliedBytesMax: 6 });
  bench.putGenesis();
  bench.putEpoch(1, "B");
  for (const text of ["one", "two", "three"]) bench.putCommit(1, text);
  bench.sendAll();
  expect(bench.heard().slice(2)).toEqual([
    "deliver one of 3",
    "deliver two of 4",
    "stop following",
  ]);
  bench.replica.durable(3);
  expect(bench.heard()).toEqual(["follow from 5"]);
});

test("a subscription that ends is made again", () => {
  const { bench } = marked();
  bench.replica.followInterrupted(bench.followId);
  expect(bench.heard()).toEqual([]);
  bench.pass(100);
  expect(bench.heard()).toEqual(["follow from 4"]);
});

test("a failed store stops everything", () => {
  const bench = leading();
  bench.replica.propose(group("one"));
  bench.replica.storeFailed();
  expect(bench.heard()).toEqual(["unknown", "stopped in 1, led by null"]);
  bench.store();
  bench.pass(60_000);
  bench.answerReads();
  expect(bench.heard()).toEqual([]);
});
