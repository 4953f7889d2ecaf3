/**
 * Three servers over three NATS servers on this machine: time without acknowledged writes after a kill, for a client
 * that tries all nodes and for the official client, which fails over automatically; reads at all nodes compared with
 * reads at one; and durable writes over HTTP at three nodes compared with one. All processes share the processors and
 * the disk of one machine, so read scaling is measured by the nodes' processor time per read.
 */
import { setTimeout as pause } from "node:timers/promises";
import type { DocumentStore } from "ravendb";
import { openStore } from "../test/cluster/client-workers.ts";
import { type ClusterNode, ClusterNodes, type NatsNode } from "../test/cluster/cluster-nodes.ts";
import { natsServerPath } from "../test/support/nats-cluster.ts";
import { type BenchSize, interleaved, median, percentile, printer, ratio } from "./harness.ts";
import { processorMs } from "./http/processes.ts";

const database = "bench";
/** Pause between two attempts of a client that tries all nodes, and its time limit per node, in milliseconds. */
const retryMs = 20;
const replyTimeoutMs = 1_000;
const documentCount = 1_000;
const leaderKillCount = 20;
const otherKillCount = 6;
const filler = "x".repeat(1_000);

type Print = (line: string) => void;

export async function run(size: BenchSize): Promise<string[]> {
  const { lines, print } = printer();
  if (!hasServer()) {
    print("skipped: no nats-server is installed (node packaging/nats-server.js installs it)");
    return lines;
  }
  const three = await ClusterNodes.start();
  const one = await ClusterNodes.start({ count: 1, nats: "none" });
  try {
    await three.complete();
    for (const cluster of [three, one]) await cluster.createDatabase(database);
    await benchWrites(three, one, size, print);
    await benchReads(three, size, print);
    await benchFailover(three, size, print);
  } finally {
    await one.stop();
    await three.stop();
  }
  return lines;
}

function hasServer(): boolean {
  try {
    natsServerPath();
    return true;
  } catch {
    return false;
  }
}

const documentPath = (id: string) => `/databases/${database}/docs?id=${id}`;

async function benchWrites(
  three: ClusterNodes,
  one: ClusterNodes,
  size: BenchSize,
  print: Print,
): Promise<void> {
  const ms = size === "smoke" ? 100 : 3_000;
  const rounds = size === "smoke" ? 1 : 4;
  const leader = await three.leaderOf(database);
  const follower = three.nodes.find((node) => node !== leader) as ClusterNode;
  for (const inFlight of [1, 16]) {
    const times: Record<string, number[]> = { one: [], leader: [], follower: [] };
    const put = (name: string, node: ClusterNode) => () =>
      rate(inFlight, ms, async (w, n) => {
        const beganMs = performance.now();
        const id = `writes/${w}-${n % 100}`;
        const { status, text } = await node.send.put(documentPath(id), { n, filler });
        if (status !== 201) throw new Error(`${status} ${text}`);
        times[name]?.push(performance.now() - beganMs);
      });
    const rates = await interleaved(rounds, {
      one: put("one", one.any),
      leader: put("leader", leader),
      follower: put("follower", follower),
    });
    const { one: single = 0, leader: led = 0, follower: passed = 0 } = rates;
    print(
      `PUT over HTTP x ${inFlight}: one node ${single.toFixed(0)}/s; three, at the leader ${led.toFixed(0)}/s: ${ratio(led, single)}; at another ${passed.toFixed(0)}/s: ${ratio(passed, single)}`,
    );
    const shown = Object.entries(times).map(([name, of]) => {
      const ms = (p: number) => percentile(of, p).toFixed(1);
      return `${name} ${ms(0.5)} and ${ms(0.99)}`;
    });
    print(`  milliseconds, median and 99th percentile: ${shown.join("; ")}`);
  }
}

async function benchReads(three: ClusterNodes, size: BenchSize, print: Print): Promise<void> {
  const ms = size === "smoke" ? 100 : 3_000;
  const rounds = size === "smoke" ? 1 : 4;
  const leader = await three.leaderOf(database);
  for (let from = 0; from < documentCount; from += 100) {
    const Commands = Array.from({ length: 100 }, (_, at) => ({
      Id: `reads/${from + at}`,
      Type: "PUT",
      Document: { n: at, filler },
    }));
    const { status } = await leader.send.post(`/databases/${database}/bulk_docs`, { Commands });
    if (status !== 201) throw new Error(`writing a document failed: ${status}`);
  }
  const last = documentPath(`reads/${documentCount - 1}`);
  await three.eventually("all nodes have the documents", async () => {
    for (const { send } of three.nodes) if ((await send.get(last)).status !== 200) return "not yet";
    return null;
  });
  const costs: Record<string, number[]> = { one: [], three: [] };
  const read = (name: string, nodes: readonly ClusterNode[]) => async () => {
    const usedMs = () =>
      three.nodes.reduce((sum, { child }) => sum + processorMs(child.pid ?? 0), 0);
    const beforeMs = usedMs();
    let count = 0;
    const perSecond = await rate(24, ms, async (w, n) => {
      const node = nodes[(w + n) % nodes.length] as ClusterNode;
      const { status } = await node.send.get(documentPath(`reads/${(w * 31 + n) % documentCount}`));
      if (status !== 200) throw new Error(`not read: ${status}`);
      count++;
    });
    costs[name]?.push((usedMs() - beforeMs) / count);
    return perSecond;
  };
  const rates = await interleaved(rounds, {
    one: read("one", [leader]),
    three: read("three", three.nodes),
  });
  const { one = 0, three: all = 0 } = rates;
  const cost = (name: string) => median(costs[name] ?? []) * 1_000;
  print(
    `reads x 24: at one node ${one.toFixed(0)}/s, at three ${all.toFixed(0)}/s: ${ratio(all, one)} (nodes and clients share the processors); processor time of all nodes for one: ${cost("one").toFixed(0)} and ${cost("three").toFixed(0)} µs`,
  );
}

/** Returns how often `work` completes per second with `inFlight` calls in flight. */
async function rate(
  inFlight: number,
  ms: number,
  work: (worker: number, n: number) => Promise<void>,
): Promise<number> {
  const beginMs = performance.now();
  let count = 0;
  const worker = async (w: number) => {
    for (let n = 0; performance.now() - beginMs < ms; n++) {
      await work(w, n);
      count++;
    }
  };
  await Promise.all(Array.from({ length: inFlight }, (_, w) => worker(w)));
  return count / ((performance.now() - beginMs) / 1000);
}

type Victims = (three: ClusterNodes) => Promise<readonly (ClusterNode | NatsNode)[]>;

const natsLeader = async (three: ClusterNodes) =>
  (await three.natsLeaderOf(databaseStream)) ?? (three.nats[0] as NatsNode);

/** Matches the stream of a database, but not that of the cluster state. */
const databaseStream = /^JD_(?!6a61636b6461772d)/;

const kills: Readonly<Record<string, Victims>> = {
  "the leader node": async (three) => [await three.leaderOf(database)],
  "the NATS leader": async (three) => [await natsLeader(three)],
  both: async (three) => [await three.leaderOf(database), await natsLeader(three)],
};

async function benchFailover(three: ClusterNodes, size: BenchSize, print: Print): Promise<void> {
  const kinds = Object.entries(kills).slice(0, size === "smoke" ? 1 : undefined);
  const store = openStore(three, database);
  try {
    for (const [at, [name, victims]] of kinds.entries()) {
      const fullCount = at === 0 ? leaderKillCount : otherKillCount;
      const killCount = size === "smoke" ? 1 : fullCount;
      const plain: number[] = [];
      const client: number[] = [];
      for (let kill = 0; kill < killCount; kill++) {
        const [plainMs, clientMs] = await failover(three, store, victims);
        plain.push(plainMs);
        client.push(clientMs);
      }
      print(`${name} killed, ${killCount} times: ${shown(plain, client)}`);
    }
  } finally {
    store.dispose();
  }
}

function shown(plain: readonly number[], client: readonly number[]): string {
  const seconds = (values: readonly number[]) =>
    `median ${(median(values) / 1000).toFixed(1)} s, longest ${(Math.max(...values) / 1000).toFixed(1)} s`;
  return `writes acknowledged again by any node after ${seconds(plain)}; through the official client after ${seconds(client)}`;
}

/**
 * Kills processes. @returns milliseconds until the first acknowledged write that began after the kill, for both
 * clients
 */
async function failover(
  three: ClusterNodes,
  store: DocumentStore,
  victims: Victims,
): Promise<readonly [number, number]> {
  await saved(store);
  const found = await victims(three);
  await Promise.all(found.map(({ child }) => child.kill()));
  const killedMs = performance.now();
  const times = await Promise.all([
    anyNodeWrites(three).then(() => performance.now() - killedMs),
    saved(store).then(() => performance.now() - killedMs),
  ]);
  await Promise.all(found.map(({ child }) => child.start()));
  await three.eventually("all nodes accept writes", async () => {
    for (const { tag, send } of three.nodes) {
      const { status, text } = await send.put(documentPath(`ready/${tag}`), {});
      if (status !== 201) return `${tag}: ${status} ${text}`;
    }
    return null;
  });
  await pause(1_000);
  return times;
}

async function anyNodeWrites(three: ClusterNodes): Promise<void> {
  for (let n = 0; ; n++) {
    const node = three.nodes[n % three.nodes.length] as ClusterNode;
    const reply = await node.send
      .put(documentPath("failover/plain"), { n }, { timeoutMs: replyTimeoutMs })
      .catch(() => null);
    if (reply?.status === 201) return;
    await pause(retryMs);
  }
}

async function saved(store: DocumentStore): Promise<void> {
  for (let n = 0; ; n++) {
    const session = store.openSession();
    try {
      await session.store({ n }, "failover/client");
      await session.saveChanges();
      return;
    } catch {
      await pause(retryMs);
    } finally {
      session.dispose();
    }
  }
}
