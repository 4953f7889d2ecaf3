/** Trimming of streams, and the nodes for which messages are retained. */
import { expect, onTestFinished, test } from "vitest";
import { Replication } from "../../../engine/api/cluster/replication.ts";
import type { ReplicaReport } from "../../../server/cluster/cluster-view.ts";
import { planTrim, StreamTrim } from "../../../server/cluster/stream-trim.ts";
import { silentLog } from "../../../server/logging/log.ts";
import { MemoryStream, StreamWay } from "../../support/memory-stream.ts";
import { newTestFolder } from "../../support/open-test-database.ts";
import { ReplicatedNodes } from "../../support/replicated-nodes.ts";

const gigabyte = 1024 ** 3;
/** Messages of 20 kB, so that the margin is determined by their number. */
const extent = { first: 1, last: 100_000, bytes: 2 * gigabyte };
const here = (mark: number) => ({ mark, awayMs: 0 });
const away = (mark: number, awayMs = 5000) => ({ mark, awayMs });
const plan = (own: number, others: Parameters<typeof planTrim>[2], of = extent) =>
  planTrim(of, own, others, 10_000);

test("a stream retains messages from the mark of each active node, and a margin", () => {
  expect(plan(100_000, [here(100_000), here(100_000)])).toBe(99_001);
  expect(plan(100_000, [here(40_000), here(100_000)])).toBe(40_000);
  expect(plan(30_000, [here(40_000), here(100_000)])).toBe(30_000);
  // Large messages: the margin is 16 MB.
  expect(plan(3000, [here(3000)], { first: 1, last: 3000, bytes: 6 * gigabyte })).toBe(2001);
  expect(plan(100_000, [here(100_000)], { ...extent, bytes: 100 * 100_000 })).toBeNull();
  // A new node needs all messages; so does one whose state is unknown.
  expect(plan(100_000, [here(0), here(100_000)])).toBeNull();
  expect(plan(0, [here(100_000)])).toBeNull();
  // Too few to trim.
  expect(plan(100_000, [here(400)])).toBeNull();
  expect(plan(0, [], { first: 1, last: 0, bytes: 0 })).toBeNull();
});

test("a node that is away retains the stream for a limited time and size", () => {
  expect(plan(100_000, [away(40_000), here(100_000)])).toBe(40_000);
  expect(plan(100_000, [away(0), here(100_000)])).toBeNull();
  expect(plan(100_000, [away(40_000, 10_001), here(100_000)])).toBe(99_001);
  const large = { ...extent, bytes: 40 * gigabyte };
  expect(plan(100_000, [away(40_000), here(100_000)], large)).toBe(99_001);
  expect(plan(100_000, [away(70_000), here(100_000)], large)).toBe(70_000);
});

test("messages stored on one node only are not removed, however long other nodes are away", () => {
  const long = 10_001;
  expect(plan(100_000, [away(40_000, long), away(30_000, long)])).toBe(40_000);
  expect(plan(100_000, [away(0, long), away(0, long)])).toBeNull();
  // Its only copy.
  expect(plan(100_000, [])).toBe(99_001);
});

test("in a damaged stream, only messages in the nodes' logs are removed, without a margin", () => {
  const all = { marginMin: 0, removedMin: 1 };
  const purge = (own: number, others: Parameters<typeof planTrim>[2]) =>
    planTrim(extent, own, others, 10_000, all);
  expect(purge(100_000, [here(100_000), here(99_990)])).toBe(99_990);
  expect(purge(100_000, [here(100_000), away(40_000)])).toBe(40_000);
  expect(purge(100_000, [here(100_000), away(40_000, 10_001)])).toBe(100_000);
  // A node without messages, and messages that only one node has.
  expect(purge(100_000, [here(0), here(100_000)])).toBeNull();
  expect(purge(100_000, [away(2, 10_001), away(3, 10_001)])).toBe(3);
  expect(purge(100_000, [])).toBe(100_000);
  expect(purge(1, [here(1)])).toBeNull();
});

test("the leader trims its stream; active nodes continue, and a node that was away fetches a copy", {
  timeout: 120_000,
}, async () => {
  const stream = new MemoryStream();
  const ways = Array.from({ length: 3 }, () => new StreamWay(stream));
  // No other node should take over while the writes block a busy process.
  const all = new ReplicatedNodes(await newTestFolder(), ways, 1500);
  onTestFinished(() => all.stop());
  for (const node of all.nodes) await node.open();
  const leader = await all.leader();
  const [near, gone] = all.followers();
  if (near === undefined || gone === undefined) throw new Error("two follow");
  let nowMs = 0;
  const reports = new Map<string, ReplicaReport>();
  const look = () => {
    for (const { tag, replication } of all.nodes) {
      if (replication === null) continue;
      reports.set(tag, { ...replication.heartbeat, mark: replication.mark?.sequence ?? 0 });
    }
  };
  const trim = new StreamTrim({
    absenceMs: 1000,
    log: silentLog(),
    lastHeartbeat: (tag) => {
      const replica = reports.get(tag);
      if (replica === undefined) return undefined;
      return { ageMs: tag === gone.tag && !gone.isUp ? nowMs + 10_001 : 0, replica };
    },
    nowMs: () => nowMs,
  });
  const run = async () => {
    const { database } = leader;
    if (database?.replication == null) throw new Error("the leader is not open");
    look();
    const others = [near.tag, gone.tag];
    const replication = new Replication(database.replication);
    await trim.run([{ id: "a", name: "shop", replication, others, stream: leader.way }]);
  };
  const write = async () => {
    const content = Buffer.alloc(20_000, "x").toString();
    for (let at = 0; at < 1700; at += 100) {
      await Promise.all(
        Array.from({ length: 100 }, (_, n) => leader.database?.put(`a/${at + n}`, { content })),
      );
    }
    // Each write is a message of its own.
    for (let n = 0; n < 1700; n++) await leader.replication?.confirm();
    await leader.database?.put("last", {});
  };
  await write();
  await all.expectSame();
  // The marks of both nodes arrive in heartbeats, perhaps a moment later.
  const isMarked = () => {
    look();
    return [near, gone].every(({ tag }) => (reports.get(tag)?.mark ?? 0) > 1600);
  };
  await expect.poll(isMarked).toBe(true);
  await gone.kill();
  await run();
  const heldAt = stream.first;
  expect(heldAt).toBeGreaterThan(500);
  await write();
  nowMs = 500;
  await run();
  // Held by the one that is away: up to its mark.
  expect(stream.first).toBeLessThanOrEqual(reports.get(gone.tag)?.mark ?? 0);
  nowMs = 2000;
  // As soon as the other node has the writes, too.
  const isPast = async () => {
    await run();
    return stream.first > (reports.get(gone.tag)?.mark ?? 0) + 1;
  };
  await expect.poll(isPast, { timeout: 10_000 }).toBe(true);
  await gone.open();
  await expect.poll(() => gone.reported.join(), { timeout: 30_000 }).toContain("snapshot");
  await all.expectSame();
  expect(near.reported.join()).not.toContain("snapshot");
});
