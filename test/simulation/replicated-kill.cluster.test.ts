/**
 * Three copies of a database over three NATS servers, which are real processes: servers are killed
 * and suspended, nodes are isolated and killed, under writes. At the end, all copies have each
 * acknowledged write once.
 *
 * REPLICATED_KILL_ROUNDS sets the number of rounds (6), REPLICATED_KILL_SEED the seed.
 */
import { randomBytes } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import type { EngineError } from "../../engine/base/errors.ts";
import { incrementCounter } from "../../engine/writes/counters.ts";
import { JetStreamStream } from "../../server/cluster/nats/jetstream-stream.ts";
import { StreamCutter } from "../support/memory-stream.ts";
import { NatsCluster } from "../support/nats-cluster.ts";
import { newTestFolder } from "../support/open-test-database.ts";
import { SeededRandom } from "../support/random.ts";
import { type ReplicatedNode, ReplicatedNodes } from "../support/replicated-nodes.ts";

const rounds = Number(process.env["REPLICATED_KILL_ROUNDS"] ?? 6);
const seed = Number(process.env["REPLICATED_KILL_SEED"] ?? Date.now() % 1_000_000);
const writers = 6;

let cluster: NatsCluster;
beforeAll(async () => {
  cluster = await NatsCluster.start(3);
}, 60_000);
afterAll(() => cluster.stop());

async function threeNodes(): Promise<ReplicatedNodes<StreamCutter>> {
  const id = { databaseId: randomBytes(8).toString("hex"), generation: 1 };
  const ways: StreamCutter[] = [];
  for (let at = 0; at < 3; at++) {
    const link = await cluster.link();
    ways.push(new StreamCutter(await JetStreamStream.create(link, id, 3, () => undefined)));
  }
  const all = new ReplicatedNodes(await newTestFolder(), ways, 2_000);
  onTestFinished(() => all.stop());
  for (const node of all.nodes) await node.open();
  return all;
}

/** A writer's knowledge of its document. */
interface Ledger {
  /** The highest acknowledged number. */
  written: number;
  /** Acknowledged increments, and increments of unknown outcome. */
  counted: number;
  unknown: number;
}

const codeOf = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => "written",
    (error: EngineError) => error.code,
  );

type Node = ReplicatedNode<StreamCutter>;

/** Writes whenever there is a leader. */
async function write(
  all: ReplicatedNodes<StreamCutter>,
  w: number,
  ledger: Ledger,
  isDone: () => boolean,
): Promise<void> {
  const id = `w/${w}`;
  for (let n = 1; !isDone(); n++) {
    const database = all.nodes.find(({ isLeading, way }) => isLeading && !way.isCut)?.database;
    if (database == null) {
      await pause(20);
      continue;
    }
    if ((await codeOf(database.put(id, { n }))) === "written") ledger.written = n;
    const counted = await codeOf(
      database.write((transaction) => incrementCounter(transaction, id, "n", 1n)),
    );
    if (counted === "written") ledger.counted++;
    else if (counted === "outcome-unknown" || counted === "database-stopped") ledger.unknown++;
  }
}

/** A server that was killed before may still be starting. */
async function signal(at: number, name: "SIGKILL" | "SIGSTOP"): Promise<void> {
  for (let tries = 0; ; tries++) {
    try {
      cluster.signal(at, name);
      return;
    } catch (error) {
      if (tries === 50) throw error;
      await pause(200);
    }
  }
}

const faults: Readonly<
  Record<string, (all: ReplicatedNodes<StreamCutter>, n: number) => Promise<void>>
> = {
  async "a server is killed"(_, n) {
    await signal(n % 3, "SIGKILL");
    await pause(1_500);
  },
  async "a server is suspended"(_, n) {
    await signal(n % 3, "SIGSTOP");
    await pause(3_000);
    cluster.signal(n % 3, "SIGCONT");
  },
  async "the leader is isolated"(all) {
    const leader = await all.leader();
    leader.way.isCut = true;
    await all.leader();
    leader.way.isCut = false;
  },
  async "the leader is killed"(all) {
    const leader: Node = await all.leader();
    await leader.kill();
    await all.leader();
    await leader.open();
  },
  async "a node is away"(all, n) {
    const node = all.nodes[n % 3] as Node;
    await node.kill();
    await pause(1_000);
    await node.open();
  },
  async "all servers are killed"() {
    for (let at = 0; at < 3; at++) await signal(at, "SIGKILL");
    await pause(2_000);
  },
};

test(
  `loses nothing acknowledged over ${rounds} faults, seed ${seed}`,
  async () => {
    const random = new SeededRandom(seed);
    const all = await threeNodes();
    await all.leader();
    let isDone = false;
    const ledgers = Array.from({ length: writers }, () => ({ written: 0, counted: 0, unknown: 0 }));
    const writing = ledgers.map((ledger, w) => write(all, w, ledger, () => isDone));
    const names = Object.keys(faults);
    for (let round = 0; round < rounds; round++) {
      const at = round < names.length ? round : random.below(names.length);
      await faults[names[at] as string]?.(all, random.below(3));
      await all.leader();
      await pause(300);
    }
    isDone = true;
    await Promise.all(writing);
    await all.expectSame();
    const { database } = await all.leader();
    for (const [w, { written, counted, unknown }] of ledgers.entries()) {
      const id = `w/${w}`;
      expect((await database?.get(id))?.["n"]).toBeGreaterThanOrEqual(written);
      const counter = database?.state.keyspaces.counters.get(`${id}\u0000n`);
      const total = Number(counter?.value ?? 0);
      expect(total).toBeGreaterThanOrEqual(counted);
      expect(total).toBeLessThanOrEqual(counted + unknown);
      expect(written).toBeGreaterThan(0);
    }
  },
  240_000 + rounds * 30_000,
);
