/**
 * Faults injected under traffic: each ends with all processes running and all links healed,
 * although the cluster may not have recovered yet.
 */
import { setTimeout as pause } from "node:timers/promises";
import type { SeededRandom } from "../support/random.ts";
import type { ClusterNode, ClusterNodes, NatsNode } from "./cluster-nodes.ts";
import type { HttpReply } from "./http-sender.ts";

interface FaultContext {
  readonly cluster: ClusterNodes;
  readonly database: string;
  readonly random: SeededRandom;
  /** A node is about to lose its data, so sessions at it end. */
  readonly sessionsEnd: () => void;
}

/** @returns the reason if it was skipped; undefined if it was done */
type Fault = (context: FaultContext) => Promise<string | undefined>;

/** Streams of databases and of the cluster's own values. */
const anyStream = /\bJD_/;

const someNode = ({ cluster, random }: FaultContext) =>
  cluster.nodes[random.below(cluster.nodes.length)] as ClusterNode;

const someNats = ({ cluster, random }: FaultContext) =>
  cluster.nats[random.below(cluster.nats.length)] as NatsNode;

const leader = ({ cluster, database }: FaultContext) => cluster.leaderOf(database);

/** The server that leads the stream, or any. */
async function natsLeader(context: FaultContext): Promise<NatsNode> {
  return (await context.cluster.natsLeaderOf(anyStream)) ?? someNats(context);
}

async function killed(ones: readonly (ClusterNode | NatsNode)[], awayMs: number): Promise<void> {
  await Promise.all(ones.map(({ child }) => child.kill()));
  await pause(awayMs);
  await Promise.all(ones.map(({ child }) => child.start()));
}

export const faults: Readonly<Record<string, Fault>> = {
  async "the leader is killed"(context) {
    await killed([await leader(context)], 1_000 + context.random.below(6_000));
    return undefined;
  },
  async "the leading NATS server is killed"(context) {
    await killed([await natsLeader(context)], 1_000 + context.random.below(4_000));
    return undefined;
  },
  async "the leader is isolated from NATS"({ cluster, ...context }) {
    const node = await leader({ cluster, ...context });
    cluster.cutFromNats(node);
    await pause(4_000 + context.random.below(4_000));
    cluster.heal();
    return undefined;
  },
  async "a node is wiped"(context) {
    const node = someNode(context);
    context.sessionsEnd();
    await node.child.kill();
    context.cluster.wipe(node);
    await pause(500);
    await node.child.start();
    return undefined;
  },
  async "the leader is suspended"(context) {
    const { child } = await leader(context);
    child.stop();
    await pause(2_000 + context.random.below(8_000));
    child.continue();
    return undefined;
  },
  async "all nodes are killed together"({ cluster }) {
    await killed(cluster.nodes, 500);
    return undefined;
  },
  async "the leading NATS server is isolated from the others"(context) {
    context.cluster.cutNats(await natsLeader(context));
    await pause(4_000 + context.random.below(4_000));
    context.cluster.heal();
    return undefined;
  },
  async "a node and its NATS server are killed"(context) {
    const node = await leader(context);
    const nats = context.cluster.nats[node.at];
    await killed([node, ...(nats === undefined ? [] : [nats])], 3_000);
    return undefined;
  },
  async "a node is isolated from the others"(context) {
    context.cluster.cutFromPeers(someNode(context));
    await pause(4_000);
    context.cluster.heal();
    return undefined;
  },
  async "a byte of a stream replica flips"(context) {
    return damaged(context, "flip");
  },
  async "all NATS servers are killed together"({ cluster }) {
    await killed(cluster.nats, 500);
    return undefined;
  },
  async "a stream replica is truncated"(context) {
    return damaged(context, "cut");
  },
  async "nodes are restarted one after the other"({ cluster }) {
    for (const { child, send } of cluster.nodes) {
      await child.end("SIGTERM");
      await child.start();
      await cluster.eventually(`${child.name} is there again`, async () => {
        const { status } = await send.get("/build/version");
        return status === 200 ? null : `${status}`;
      });
    }
    return undefined;
  },
  async "a disk is full"({ cluster, random }) {
    const node = cluster.nodes.find(({ disk }) => disk !== null);
    if (node?.disk == null) return "no disk can be mounted here";
    node.disk.fill();
    await pause(3_000 + random.below(3_000));
    node.disk.free();
    // A NATS server that could not write stops its streams until it is restarted.
    const nats = cluster.nats[node.at];
    if (nats !== undefined) await killed([nats], 500);
    return undefined;
  },
  async "a NATS server is suspended"(context) {
    const { child } = someNats(context);
    child.stop();
    await pause(2_000 + context.random.below(8_000));
    child.continue();
    return undefined;
  },
  async "the leader's clock jumps"(context) {
    const { cluster, random } = context;
    if (!cluster.hasClocks) return "there is no libfaketime here";
    const node = await leader(context);
    for (const hours of [2, -3]) {
      cluster.setClock(node, hours * 3600 + random.below(100));
      await pause(2_000);
    }
    cluster.setClock(node, 0);
    return undefined;
  },
  async "a link between NATS servers is cut in one direction"({ cluster, random }) {
    const from = random.below(3);
    cluster.cutRoute(from, (from + 1 + random.below(2)) % 3);
    await pause(5_000);
    cluster.heal();
    return undefined;
  },
  async "a NATS server is wiped"(context) {
    const nats = someNats(context);
    await nats.child.kill();
    context.cluster.wipe(nats);
    await nats.child.start();
    return undefined;
  },
  async "a node is removed and added"(context) {
    const { cluster, sessionsEnd } = context;
    const node = someNode(context);
    const other = cluster.nodes.find((one) => one !== node) as ClusterNode;
    sessionsEnd();
    const url = encodeURIComponent(node.url);
    await changed(cluster, "the node is removed", /not contained/, () =>
      other.send.request("DELETE", `/admin/cluster/node?nodeTag=${node.tag}`),
    );
    await pause(2_000);
    await changed(cluster, "the node is added", /in the cluster already/, () =>
      other.send.put(`/admin/cluster/node?url=${url}&tag=${node.tag}`, undefined),
    );
    await cluster.eventually("the node has a copy again", async () => {
      const path = `/admin/databases/node?name=${context.database}&node=${node.tag}`;
      const { status, text } = await other.send.put(path, undefined);
      return status < 300 || /already/i.test(text) ? null : `${status} ${text}`;
    });
    return undefined;
  },
};

/**
 * Faults that need no rights, libraries or long waits: a round of each runs everywhere. Excluded
 * are the full disk (needs a mounted file system), the clock (needs libfaketime), and variants of
 * other faults.
 */
export const shortFaults: readonly string[] = [
  "the leader is killed",
  "the leading NATS server is killed",
  "the leader is isolated from NATS",
  "a node is wiped",
  "the leader is suspended",
  "all nodes are killed together",
  "the leading NATS server is isolated from the others",
  "a stream replica is truncated",
  "nodes are restarted one after the other",
  "a node is removed and added",
];

/**
 * Repeats a change until it succeeds. After an unknown outcome, a rejection that matches `isMade`
 * shows that it was executed.
 */
async function changed(
  cluster: ClusterNodes,
  what: string,
  isMade: RegExp,
  send: () => Promise<HttpReply>,
): Promise<void> {
  let isUnknown = false;
  await cluster.eventually(what, async () => {
    const { status, text } = await send().catch((error: unknown) => {
      isUnknown = true;
      throw error;
    });
    if (status < 300 || (isUnknown && isMade.test(text))) return null;
    if (status >= 500) isUnknown = true;
    return `${status} ${text}`;
  });
}

/** Only while the other two are complete: two damaged replicas of three are another fault. */
async function damaged(context: FaultContext, how: "flip" | "cut"): Promise<string | undefined> {
  const { cluster } = context;
  const nats = someNats(context);
  await nats.child.kill();
  const isDone = cluster.damage(nats, anyStream, how);
  await nats.child.start();
  return isDone ? undefined : "the replica has no block yet";
}
