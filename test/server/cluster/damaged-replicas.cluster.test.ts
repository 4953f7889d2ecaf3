/**
 * Damaged JetStream replicas on disk: nodes with a nats-server each detect and repair them without
 * data loss.
 */
import { randomBytes } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { ClusterView } from "../../../server/cluster/cluster-view.ts";
import { Log } from "../../../server/logging/log.ts";
import { freePorts, natsServerPath } from "../../support/nats-cluster.ts";
import { startTestServer, type TestServer } from "../../support/start-test-server.ts";

const folder = mkdtempSync(join(tmpdir(), "jackdaw-damaged-"));
const tags = ["A", "B", "C"];
const nodes = new Map<string, TestServer>();
/** Messages logged by the nodes since their last start. */
const logs = new Map<string, string[]>();
let routes: string[] = [];
const waitMs = { timeout: 90_000, interval: 250 };

async function open(...opened: readonly string[]): Promise<void> {
  const start = async (tag: string) => {
    const flags = [
      `--Cluster.NodeTag=${tag}`,
      `--Cluster.Routes=${routes.join(",")}`,
      `--Cluster.Nats.Route=${routes[tags.indexOf(tag)]}`,
      `--Cluster.Nats.Path=${natsServerPath()}`,
      `--DataDir=${join(folder, tag)}`,
      "--RunInMemory=false",
    ];
    const messages: string[] = [];
    const log = new Log("Info", [
      {
        write: ({ message }) => messages.push(message),
        droppedCount: 0,
        close: async () => undefined,
      },
    ]);
    logs.set(tag, messages);
    nodes.set(tag, await startTestServer({ unsecured: true, flags, log }));
  };
  await Promise.all(opened.map(start));
}

async function close(...closed: readonly string[]): Promise<void> {
  await Promise.all(closed.map((tag) => nodes.get(tag)?.stop()));
  for (const tag of closed) nodes.delete(tag);
}

function output(tag: string): readonly string[] {
  return logs.get(tag) ?? [];
}

function at(tag: string): TestServer {
  const node = nodes.get(tag);
  if (node === undefined) throw new Error(`node ${tag} is not running`);
  return node;
}

function cluster(tag: string): ClusterView {
  return at(tag).running.services.cluster as ClusterView;
}

async function isLed(): Promise<boolean> {
  const leader = cluster([...nodes.keys()][0] as string).find("shop")?.leaderTag ?? null;
  return (
    leader !== null &&
    [...nodes.keys()].every((tag) => cluster(tag).find("shop")?.leaderTag === leader)
  );
}

/** Writes documents of 90 KB, so that the stream has several files. */
async function write(tag: string, from: number, to: number): Promise<void> {
  for (let number = from; number < to; number++) {
    const reply = await at(tag).request(`/databases/shop/docs?id=d/${number}`, {
      method: "PUT",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ Number: number, Noise: randomBytes(66_000).toString("base64") }),
    });
    expect(reply.status).toBe(201);
  }
}

/** Number of the documents in a node's own copy. */
async function countOn(tag: string): Promise<number> {
  const reply = await at(tag).request("/databases/shop/stats");
  return (reply.json as { CountOfDocuments: number }).CountOfDocuments;
}

/** Changes a byte in the middle of a replica file on a stopped node. */
function damage(tag: string, part: number, block: number): void {
  const streams = join(folder, tag, "nats/store/jetstream/JACKDAW/streams");
  const bytesOf = (stream: string) =>
    readdirSync(join(streams, stream, "msgs")).reduce(
      (sum, name) => sum + statSync(join(streams, stream, "msgs", name)).size,
      0,
    );
  const [stream = ""] = readdirSync(streams).sort((one, other) => bytesOf(other) - bytesOf(one));
  const messages = join(streams, stream, "msgs");
  const blocks = readdirSync(messages)
    .filter((name) => name.endsWith(".blk"))
    .sort((one, other) => Number.parseInt(one, 10) - Number.parseInt(other, 10));
  // The servers rebuild the last file from other data.
  expect(blocks.length).toBeGreaterThan(block + 1);
  const path = join(messages, blocks[block] as string);
  const bytes = readFileSync(path);
  const place = Math.floor(bytes.length * part);
  bytes[place] = (bytes[place] as number) ^ 0xff;
  writeFileSync(path, bytes);
  rmSync(join(messages, "index.db"), { force: true });
}

/**
 * Servers with a damaged replica of the database, from this node's last scrub; null if it has not
 * run.
 */
function damagedFor(tag: string): string[] | null {
  const scrub = cluster(tag).health?.nats.scrub ?? null;
  if (scrub === null || scrub.failure !== null) return null;
  return scrub.problems
    .filter(({ kind }) => kind === "hole")
    .map(({ server }) => server)
    .sort();
}

async function isSound(): Promise<boolean> {
  return [...nodes.keys()].every((tag) => {
    const scrub = cluster(tag).health?.nats.scrub ?? null;
    return scrub !== null && scrub.failure === null && scrub.problems.length === 0;
  });
}

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  // Also called before the tests begin, where vitest cannot poll.
  const endMs = performance.now() + waitMs.timeout;
  while (!(await condition())) {
    if (performance.now() > endMs) throw new Error(`not reached in time: ${condition}`);
    await new Promise((resolve) => setTimeout(resolve, waitMs.interval));
  }
}

beforeAll(async () => {
  routes = (await freePorts(3)).map((port) => `127.0.0.1:${port}`);
  await open(...tags);
  await until(() => tags.every((tag) => cluster(tag).members().length === 3));
  const created = await at("A").request("/admin/databases?name=shop", {
    method: "PUT",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ DatabaseName: "shop" }),
  });
  expect(created.status).toBe(201);
  await write("A", 0, 120);
  for (const tag of tags) await until(async () => (await countOn(tag)) === 120);
}, 120_000);

afterAll(async () => {
  await close(...nodes.keys());
  rmSync(folder, { recursive: true, force: true });
});

test("a node wipes its own replica with a hole, and the replica is rebuilt", {
  timeout: 180_000,
}, async () => {
  await close("C");
  damage("C", 0.5, 0);
  await open("C");
  await expect.poll(() => damagedFor("C"), waitMs).toEqual(["jackdaw-C"]);
  await expect
    .poll(() => output("C"), waitMs)
    .toContain("The local replica of the stream of shop is intact again");
  await expect.poll(isSound, waitMs).toBe(true);
  expect(cluster("A").value("cluster/repair")).toBe(undefined);
  await expect.poll(isLed, waitMs).toBe(true);
  await write("B", 120, 125);
  for (const tag of tags) await expect.poll(() => countOn(tag), waitMs).toBe(125);
});

test("holes in most replicas, in messages that one node has not read, lose nothing", {
  timeout: 240_000,
}, async () => {
  await close("C");
  await expect.poll(isLed, waitMs).toBe(true);
  await write("B", 125, 260);
  await expect.poll(() => countOn("A"), waitMs).toBe(260);
  await close("A", "B");
  damage("A", 0.7, 1);
  damage("B", 0.8, 1);
  await open(...tags);
  await expect.poll(() => damagedFor("A")?.length ?? 0, waitMs).toBeGreaterThan(1);
  await expect.poll(isSound, waitMs).toBe(true);
  const purged = /^Most replicas of the stream of shop are damaged. The messages that/;
  expect(tags.flatMap(output).filter((message) => purged.test(message))).not.toEqual([]);
  // What it had not seen came from the copy of another node.
  expect(output("C").join("\n")).toMatch(/The files of 'shop' were replaced by those of node [AB]/);
  await expect.poll(isLed, waitMs).toBe(true);
  for (const tag of tags) await expect.poll(() => countOn(tag), waitMs).toBe(260);
  await write("C", 260, 262);
  for (const tag of tags) await expect.poll(() => countOn(tag), waitMs).toBe(262);
});
