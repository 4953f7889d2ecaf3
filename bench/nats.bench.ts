/**
 * A stream of three NATS servers on this machine; every append is on two of their disks before it is acknowledged.
 * Measures appends with a given number in flight, and following, by the product's code and by the NATS libraries
 * alone (`@nats-io/jetstream`), alternately.
 */
import { jetstream } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { JetStreamStream } from "../server/cluster/nats/jetstream-stream.ts";
import { hasNatsServer, NatsCluster } from "../test/support/nats-cluster.ts";
import { type BenchSize, interleaved, percentile, printer, ratio, seeded } from "./harness.ts";

const shapes = [
  { name: "1 KiB x 1", bytes: 1024, inFlight: 1 },
  { name: "1 KiB x 64", bytes: 1024, inFlight: 64 },
  { name: "64 KiB x 8", bytes: 64 * 1024, inFlight: 8 },
  { name: "1 MiB x 8", bytes: 1024 * 1024, inFlight: 8 },
] as const;

/** Appends one message after the given sequence. @returns true if it was stored */
type Append = (message: Buffer, expectedLast: number) => Promise<boolean>;
/** Resolves when `count` messages have been received. */
type Follow = (count: number) => Promise<void>;

interface Client {
  readonly append: Append;
  readonly follow: Follow;
}

export async function run(size: BenchSize): Promise<string[]> {
  const { lines, print } = printer();
  if (!hasNatsServer()) {
    print("skipped: no nats-server is installed (node packaging/nats-server.js installs it)");
    return lines;
  }
  const cluster = await NatsCluster.start(3);
  try {
    const secondsMs = size === "smoke" ? 50 : 4000;
    const rounds = size === "smoke" ? 1 : 4;
    for (const shape of shapes) await benchShape(cluster, shape, secondsMs, rounds, print);
  } finally {
    await cluster.stop();
  }
  return lines;
}

async function benchShape(
  cluster: NatsCluster,
  shape: (typeof shapes)[number],
  ms: number,
  rounds: number,
  print: (line: string) => void,
): Promise<void> {
  const clients = [await ownClient(cluster), await libraryClient(cluster)] as const;
  const payload = payloadOf(shape.bytes);
  const counts: [number, number] = [0, 0];
  const latencies: [number[], number[]] = [[], []];
  const measure = (at: 0 | 1) => async () => {
    const times = latencies[at];
    const stored = await appendFor(
      clients[at].append,
      payload,
      counts[at],
      shape.inFlight,
      ms,
      times,
    );
    const begun = counts[at];
    counts[at] += stored.count;
    return ((counts[at] - begun) * shape.bytes) / 1024 / 1024 / (stored.ms / 1000);
  };
  const rates = await interleaved(rounds, { own: measure(0), library: measure(1) });
  const follows = await interleaved(Math.min(rounds, 3), {
    own: () => rateOf(clients[0].follow, counts[0], shape.bytes),
    library: () => rateOf(clients[1].follow, counts[1], shape.bytes),
  });
  const shown = (times: number[]) =>
    `p50 ${percentile(times, 0.5).toFixed(1)} ms, p99 ${percentile(times, 0.99).toFixed(1)} ms`;
  const { own = Number.NaN, library = Number.NaN } = rates;
  print(
    `append ${shape.name}: ${own.toFixed(1)} MB/s, ${((own * 1024 * 1024) / shape.bytes).toFixed(0)}/s, ${shown(latencies[0])}; ` +
      `library ${library.toFixed(1)} MB/s, ${shown(latencies[1])}: ${ratio(own, library)}`,
  );
  const { own: followed = Number.NaN, library: consumed = Number.NaN } = follows;
  print(
    `follow ${shape.name}: ${followed.toFixed(0)} MB/s, ${((followed * 1024 * 1024) / shape.bytes).toFixed(0)}/s; ` +
      `library ${consumed.toFixed(0)} MB/s: ${ratio(followed, consumed)}`,
  );
}

async function ownClient(cluster: NatsCluster): Promise<Client> {
  const link = await cluster.link();
  const id = { databaseId: newId(), generation: 1 };
  const report = (message: string) => console.error(message);
  const stream = await JetStreamStream.create(link, id, 3, report);
  return {
    append: async (message, expectedLast) =>
      (await stream.append(message, expectedLast)).kind === "stored",
    follow: (count) =>
      new Promise((resolve, reject) => {
        let seen = 0;
        const following = stream.follow(1, {
          message: () => {
            if (++seen < count) return;
            following.stop();
            resolve();
          },
          interrupted: (reason) => reject(new Error(reason)),
        });
      }),
  };
}

async function libraryClient(cluster: NatsCluster): Promise<Client> {
  const id = { databaseId: newId(), generation: 1 };
  const made = await JetStreamStream.create(await cluster.link(), id, 3, () => undefined);
  const connection = await connect(cluster.options());
  cluster.closeLater(() => connection.close());
  const streams = jetstream(connection);
  const subject = `jd.${id.databaseId}.1.f`;
  return {
    append: async (message, expectedLast) => {
      const expect = { lastSequence: expectedLast, streamName: made.name };
      const options = { expect, timeout: 1000, retries: 0 };
      return await streams.publish(subject, message, options).then(
        () => true,
        () => false,
      );
    },
    follow: async (count) => {
      const consumer = await streams.consumers.get(made.name);
      let seen = 0;
      for await (const _ of await consumer.consume({ max_bytes: 12 * 1024 * 1024 })) {
        if (++seen === count) break;
      }
      await consumer.delete();
    },
  };
}

/** Keeps `inFlight` appends in flight; a rejected append is retried after the preceding appends are stored. */
async function appendFor(
  append: Append,
  payload: Buffer,
  from: number,
  inFlight: number,
  ms: number,
  times: number[],
): Promise<{ count: number; ms: number }> {
  const begunMs = performance.now();
  let last = from;
  while (performance.now() - begunMs < ms) {
    const queue: Promise<boolean>[] = [];
    const send = (expected: number) => {
      const sentMs = performance.now();
      return append(payload, expected).then((isStored) => {
        times.push(performance.now() - sentMs);
        return isStored;
      });
    };
    let next = last;
    while (queue.length < inFlight) queue.push(send(next++));
    for (let first = queue.shift(); first !== undefined; first = queue.shift()) {
      if (!(await first)) {
        await Promise.all(queue);
        break;
      }
      last++;
      if (performance.now() - begunMs < ms) queue.push(send(next++));
    }
  }
  return { count: last - from, ms: performance.now() - begunMs };
}

async function rateOf(follow: Follow, count: number, bytes: number): Promise<number> {
  if (count === 0) return 0;
  const begunMs = performance.now();
  await follow(count);
  return (count * bytes) / 1024 / 1024 / ((performance.now() - begunMs) / 1000);
}

/** Returns random bytes, which cannot be compressed in transit. */
function payloadOf(bytes: number): Buffer {
  const random = seeded(7);
  const words = Uint32Array.from({ length: bytes / 4 }, () => random());
  return Buffer.from(words.buffer);
}

function newId(): string {
  return Math.floor(Math.random() * 2 ** 48).toString(16);
}
