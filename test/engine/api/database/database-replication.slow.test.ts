/**
 * Three copies of a database over one stream: every write that the leader acknowledges is in all
 * copies, also after a change of leader.
 */
import { rm } from "node:fs/promises";
import { expect, onTestFinished, test } from "vitest";
import { OpenDatabase } from "../../../../engine/api/database/open-database.ts";
import { nodeEnvironment } from "../../../../engine/base/platform/node-environment.ts";
import { putAttachment } from "../../../../engine/writes/attachments.ts";
import { MemoryStream, StreamWay } from "../../../support/memory-stream.ts";
import { newTestFolder } from "../../../support/open-test-database.ts";
import { type ReplicatedNode, ReplicatedNodes } from "../../../support/replicated-nodes.ts";

interface ThreeNodes extends ReplicatedNodes<StreamWay> {
  readonly stream: MemoryStream;
}

async function threeNodes(): Promise<ThreeNodes> {
  const stream = new MemoryStream();
  const ways = Array.from({ length: 3 }, () => new StreamWay(stream));
  const nodes = new ReplicatedNodes(await newTestFolder(), ways, 300);
  const all = Object.assign(nodes, { stream });
  onTestFinished(() => all.stop());
  for (const node of all.nodes) await node.open();
  return all;
}

function databaseOf(node: ReplicatedNode) {
  if (node.database === null) throw new Error("the node is not open");
  return node.database;
}

const codeOf = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => "written",
    (error: { code?: string }) => String(error.code),
  );

test("elects one leader, and the followers receive its acknowledged writes", async () => {
  const all = await threeNodes();
  const leader = databaseOf(await all.leader());
  for (let n = 0; n < 50; n++) await leader.put(`things/${n}`, { n });
  await leader.delete("things/7");
  await all.expectSame();
  for (const node of all.followers()) {
    expect(await databaseOf(node).get("things/8")).toMatchObject({ n: 8 });
    expect(await codeOf(databaseOf(node).put("things/8", { n: -1 }))).toBe("not-leader");
  }
});

test("after the leader is killed, the next leader has all acknowledged writes", async () => {
  const all = await threeNodes();
  const first = await all.leader();
  for (let n = 0; n < 20; n++) await databaseOf(first).put(`things/${n}`, { n });
  await first.kill();
  const second = await all.leader();
  expect(second.tag).not.toBe(first.tag);
  for (let n = 0; n < 20; n++) {
    expect(await databaseOf(second).get(`things/${n}`)).toMatchObject({ n });
  }
  await databaseOf(second).put("later", { by: "the second" });
  await first.open();
  await all.expectSame();
});

test("an isolated leader acknowledges nothing, and has the others' contents after it reconnects", async () => {
  const all = await threeNodes();
  const first = await all.leader();
  await databaseOf(first).put("before", { n: 1 });
  first.way.isCut = true;
  const outcome = codeOf(databaseOf(first).put("cut", { off: true }));
  const second = await all.leader();
  await databaseOf(second).put("before", { n: 2 });
  expect(await Promise.race([outcome, databaseOf(second).get("cut")])).toBe(null);
  first.way.isCut = false;
  expect(await outcome).not.toBe("written");
  await all.expectSame();
  expect(await databaseOf(first).get("before")).toMatchObject({ n: 2 });
});

test("a leader without replies later learns the outcome of its writes, or reports it as unknown", async () => {
  const all = await threeNodes();
  const first = await all.leader();
  await databaseOf(first).put("before", { n: 1 });
  first.way.isMute = true;
  const outcome = codeOf(databaseOf(first).put("mute", { n: 1 }));
  await new Promise((resolve) => setTimeout(resolve, 200));
  first.way.isMute = false;
  const known = await outcome;
  await all.expectSame();
  const kept = await databaseOf(await all.leader()).get("mute");
  if (known === "written") expect(kept).toMatchObject({ n: 1 });
  else expect(known).toBe("outcome-unknown");
});

test("attachments are replicated with their contents, also in several chunks", async () => {
  const all = await threeNodes();
  const leader = databaseOf(await all.leader());
  await leader.put("a", { has: "attachments" });
  for (const [name, size] of [
    ["empty", 0],
    ["small", 10],
    ["large", 2_500_000],
  ] as const) {
    const content = await leader.blobs.store([Buffer.alloc(size, name)]);
    await leader.write((transaction) =>
      putAttachment(transaction, "a", { name, contentType: "", hash: content.hash, size }),
    );
    content.release();
  }
  await all.expectSame();
  for (const node of all.followers()) {
    expect(databaseOf(node).blobs.count).toBe(3);
    expect(await databaseOf(node).blobs.findDamaged()).toEqual([]);
  }
});

test("indexes are deployed, changed and deleted on every node, and each node builds its own", async () => {
  const all = await threeNodes();
  const leader = databaseOf(await all.leader());
  const map = (field: string) => ({
    Name: "Things/ByText",
    Maps: [`map("Things", (one) => ({ text: one.${field} }))`],
  });
  await leader.put("things/1", { a: "x", b: "y", "@metadata": { "@collection": "Things" } });
  const found = async (text: string) => {
    const counts: number[] = [];
    for (const { database } of all.nodes) {
      const rows: unknown[] = [];
      const add = (row: Buffer) => {
        rows.push(row);
        return null;
      };
      const query = `from index 'Things/ByText' where text = '${text}'`;
      await database?.query(query, {}, { add }).catch(() => rows.push("failed"));
      counts.push(rows.length);
    }
    return counts.join();
  };
  const soon = { timeout: 10_000, interval: 20 };
  await leader.queries.administration.deploy([map("a")], true);
  await expect.poll(() => found("x"), soon).toBe("1,1,1");
  await leader.queries.administration.deploy([map("b")], true);
  await expect.poll(() => found("y"), soon).toBe("1,1,1");
  await expect.poll(() => found("x"), soon).toBe("0,0,0");
  await leader.queries.administration.deploy([{ ...map("b"), LockMode: "LockedIgnore" }], true);
  const modes = () =>
    all.nodes.map(({ database }) => database?.queries.indexes.byName("Things/ByText")?.lockMode);
  await expect.poll(() => modes().join(), soon).toBe("LockedIgnore,LockedIgnore,LockedIgnore");
  await leader.queries.administration.deploy([{ ...map("b"), Name: "Things/More" }], true);
  const names = () =>
    all.nodes.map(({ database }) =>
      database?.queries.indexes
        .all()
        .map(({ name }) => name)
        .join(),
    );
  await expect
    .poll(() => names().join(" "), soon)
    .toBe(Array(3).fill("Things/ByText,Things/More").join(" "));
  await leader.queries.administration.delete("Things/More");
  await expect.poll(() => names().join(" "), soon).toBe(Array(3).fill("Things/ByText").join(" "));
});

/** A document with an attachment `a`. */
async function putContent(database: OpenDatabase, id: string, bytes: Buffer): Promise<string> {
  await database.put(id, { id });
  const content = await database.blobs.store([bytes]);
  const { hash, size } = content;
  await database.write((transaction) =>
    putAttachment(transaction, id, { name: "a", contentType: "", hash, size }),
  );
  content.release();
  return hash;
}

async function* otherBytes(): AsyncGenerator<Buffer> {
  yield Buffer.from("other bytes");
}

async function readContent(database: OpenDatabase, hash: string): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for await (const piece of database.blobs.bytes(hash)) pieces.push(piece);
  return Buffer.concat(pieces);
}

test("a node fetches a missing content from another one, and readers wait for it", async () => {
  const all = await threeNodes();
  const leader = await all.leader();
  const [one, other] = all.followers() as [ReplicatedNode<StreamWay>, ReplicatedNode<StreamWay>];
  const bytes = Buffer.alloc(300_000, "content ");
  const hash = await putContent(databaseOf(leader), "items/1", bytes);
  await all.expectSame();
  // The files are lost while the node is down; its first fetch finds no reachable node.
  await one.kill();
  await rm(`${one.folder}/blobs`, { recursive: true });
  let requested = 0;
  one.fetchContent = () => {
    requested++;
    if (requested === 1) throw new Error("no node is reachable");
    return requested === 2 ? otherBytes() : databaseOf(leader).blobs.bytes(hash);
  };
  await one.open();
  expect(databaseOf(one).replication?.missingContents).toBe(0);
  await expect.poll(() => requested, { timeout: 10_000 }).toBe(1);
  expect(await codeOf(readContent(databaseOf(one), hash))).toBe("node-unreachable");
  expect(await readContent(databaseOf(one), hash)).toEqual(bytes);
  expect([requested, databaseOf(one).replication?.missingContents]).toEqual([3, 0]);
  // A group refers to a content that was never sent.
  databaseOf(leader).blobs.carrier = null;
  one.fetchContent = (name) =>
    databaseOf(leader).blobs.bytes(Buffer.from(name, "hex").toString("base64"));
  const second = await putContent(databaseOf(leader), "items/2", Buffer.from("second"));
  await expect.poll(() => databaseOf(one).blobs.hasFile(second), { timeout: 10_000 }).toBe(true);
  // No node has the content for this follower, so it is damaged.
  await expect
    .poll(() => databaseOf(other).replication?.missingContents, { timeout: 10_000 })
    .toBe(1);
  expect(await codeOf(readContent(databaseOf(other), second))).toBe("record-damaged");
  await databaseOf(leader).delete("items/2");
  await expect
    .poll(() => databaseOf(other).replication?.missingContents, { timeout: 10_000 })
    .toBe(0);
});

test("a node that was away too long, or lost its files, starts from a copy of another node", async () => {
  const all = await threeNodes();
  const leader = await all.leader();
  const [away, wiped] = all.followers() as unknown as readonly [ReplicatedNode, ReplicatedNode];
  const database = databaseOf(leader);
  for (let n = 0; n < 10; n++) await database.put(`early/${n}`, { n });
  await all.expectSame();
  await away.kill();
  await wiped.kill();
  const content = await database.blobs.store([Buffer.alloc(1_500_000, "x")]);
  await database.put("early/0", { has: "an attachment" });
  await database.write((transaction) =>
    putAttachment(transaction, "early/0", {
      name: "x",
      contentType: "",
      hash: content.hash,
      size: content.size,
    }),
  );
  content.release();
  for (let n = 0; n < 10; n++) await database.put(`late/${n}`, { n });
  const mark = leader.replication?.mark?.sequence ?? 0;
  all.stream.purgeBelow(mark);
  await rm(wiped.folder, { recursive: true });
  await away.open();
  await wiped.open();
  await all.expectSame();
  for (const node of [away, wiped]) {
    expect(node.reported.some((line) => line.startsWith("snapshot: "))).toBe(true);
    expect(await databaseOf(node).blobs.findDamaged()).toEqual([]);
    expect(databaseOf(node).blobs.count).toBe(1);
  }
  await leader.kill();
  const second = await all.leader();
  await databaseOf(second).put("after", { by: second.tag });
  await leader.open();
  await all.expectSame();
});

test("automatic indexes used only on other nodes stay on a follower, also when it becomes leader", async () => {
  const all = await threeNodes();
  const first = await all.leader();
  await databaseOf(first).put("things/1", { a: 1, "@metadata": { "@collection": "Things" } });
  await databaseOf(first).query("from Things where a = 1", {}, { add: () => null });
  const indexes = (node: ReplicatedNode) => databaseOf(node).queries.indexes;
  const names = (node: ReplicatedNode) =>
    indexes(node)
      .all()
      .map(({ name }) => name);
  const soon = { timeout: 10_000, interval: 20 };
  const tidy = (node: ReplicatedNode) => {
    for (const index of indexes(node).all()) index.queriedAtMicros = 0;
    indexes(node).tidy();
  };
  for (const node of all.followers()) {
    await expect.poll(() => names(node), soon).toEqual(["Auto/Things/Bya"]);
    tidy(node);
    expect(names(node)).toEqual(["Auto/Things/Bya"]);
  }
  await first.kill();
  const second = await all.leader();
  tidy(second);
  expect(names(second)).toEqual(["Auto/Things/Bya"]);
  await first.open();
  await all.expectSame();
});

test("an index of a lagging follower applies deletions that the leader has already purged", async () => {
  const all = await threeNodes();
  const leader = databaseOf(await all.leader());
  const [behind] = all.followers() as unknown as readonly [ReplicatedNode];
  const map = { Name: "Things/All", Maps: [`map("Things", (one) => ({ n: one.n }))`] };
  await leader.queries.administration.deploy([map], true);
  for (let n = 0; n < 10; n++) {
    await leader.put(`things/${n}`, { n, "@metadata": { "@collection": "Things" } });
  }
  await all.expectSame();
  const counted = (node: ReplicatedNode) =>
    databaseOf(node).queries.indexes.byName("Things/All")?.index.store.liveCount;
  await expect.poll(() => counted(behind), { timeout: 10_000, interval: 20 }).toBe(10);
  databaseOf(behind).queries.administration.setPaused(true);
  for (let n = 0; n < 5; n++) await leader.delete(`things/${n}`);
  const soon = { timeout: 10_000, interval: 50 };
  const purged = async () => {
    await leader.maintenance.cleanTombstones();
    return leader.state.keyspaces.tombstones.count;
  };
  await expect.poll(purged, soon).toBe(0);
  const { tombstones } = databaseOf(behind).state.keyspaces;
  await expect.poll(() => tombstones.purgedThrough, soon).toBeGreaterThan(0);
  await databaseOf(behind).maintenance.cleanTombstones();
  expect(tombstones.count).toBe(5);
  databaseOf(behind).queries.administration.setPaused(false);
  await expect.poll(() => counted(behind), soon).toBe(5);
  await databaseOf(behind).maintenance.cleanTombstones();
  expect(tombstones.count).toBe(0);
});

test("index output documents are written by the leader, and after a failover by the next one", async () => {
  const all = await threeNodes();
  const first = await all.leader();
  const definition = {
    Name: "Totals",
    Maps: [`map("Things", (one) => ({ kind: one.kind, n: 1 }))`],
    Reduce:
      "groupBy((one) => one.kind).aggregate((g) => ({ kind: g.key, n: g.values.reduce((sum, one) => sum + one.n, 0) }))",
    OutputReduceToCollection: "Totals",
    PatternForOutputReduceToCollectionReferences: "kinds/{kind}",
  };
  const put = (node: ReplicatedNode, id: string, kind: string) =>
    databaseOf(node).put(id, { kind, "@metadata": { "@collection": "Things" } });
  await databaseOf(first).queries.administration.deploy([definition], true);
  for (let n = 0; n < 30; n++) await put(first, `things/${n}`, `kind${n % 3}`);
  const created = (node: ReplicatedNode) => {
    const { documents, keyspaces } = databaseOf(node).state;
    const counts = ["Totals", "Totals/References"].map((name) =>
      documents.countOfCollection(keyspaces.collections.find(name)),
    );
    const index = databaseOf(node).queries.indexes.byName("Totals");
    return `${counts.join("+")} ${index?.isStale}`;
  };
  const soon = { timeout: 15_000, interval: 50 };
  for (const node of all.nodes) await expect.poll(() => created(node), soon).toBe("3+3 false");
  await first.kill();
  const second = await all.leader();
  await put(second, "things/new", "kind3");
  await databaseOf(second).delete("things/0");
  await expect.poll(() => created(second), soon).toBe("4+4 false");
  await first.open();
  for (const node of all.nodes) await expect.poll(() => created(node), soon).toBe("4+4 false");
  await all.expectSame();
});

test("database settings take effect on every node, and only one node expires documents", async () => {
  const all = await threeNodes();
  const leader = databaseOf(await all.leader());
  await leader.changeSettings((record) => ({
    ...record,
    Expiration: { Disabled: false, DeleteFrequencyInSec: 1 },
  }));
  await leader.put("gone", { "@metadata": { "@expires": "2020-01-01T00:00:00.0000000Z" } });
  await leader.put("stays", {});
  await expect.poll(() => leader.get("gone"), { timeout: 10_000, interval: 50 }).toBe(null);
  await all.expectSame();
  for (const node of all.followers()) {
    expect(databaseOf(node).expiration.isConfigured).toBe(true);
    expect(await databaseOf(node).expiration.run()).toBe(0);
    expect(await databaseOf(node).get("gone")).toBe(null);
  }
});

test("a write in flight when the leader is killed is in its files only if it is in the stream", async () => {
  const all = await threeNodes();
  const leader = await all.leader();
  const database = databaseOf(leader);
  await database.put("before", {});
  // Not yet in a frame that could be proposed.
  const outcome = codeOf(database.put("late", {}));
  await leader.kill();
  expect(await outcome).not.toBe("written");
  const options = { log: { mustExist: true } };
  const files = await OpenDatabase.open(nodeEnvironment(), "shop", leader.folder, options);
  expect(await files.get("before")).not.toBe(null);
  expect(await files.get("late")).toBe(null);
  await files.abandon();
  await leader.open();
  await all.expectSame();
});

test("the next leader has the operations of the previous one, and reuses no id", async () => {
  const all = await threeNodes();
  const first = await all.leader();
  const { operations } = databaseOf(first);
  const done = await operations.start("Test", "done", () => Promise.resolve({}));
  await done.ended;
  const running = await operations.start("Test", "running", () => new Promise(() => undefined));
  await all.expectSame();
  await first.kill();
  const next = databaseOf(await all.leader()).operations;
  const states = [done, running].map(({ id }) => next.get(id)?.state.status);
  expect(states).toEqual(["completed", "failed"]);
  const other = await next.start("Test", "other", () => Promise.resolve({}));
  expect(other.id).toBeGreaterThan(running.id);
});

test("closed copies resume in any order of opening", async () => {
  const all = await threeNodes();
  for (let round = 0; round < 3; round++) {
    const leader = databaseOf(await all.leader());
    for (let n = 0; n < 10; n++) await leader.put(`round${round}/${n}`, { round, n });
    await all.expectSame();
    for (const node of all.nodes) await node.close();
    for (const node of [...all.nodes].reverse()) await node.open();
  }
  await all.expectSame();
  expect(databaseOf(await all.leader()).state.documents.documentCount).toBe(30);
});

test("only the leader confirms reads", async () => {
  const all = await threeNodes();
  const first = await all.leader();
  await first.replication?.confirm();
  for (const node of all.followers()) {
    expect(await codeOf(node.replication?.confirm() ?? Promise.resolve())).toBe("not-leader");
  }
  first.way.isCut = true;
  const confirmed = codeOf(first.replication?.confirm() ?? Promise.resolve());
  await all.leader();
  first.way.isCut = false;
  expect(await confirmed).not.toBe("written");
});

test("many writes in flight are written once and in order across leader changes", async () => {
  const all = await threeNodes();
  const acknowledged = new Map<string, number>();
  let isDone = false;
  const writer = async (w: number) => {
    for (let n = 1; !isDone; n++) {
      const node = all.nodes.find(({ isLeading, way }) => isLeading && !way.isCut);
      if (node?.database == null) {
        await new Promise((resolve) => setTimeout(resolve, 10));
        continue;
      }
      if ((await codeOf(node.database.put(`w${w}`, { n }))) === "written")
        acknowledged.set(`w${w}`, n);
    }
  };
  const writers = Array.from({ length: 8 }, (_, w) => writer(w));
  for (let round = 0; round < 4; round++) {
    await new Promise((resolve) => setTimeout(resolve, 150));
    const leader = await all.leader();
    if (round % 2 === 0) {
      await leader.kill();
      await all.leader();
      await leader.open();
    } else {
      leader.way.isCut = true;
      await all.leader();
      leader.way.isCut = false;
    }
  }
  isDone = true;
  await Promise.all(writers);
  await all.expectSame();
  const { database } = await all.leader();
  for (const [id, n] of acknowledged) {
    expect((await database?.get(id))?.["n"]).toBeGreaterThanOrEqual(n);
  }
  expect(acknowledged.size).toBe(8);
});
