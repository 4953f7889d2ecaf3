/** Single behaviours of a replica; test/simulation/replication-schedules.slow.test.ts combines them. */
import { expect, test } from "vitest";
import {
  replicaMissingMs,
  replicaStallMs,
  replicaVerifiedMs,
} from "../../../../engine/base/limits.ts";
import {
  decodeFrame,
  type EncodedFrame,
  encodeFrame,
  epochPayload,
  type FrameType,
  frameTypes,
  genesisPayload,
  zeroHash,
} from "../../../../engine/storage/replication/frame.ts";
import { Replica } from "../../../../engine/storage/replication/replica.ts";
import type {
  Mark,
  Proposal,
  ReplicaEffects,
  ReplicaOptions,
} from "../../../../engine/storage/replication/replica-types.ts";

/** A replica and a passive stream; the replica's requests are recorded. */
class Bench {
  readonly stream: Buffer[] = [];
  readonly recorded: string[] = [];
  readonly reads: { token: number; sequence: number }[] = [];
  readonly appends: { token: number; bytes: Buffer; last: number }[] = [];
  followId = 0;
  isLater = false;
  now = 1000;
  readonly replica: Replica;

  constructor(options: Partial<ReplicaOptions> = {}) {
    const { appends, reads, recorded } = this;
    const record = (text: string) => recorded.push(text);
    const effects: ReplicaEffects = {
      append: (token, bytes, last) => appends.push({ token, bytes, last }),
      later: () => {
        this.isLater = true;
      },
      read: (token, sequence) => reads.push({ token, sequence }),
      follow: (id, from) => {
        this.followId = id;
        record(`follow from ${from}`);
      },
      stopFollowing: () => record("stop following"),
      deliver: (delivery) => {
        const what = delivery.kind === "group" ? Buffer.concat(delivery.pieces) : delivery.bytes;
        record(`deliver ${what} of ${delivery.mark.sequence}`);
      },
      settled: (_token, settlement, mark) => record(`${settlement} ${mark?.sequence ?? ""}`.trim()),
      roleChanged: (role, epoch, leader) => record(`${role} in ${epoch}, led by ${leader}`),
      needRange: (from, to) => record(`need ${from} to ${to}`),
      needSnapshot: (reason) => record(`need a snapshot: ${reason}`),
      blocked: (reason) => record(`blocked: ${reason}`),
      alarm: (text) => record(`alarm: ${text}`),
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

  /** Appends a frame to the stream; if the epoch is new, the frame is from another node. */
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

  /** Answers the pending reads. */
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
    if (append === undefined) throw new Error("no append is pending");
    return append;
  }

  /** Returns the effects recorded since the last call. */
  takeRecorded(): string[] {
    return this.recorded.splice(0);
  }
}

/** A replica that leads in epoch 1, after a first frame. */
function leading(options: Partial<ReplicaOptions> = {}): Bench {
  const bench = new Bench(options);
  bench.putGenesis();
  bench.sendAll();
  bench.pass(3000);
  bench.answerReads();
  bench.store();
  bench.answerReads();
  expect(bench.replica.role).toBe("leader");
  bench.takeRecorded();
  return bench;
}

const group = (text: string): Proposal => ({ kind: "group", pieces: [Buffer.from(text)] });

/** A mark, and a stream that contains its frame. */
function marked(): { bench: Bench; mark: Mark } {
  const source = new Bench();
  source.putGenesis();
  source.putEpoch(1, "B");
  const { hash } = source.putCommit(1, "one");
  const mark = { generation: 1, sequence: 3, epoch: 1, hash };
  const bench = new Bench({ mark });
  bench.stream.push(...source.stream);
  bench.takeRecorded();
  return { bench, mark };
}

test("a follower delivers each frame of the stream once", () => {
  const bench = new Bench();
  bench.putGenesis();
  bench.putEpoch(1, "B");
  bench.putCommit(1, "one");
  bench.putCommit(1, "two");
  bench.sendAll();
  bench.send(3);
  bench.send(4);
  expect(bench.takeRecorded()).toEqual([
    "follow from 1",
    "follower in 1, led by B",
    "deliver one of 3",
    "deliver two of 4",
  ]);
});

test("a restarted replica continues after its mark, and reads only its own subscription", () => {
  const { bench } = marked();
  bench.putCommit(1, "two");
  bench.replica.message(bench.followId - 1, 4, bench.stream[3] as Buffer);
  expect(bench.takeRecorded()).toEqual([]);
  bench.sendAll();
  expect(bench.takeRecorded()).toEqual(["deliver two of 4"]);
});

test("a seed appends the first frame until it is stored, but does not become leader by that", () => {
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

test("a node becomes a candidate without a leader, after reading the stream's last frame", () => {
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
  // The stream must still have the frame preceding its fence.
  expect(bench.replica.role).toBe("candidate");
  bench.answerReads();
  expect(bench.takeRecorded().slice(2)).toEqual([
    "candidate in 0, led by null",
    "stop following",
    "leader in 1, led by A",
  ]);
});

test("a node is no candidate while another has applied more than it has read", () => {
  const bench = new Bench();
  bench.putGenesis();
  bench.sendAll();
  bench.replica.heard({ tag: "B", role: "follower", epoch: 1, applied: 2 });
  bench.pass(3000);
  bench.answerReads();
  expect(bench.appends).toEqual([]);
});

test("a node leads once its own log contains everything delivered to it", () => {
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

test("a candidate whose slot is taken reads on, and yields to another leader", () => {
  const { bench } = marked();
  bench.pass(3000);
  bench.answerReads();
  bench.putCommit(1, "two");
  bench.putEpoch(2, "C");
  bench.store();
  bench.answerReads();
  bench.answerReads();
  expect(bench.takeRecorded()).toEqual([
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
  expect(bench.takeRecorded()).toEqual([]);
  bench.replica.appended(one?.token ?? 0, { kind: "stored", sequence: 3 });
  expect(bench.takeRecorded()).toEqual(["committed 3", "committed 4"]);
});

test("a leader appends at most two frames' worth of bytes per tick, and the rest later", () => {
  const bench = leading({ partBytesMax: 4 });
  bench.replica.propose(group("one two three"));
  bench.replica.propose(group("four"));
  const sent = () => bench.appends.map(({ bytes }) => String(decodeFrame(bytes)?.payload));
  expect([sent(), bench.isLater]).toEqual([["one ", "two "], true]);
  bench.replica.resume();
  expect(sent().slice(2)).toEqual(["thre", "e", "four"]);
  while (bench.appends.length > 0) bench.store();
  expect(bench.takeRecorded()).toEqual(["committed 6", "committed 7"]);
});

test("a leader that has resigned appends nothing more", () => {
  const bench = leading({ partBytesMax: 4 });
  bench.replica.propose(group("one two three"));
  bench.replica.resign();
  bench.replica.resume();
  expect(bench.appends).toHaveLength(2);
});

test("after a pause, a leader rereads its last frame while it appends", () => {
  const bench = leading();
  bench.replica.propose(group("one"));
  bench.store();
  expect([bench.takeRecorded(), bench.reads]).toEqual([["committed 3"], []]);
  bench.pass(replicaVerifiedMs);
  bench.replica.propose(group("two"));
  expect(bench.reads.map(({ sequence }) => sequence)).toEqual([3]);
  bench.answerReads();
  bench.store();
  expect(bench.takeRecorded()).toEqual(["committed 4"]);
});

test("an append is committed if it was refused because an earlier attempt was stored", () => {
  const bench = leading();
  bench.replica.propose(group("one"));
  const { token, bytes } = bench.takeAppend();
  bench.replica.appended(token, { kind: "unknown" });
  bench.answerReads();
  bench.stream.push(bytes);
  bench.pass(100);
  expect(bench.appends[0]?.bytes).toEqual(bytes);
  bench.store();
  expect(bench.takeRecorded()).toEqual([]);
  bench.answerReads();
  expect(bench.takeRecorded()).toEqual(["committed 3"]);
});

test("a leader that finds a later epoch reports its open groups as lost, and follows", () => {
  const bench = leading();
  bench.replica.propose(group("one"));
  bench.replica.propose(group("two"));
  bench.putEpoch(2, "B");
  bench.store();
  bench.answerReads();
  expect(bench.takeRecorded()).toEqual([
    "lost",
    "lost",
    "follower in 2, led by B",
    "follow from 4",
  ]);
  // Its frames in flight may still be stored, but are void.
  bench.stream.push(bench.takeAppend().bytes);
  bench.putCommit(2, "x");
  bench.send(4);
  expect(bench.replica.position).toBe(4);
  expect(bench.takeRecorded()).toEqual([]);
});

test("a leader whose slot was taken by a void frame proposes again in a new epoch", () => {
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
  expect(bench.takeRecorded()).toEqual([]);
  bench.answerReads();
  bench.store();
  expect(bench.takeRecorded()).toEqual(["leader in 2, led by A", "committed 5"]);
  expect(decodeFrame(bench.stream[4] as Buffer)?.epoch).toBe(2);
});

test("groups open at a resignation have unknown outcome, and are delivered if the stream has them", () => {
  const bench = leading();
  bench.replica.propose(group("one"));
  for (let at = 0; at < 8; at++) bench.replica.propose(group(`${at}`));
  const { bytes } = bench.takeAppend();
  bench.replica.resign();
  expect(bench.takeRecorded()).toEqual([
    ...Array(8).fill("unknown"),
    "lost",
    "follower in 1, led by null",
    "follow from 3",
  ]);
  bench.stream.push(bytes);
  bench.sendAll();
  expect(bench.takeRecorded()).toEqual(["deliver one of 3"]);
});

test("a leader resigns if the stream does not answer for too long", () => {
  const bench = leading();
  bench.replica.propose(group("one"));
  bench.pass(replicaStallMs - 1);
  expect(bench.replica.role).toBe("leader");
  bench.pass(1);
  expect(bench.takeRecorded().slice(1, 3)).toEqual(["unknown", "follower in 1, led by null"]);
});

test("a leader that hears of a later epoch reads the stream, and resigns if that shows nothing", () => {
  const bench = leading();
  bench.replica.heard({ tag: "B", role: "leader", epoch: 1, applied: 0 });
  bench.answerReads();
  expect(bench.replica.role).toBe("leader");
  bench.replica.heard({ tag: "B", role: "leader", epoch: 2, applied: 0 });
  bench.replica.heard({ tag: "C", role: "follower", epoch: 2, applied: 9 });
  bench.answerReads();
  expect(bench.replica.role).toBe("follower");
});

test("after a pause, a leader trusts no confirmation before it has reread its last frame", () => {
  const bench = leading();
  bench.replica.propose(group("one"));
  bench.pass(replicaVerifiedMs);
  bench.store();
  expect(bench.takeRecorded()).toEqual([]);
  // Another leader has overwritten its frame.
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
  expect(bench.takeRecorded()).toEqual([
    "unknown",
    "stopped in 1, led by null",
    "blocked: the stream has another frame 2 than the own log: it lost what it had",
  ]);
  expect(bench.replica.propose(group("two"))).toBeNull();
});

test("skipped frames are first requested again, then from other nodes", () => {
  const { bench } = marked();
  bench.putCommit(1, "two");
  bench.putCommit(1, "three");
  bench.putCommit(1, "four");
  bench.send(6);
  expect(bench.takeRecorded()).toEqual(["follow from 4"]);
  bench.send(6);
  expect(bench.takeRecorded()).toEqual([
    "stop following",
    "alarm: the stream skips frames 4 to 5",
    "need 4 to 5",
  ]);
  bench.pass(60_000);
  bench.answerReads();
  expect([bench.appends.length, bench.replica.hasGap]).toEqual([0, true]);
  bench.replica.rangeDone(bench.stream.slice(3, 5));
  expect(bench.takeRecorded()).toEqual(["deliver two of 4", "deliver three of 5", "follow from 6"]);
});

test("a silent stream is reported as such if other nodes have more frames", () => {
  const { bench } = marked();
  bench.takeRecorded();
  bench.replica.heard({ tag: "B", role: "follower", epoch: 1, applied: 9 });
  for (let silences = 0; silences < 2; silences++) {
    bench.pass(100);
    bench.pass(2_000);
  }
  expect(bench.takeRecorded()).toEqual([
    "follow from 4",
    "stop following",
    "alarm: the stream delivers nothing, but other nodes have frames 4 to 9",
    "need 4 to 9",
  ]);
});

test("fetched frames are delivered up to the first that does not follow", () => {
  const { bench } = marked();
  const two = bench.putCommit(1, "two").bytes;
  const wrong = bench.putCommit(0, "wrong").bytes;
  bench.putCommit(1, "three");
  bench.send(6);
  bench.send(6);
  bench.takeRecorded();
  const damaged = Buffer.from(two);
  damaged[80] = (damaged[80] as number) ^ 1;
  bench.replica.rangeDone([damaged, two]);
  expect(bench.takeRecorded()).toEqual(["alarm: the fetched frames do not continue frame 3"]);
  bench.pass(500);
  bench.send(6);
  expect(bench.takeRecorded()).toContain("need 4 to 5");
  bench.replica.rangeDone([two, wrong]);
  expect(bench.takeRecorded()).toEqual(["deliver two of 4", "follow from 5"]);
});

test("frames that no node has require a snapshot", () => {
  const { bench } = marked();
  bench.putCommit(1, "two");
  bench.putCommit(1, "three");
  bench.send(5);
  bench.send(5);
  bench.takeRecorded();
  bench.replica.rangeDone(null);
  expect(bench.takeRecorded()).toEqual([
    "stopped in 1, led by null",
    "need a snapshot: frame 4 is neither in the stream nor with another node",
  ]);
});

test("a damaged message is requested again, then from other nodes", () => {
  const { bench } = marked();
  const bytes = Buffer.from(bench.putCommit(1, "two").bytes);
  bytes[80] = (bytes[80] as number) ^ 1;
  bench.send(4, bytes);
  bench.send(4, bytes);
  expect(bench.takeRecorded().at(-1)).toBe("need 4 to 4");
});

test("a replica does not write to a stream without the last frame of its log", () => {
  const { bench } = marked();
  bench.stream.length = 0;
  for (let ms = 0; ms < replicaMissingMs + 1000; ms += 500) {
    bench.pass(500);
    bench.answerReads();
  }
  expect(bench.appends).toEqual([]);
  expect(bench.takeRecorded()).toEqual([
    "stop following",
    "stopped in 1, led by null",
    "blocked: the stream does not have frame 3 of the own log: it lost what it had",
  ]);
});

test("a follower with another history stops when it detects it", () => {
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
  expect(bench.takeRecorded().at(-1)).toBe(
    "blocked: frame 4 of epoch 1 does not follow the last valid frame",
  );
});

test("a log of a later generation blocks immediately", () => {
  const mark = { generation: 2, sequence: 3, epoch: 1, hash: zeroHash };
  const bench = new Bench({ mark });
  expect(bench.takeRecorded().at(-1)).toBe(
    "blocked: the own log is of generation 2, the stream of 1",
  );
});

test("a follower whose log lags stops following until it has caught up", () => {
  const bench = new Bench({ unappliedBytesMax: 6 });
  bench.putGenesis();
  bench.putEpoch(1, "B");
  for (const text of ["one", "two", "three"]) bench.putCommit(1, text);
  bench.sendAll();
  expect(bench.takeRecorded().slice(2)).toEqual([
    "deliver one of 3",
    "deliver two of 4",
    "stop following",
  ]);
  bench.replica.durable(3);
  expect(bench.takeRecorded()).toEqual(["follow from 5"]);
});

test("an interrupted subscription is renewed", () => {
  const { bench } = marked();
  bench.replica.followInterrupted(bench.followId);
  expect(bench.takeRecorded()).toEqual([]);
  bench.pass(100);
  expect(bench.takeRecorded()).toEqual(["follow from 4"]);
});

test("a failed store stops the replica", () => {
  const bench = leading();
  bench.replica.propose(group("one"));
  bench.replica.storeFailed();
  expect(bench.takeRecorded()).toEqual(["unknown", "stopped in 1, led by null"]);
  bench.store();
  bench.pass(60_000);
  bench.answerReads();
  expect(bench.takeRecorded()).toEqual([]);
});
