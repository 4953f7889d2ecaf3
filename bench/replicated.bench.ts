/**
 * A database with copies on three nodes, over three servers of NATS on this machine, beside one with files of its own
 * only: single writes, many under way, and a bulk load. All of it shares two processors and a disk here, which three
 * machines would not. The load is compared with appending as many bytes to the stream alone, too.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { OpenDatabase } from "../engine/database/open-database.ts";
import { nodeEnvironment } from "../engine/platform/node-environment.ts";
import { JetStreamStream } from "../server/cluster/nats/jetstream-stream.ts";
import { StreamCutter } from "../test/support/memory-stream.ts";
import { hasNatsServer, NatsCluster } from "../test/support/nats-cluster.ts";
import { ReplicatedNodes } from "../test/support/replicated-nodes.ts";
import { type BenchSize, interleaved, percentile, ratio } from "./harness.ts";

const documentBytes = 1024;
/** Documents of one transaction of the load. */
const perWrite = 256;
const writesUnderWay = 8;

export async function run(size: BenchSize): Promise<string[]> {
  const lines: string[] = [];
  const print = (line: string) => {
    lines.push(line);
    console.log(line);
  };
  if (!hasNatsServer()) {
    print("left out: there is no nats-server here (node packaging/nats-server.js makes one)");
    return lines;
  }
  const folder = mkdtempSync(join(tmpdir(), "jackdaw-bench-"));
  const cluster = await NatsCluster.start(3);
  const nodes = await threeNodes(cluster, folder);
  const single = await OpenDatabase.open(nodeEnvironment(), "single", join(folder, "single"));
  try {
    const { database } = await nodes.leader();
    if (database === null) throw new Error("a node that leads has a database");
    await bench({ single, replicated: database, cluster }, size, print);
  } finally {
    await single.close();
    await nodes.stop();
    await cluster.stop();
    rmSync(folder, { recursive: true, force: true });
  }
  return lines;
}

interface Subjects {
  readonly single: OpenDatabase;
  readonly replicated: OpenDatabase;
  readonly cluster: NatsCluster;
}

async function bench(
  { single, replicated, cluster }: Subjects,
  size: BenchSize,
  print: (line: string) => void,
): Promise<void> {
  const ms = size === "smoke" ? 50 : 4_000;
  const rounds = size === "smoke" ? 1 : 4;
  for (const underWay of [1, 16]) {
    const times: Record<string, number[]> = { one: [], three: [] };
    const measure = (name: string, database: OpenDatabase) => () =>
      putFor(database, underWay, ms, times[name] as number[]);
    const rates = await interleaved(rounds, {
      one: measure("one", single),
      three: measure("three", replicated),
    });
    const { one = Number.NaN, three = Number.NaN } = rates;
    const shown = (name: string) =>
      `p50 ${percentile(times[name] as number[], 0.5).toFixed(2)} ms, p99 ${percentile(times[name] as number[], 0.99).toFixed(1)} ms`;
    print(
      `put x ${underWay}: one node ${one.toFixed(0)}/s, ${shown("one")}; three ${three.toFixed(0)}/s, ${shown("three")}: ${ratio(three, one)}`,
    );
  }
  const megabytes = size === "smoke" ? 1 : 64;
  const loads = await interleaved(Math.min(rounds, 3), {
    one: () => load(single, megabytes),
    three: () => load(replicated, megabytes),
    stream: () => appendAlone(cluster, megabytes),
  });
  const { one = Number.NaN, three = Number.NaN, stream = Number.NaN } = loads;
  print(
    `load: one node ${one.toFixed(1)} MB/s, three ${three.toFixed(1)} MB/s: ${ratio(three, one)}; the stream alone ${stream.toFixed(1)} MB/s: ${ratio(three, stream)}`,
  );
}

async function threeNodes(cluster: NatsCluster, folder: string) {
  const id = { databaseId: Math.floor(Math.random() * 2 ** 48).toString(16), generation: 1 };
  const ways: StreamCutter[] = [];
  for (let at = 0; at < 3; at++) {
    const link = await cluster.link();
    const report = (message: string) => console.error(message);
    ways.push(new StreamCutter(await JetStreamStream.create(link, id, 3, report)));
  }
  const nodes = new ReplicatedNodes(folder, ways, 3_000);
  for (const node of nodes.nodes) await node.open();
  return nodes;
}

const filler = "x".repeat(documentBytes);

/** Documents written a second, each durable before it counts. */
async function putFor(
  database: OpenDatabase,
  underWay: number,
  ms: number,
  times: number[],
): Promise<number> {
  const beginMs = performance.now();
  let count = 0;
  const writer = async (w: number) => {
    for (let n = 0; performance.now() - beginMs < ms; n++) {
      const sentMs = performance.now();
      await database.put(`w${w}/${n % 1000}`, { n, filler });
      times.push(performance.now() - sentMs);
      count++;
    }
  };
  await Promise.all(Array.from({ length: underWay }, (_, w) => writer(w)));
  return count / ((performance.now() - beginMs) / 1000);
}

let loads = 0;

/** MB of documents' texts a second. */
async function load(database: OpenDatabase, megabytes: number): Promise<number> {
  const prefix = `load${loads++}/`;
  const count = (megabytes * 1024 * 1024) / documentBytes;
  const text = JSON.stringify({ filler });
  const beginMs = performance.now();
  let next = 0;
  const writer = async () => {
    while (next < count) {
      const from = next;
      next += perWrite;
      const puts: Promise<unknown>[] = [];
      for (let n = from; n < from + perWrite; n++) puts.push(database.put(prefix + n, text));
      await Promise.all(puts);
    }
  };
  await Promise.all(Array.from({ length: writesUnderWay }, writer));
  return megabytes / ((performance.now() - beginMs) / 1000);
}

const messageBytes = 1024 * 1024;
const messagesUnderWay = 8;

/** MB a second of messages of 1 MiB to a stream that nobody follows. */
async function appendAlone(cluster: NatsCluster, megabytes: number): Promise<number> {
  const id = { databaseId: Math.floor(Math.random() * 2 ** 48).toString(16), generation: 1 };
  const link = await cluster.link();
  const stream = await JetStreamStream.create(link, id, 3, () => undefined);
  const message = Buffer.alloc(messageBytes, "x");
  const count = (megabytes * 1024 * 1024) / messageBytes;
  const beginMs = performance.now();
  const queue: Promise<unknown>[] = [];
  for (let n = 0; n < count; n++) {
    if (queue.length === messagesUnderWay) await queue.shift();
    queue.push(stream.append(message, n));
  }
  await Promise.all(queue);
  const rate = megabytes / ((performance.now() - beginMs) / 1000);
  await JetStreamStream.remove(link, id);
  return rate;
}
