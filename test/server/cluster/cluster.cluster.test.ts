/** Several servers as one cluster: shared values, and copies of databases. */
import { randomBytes } from "node:crypto";
import { PassThrough, Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { runCommand } from "../../../cli/run.ts";
import { DatabaseReplication } from "../../../engine/api/database/database-replication.ts";
import { Cluster } from "../../../server/cluster/cluster.ts";
import { clusterStatus } from "../../../server/cluster/cluster-status.ts";
import type { ReplicaState } from "../../../server/cluster/cluster-view.ts";
import { Heartbeats } from "../../../server/cluster/heartbeats.ts";
import { JetStreamStream } from "../../../server/cluster/nats/jetstream-stream.ts";
import { ReplicaPositions } from "../../../server/cluster/replica-positions.ts";
import { ClusterServers } from "../../support/cluster-servers.ts";
import type { Reply } from "../../support/start-test-server.ts";

let nodes: ClusterServers;

beforeAll(async () => {
  nodes = await ClusterServers.start(3);
});

afterAll(() => nodes.stop());

function put(tag: string, database: string, id: string, body: object): Promise<Reply> {
  return nodes.at(tag).request(`/databases/${database}/docs?id=${id}`, {
    method: "PUT",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
}

async function nameOn(tag: string, database: string, id: string): Promise<unknown> {
  const reply = await nodes.at(tag).request(`/databases/${database}/docs?id=${id}`);
  if (reply.status !== 200) return reply.status;
  return (reply.json as { Results: { Name: unknown }[] }).Results[0]?.Name;
}

function create(tag: string, name: string): Promise<Reply> {
  return nodes.at(tag).request(`/admin/databases?name=${name}`, {
    method: "PUT",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ DatabaseName: name }),
  });
}

/** Blocks the stream for the copies of a node until the returned function is called. */
function hold(tag: string): () => void {
  const held: (() => void)[] = [];
  const { deliver } = DatabaseReplication.prototype;
  const spy = vi.spyOn(DatabaseReplication.prototype, "deliver");
  spy.mockImplementation(function (this: DatabaseReplication, delivery) {
    if (this.tag === tag) held.push(() => deliver.call(this, delivery));
    else deliver.call(this, delivery);
  });
  return () => {
    spy.mockRestore();
    for (const one of held) one();
  };
}

test("all nodes have the same topology and know each other", () => {
  const ids = nodes.tags.map((tag) => nodes.cluster(tag).topologyId);
  expect(new Set(ids).size).toBe(1);
  for (const tag of nodes.tags) {
    const cluster = nodes.cluster(tag);
    expect(cluster).toBeInstanceOf(Cluster);
    expect(cluster.members().map((member) => [member.tag, member.url])).toEqual(
      ["A", "B", "C"].map((one) => [one, nodes.at(one).url]),
    );
  }
});

test("any node can change a value, but only if it has the expected version", async () => {
  const b = nodes.cluster("B");
  const c = nodes.cluster("C");
  await b.change([{ key: "certificates/x", expected: null, value: '{"n":1}' }]);
  expect(b.value("certificates/x")).toBe('{"n":1}');
  expect(c.value("certificates/x")).toBe('{"n":1}');
  const late = c.change([
    { key: "certificates/y", value: "1" },
    { key: "certificates/x", expected: '{"n":2}', value: null },
  ]);
  await expect(late).rejects.toMatchObject({ code: "concurrency" });
  expect(c.value("certificates/y")).toBe(undefined);
  await c.change([{ key: "certificates/x", expected: '{"n":1}', value: null }]);
  expect(b.value("certificates/x")).toBe(undefined);
  expect([...c.values("certificates/")]).toEqual([]);
});

test("a database created on one node is available on all, and so are its documents", async () => {
  expect((await create("B", "shop")).status).toBe(201);
  const leader = await nodes.leaderOf("shop");
  expect((await put(leader, "shop", "users/1", { Name: "Ann" })).status).toBe(201);
  for (const tag of nodes.tags) {
    await nodes.until(async () => (await nameOn(tag, "shop", "users/1")) === "Ann");
    expect(nodes.cluster(tag).find("SHOP")).toMatchObject({ leaderTag: leader, trouble: null });
  }
  const index = nodes.cluster(leader).find("shop")?.registered;
  await nodes.until(() => nodes.cluster("A").find("shop")?.registered.isSeeded === true);
  expect(index?.members).toHaveLength(3);
  expect((await create("C", "Shop")).status).toBe(409);
});

test("after creating or deleting a database, a client sees the result immediately on every node", async () => {
  for (let at = 0; at < 9; at++) {
    const [maker, writer, other] = ["A", "B", "C", "A", "B"].slice(at % 3) as [
      string,
      string,
      string,
    ];
    const name = `soon${at}`;
    expect((await create(maker, name)).status).toBe(201);
    // On a busy machine, the leader may not be known yet; but the database exists.
    expect([201, 503]).toContain((await put(writer, name, "a", { Name: "Ann" })).status);
    await nodes.leaderOf(name);
    const body = JSON.stringify({ DatabaseNames: [name], HardDelete: true });
    const options = { method: "DELETE", headers: { "content-type": "application/json" }, body };
    const remove = () => nodes.at(writer).request("/admin/databases", options);
    await nodes.until(async () => (await remove()).status !== 503);
    expect(nodes.cluster(other).find(name)).toBe(undefined);
    expect((await put(other, name, "a", {})).status).toBe(400);
  }
});

test("of concurrent creations with the same name, one succeeds", async () => {
  const replies = await Promise.all(["A", "B", "C"].map((tag) => create(tag, "raced")));
  expect(replies.map(({ status }) => status).sort()).toEqual([201, 409, 409]);
  const ids = new Set(nodes.tags.map((tag) => nodes.cluster(tag).find("raced")?.registered.id));
  expect(ids.size).toBe(1);
});

test("leadership moves to another node on request, without data loss", async () => {
  await create("A", "moved");
  const before = await nodes.leaderOf("moved");
  expect((await put(before, "moved", "a", { Name: "before" })).status).toBe(201);
  const next = nodes.tags.find((tag) => tag !== before) as string;
  const etag = nodes.cluster("A").find("moved")?.topologyEtag ?? 0;
  const lock = (tag: string) =>
    nodes.at(tag).request("/databases/moved/cmpxchg?key=lock&index=0&raft-request-id=one", {
      method: "PUT",
      body: '{"Object":1}',
    });
  const locked = await lock(before);
  expect(locked.json).toMatchObject({ Successful: true });
  await nodes.cluster(before).transfer("moved", next);
  expect(await nodes.leaderOf("moved")).toBe(next);
  await nodes.until(() => (nodes.cluster("A").find("moved")?.topologyEtag ?? 0) > etag);
  await nodes.until(async () => (await put(next, "moved", "b", { Name: "after" })).status === 201);
  // A client without a reply sends its request again.
  expect((await lock(next)).text).toBe(locked.text);
  for (const tag of nodes.tags) {
    await nodes.until(async () => (await nameOn(tag, "moved", "b")) === "after");
    expect(await nameOn(tag, "moved", "a")).toBe("before");
  }
  await expect(nodes.cluster("A").transfer("moved", "Z")).rejects.toMatchObject({
    code: "invalid-operation",
  });
});

test("waits for the copies of a write on other nodes", async () => {
  await create("A", "waited");
  const leader = await nodes.leaderOf("waited");
  await put(leader, "waited", "a", {});
  expect(await nodes.cluster(leader).waitForCopies("waited", 2, 10_000)).toBe(2);
  expect(await nodes.cluster(leader).waitForCopies("waited", 3, 50)).toBe(2);
});

test("waiting for copies sends one request, and is notified of progress", async () => {
  await create("A", "awaited");
  const leader = await nodes.leaderOf("awaited");
  const slow = nodes.tags.find((tag) => tag !== leader) as string;
  await put(leader, "awaited", "a", {});
  expect(await nodes.cluster(leader).waitForCopies("awaited", 2, 10_000)).toBe(2);
  const release = hold(slow);
  const beats = vi.spyOn(Heartbeats.prototype, "beat");
  try {
    await put(leader, "awaited", "a", {});
    const waiting = nodes.cluster(leader).waitForCopies("awaited", 2, 20_000);
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    // Heartbeats of three nodes: two per second each, and some about the write.
    expect(beats.mock.calls.length).toBeLessThan(20);
    release();
    expect(await waiting).toBe(2);
    expect(await nodes.cluster(leader).waitForCopies("awaited", 3, 50)).toBe(2);
  } finally {
    release();
    beats.mockRestore();
  }
});

test("a node that was down catches up with writes, creations and deletions", async () => {
  await create("A", "kept");
  await create("A", "gone");
  const sharing = await nodes.leader();
  const away = nodes.tags.find((tag) => tag !== sharing) as string;
  await nodes.close(away);
  const leader = await nodes.leaderOf("kept");
  await nodes.until(async () => (await put(leader, "kept", "a", { Name: "x" })).status === 201);
  const [other] = nodes.tags as [string];
  expect((await create(other, "made")).status).toBe(201);
  expect(await nodes.cluster(other).deleteDatabase("gone")).toBe(true);
  expect(await nodes.cluster(other).deleteDatabase("gone")).toBe(false);
  await nodes.open(away);
  await nodes.complete(3);
  await nodes.until(async () => (await nameOn(away, "kept", "a")) === "x");
  const { databases } = nodes.at(away).running.services;
  await nodes.until(() => databases.has("made") && !databases.has("gone"));
  // Its files are removed, too.
  await nodes.until(() => databases.opened().every(({ name }) => name !== "gone"));
});

test("a copy is removed from a node, and added again with its content", async () => {
  await create("A", "copied");
  const leader = await nodes.leaderOf("copied");
  await put(leader, "copied", "a", { Name: "x" });
  const other = nodes.tags.find((tag) => tag !== leader) as string;
  await nodes.cluster("A").removeCopy("copied", other);
  const { databases } = nodes.at(other).running.services;
  await nodes.until(() => databases.opened().every(({ name }) => name !== "copied"));
  expect(nodes.cluster(other).find("copied")).toMatchObject({ role: null, leaderTag: leader });
  await put(leader, "copied", "b", { Name: "y" });
  await nodes.cluster("B").addCopy("copied", other);
  await nodes.until(async () => (await nameOn(other, "copied", "b")) === "y");
  expect(await nameOn(other, "copied", "a")).toBe("x");
});

test("any node accepts writes and queries, which the leader executes", async () => {
  await create("A", "anywhere");
  for (const tag of nodes.tags) {
    expect((await put(tag, "anywhere", `users/${tag}`, { Name: tag })).status).toBe(201);
    const reply = await nodes.at(tag).request("/databases/anywhere/queries", {
      method: "POST",
      body: JSON.stringify({ Query: `from Users where Name = "${tag}" and In${tag} = null` }),
    });
    // By the local copy, or by the leader if the copy does not have the write soon.
    expect(reply).toMatchObject({ status: 200, json: { NodeTag: expect.any(String) } });
    const { NodeTag } = reply.json as { NodeTag: string };
    expect([tag, await nodes.leaderOf("anywhere")]).toContain(NodeTag);
  }
});

test("a node that was down longer than the stream's history copies the files of another node", async () => {
  await create("A", "long");
  const leader = await nodes.leaderOf("long");
  await put(leader, "long", "a", { Name: "before" });
  const away = nodes.tags.find((tag) => tag !== leader) as string;
  await nodes.until(async () => (await nameOn(away, "long", "a")) === "before");
  await nodes.close(away);
  const writer = await nodes.leaderOf("long");
  for (let at = 0; at < 20; at++) await put(writer, "long", `b/${at}`, { Name: "meanwhile" });
  const content = randomBytes(300_000);
  const path = "/databases/long/attachments?id=a&name=photo";
  const stored = await nodes.at(writer).request(path, { method: "PUT", body: content });
  expect(stored.status).toBe(201);
  const { registered, applied } = nodes.cluster(writer).find("long") as ReplicaState;
  const id = { databaseId: registered.id, generation: registered.generation };
  const stream = await JetStreamStream.open(await nodes.nats.link(), id, 3, () => undefined);
  // All but the last message, at which the other nodes' logs continue.
  await stream?.purgeBelow(applied);
  await put(writer, "long", "c", { Name: "after" });
  await nodes.open(away);
  await nodes.until(async () => (await nameOn(away, "long", "c")) === "after");
  expect(await nameOn(away, "long", "b/19")).toBe("meanwhile");
  expect((await nodes.at(away).request(path)).body.equals(content)).toBe(true);
  await nodes.until(() => nodes.cluster(away).find("long")?.trouble === null);
});

test("a removed node stays removed until it is added again", async () => {
  const leader = await nodes.leader();
  const gone = nodes.tags.find((tag) => tag !== leader) as string;
  await nodes.cluster(leader).removeMember(gone);
  await nodes.until(() =>
    nodes
      .cluster(leader)
      .strangers()
      .some(({ tag }) => tag === gone),
  );
  for (const { registered } of nodes.cluster(leader).databases()) {
    expect(registered.members).not.toContain(gone);
  }
  expect(nodes.cluster(leader).members()).toHaveLength(2);
  // It takes part in nothing, and keeps its files.
  const { databases } = nodes.at(gone).running.services;
  await nodes.until(() => databases.opened().length === 0);
  expect(nodes.cluster(leader).databases().length).toBeGreaterThan(0);
  await nodes.cluster(leader).addMember(gone);
  await nodes.complete(3);
  await expect(nodes.cluster(leader).addMember("Q")).rejects.toMatchObject({
    code: "invalid-argument",
  });
});

test("a command distributes copies over the nodes, and all have the content", async () => {
  const names = ["spread1", "spread2", "spread3"];
  for (const name of names) {
    const options = {
      method: "PUT",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ DatabaseName: name, Topology: { Members: ["B"] } }),
    };
    const created = () => nodes.at("A").request(`/admin/databases?name=${name}`, options);
    await nodes.until(async () => [201, 409].includes((await created()).status));
    await nodes.leaderOf(name);
    expect((await put("B", name, "a", { Name: name })).status).toBe(201);
  }
  const jackdaw = async (...words: string[]) => {
    const [output, errors] = [new PassThrough(), new PassThrough()];
    const printed = Promise.all([text(output), text(errors)]);
    const streams = { input: Readable.from([]), output, errors };
    const environment = { JACKDAW_URL: nodes.at("A").url };
    const code = await runCommand(words, streams, environment, new AbortController().signal);
    output.end();
    errors.end();
    const [out, err] = await printed;
    expect([code, err]).toEqual([0, ""]);
    return out;
  };
  const copies = () => {
    const all = nodes.cluster("A").databases();
    return nodes.tags.map(
      (tag) => all.filter(({ registered }) => registered.members.includes(tag)).length,
    );
  };
  const isSound = () =>
    clusterStatus(nodes.cluster("A")).databases.every(
      (one) => one.leaderTag !== null && one.copies.every(({ role }) => /^[lf]/.test(role ?? "")),
    );
  await nodes.until(isSound);
  expect(Math.max(...copies()) - Math.min(...copies())).toBeGreaterThan(1);
  expect(await jackdaw("cluster", "spread")).toMatch(/^(\w+ has a copy on \w instead of \w\n)+$/);
  expect(Math.max(...copies()) - Math.min(...copies())).toBeLessThan(2);
  await nodes.until(isSound);
  expect(await jackdaw("cluster", "spread", "--copies", "2")).toMatch(/spread1 has a copy on .\n/);
  for (const name of names) {
    expect(nodes.cluster("A").find(name)?.registered.members).toHaveLength(2);
    for (const tag of nodes.tags) expect(await nameOn(tag, name, "a")).toBe(name);
  }
});

test("a possibly stale copy does not answer as soon as the leader is silent", async () => {
  await create("A", "silent");
  const leader = await nodes.leaderOf("silent");
  const other = nodes.tags.find((tag) => tag !== leader) as string;
  const found = () => nodes.cluster(other).find("silent");
  await nodes.until(() => found()?.isComplete === true && Number.isFinite(found()?.mustShow));
  // Others have answered in its place since it was opened.
  const shown = vi
    .spyOn(ReplicaPositions.prototype, "of")
    .mockReturnValue(Number.POSITIVE_INFINITY);
  const signal = (name: "SIGSTOP" | "SIGCONT") => {
    for (let at = 0; at < 3; at++) nodes.nats.signal(at, name);
  };
  signal("SIGSTOP");
  try {
    await nodes.until(() => (nodes.cluster(other).lastHeartbeat(leader)?.ageMs ?? 0) > 4_000);
    expect(found()?.mustShow).toBe(Number.POSITIVE_INFINITY);
    // The wait is limited.
    await nodes.until(() => found()?.mustShow === 0);
  } finally {
    signal("SIGCONT");
    shown.mockRestore();
  }
});

describe("reads at a node are monotonic", () => {
  async function prepared(name: string): Promise<{ leader: string; other: string }> {
    // The NATS servers were suspended before.
    await nodes.until(async () => [201, 409].includes((await create("A", name)).status));
    const leader = await nodes.leaderOf(name);
    const other = nodes.tags.find((tag) => tag !== leader) as string;
    await put(leader, name, "a", { Name: "old" });
    await nodes.until(async () => (await nameOn(other, name, "a")) === "old");
    await nodes.until(() => Number.isFinite(nodes.cluster(other).find(name)?.mustShow));
    return { leader, other };
  }

  test("after a forwarded read was answered by the leader", async () => {
    const { leader, other } = await prepared("shown");
    const release = hold(other);
    try {
      await put(leader, "shown", "a", { Name: "new" });
      expect(await nameOn(other, "shown", "a")).toBe("old");
      const headers = { "x-ravendb-request-node": leader };
      const path = "/databases/shown/docs?id=a";
      const passed = await nodes.at(other).request(path, { headers });
      expect(passed.json).toMatchObject({ Results: [{ Name: "new" }] });
      expect(Object.keys(passed.headers).filter((one) => one.startsWith("x-jackdaw"))).toEqual([]);
      // Answered by the leader again, while the local copy lags.
      expect(await nameOn(other, "shown", "a")).toBe("new");
      const waiting = nameOn(other, "shown", "a");
      release();
      expect(await waiting).toBe("new");
    } finally {
      release();
    }
    const reply = await nodes.at(other).request("/databases/shown/queries", {
      method: "POST",
      body: JSON.stringify({ Query: "from @all_docs" }),
    });
    expect(reply).toMatchObject({ status: 200, json: { NodeTag: other } });
  });

  test("after a write at this node", async () => {
    const { other } = await prepared("written");
    const release = hold(other);
    try {
      expect((await put(other, "written", "a", { Name: "new" })).status).toBe(201);
      expect(await nameOn(other, "written", "a")).toBe("new");
    } finally {
      release();
    }
  });
});
