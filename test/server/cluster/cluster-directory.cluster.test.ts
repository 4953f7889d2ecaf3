/** Backups and restores of databases in a cluster, with real NATS servers. */
import { mkdtempSync, readdirSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import DocumentStore from "ravendb";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ClusterServers } from "../../support/cluster-servers.ts";

type Json = Record<string, unknown>;

const base = realpathSync(mkdtempSync(join(tmpdir(), "jackdaw-clustered-backups-")));
let nodes: ClusterServers;
beforeAll(async () => {
  nodes = await ClusterServers.start(3);
  await sent("A", "PUT", "/admin/databases?name=shop", { DatabaseName: "shop" });
  await sent("A", "POST", "/databases/shop/studio/sample-data");
  await sent("A", "PUT", "/databases/shop/cmpxchg?key=k&index=0", { Object: 1 });
}, 120_000);
afterAll(async () => {
  await nodes.stop();
  rmSync(base, { recursive: true, force: true });
});

async function sent(tag: string, method: string, path: string, value?: unknown): Promise<Json> {
  const body = value === undefined ? {} : { body: JSON.stringify(value) };
  const reply = await nodes.at(tag).request(path, { method, ...body });
  expect(reply.status, `${method} ${path} ${reply.text}`).toBeLessThan(300);
  return (reply.body.length === 0 ? {} : reply.json) as Json;
}

/** The result of an operation on any node. */
async function ended(tag: string, path: string): Promise<Json> {
  let state: Json = {};
  await nodes.until(async () => {
    state = await sent(tag, "GET", path);
    return state["Status"] !== "InProgress" && state["Status"] !== undefined;
  });
  return state;
}

async function backedUp(tag: string, path: string, folder: string, body?: Json): Promise<string> {
  const { OperationId } = await sent(tag, "POST", `/databases/shop/${path}`, body);
  const state = await ended(tag, `/databases/shop/operations/state?id=${OperationId}`);
  expect(state, JSON.stringify(state)).toMatchObject({ Status: "Completed" });
  const { BackupDirectory } = (state["Result"] as Json)["LocalBackup"] as Json;
  return join(folder, String(BackupDirectory));
}

async function restored(tag: string, body: Json): Promise<Json> {
  const { OperationId } = await sent(tag, "POST", "/admin/restore/database", body);
  return await ended(tag, `/operations/state?id=${OperationId}`);
}

const count = async (tag: string, name: string) => {
  const reply = await nodes.at(tag).request(`/databases/${name}/stats`, {
    headers: { "x-ravendb-request-node": tag },
  });
  return (reply.json as Json | undefined)?.["CountOfDocuments"];
};

/** Every node has its own copy with `count` documents. */
async function everywhere(name: string, documents: number): Promise<void> {
  await nodes.until(() =>
    nodes.tags.every((tag) => {
      const state = nodes.cluster(tag).find(name);
      return state?.role !== null && state?.isComplete === true;
    }),
  );
  for (const tag of nodes.tags)
    await nodes.until(async () => (await count(tag, name)) === documents);
}

/** Changes a document in a cluster-wide transaction, like a client that has read it. */
async function changeGuarded(database: string): Promise<void> {
  const store = new DocumentStore(nodes.at("A").url, database);
  store.conventions.sendApplicationIdentifier = false;
  store.initialize();
  const session = store.openSession({ transactionMode: "ClusterWide" });
  const found = await session.load<{ times: number }>("guarded/1");
  if (found === null) await session.store({ times: 1 }, "guarded/1");
  else found.times++;
  await session.saveChanges();
  store.dispose();
}

async function otherLeader(name: string): Promise<string> {
  const leader = await nodes.leaderOf(name);
  const next = nodes.tags.find((tag) => tag !== leader) as string;
  await sent(leader, "POST", `/admin/cluster/transfer?name=${name}&node=${next}`);
  await nodes.until(async () => (await nodes.leaderOf(name)) === next);
  return next;
}

test("any node accepts a one-time backup, and the restore reaches all nodes", async () => {
  const folder = join(base, "once");
  for (const tag of nodes.tags) {
    const created = await backedUp(tag, "admin/backup", folder, {
      BackupType: "Backup",
      LocalSettings: { FolderPath: folder },
    });
    const name = `once-${tag}`;
    const state = await restored(tag, { BackupLocation: created, DatabaseName: name });
    expect(state, JSON.stringify(state)).toMatchObject({ Status: "Completed" });
    await everywhere(name, 1059);
  }
});

test("a periodic backup continues in the same folder after a leader change", async () => {
  const folder = join(base, "periodic");
  const { TaskId } = await sent("A", "POST", "/databases/shop/admin/periodic-backup", {
    Name: "yearly",
    BackupType: "Backup",
    FullBackupFrequency: "0 0 1 1 *",
    IncrementalBackupFrequency: "0 0 2 1 *",
    LocalSettings: { FolderPath: folder },
  });
  const run = (tag: string, isFull: boolean) =>
    backedUp(tag, `admin/backup/database?taskId=${TaskId}&isFullBackup=${isFull}`, folder);
  const first = await run(await nodes.leaderOf("shop"), true);
  await sent("A", "PUT", "/databases/shop/docs?id=later", { a: 1 });
  const second = await run(await otherLeader("shop"), false);
  expect(second).toBe(first);
  expect(readdirSync(first).filter((name) => name.endsWith("-incremental-backup"))).toHaveLength(1);
  const state = await restored("B", { BackupLocation: first, DatabaseName: "periodic" });
  expect(state, JSON.stringify(state)).toMatchObject({ Status: "Completed" });
  await everywhere("periodic", 1060);
});

test("a continuous backup is verified against the database, and restored on all nodes, also to a point in time", async () => {
  const folder = join(base, "continuous");
  await sent("A", "POST", "/databases/shop/admin/periodic-backup", {
    Continuous: { IntervalInSec: 1 },
    LocalSettings: { FolderPath: folder },
  });
  const waitUntilShipped = async () => {
    const etagOf = async () => {
      const database = await nodes
        .at(await nodes.leaderOf("shop"))
        .running.services.databases.find("shop");
      return database?.lastEtag;
    };
    let isEqual = false;
    await nodes.until(async () => {
      const state = await verified();
      isEqual = ((state["Compared"] ?? {}) as Json)["IsEqual"] === true;
      return isEqual && (await etagOf()) !== undefined;
    });
  };
  const verified = async (): Promise<Json> => {
    const body = { BackupLocation: folder, CompareWith: "shop" };
    const reply = await nodes
      .at("B")
      .request("/admin/backups/verify", { method: "POST", body: JSON.stringify(body) });
    if (reply.status !== 200) return {};
    const state = await ended("B", `/operations/state?id=${(reply.json as Json)["OperationId"]}`);
    return (((state["Result"] ?? {}) as Json)["Verification"] as Json) ?? {};
  };
  await changeGuarded("shop");
  await waitUntilShipped();
  const found = Number(await count(await nodes.leaderOf("shop"), "shop"));
  const moment = new Date().toISOString();
  const leader = await otherLeader("shop");
  for (let i = 0; i < 10; i++) await sent("A", "PUT", `/databases/shop/docs?id=more/${i}`, { i });
  await waitUntilShipped();
  expect(
    nodes
      .cluster("A")
      .databases()
      .map(({ registered }) => registered.name),
  ).not.toContainEqual(expect.stringMatching(/^verification/));
  const all = await restored("C", { BackupLocation: folder, DatabaseName: "whole" });
  expect(all, JSON.stringify(all)).toMatchObject({ Status: "Completed" });
  await everywhere("whole", found + 10);
  const past = await restored(leader, {
    BackupLocation: folder,
    DatabaseName: "past",
    PointInTime: moment,
  });
  expect(past, JSON.stringify(past)).toMatchObject({ Status: "Completed" });
  await everywhere("past", found);
  // The shipped database is in the cluster as well, so these differ.
  const ids = ["shop", "whole", "past"].map((name) => nodes.cluster("A").find(name)?.registered.id);
  expect(new Set(ids).size).toBe(3);
  for (const name of ["whole", "past"]) {
    await sent("B", "PUT", `/databases/${name}/docs?id=written`, { a: 1 });
    const value = await sent("C", "GET", `/databases/${name}/cmpxchg?key=k`);
    expect(value["Results"]).toMatchObject([{ Key: "k" }]);
  }
  await sent("A", "PUT", "/databases/whole/docs?id=orders/1-A", {
    "@metadata": { "@collection": "Orders" },
  });
  await everywhere("whole", found + 11);
  for (const name of ["whole", "past"]) await changeGuarded(name);
});
