/**
 * A database with copies on three nodes over three NATS servers on this machine, compared with a database with local
 * files only: single writes and their time components, many writes in flight, a bulk load, and the time until another
 * node writes after the leader is killed. Each node is a process; all nodes and servers share the processors and a
 * disk, so processor time is printed for each process. Writes and the load are also compared with appending the same
 * amount to the stream alone.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { OpenDatabase } from "../engine/api/database/open-database.ts";
import { nodeEnvironment } from "../engine/base/platform/node-environment.ts";
import { BulkInsert } from "../engine/batches/bulk-insert.ts";
import { JetStreamStream } from "../server/cluster/nats/jetstream-stream.ts";
import { hasNatsServer, NatsCluster } from "../test/support/nats-cluster.ts";
import { type BenchSize, interleaved, median, percentile, printer, ratio } from "./harness.ts";
import { BenchNodes } from "./replicated/nodes.ts";

const documentBytes = 1024;
/** Size of a document's record in the log, appended to the stream alone, in bytes. */
const recordBytes = 1200;
/** Documents per transaction of the load. */
const perWrite = 256;
const writesInFlight = 8;
/** Commands per received chunk of a bulk insert. */
const perChunk = 64;
const messageBytes = 1024 * 1024;
const messagesInFlight = 8;

type Print = (line: string) => void;

interface Subjects {
  readonly single: OpenDatabase;
  readonly nodes: BenchNodes;
  readonly cluster: NatsCluster;
}

export async function run(size: BenchSize): Promise<string[]> {
  const { lines, print } = printer();
  if (!hasNatsServer()) {
    print("skipped: no nats-server is installed (node packaging/nats-server.js installs it)");
    return lines;
  }
  const folder = mkdtempSync(join(tmpdir(), "jackdaw-bench-"));
  const cluster = await NatsCluster.start(3);
  const single = await OpenDatabase.open(nodeEnvironment(), "single", join(folder, "single"));
  // On a busy machine, as in the tests, a node may pause for longer than the usual election timeout.
  const nodes = await BenchNodes.start(cluster, folder, size === "smoke" ? 60_000 : 3000);
  try {
    const subjects = { single, nodes, cluster };
    const rounds = size === "smoke" ? 1 : 4;
    await benchPuts(subjects, size === "smoke" ? 50 : 3000, rounds, print);
    for (const load of loads)
      await benchLoad(subjects, load, size === "smoke" ? 1 : 64, rounds, print);
    if (size === "smoke") return lines;
    print(`failover: ${(await nodes.failOver()).toFixed(0)} ms until another node has written`);
  } finally {
    await single.close();
    await nodes.stop();
    await cluster.stop();
    rmSync(folder, { recursive: true, force: true });
  }
  return lines;
}

async function benchPuts(
  { single, nodes, cluster }: Subjects,
  ms: number,
  rounds: number,
  print: Print,
): Promise<void> {
  for (const inFlight of [1, 16]) {
    const times: Record<"one" | "three" | "stream", number[]> = { one: [], three: [], stream: [] };
    nodes.acknowledgedMs.length = 0;
    const writes = nodes.database.diskWrites(0).at(-1)?.number ?? 0;
    const { one = Number.NaN, three = Number.NaN } = await interleaved(rounds, {
      one: () => putFor(single, inFlight, ms, times.one),
      three: () => putFor(nodes.database, inFlight, ms, times.three),
      stream: () => appendFor(cluster, inFlight, ms, times.stream),
    });
    print(
      `put x ${inFlight}: one node ${one.toFixed(0)}/s, ${shown(times.one)}; three ${three.toFixed(0)}/s, ${shown(times.three)}: ${ratio(three, one)}`,
    );
    const own = nodes.database.diskWrites(writes).filter(({ kind }) => kind === "sync");
    print(
      `  of the three: the stream's acknowledgment ${shown(nodes.acknowledgedMs)}; own sync ${shown(own.map(({ durationMs }) => durationMs))}; the stream alone ${shown(times.stream)}`,
    );
  }
}

function shown(times: readonly number[]): string {
  if (times.length === 0) return "none";
  return `p50 ${percentile(times, 0.5).toFixed(2)} ms, p99 ${percentile(times, 0.99).toFixed(1)} ms`;
}

async function benchLoad(
  { single, nodes, cluster }: Subjects,
  { name, write }: Load,
  megabytes: number,
  rounds: number,
  print: Print,
): Promise<void> {
  const spent: Record<
    "leader" | "follower" | "server" | "all" | "alone" | "allAlone" | "single",
    number[]
  > = { leader: [], follower: [], server: [], all: [], alone: [], allAlone: [], single: [] };
  const serverMs = () => cluster.servers.map(({ pid }) => processorMsOf(pid));
  const {
    one = 0,
    three = 0,
    stream = 0,
  } = await interleaved(rounds, {
    one: async () => {
      const before = process.cpuUsage();
      const rate = await rateOf(write, single, megabytes);
      spent.single.push(processorMs(before) / megabytes);
      return rate;
    },
    three: async () => {
      const before = process.cpuUsage();
      const [followers, servers] = [await nodes.followers(), serverMs()];
      const rate = await rateOf(write, nodes.database, megabytes);
      await nodes.caughtUp();
      const leader = processorMs(before) / megabytes;
      const server = difference(serverMs(), servers) / megabytes;
      const msOf = (states: readonly { readonly processorMs: number }[]) =>
        states.map((state) => state.processorMs);
      const later = await nodes.followers();
      const follower = difference(msOf(later), msOf(followers)) / megabytes;
      spent.leader.push(leader);
      spent.server.push(server);
      spent.follower.push(follower);
      spent.all.push(leader + 2 * follower + 3 * server);
      return rate;
    },
    stream: async () => {
      const before = process.cpuUsage();
      const servers = serverMs();
      const rate = await appendAlone(cluster, megabytes);
      const server = difference(serverMs(), servers) / megabytes;
      spent.alone.push(server);
      spent.allAlone.push(processorMs(before) / megabytes + 3 * server);
      return rate;
    },
  });
  print(
    `load by ${name}: one node ${one.toFixed(1)} MB/s, three ${three.toFixed(1)} MB/s: ${ratio(three, one)}; the stream alone ${stream.toFixed(1)} MB/s: ${ratio(three, stream)}`,
  );
  const ms = (name: keyof typeof spent) => `${median(spent[name]).toFixed(1)} ms`;
  print(
    `  processor time per MB: one node ${ms("single")}; of three, the leader ${ms("leader")}, each other ${ms("follower")}, each server ${ms("server")}; a server of the stream alone ${ms("alone")}`,
  );
  // Upper bound of the ratio to the stream alone if processors are the only bottleneck.
  print(
    `  all processes together ${ms("all")}, for the stream alone ${ms("allAlone")}: ${ratio(median(spent.allAlone), median(spent.all))}`,
  );
}

/** Returns the mean increase. */
function difference(later: readonly number[], before: readonly number[]): number {
  return later.reduce((sum, value, at) => sum + value - (before[at] ?? 0), 0) / later.length;
}

function processorMs(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

/** Returns the processor time of another process; 0 if it is unknown. */
function processorMsOf(pid: number | undefined): number {
  if (process.platform !== "linux" || pid === undefined) return 0;
  const [, rest = ""] = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ");
  const fields = rest.split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

const filler = "x".repeat(documentBytes);

/** Returns documents written per second, each counted when it is durable. */
async function putFor(
  database: OpenDatabase,
  inFlight: number,
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
  await Promise.all(Array.from({ length: inFlight }, (_, w) => writer(w)));
  return count / ((performance.now() - beginMs) / 1000);
}

/** Writes `count` documents of `text`, with id prefix `prefix`. */
interface Load {
  readonly name: string;
  write(database: OpenDatabase, prefix: string, count: number, text: string): Promise<unknown>;
}

const loads: readonly Load[] = [
  { name: "single puts", write: putAll },
  { name: "bulk insert", write: insertAll },
];

let loadCount = 0;

/** Returns the rate of document texts in MB per second. */
async function rateOf(
  write: Load["write"],
  database: OpenDatabase,
  megabytes: number,
): Promise<number> {
  const count = (megabytes * 1024 * 1024) / documentBytes;
  const prefix = `load${loadCount++}/`;
  const beginMs = performance.now();
  await write(database, prefix, count, JSON.stringify({ filler }));
  return megabytes / ((performance.now() - beginMs) / 1000);
}

async function putAll(database: OpenDatabase, prefix: string, count: number, text: string) {
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
  await Promise.all(Array.from({ length: writesInFlight }, writer));
}

async function insertAll(database: OpenDatabase, prefix: string, count: number, text: string) {
  const insert = new BulkInsert(database, { skipsUnchanged: false });
  const { signal } = new AbortController();
  await insert.run(commands(prefix, count, text), () => undefined, signal);
}

/** Yields the body of a bulk insert in chunks, as received by the server. */
async function* commands(prefix: string, count: number, text: string): AsyncGenerator<Buffer> {
  for (let from = 0; from < count; from += perChunk) {
    let chunk = from === 0 ? "[" : ",";
    for (let n = from; n < Math.min(from + perChunk, count); n++) {
      chunk += `${n > from ? "," : ""}{"Id":"${prefix}${n}","Document":${text},"Type":"PUT"}`;
    }
    yield Buffer.from(chunk);
  }
  yield Buffer.from("]");
}

/**
 * Appends messages of one document, or of as many as are in flight, to a stream without followers. @returns messages
 * per second
 */
async function appendFor(
  cluster: NatsCluster,
  documents: number,
  ms: number,
  times: number[],
): Promise<number> {
  return await withStream(cluster, async (stream) => {
    const message = Buffer.alloc(documents * recordBytes, "x");
    const beginMs = performance.now();
    let count = 0;
    while (performance.now() - beginMs < ms) {
      const sentMs = performance.now();
      const { kind } = await stream.append(message, count);
      times.push(performance.now() - sentMs);
      if (kind === "stored") count++;
    }
    return count / ((performance.now() - beginMs) / 1000);
  });
}

/** Appends messages of 1 MiB to a stream without followers. @returns MB per second */
async function appendAlone(cluster: NatsCluster, megabytes: number): Promise<number> {
  return await withStream(cluster, async (stream) => {
    const message = Buffer.alloc(messageBytes, "x");
    const count = (megabytes * 1024 * 1024) / messageBytes;
    const beginMs = performance.now();
    const queue: Promise<unknown>[] = [];
    for (let n = 0; n < count; n++) {
      if (queue.length === messagesInFlight) await queue.shift();
      queue.push(stream.append(message, n));
    }
    await Promise.all(queue);
    return megabytes / ((performance.now() - beginMs) / 1000);
  });
}

/** Runs `work` with a temporary stream. */
async function withStream(
  cluster: NatsCluster,
  work: (stream: JetStreamStream) => Promise<number>,
): Promise<number> {
  const id = { databaseId: Math.floor(Math.random() * 2 ** 48).toString(16), generation: 1 };
  const link = await cluster.link();
  const stream = await JetStreamStream.create(link, id, 3, () => undefined);
  try {
    return await work(stream);
  } finally {
    await JetStreamStream.remove(link, id);
  }
}
