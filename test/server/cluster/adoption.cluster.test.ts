/** Adoption of a single server's databases when it joins a cluster, with real NATS servers. */
import { cpSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { CertificatePair } from "../../../certs/authority.ts";
import { nodeEnvironment, openEngine } from "../../../engine/engine.ts";
import type { Cluster } from "../../../server/cluster/cluster.ts";
import type { ClusterDatabase } from "../../../server/cluster/cluster-view.ts";
import { databaseKey } from "../../../server/cluster/registry.ts";
import { ClusterServers } from "../../support/cluster-servers.ts";
import { noCertificate, type Reply, type RequestOptions } from "../../support/start-test-server.ts";

type Json = Record<string, unknown>;

const json = (value: unknown) => ({ body: JSON.stringify(value) });

/** Replies of a copy of a database, by request path. */
async function answersOf(send: (path: string) => Promise<Reply>): Promise<Json> {
  const found: Json = {};
  for (const path of [
    "collections/stats",
    "docs?id=orders/1-A",
    "docs?id=users/1&counter=likes",
    "docs?id=users/gone",
    "revisions?id=users/1",
    "attachments?id=users/1&name=photo",
    "cmpxchg?startsWith=",
    "debug/identities",
    "subscriptions",
    "indexes?namesOnly=true",
    "queries?query=from%20index%20%27Orders/Totals%27%20select%20Total%20limit%2020&waitForNonStaleResultsTimeout=00:00:15",
    "timeseries?docId=users/1&name=heart",
  ]) {
    const reply = await send(path);
    const text = reply.headers["content-type"]?.includes("json")
      ? reply.text
      : reply.body.toString("base64");
    // Without the responding node, times and durations.
    const shown = text
      .replace(/"@metadata":\{"DateTime":[^}]*\},/, "")
      .replace(/"(DurationInMs|IndexTimestamp|LastQueryTime|ResultEtag|NodeTag)":[^,}]*,?/g, "");
    found[path] = [reply.status, shown];
  }
  return found;
}

describe("a server with data that two other nodes join", () => {
  let nodes: ClusterServers;
  let admin: CertificatePair;
  let reader: CertificatePair;
  let before: Json;
  /** Sends a request with node A's administrator certificate. */
  const send = (tag: string, path: string, options: RequestOptions = {}, pair = admin) =>
    nodes.at(tag).request(path, options, pair);

  beforeAll(async () => {
    nodes = await ClusterServers.prepare(3, { unsecured: false });
    const alone = await nodes.openAlone("A");
    admin = alone.admin;
    reader = await alone.client({ permissions: { shop: "Read" } }, "reader");
    const sent = async (path: string, method: string, value?: unknown) => {
      const body = value instanceof Buffer ? value : JSON.stringify(value);
      const reply = await send("A", path, { method, ...(value === undefined ? {} : { body }) });
      expect(reply.status, `${method} ${path} ${reply.text}`).toBeLessThan(300);
    };
    for (const name of ["shop", "notes"]) {
      await sent(`/admin/databases?name=${name}`, "PUT", { DatabaseName: name });
    }
    const shop = "/databases/shop";
    await sent(`${shop}/studio/sample-data`, "POST");
    await sent(`${shop}/admin/revisions/config`, "POST", { Default: { Disabled: false } });
    await sent(`${shop}/docs?id=users/1`, "PUT", {
      Name: "one",
      "@metadata": { "@collection": "Users" },
    });
    await sent(`${shop}/docs?id=users/1`, "PUT", {
      Name: "two",
      "@metadata": { "@collection": "Users" },
    });
    await sent(`${shop}/docs?id=users/gone`, "PUT", { a: 1 });
    await sent(`${shop}/docs?id=users/gone`, "DELETE");
    await sent(`${shop}/attachments?id=users/1&name=photo`, "PUT", Buffer.alloc(200_000, "photo"));
    await sent(`${shop}/counters`, "POST", {
      Documents: [
        {
          DocumentId: "users/1",
          Operations: [{ Type: "Increment", CounterName: "likes", Delta: 5 }],
        },
      ],
    });
    await sent(`${shop}/timeseries?docId=users/1`, "POST", {
      Name: "heart",
      Appends: [{ Timestamp: "2026-01-01T00:00:00.0000000Z", Values: [60] }],
    });
    await sent(`${shop}/cmpxchg?key=k&index=0`, "PUT", { Object: { a: 1 } });
    await sent(`${shop}/identity/next?name=orders|`, "POST");
    await sent(`${shop}/subscriptions`, "PUT", { Name: "mine", Query: "from Users" });
    await sent("/databases/notes/docs?id=n", "PUT", { a: 1 });
    before = await answersOf((path) => send("A", `${shop}/${path}`));
    expect(before["docs?id=users/gone"]).toEqual([404, expect.anything()]);
    await nodes.close("A");
  }, 120_000);
  afterAll(() => nodes.stop());

  test("has its databases and certificates in the cluster, and no others", async () => {
    await Promise.all(["B", "C"].map((tag) => nodes.open(tag)));
    await nodes.open("A");
    await nodes.complete(3);
    await nodes.until(() => nodes.tags.every((tag) => nodes.cluster(tag).databases().length === 2));
    expect(await nodes.leaderOf("shop")).toBe("A");
    expect(nodes.cluster("B").find("shop")?.registered.members).toEqual(["A"]);
    expect(nodes.cluster("A").ownDatabases()).toEqual([]);
    for (const tag of nodes.tags) {
      await nodes.until(
        async () => (await send(tag, "/databases/shop/stats", {}, reader)).status === 200,
      );
      expect((await send(tag, "/databases/notes/stats", {}, reader)).status).toBe(403);
      expect((await send(tag, "/databases/shop/stats", {}, noCertificate)).status).toBe(403);
      // The administrator created by a new node, which nobody had registered before.
      if (tag !== "A") {
        await nodes.until(
          async () => (await send(tag, "/certificates", {}, nodes.at(tag).admin)).status === 403,
        );
      }
    }
    const taken = await send("B", "/admin/databases?name=SHOP", {
      method: "PUT",
      ...json({ DatabaseName: "SHOP" }),
    });
    expect(taken.status).toBe(409);
  }, 90_000);

  test("the other nodes get copies of all of its content", async () => {
    for (const tag of ["B", "C"]) {
      const reply = await send("B", `/admin/databases/node?name=shop&node=${tag}`, {
        method: "PUT",
      });
      expect(reply.status, reply.text).toBe(200);
    }
    await nodes.until(() =>
      nodes.tags.every((tag) => nodes.cluster(tag).find("shop")?.isComplete === true),
    );
    for (const tag of nodes.tags) {
      const headers = { "x-ravendb-request-node": tag };
      let seen: Json = {};
      await nodes
        .until(async () => {
          seen = await answersOf((path) => send(tag, `/databases/shop/${path}`, { headers }));
          return JSON.stringify(seen) === JSON.stringify(before);
        })
        .catch(() => undefined);
      expect(seen).toEqual(before);
      const database = await nodes.at(tag).running.services.databases.find("shop");
      expect(
        await database?.shipping.openContent(contentOf(before)).then((one) => one.close()),
      ).toBeUndefined();
    }
  }, 90_000);

  test("the others continue without the first node", async () => {
    await send("A", "/databases/shop/docs?id=last", { method: "PUT", ...json({ a: 1 }) });
    await nodes.close("A");
    await nodes.until(async () => {
      const put = await send("B", "/databases/shop/docs?id=after", {
        method: "PUT",
        ...json({ a: 2 }),
      });
      return put.status === 201;
    });
    await nodes.until(
      async () => (await send("C", "/databases/shop/docs?id=after", {}, reader)).status === 200,
    );
    expect((await send("C", "/databases/shop/docs?id=last", {}, reader)).status).toBe(200);
    await nodes.open("A");
    await nodes.until(
      async () => (await send("A", "/databases/shop/docs?id=after", {}, reader)).status === 200,
    );
    expect((await send("A", "/databases/notes/docs?id=n")).status).toBe(200);
  }, 90_000);
});

/** The SHA-256 of the attachment, in hexadecimal. */
function contentOf(answers: Json): string {
  const [, document] = answers["docs?id=users/1&counter=likes"] as [number, string];
  const hash = /"Hash":"([^"]+)"/.exec(document)?.[1] ?? "";
  return Buffer.from(hash, "base64").toString("hex");
}

describe("a server with data that joins a cluster", () => {
  let nodes: ClusterServers;
  const send = (tag: string, path: string, options: RequestOptions = {}) =>
    nodes.at(tag).request(path, options);
  const create = (tag: string, name: string) =>
    send(tag, `/admin/databases?name=${name}&replicationFactor=2`, {
      method: "PUT",
      ...json({ DatabaseName: name }),
    });
  const adopt = (tag: string, name: string, node = "C") =>
    send(tag, `/admin/cluster/adopt?name=${name}&node=${node}`, { method: "POST" });
  /** As many steps of an adoption as there are databases, and one for a name already in use. */
  const steps = ["s0", "s1", "s2", "s3", "s4"];

  beforeAll(async () => {
    nodes = await ClusterServers.prepare(3);
    await nodes.openAlone("C");
    for (const name of [...steps, "shop", "mine"]) {
      expect((await create("C", name)).status).toBe(201);
      await send("C", `/databases/${name}/docs?id=of`, { method: "PUT", ...json({ is: name }) });
    }
    await nodes.close("C");
    await Promise.all(["A", "B"].map((tag) => nodes.open(tag)));
    await nodes.complete(2);
    expect((await create("A", "shop")).status).toBe(201);
    await send("A", "/databases/shop/docs?id=of", {
      method: "PUT",
      ...json({ is: "the cluster's" }),
    });
  }, 120_000);
  afterAll(() => nodes.stop());

  test("resumes an adoption that was interrupted after any step, without data loss", async () => {
    await endedAfterEachStep(nodes, steps);
    await nodes.open("C");
    await nodes.complete(3);
    for (const [step, name] of steps.entries()) {
      if (step < 3) {
        // Not registered: the node owns and serves it alone.
        expect(
          nodes
            .cluster("C")
            .ownDatabases()
            .map((one) => one.name),
        ).toContain(name);
        const path = `/databases/${name}/docs?id=while`;
        expect((await send("C", path, { method: "PUT", ...json({ a: 1 }) })).status).toBe(201);
        const reply = await adopt("A", name);
        expect(reply.status, reply.text).toBe(200);
        expect(reply.json).toEqual({ Name: name, Node: "C" });
      }
      expect(await nodes.leaderOf(name)).toBe("C");
      const added = await send("A", `/admin/databases/node?name=${name}&node=B`, { method: "PUT" });
      expect(added.status, added.text).toBe(200);
    }
    for (const [step, name] of steps.entries()) {
      await nodes.until(() => nodes.cluster("B").find(name)?.isComplete === true);
      for (const id of ["of", `step/${step}`, ...(step < 3 ? ["while"] : [])]) {
        const headers = { "x-ravendb-request-node": "B" };
        const path = `/databases/${name}/docs?id=${id}`;
        await nodes.until(async () => (await send("B", path, { headers })).status === 200);
      }
      const put = await send("B", `/databases/${name}/docs?id=after`, {
        method: "PUT",
        ...json({}),
      });
      expect(put.status).toBe(201);
    }
  }, 120_000);

  test("keeps a database whose name is in use, and reports how to proceed", async () => {
    const refused = await adopt("C", "shop");
    expect(refused.status).toBe(409);
    expect(refused.text).toContain("The cluster already has another database 'shop'");
    for (const tag of nodes.tags) {
      const seen = (await send(tag, "/databases/shop/docs?id=of")).json as { Results: Json[] };
      expect(seen.Results[0]?.["is"]).toBe("the cluster's");
    }
    expect((await adopt("A", "nope")).text).toContain("has no database 'nope' of its own");
    expect((await adopt("A", "s0")).text).toContain("already belongs to the cluster");
    expect((await adopt("A", "mine", "Q")).text).toContain("The node Q does not exist");
    const status = (await send("C", "/cluster/status")).json as Json;
    expect(status["OwnDatabases"]).toEqual([
      { Name: "mine", Failure: null },
      { Name: "shop", Failure: null },
      { Name: "twin", Failure: null },
    ]);
  });

  test("cannot adopt two databases created from the same files", async () => {
    expect((await adopt("B", "mine")).status).toBe(200);
    const twin = await adopt("B", "twin");
    expect(twin.status).toBe(400);
    expect(twin.text).toContain("was created from the same files as the database 'mine'");
    await nodes.cluster("A").deleteDatabase("mine");
    await nodes.until(() => !nodes.at("C").running.services.databases.has("mine"));
    expect((await adopt("B", "twin")).text).toContain("a deleted database");
    expect((await send("C", "/databases/twin/docs?id=of")).status).toBe(200);
  });
});

/**
 * For node C, which is not running: executes as many adoption steps for each database as its
 * position, and one write each.
 */
async function endedAfterEachStep(nodes: ClusterServers, names: readonly string[]): Promise<void> {
  const cluster = nodes.cluster("A") as Cluster;
  const engine = await openEngine({
    folder: nodes.folderOf("C"),
    environment: nodeEnvironment(),
  });
  for (const [step, name] of names.entries()) {
    const database = await engine.databases.find(name);
    if (database === undefined) throw new Error(`there is no ${name}`);
    const { id, settings } = database;
    const mark = step > 0 ? await engine.databases.markAsSeed(name) : undefined;
    const generation = (mark?.generation ?? 0) + 1;
    if (step > 1) await cluster.nats.createStream({ databaseId: id, generation });
    const registered: ClusterDatabase = {
      ...{ name, id, generation, members: ["C"], originTag: "C" },
      ...{ isSeeded: false, initialRecord: settings, index: cluster.index + 1 },
    };
    const key = databaseKey(name);
    if (step > 2)
      await cluster.change([{ key, expected: null, value: JSON.stringify(registered) }]);
    await database.documents.put(`step/${step}`, Buffer.from(JSON.stringify({ step })));
    if (step > 3) {
      const noted = { name, id, generation, originTag: "C", isSeed: true, isComplete: true };
      await engine.values.put(`cluster/copies/${name}`, noted);
    }
  }
  await engine.close();
  const databases = join(nodes.folderOf("C"), "Databases");
  cpSync(join(databases, "mine"), join(databases, "twin"), { recursive: true });
}
