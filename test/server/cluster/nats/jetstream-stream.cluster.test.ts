/** Streams on three NATS servers, which are real processes. */
import { randomBytes } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  JetStreamStream,
  messageBytesMax,
  requestApi,
} from "../../../../server/cluster/nats/jetstream-stream.ts";
import type { NatsLink } from "../../../../server/cluster/nats/nats-link.ts";
import type { StreamId } from "../../../../server/cluster/nats/stream-settings.ts";
import { streamSettings } from "../../../../server/cluster/nats/stream-settings.ts";
import { NatsCluster } from "../../../support/nats-cluster.ts";

let cluster: NatsCluster;
let link: NatsLink;

beforeAll(async () => {
  cluster = await NatsCluster.start(3);
  link = await cluster.link();
}, 60_000);
afterAll(() => cluster.stop());

const complaints: string[] = [];
const report = (message: string) => complaints.push(message);

function newId(): StreamId {
  return { databaseId: randomBytes(8).toString("hex"), generation: 1 };
}

function newStream(through = link): Promise<JetStreamStream> {
  return JetStreamStream.create(through, newId(), 3, report);
}

/** Reads a stream and resubscribes after interruptions, as the protocol does. */
class Follower {
  readonly sequences: number[] = [];
  readonly texts: string[] = [];
  readonly interruptions: string[] = [];
  readonly #stream: JetStreamStream;
  #following: { stop(): void };

  constructor(stream: JetStreamStream, from: number) {
    this.#stream = stream;
    this.#following = this.#follow(from);
  }

  stop(): void {
    this.#following.stop();
  }

  #follow(from: number) {
    return this.#stream.follow(from, {
      message: (sequence, bytes) => {
        this.sequences.push(sequence);
        this.texts.push(bytes.toString("latin1", 0, 20));
      },
      interrupted: (reason) => {
        this.interruptions.push(reason);
        this.#following = this.#follow((this.sequences.at(-1) ?? 0) + 1);
      },
    });
  }
}

test("stores an append at the expected sequence, and rejects it at another", async () => {
  const stream = await newStream();
  expect(await stream.bounds()).toMatchObject({ first: 1, last: 0 });
  expect(await stream.append(Buffer.from("one"), 1)).toEqual({ kind: "refused" });
  expect(await stream.append(Buffer.from("one"), 0)).toEqual({ kind: "stored", sequence: 1 });
  expect(await stream.append(Buffer.from("again"), 0)).toEqual({ kind: "refused" });
  const sent = [1, 2, 3, 4, 5, 6, 7, 8].map((last) =>
    stream.append(Buffer.from(`${last + 1}`), last),
  );
  const sequences = (await Promise.all(sent)).map((one) => one.kind === "stored" && one.sequence);
  expect(sequences).toEqual([2, 3, 4, 5, 6, 7, 8, 9]);
  expect((await stream.read(1))?.toString()).toBe("one");
  expect((await stream.read(9))?.toString()).toBe("9");
  expect(await stream.read(10)).toBeNull();
  expect(await stream.bounds()).toMatchObject({ first: 1, last: 9 });
});

test("purges messages without changing other sequences", async () => {
  const stream = await newStream();
  for (let last = 0; last < 5; last++) await stream.append(Buffer.from(`${last}`), last);
  await stream.purgeBelow(4);
  expect(await stream.bounds()).toMatchObject({ first: 4, last: 5 });
  expect(await stream.read(3)).toBeNull();
  expect((await stream.read(4))?.toString()).toBe("3");
  await stream.purgeBelow(0);
  await stream.purgeBelow(1);
  await expect(stream.purgeBelow(7)).rejects.toThrow("it ends at 5, below 7");
  expect(await stream.bounds()).toMatchObject({ first: 4, last: 5 });
  const follower = new Follower(stream, 1);
  await expect.poll(() => follower.sequences).toEqual([4, 5]);
  await stream.purgeBelow(6);
  expect(await stream.bounds()).toMatchObject({ first: 6, last: 5 });
  expect(await stream.append(Buffer.from("next"), 5)).toEqual({ kind: "stored", sequence: 6 });
  await expect.poll(() => follower.sequences).toEqual([4, 5, 6]);
  follower.stop();
});

test("transfers messages of any size unchanged, empty or of maximum size", async () => {
  const stream = await newStream();
  const large = randomBytes(messageBytesMax);
  const all = [Buffer.alloc(0), large, Buffer.from("small"), large];
  for (const [last, bytes] of all.entries()) {
    expect(await stream.append(bytes, last)).toEqual({ kind: "stored", sequence: last + 1 });
  }
  expect((await stream.read(2))?.equals(large)).toBe(true);
  expect(await stream.read(1)).toEqual(Buffer.alloc(0));
  const found: Buffer[] = [];
  const interruptions: string[] = [];
  const following = stream.follow(1, {
    message: (_, bytes) => found.push(bytes),
    interrupted: (reason) => interruptions.push(reason),
  });
  await expect.poll(() => found.length).toBe(4);
  expect(found.every((bytes, at) => bytes.equals(all[at] as Buffer))).toBe(true);
  expect(interruptions).toEqual([]);
  following.stop();
});

test("a follower starts anywhere and receives later messages, each in its own tick", async () => {
  const stream = await newStream();
  for (let last = 0; last < 5; last++) await stream.append(Buffer.from(`m${last + 1}`), last);
  const follower = new Follower(stream, 3);
  await expect.poll(() => follower.texts).toEqual(["m3", "m4", "m5"]);
  await stream.append(Buffer.from("m6"), 5);
  await expect.poll(() => follower.texts).toEqual(["m3", "m4", "m5", "m6"]);
  expect(follower.sequences).toEqual([3, 4, 5, 6]);
  let tick = 0;
  const turns: number[] = [];
  const counting = setInterval(() => tick++, 0);
  const immediate = () => {
    tick++;
    if (turns.length < 6) setImmediate(immediate);
  };
  immediate();
  const other = stream.follow(1, { message: () => turns.push(tick), interrupted: () => undefined });
  await expect.poll(() => turns.length).toBe(6);
  clearInterval(counting);
  expect(new Set(turns).size).toBe(6);
  other.stop();
  follower.stop();
});

test("a slow follower leaves the stream unchanged", async () => {
  const stream = await newStream();
  const count = 24;
  const megabyte = randomBytes(1024 * 1024);
  for (let last = 0; last < count; last++) await stream.append(megabyte, last);
  const seen: number[] = [];
  let goOn: () => void = () => undefined;
  const following = stream.follow(1, {
    message: (sequence) => seen.push(sequence),
    room: () => new Promise<void>((resolve) => (goOn = resolve)),
    interrupted: (reason) => complaints.push(reason),
  });
  await expect.poll(() => seen).toEqual([1]);
  await pause(1500);
  const listed = await requestApi(link, `CONSUMER.LIST.${stream.name}`, {}, 2000);
  const [consumer] = (listed.kind === "done" ? listed.body["consumers"] : []) as {
    delivered: { stream_seq: number };
  }[];
  expect(consumer?.delivered.stream_seq).toBeGreaterThan(1);
  expect(consumer?.delivered.stream_seq).toBeLessThanOrEqual(17);
  while (seen.length < count) {
    goOn();
    await pause(5);
  }
  expect(seen).toEqual(Array.from({ length: count }, (_, at) => at + 1));
  following.stop();
  await expect
    .poll(async () => {
      const after = await requestApi(link, `CONSUMER.LIST.${stream.name}`, {}, 2000);
      return after.kind === "done" && after.body["total"];
    })
    .toBe(0);
});

test("rejects a stream with other settings, and reports a missing one", async () => {
  const id = newId();
  expect(await JetStreamStream.open(link, id, 3, report)).toBeNull();
  const wanted = streamSettings(id, 3);
  const other = { ...wanted, num_replicas: 1, discard: "old", max_age: 60_000_000_000 };
  await requestApi(link, `STREAM.CREATE.${wanted["name"]}`, other, 5000);
  const told =
    /does not have the settings of a replicated log: num_replicas is 1 and must be 3; discard is "old" and must be "new"; max_age is 60000000000 and must be 0/;
  await expect(JetStreamStream.open(link, id, 3, report)).rejects.toThrow(told);
  await expect(JetStreamStream.create(link, id, 3, report)).rejects.toThrow(told);
  expect(await JetStreamStream.remove(link, id)).toBe(true);
  expect(await JetStreamStream.remove(link, id)).toBe(false);
  const stream = await JetStreamStream.create(link, id, 3, report);
  await stream.append(Buffer.from("kept"), 0);
  // Creating it again returns the same stream.
  await JetStreamStream.create(link, id, 3, report);
  expect(await (await JetStreamStream.open(link, id, 3, report))?.bounds()).toMatchObject({
    first: 1,
    last: 1,
  });
});

test("sends nothing without a connection, and reports an unknown outcome", async () => {
  const gone = await cluster.link();
  const stream = await newStream(gone);
  await gone.close();
  const begunMs = performance.now();
  expect(await stream.append(Buffer.from("a"), 0)).toEqual({ kind: "unknown" });
  expect(performance.now() - begunMs).toBeGreaterThan(45);
  await expect(stream.read(1)).rejects.toMatchObject({ code: "stream-unavailable" });
  await expect(stream.bounds()).rejects.toMatchObject({ code: "stream-unavailable" });
  await expect(stream.purgeBelow(2)).rejects.toMatchObject({ code: "stream-unavailable" });
  const opened = (await JetStreamStream.open(link, streamId(stream), 3, report)) as JetStreamStream;
  expect(await opened.bounds()).toMatchObject({ first: 1, last: 0 });
});

function streamId({ name }: JetStreamStream): StreamId {
  return { databaseId: name.split("_")[1] as string, generation: 1 };
}

/**
 * Appends `count` numbered messages in order despite failures, as the protocol does: an unknown
 * outcome is resolved by reading, and a retry has the same expected sequence. @returns the number
 * of unknown outcomes.
 */
async function write(stream: JetStreamStream, from: number, count: number): Promise<number> {
  let unknownCount = 0;
  for (let last = from; last < from + count; ) {
    const text = `m${last + 1} `;
    const outcome = await stream.append(Buffer.from(text), last);
    if (outcome.kind !== "stored") {
      unknownCount++;
      const there = await stream.read(last + 1).catch(() => undefined);
      if (there === undefined || there === null) continue;
      expect(there.toString()).toBe(text);
    }
    last++;
  }
  return unknownCount;
}

test("kill -9 of the leader loses and duplicates nothing, and a follower receives all", async () => {
  const stream = await newStream();
  const follower = new Follower(stream, 1);
  await write(stream, 0, 50);
  const writing = write(stream, 50, 400);
  await pause(100);
  cluster.signal(await cluster.leaderOf(stream.name), "SIGKILL");
  await writing;
  const count = 450;
  expect(await stream.bounds()).toMatchObject({ first: 1, last: count });
  await expect.poll(() => follower.sequences.length, { timeout: 30_000 }).toBe(count);
  expect(follower.sequences).toEqual(Array.from({ length: count }, (_, at) => at + 1));
  expect(follower.texts).toEqual(Array.from({ length: count }, (_, at) => `m${at + 1} `));
  follower.stop();
});

test("an append to a suspended leader has an unknown outcome, and another server leads", async () => {
  const stream = await newStream();
  await write(stream, 0, 10);
  const stopped = await cluster.leaderOf(stream.name);
  const away = await cluster.link((stopped + 1) % 3);
  const other = (await JetStreamStream.open(away, streamId(stream), 3, report)) as JetStreamStream;
  const follower = new Follower(other, 1);
  cluster.signal(stopped, "SIGSTOP");
  try {
    const begunMs = performance.now();
    expect(await other.append(Buffer.from("m11 "), 10)).toEqual({ kind: "unknown" });
    expect(performance.now() - begunMs).toBeLessThan(1500);
    expect(await write(other, 10, 40)).toBeGreaterThan(0);
  } finally {
    cluster.signal(stopped, "SIGCONT");
  }
  await write(other, 50, 10);
  await expect.poll(() => follower.sequences.length, { timeout: 30_000 }).toBe(60);
  expect(follower.texts).toEqual(Array.from({ length: 60 }, (_, at) => `m${at + 1} `));
  follower.stop();
});
