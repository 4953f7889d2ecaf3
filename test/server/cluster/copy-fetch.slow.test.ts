/**
 * Transfer of database copies between servers: transferred content, and failures of nodes, contents
 * or connections.
 */
import { get } from "node:http";
import { Readable } from "node:stream";
import { afterAll, afterEach, beforeEach, expect, test, vi } from "vitest";
import { type Database, type Engine, openEngine } from "../../../engine/engine.ts";
import { CopyFetch } from "../../../server/cluster/copy-fetch.ts";
import { OpenCopies, openCopiesMax } from "../../../server/cluster/open-copies.ts";
import { silentLog } from "../../../server/logging/log.ts";
import { closeDatabases, temporaryFolder } from "../../support/open-database.ts";
import { PeerServers } from "../../support/peer-servers.ts";
import {
  startTestServer,
  stopTestServers,
  type TestServer,
} from "../../support/start-test-server.ts";

const idleMs = 300;
const signal = new AbortController().signal;

interface Node {
  readonly server: TestServer;
  readonly database: Database;
  readonly copies: OpenCopies;
}

const engines: Engine[] = [];
let peers: PeerServers;
let sources: string[];
beforeEach(() => {
  peers = new PeerServers();
  sources = [];
});
afterEach(async () => {
  for (const engine of engines.splice(0)) await engine.close();
});
afterAll(async () => {
  await stopTestServers();
  await closeDatabases();
});

/** A node with the database `shop`. */
async function startNode(tag: string): Promise<Node> {
  const server = await startTestServer({ unsecured: true, flags: ["--RunInMemory=false"] });
  const database = await server.running.services.databases.create("shop", {});
  const find = (id: string) =>
    server.running.services.databases.opened().find((one) => one.id === id);
  const copies = new OpenCopies(find, idleMs);
  Object.assign(server.running.services, { copies });
  peers.urls.set(tag, server.url);
  sources.push(tag);
  return { server, database, copies };
}

async function fill({ database }: Node, count: number): Promise<void> {
  for (let at = 0; at < count; at++) {
    const id = `items/${at}`;
    await database.documents.put(id, Buffer.from(JSON.stringify({ at, text: "x".repeat(500) })));
    await database.attachments.put({ id, name: "a" }, "text/plain", [bytesOf(at)]);
  }
}

function bytesOf(at: number): Buffer {
  return Buffer.alloc(at * 10_000, `content ${at} `);
}

function fetchOf(): CopyFetch {
  return new CopyFetch({
    tag: "Z",
    peers,
    sources: () => sources,
    log: silentLog(),
    stallMs: 2000,
    roundMs: 10,
  });
}

/** The node that fetches the copy: its database `shop` has different content at first. */
async function emptyEngine(): Promise<Engine> {
  const engine = await openEngine({ folder: temporaryFolder() });
  engines.push(engine);
  await engine.databases.create("shop", { Old: true });
  return engine;
}

async function contentOf(database: Database, at: number): Promise<Buffer> {
  const attachment = database.attachments.find({ id: `items/${at}`, name: "a" });
  if (attachment === undefined) throw new Error(`no attachment ${at}`);
  const pieces: Buffer[] = [];
  for await (const piece of database.attachments.stream(attachment)) pieces.push(piece);
  return Buffer.concat(pieces);
}

async function take(engine: Engine, { database }: Node, fetch = fetchOf()): Promise<Database> {
  return await engine.databases.replaceFiles("shop", async (restore, old) => {
    await fetch.copy(database.id, restore, old, signal);
  });
}

test("fetches a database from a node under traffic, including attachments", async () => {
  const node = await startNode("A");
  await fill(node, 30);
  const { database } = node;
  const engine = await emptyEngine();
  // Contents of the base that are deleted in the meantime are transferred anyway.
  peers.answer = (_, { target }) => {
    if (!target.includes("/contents?")) return undefined;
    void database.attachments.delete({ id: "items/7", name: "a" });
    return undefined;
  };
  const fetch = fetchOf();
  const taken = await engine.databases.replaceFiles("shop", async (restore, old) => {
    const copied = await fetch.copy(database.id, restore, old, signal);
    expect(copied).toEqual({ tag: "A", mark: null, contents: 30, missing: 0 });
  });
  expect(database.attachments.find({ id: "items/7", name: "a" })).toBeUndefined();
  expect(taken.id).toBe(database.id);
  for (let at = 0; at < 30; at++) expect(await contentOf(taken, at)).toEqual(bytesOf(at));
  expect(taken.settings).toEqual({});
  expect([node.copies.count, fetch.underWay.size]).toEqual([0, 0]);
  expect(node.server.errors).toEqual([]);
});

test("does not request contents that the old files have, and replaces damaged ones", async () => {
  const node = await startNode("A");
  await fill(node, 10);
  const engine = await emptyEngine();
  await take(engine, node);
  await node.database.documents.put("items/10", Buffer.from("{}"));
  await node.database.attachments.put({ id: "items/10", name: "a" }, "", [bytesOf(10)]);
  peers.sent.length = 0;
  const taken = await take(engine, node);
  expect(peers.sent.filter((one) => one.includes("/contents/"))).toHaveLength(1);
  expect(await contentOf(taken, 10)).toEqual(bytesOf(10));
});

test("fetches a content from another node if one sends wrong bytes or stops early", async () => {
  const node = await startNode("A");
  await fill(node, 12);
  peers.urls.set("B", node.server.url);
  sources.unshift("B");
  let at = 0;
  peers.answer = (tag, { target }) => {
    if (tag !== "B" || !target.includes("/contents/")) return undefined;
    const head = { status: 200, headers: {} };
    if (at++ % 2 === 0) return { ...head, body: Readable.from([Buffer.from("other bytes")]) };
    const ending = async function* () {
      yield Buffer.from("half");
      throw new Error("the connection was closed");
    };
    return { ...head, body: Readable.from(ending()) };
  };
  const taken = await take(await emptyEngine(), node);
  for (let one = 0; one < 12; one++) expect(await contentOf(taken, one)).toEqual(bytesOf(one));
  expect(at).toBe(12);
});

test("waits for a content while no node is reachable, and continues without it if no node has it", async () => {
  const node = await startNode("A");
  await fill(node, 3);
  let refusals = 5;
  peers.answer = (_, { target }) => {
    if (!target.includes("/contents/") || refusals-- <= 0) return undefined;
    return { status: 503, headers: {}, body: Readable.from([]) };
  };
  const engine = await emptyEngine();
  await take(engine, node);
  expect(refusals).toBeLessThan(0);
  peers.answer = (_, { target }) =>
    target.includes("/contents/")
      ? { status: 404, headers: {}, body: Readable.from([]) }
      : undefined;
  const other = await emptyEngine();
  await other.databases.replaceFiles("shop", async (restore, old) => {
    const copied = await fetchOf().copy(node.database.id, restore, old, signal);
    expect(copied.missing).toBe(3);
  });
});

test("a failed copy keeps the old files", async () => {
  const node = await startNode("A");
  await fill(node, 5);
  const engine = await emptyEngine();
  const before = await engine.databases.find("shop");
  const cut = { from: 0 };
  peers.answer = (_, { target }) => {
    if (!target.includes("/base?node")) return undefined;
    const ending = async function* () {
      yield Buffer.from('{"format":"jackdaw-frames"');
      throw new Error("the connection was closed");
    };
    return { status: 200, headers: {}, body: Readable.from(ending()) };
  };
  await expect(take(engine, node)).rejects.toThrow("the connection ended");
  peers.answer = () => ({
    status: 200,
    headers: {},
    body: new Readable({ read: () => undefined }),
  });
  const fetch = new CopyFetch({
    tag: "Z",
    peers,
    sources: () => sources,
    log: silentLog(),
    stallMs: 50,
  });
  await expect(take(engine, node, fetch)).rejects.toThrow("no bytes received for 50 ms");
  peers.answer = () => undefined;
  const copy = (own: { generation: number; sequence: number }) =>
    engine.databases.replaceFiles("shop", async (restore, old) => {
      await fetchOf().copy(node.database.id, restore, old, signal, own);
    });
  await expect(copy({ generation: 1, sequence: 1 })).rejects.toThrow("has less of database");
  sources.length = 0;
  await expect(take(engine, node)).rejects.toMatchObject({ code: "node-unreachable" });
  expect(await engine.databases.find("shop")).toBe(before);
  expect(cut.from).toBe(0);
  await vi.waitFor(() => expect(node.copies.count).toBe(0));
});

test("a stop aborts a copy immediately", async () => {
  const node = await startNode("A");
  await fill(node, 3);
  const engine = await emptyEngine();
  const stop = new AbortController();
  peers.answer = (_, { target }) => {
    if (!target.includes("/contents/")) return undefined;
    setTimeout(() => stop.abort(new Error("the server stops")), 20);
    return { status: 200, headers: {}, body: new Readable({ read: () => undefined }) };
  };
  const taking = engine.databases.replaceFiles("shop", async (restore, old) => {
    await fetchOf().copy(node.database.id, restore, old, stop.signal);
  });
  await expect(taking).rejects.toThrow("the server stops");
});

test("a copy for a vanished node is closed, and each node has at most one", async () => {
  const node = await startNode("A");
  await fill(node, 200);
  const { copies, database, server } = node;
  const start = (tag: string) =>
    new Promise<string>((resolve, reject) => {
      const requested = get(
        `${server.url}/cluster/copies/${database.id}/base?node=${tag}`,
        (reply) => {
          resolve(String(reply.headers["x-jackdaw-copy"]));
          reply.destroy();
        },
      );
      requested.on("error", reject);
    });
  const first = await start("B");
  const second = await start("B");
  expect([first === second, copies.count]).toEqual([false, 1]);
  for (let at = 1; at < openCopiesMax; at++) await start(`B${String.fromCharCode(65 + at)}`);
  const refused = await server.request(`/cluster/copies/${database.id}/base?node=C`);
  expect([refused.status, copies.count]).toEqual([503, openCopiesMax]);
  // A copy that is still being read stays open.
  const names = () => server.request(`/cluster/copies/${database.id}/contents?copy=${second}`);
  await vi.waitFor(
    async () => {
      expect((await names()).text.split("\n")).toHaveLength(201);
      expect(copies.count).toBe(1);
    },
    { timeout: 5000, interval: 50 },
  );
  await vi.waitFor(() => expect(copies.count).toBe(0), { timeout: 5000 });
  expect((await names()).status).toBe(404);
});

test("reports missing items, and servers without a cluster", async () => {
  const { server, database } = await startNode("A");
  const status = async (path: string) => (await server.request(`/cluster/copies/${path}`)).status;
  const hash = "ab".repeat(32);
  expect([
    await status(`${database.id}/contents/${hash}`),
    await status(`${database.id}/other`),
    await status(`${database.id}/base`),
    await status(`${database.id}/base?node=a,b`),
    await status(`${"0".repeat(32)}/base?node=B`),
  ]).toEqual([404, 404, 400, 400, 400]);
  Object.assign(server.running.services, { copies: undefined });
  expect((await server.request(`/cluster/copies/${database.id}/base?node=B`)).status).toBe(400);
});

test("fetches a missing content from any node that has it", async () => {
  const node = await startNode("A");
  await fill(node, 2);
  const { database } = node;
  peers.urls.set("B", node.server.url);
  sources.unshift("B", "C");
  peers.answer = (tag) =>
    tag === "B" ? { status: 404, headers: {}, body: Readable.from([]) } : undefined;
  const hash = database.attachments.find({ id: "items/1", name: "a" })?.hash ?? "";
  const name = Buffer.from(hash, "base64").toString("hex");
  const fetch = fetchOf();
  const pieces: Buffer[] = [];
  for await (const piece of (await fetch.content(database.id, name, signal)) ?? []) {
    pieces.push(piece);
  }
  expect(Buffer.concat(pieces)).toEqual(bytesOf(1));
  // C does not answer, so it may have the content.
  const other = "ab".repeat(32);
  await expect(fetch.content(database.id, other, signal)).rejects.toMatchObject({
    code: "node-unreachable",
  });
  sources.splice(sources.indexOf("C"), 1);
  expect(await fetch.content(database.id, other, signal)).toBeNull();
});
