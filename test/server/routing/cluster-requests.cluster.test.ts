/** Requests to a cluster of real nodes: every node answers as one database. */
import { randomBytes } from "node:crypto";
import DocumentStore from "ravendb";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ClusterServers } from "../../support/cluster-servers.ts";
import type { Reply, RequestOptions } from "../../support/start-test-server.ts";

let nodes: ClusterServers;
let leader: string;
let followers: string[];

beforeAll(async () => {
  nodes = await ClusterServers.start(3);
  const body = JSON.stringify({ DatabaseName: "shop" });
  const created = await nodes
    .at("A")
    .request("/admin/databases?name=shop", { method: "PUT", body });
  expect(created.status).toBe(201);
  await look();
}, 90_000);
afterAll(() => nodes.stop());

async function look(): Promise<void> {
  leader = await nodes.leaderOf("shop");
  followers = nodes.tags.filter((tag) => tag !== leader);
}

function send(tag: string, path: string, options: RequestOptions = {}): Promise<Reply> {
  return nodes.at(tag).request(`/databases/shop/${path}`, options);
}

const json = (value: unknown) => ({ body: JSON.stringify(value) });

describe("requests to any node", () => {
  test("execute writes of all types", async () => {
    for (const [at, tag] of nodes.tags.entries()) {
      const put = await send(tag, `docs?id=users/${at}`, { method: "PUT", ...json({ Age: at }) });
      expect(put.status).toBe(201);
      const Commands = [{ Type: "PUT", Id: `b/${at}`, ChangeVector: null, Document: { tag } }];
      const batch = await send(tag, "bulk_docs", { method: "POST", ...json({ Commands }) });
      expect(batch.status).toBe(201);
      const content = randomBytes(300_000);
      const path = `attachments?id=users/${at}&name=photo`;
      expect((await send(tag, path, { method: "PUT", body: content })).status).toBe(201);
      for (const other of nodes.tags) {
        await nodes.until(async () => (await send(other, path)).body.equals(content));
      }
    }
  });

  test("issue each number once", async () => {
    const replies = await Promise.all(
      Array.from({ length: 30 }, (_, at) =>
        send(nodes.tags[at % 3] as string, "identity/next?name=orders|", { method: "POST" }),
      ),
    );
    const given = replies.map(
      (reply) => (reply.json as { NewIdentityValue: number }).NewIdentityValue,
    );
    expect(new Set(given).size).toBe(30);
    const ranges = await Promise.all(nodes.tags.map((tag) => send(tag, "hilo/next?tag=users")));
    expect(new Set(ranges.map((reply) => (reply.json as { Low: number }).Low)).size).toBe(3);
    for (const reply of ranges) expect(reply.json).toMatchObject({ ServerTag: leader });
  });

  test("show a changed compare-exchange value immediately on all nodes, and replace it once", async () => {
    const [one, other] = followers as [string, string];
    for (let round = 0; round < 20; round++) {
      const key = `cmpxchg?key=k${round}`;
      const tries = await Promise.all(
        nodes.tags.map((tag) =>
          send(tag, `${key}&index=0`, { method: "PUT", ...json({ Object: tag }) }),
        ),
      );
      const results = tries.map(
        (reply) => reply.json as { Successful: boolean; Index: number; Value: unknown },
      );
      expect(results.filter(({ Successful }) => Successful)).toHaveLength(1);
      expect(new Set(results.map(({ Index }) => Index)).size).toBe(1);
      const winner = results.find(({ Successful }) => Successful)?.Value;
      const seen = await Promise.all([one, other, leader].map((tag) => send(tag, key)));
      for (const reply of seen) expect(reply.json).toMatchObject({ Results: [{ Value: winner }] });
    }
  });

  test("a cluster-wide load sees writes acknowledged by another node", async () => {
    const [one, other] = followers as [string, string];
    for (let round = 0; round < 20; round++) {
      const id = `wide/${round}`;
      expect((await send(one, `docs?id=${id}`, { method: "PUT", body: "{}" })).status).toBe(201);
      const reply = await send(other, `docs?id=${id}&txMode=ClusterWide`);
      expect([round, reply.status]).toEqual([round, 200]);
    }
  });

  test("a query that needs a new index is answered", async () => {
    for (const tag of nodes.tags) {
      const Query = `from Users where Field${tag} = 1`;
      const reply = await send(tag, "queries", { method: "POST", ...json({ Query }) });
      expect(reply.status).toBe(200);
      expect(reply.json).toMatchObject({
        NodeTag: tag,
        IndexName: expect.stringContaining("Field") as string,
      });
    }
  });

  test("an operation can be followed", async () => {
    const body = json({ Query: { Query: "from @all_docs update { this.done = 1; }" } });
    const [one, other] = followers as [string, string];
    const started = await send(one, "queries", { method: "PATCH", ...body });
    expect(started.json).toMatchObject({ OperationNodeTag: leader });
    const { OperationId } = started.json as { OperationId: number };
    await nodes.until(async () => {
      const reply = await send(other, `operations/state?id=${OperationId}`);
      return (reply.json as { Status: string }).Status === "Completed";
    });
  });

  test("disable and enable a database", async () => {
    const [one] = followers as [string];
    const change = (what: string) =>
      nodes.at(one).request(`/admin/databases/${what}`, {
        method: "POST",
        ...json({ DatabaseNames: ["shop"] }),
      });
    expect((await change("disable")).json).toMatchObject({
      Status: [{ Success: true, Disabled: true }],
    });
    for (const tag of nodes.tags) {
      await nodes.until(async () => (await send(tag, "docs?id=users/0")).status === 503);
    }
    expect((await change("enable")).json).toMatchObject({
      Status: [{ Success: true, Disabled: false }],
    });
    for (const tag of nodes.tags) {
      await nodes.until(async () => (await send(tag, "docs?id=users/0")).status === 200);
    }
  });
});

test("an official client connected to a follower works, with a subscription, and continues when the leader stops", async () => {
  const store = new DocumentStore(nodes.at(followers[0] as string).url, "shop");
  store.initialize();
  try {
    const session = store.openSession();
    await session.store({ Name: "Ann", "@metadata": { "@collection": "People" } }, "people/1");
    await session.saveChanges();
    const name = await store.subscriptions.create({ query: "from People" });
    const worker = store.subscriptions.getSubscriptionWorker<{ Name: string }>({
      subscriptionName: name,
      timeToWaitBeforeConnectionRetry: 200,
    });
    const seen = new Set<string>();
    worker.on("batch", (batch, done) => {
      for (const item of batch.items) seen.add(item.id);
      done();
    });
    worker.on("error", () => undefined);
    await nodes.until(() => seen.has("people/1"));
    await nodes.close(leader);
    await look();
    const next = store.openSession();
    await next.store({ Name: "Bea", "@metadata": { "@collection": "People" } }, "people/2");
    await next.saveChanges();
    await nodes.until(() => seen.has("people/2"));
    worker.dispose();
  } finally {
    store.dispose();
  }
}, 90_000);
