/**
 * The data folder of a node whose cluster is lost, created by the engine with streams in memory.
 */
import { type Engine, nodeEnvironment, openEngine } from "../../engine/engine.ts";
import { databaseKey, memberKey, sharedValuesId } from "../../server/cluster/registry.ts";
import { MemoryStream, StreamWay } from "./memory-stream.ts";

export const shopId = "0123456789abcdef0123456789abcdef";
const watcher = {
  roleChanged: () => undefined,
  needSnapshot: () => undefined,
  blocked: () => undefined,
  fetchRange: async () => [],
};
/** Values of the cluster, in addition to its nodes and databases. */
const common = {
  "certificates/AB12": { Name: "ann" },
  "server/first-admin": "AB12",
  "cluster/topology-id": "6e2d3b9a-0000-4000-8000-000000000001",
};

/**
 * The folder of node C: a copy of `shop` with documents users/1 and users/2, and no copy of
 * `world`.
 * @param more additional values of the cluster
 */
export async function createLostCluster(
  folder: string,
  more: Readonly<Record<string, object>> = {},
): Promise<void> {
  const of = (databaseId: string) => ({
    databaseId,
    originTag: "C",
    stream: new StreamWay(new MemoryStream()),
    generation: 1,
    tag: "C",
    standAfterMs: 20,
    isSeed: true,
    watcher,
  });
  const shop = of(shopId);
  const engine = await openEngine({
    folder,
    environment: nodeEnvironment(),
    replication: { of: (name) => (name === "shop" ? shop : null), cluster: of(sharedValuesId) },
  });
  const { databases, shared, values } = engine;
  if (shared === null) throw new Error("the folder is opened as that of a node");
  await shared.open();
  await until(() => shared.replication.role === "leader");
  await shared.change(
    Object.entries({ ...common, ...registered(), ...more }).map(([key, value]) => ({ key, value })),
  );
  await values.change([
    { key: "certificates/OLD", value: { Name: "removed in the cluster" } },
    { key: "server/own", value: 1 },
    { key: "cluster/copies/shop", value: { name: "shop", id: shopId, isComplete: true } },
    { key: "cluster/copies/begun", value: { name: "begun", id: "ff", isComplete: false } },
  ]);
  const copy = await databases.createCopy("shop");
  await until(() => copy.replication?.role === "leader");
  for (const id of ["users/1", "users/2"]) {
    await copy.documents.put(id, Buffer.from(`{"Id":"${id}"}`));
  }
  await engine.close();
}

function registered() {
  const members = ["A", "B", "C"];
  const urlOf = (at: number) => `http://127.0.0.1:${at + 1}`;
  const nodes = members.map((tag, at) => [
    memberKey(tag),
    { tag, url: urlOf(at), tcpUrl: null, fingerprint: null },
  ]);
  const databases = [
    { name: "shop", id: shopId, members },
    { name: "world", id: "ee".repeat(16), members: ["A", "B"] },
  ].map((one) => [databaseKey(one.name), { ...one, generation: 1, isSeeded: true }]);
  return Object.fromEntries([...nodes, ...databases]) as Record<string, object>;
}

/** Calls `look` with the folder opened as that of a single node. */
export async function asSingleNode<Result>(
  folder: string,
  look: (engine: Engine) => Promise<Result>,
): Promise<Result> {
  const engine = await openEngine({ folder, environment: nodeEnvironment() });
  try {
    return await look(engine);
  } finally {
    await engine.close();
  }
}

async function until(condition: () => boolean): Promise<void> {
  for (let left = 2000; !condition(); left--) {
    if (left === 0) throw new Error(`not reached: ${condition}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
