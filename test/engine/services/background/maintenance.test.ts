import { expect, test } from "vitest";
import { purgedThroughKey } from "../../../../engine/state/keyspaces/tombstones.ts";
import { put } from "../../../support/database-scenarios.ts";
import {
  History,
  SimulatedDatabase,
  type SimulatedOptions,
} from "../../../support/simulated-database.ts";
import { SimulatedFileSystem } from "../../../support/simulated-file-system.ts";

async function open(maintenance: SimulatedOptions["maintenance"] = {}): Promise<SimulatedDatabase> {
  return await SimulatedDatabase.open(new SimulatedFileSystem(), new History(), { maintenance });
}

/** Advances the clock so that timers fire, and waits for the tasks they start. */
async function pass(shop: SimulatedDatabase, ms: number): Promise<void> {
  shop.clock.advance(ms);
  for (let tick = 0; tick < 60; tick++) {
    shop.clock.advance(10);
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
}

test("deletes expired tombstones, also after a restart", async () => {
  const shop = await open({ tombstoneCleanupIntervalMs: 100_000 });
  const { tombstones } = shop.database.state.keyspaces;
  await shop.write([put("a", "A"), put("b", "B")]);
  await shop.write([{ kind: "delete", id: "a" }]);
  await pass(shop, 50_000);
  expect(tombstones.count).toBe(1);
  await pass(shop, 50_000);
  expect(tombstones.count).toBe(0);
  await shop.check();
  await shop.database.close();
  const again = await SimulatedDatabase.open(shop.files, shop.history);
  expect(again.database.state.keyspaces.tombstones.count).toBe(0);
  await again.database.close();
});

test("keeps tombstones until the slowest follower has read them", async () => {
  const shop = await open();
  const { maintenance, state } = shop.database;
  await shop.write([put("a", "A"), put("b", "B"), put("c", "C")]);
  let passed = 0;
  const unfollow = maintenance.follow(() => passed);
  maintenance.follow(() => 1_000_000);
  await shop.write([{ kind: "delete", id: "a" }]);
  passed = state.committedEtag;
  await shop.write([{ kind: "delete", id: "b" }]);
  expect(await maintenance.cleanTombstones()).toBe(1);
  expect([...state.keyspaces.tombstones.records.withPrefix("")].map(([, { id }]) => id)).toEqual([
    "b",
  ]);
  await shop.check();
  unfollow();
  expect(await maintenance.cleanTombstones()).toBe(1);
  await shop.check();
  await shop.database.close();
});

test("purges many tombstones in several rounds", async () => {
  const shop = await open();
  const ids = Array.from({ length: 2500 }, (_, index) => `a/${index}`);
  const { state, maintenance } = shop.database;
  await shop.write(ids.map((id) => put(id, "")));
  await shop.write(ids.map((id) => ({ kind: "delete", id })));
  expect(await maintenance.cleanTombstones()).toBe(2500);
  expect(state.keyspaces.tombstones.count).toBe(0);
  await shop.database.close();
});

test("a snapshot can be written while purged tombstones are still being dropped", async () => {
  const shop = await open();
  const { database } = shop;
  const { tombstones } = database.state.keyspaces;
  const ids = Array.from({ length: 50 }, (_, index) => `a/${index}`);
  await shop.write(ids.map((id) => put(id, "")));
  await shop.write(ids.slice(10).map((id) => ({ kind: "delete", id })));
  const through = tombstones.lastEtagThrough(database.state.committedEtag);
  await database.write((transaction) =>
    transaction.putEntry(transaction.keyspaces.values, purgedThroughKey, through),
  );
  expect(tombstones.purgedThrough).toBe(through);
  expect(tombstones.dropPurged(15)).toBe(15);
  expect(tombstones.count).toBe(25);
  await database.writeSnapshot();
  // The second instance has no tombstones, and counts the same bytes as dead.
  expect(await database.maintenance.cleanTombstones()).toBe(25);
  await shop.check();
  await database.abandon();
  const again = await SimulatedDatabase.open(shop.files, shop.history);
  expect(again.database.state.keyspaces.tombstones.count).toBe(0);
  await again.check();
  await again.database.close();
});

/** Total size of all index snapshots, in bytes. */
function snapshotBytes({ files }: SimulatedDatabase): number {
  const paths = files.paths().filter((path) => path.includes("/snap/"));
  return paths.reduce((bytes, path) => bytes + files.content(path).length, 0);
}

test("deleting a flood of ids frees their tombstones and numbers and shrinks the snapshot", async () => {
  const shop = await open({ tombstonesDueCount: 1e9, snapshotIntervalMs: 1e9 });
  const { database } = shop;
  const { documents, keyspaces } = database.state;
  await shop.write([put("staying", "")]);
  const ids = Array.from({ length: 2000 }, (_, index) => `${index}/${"x".repeat(480)}`);
  await shop.write(ids.map((id) => put(id, "")));
  await shop.write(ids.map((id) => ({ kind: "delete", id })));
  await database.writeSnapshot();
  const before = snapshotBytes(shop);
  expect(keyspaces.tombstones.count).toBe(ids.length);
  for (let tick = 0; tick < 4; tick++) await pass(shop, 5000);
  expect(keyspaces.tombstones.count).toBe(0);
  expect(documents.pendingNumberCount).toBe(0);
  expect(documents.docCount).toBeLessThan(10);
  expect(snapshotBytes(shop)).toBeLessThan(before / 10);
  await database.compact();
  expect(database.logMetrics.recordBytes).toBeLessThan(1000);
  const calls = shop.files.calls.length;
  await pass(shop, 60_000);
  expect(shop.files.calls.length).toBe(calls);
  await database.close();
});

test("purges many tombstones early, and soon retries tombstones still needed by a follower", async () => {
  const shop = await open({ tombstonesDueCount: 10, tombstoneCleanupIntervalMs: 100_000 });
  const { state, maintenance } = shop.database;
  const { tombstones } = state.keyspaces;
  const ids = Array.from({ length: 30 }, (_, index) => `a/${index}`);
  await shop.write(ids.map((id) => put(id, "")));
  const remove = (from: number, to: number) =>
    shop.write(ids.slice(from, to).map((id) => ({ kind: "delete", id })));
  await remove(0, 9);
  await pass(shop, 0);
  expect(tombstones.count).toBe(9);
  await remove(9, 10);
  await pass(shop, 0);
  expect(tombstones.count).toBe(0);
  let passed = state.committedEtag;
  maintenance.follow(() => passed);
  await remove(10, 30);
  await pass(shop, 0);
  expect(tombstones.count).toBe(20);
  passed = state.committedEtag;
  await pass(shop, 1000);
  expect(tombstones.count).toBe(0);
  await shop.check();
  await shop.database.close();
});

test.each([false, true])(
  "removes deletions from the log while other documents stay (rewritten documents: %s)",
  async (isRewritten) => {
    const shop = await open({ tombstonesDueCount: 1 });
    const { database } = shop;
    const staying = Array.from({ length: 60 }, (_, index) => `staying/${index}`);
    for (const id of staying) await shop.write([put(id, "x".repeat(100))]);
    if (isRewritten) for (const id of staying.slice(0, 6)) await shop.write([put(id, "y")]);
    const before = database.logMetrics.recordBytes;
    for (let round = 0; round < 40; round++) {
      const ids = Array.from({ length: 20 }, (_, index) => `temporary/${round}/${index}`);
      await shop.write(ids.map((id) => put(id, "")));
      await shop.write(ids.map((id) => ({ kind: "delete", id })));
      await database.maintenance.cleanTombstones();
      if (round % 10 === 9) {
        await database.writeSnapshot();
        await database.compact();
      }
    }
    // Two snapshots are kept while they are small.
    for (let tick = 0; tick < 2; tick++) await database.writeSnapshot();
    await database.compact();
    const { recordBytes, deadBytes } = database.logMetrics;
    expect(recordBytes).toBeLessThan(1.6 * before);
    expect(recordBytes - deadBytes).toBeLessThan(1.1 * before);
    await shop.check();
    await database.abandon();
    const again = await SimulatedDatabase.open(shop.files, shop.history);
    await again.check();
    await again.database.close();
  },
);

test("writes a snapshot some time after a change, and none without a change", async () => {
  const shop = await open({ snapshotIntervalMs: 1000 });
  await pass(shop, 5000);
  expect(shop.database.logMetrics.snapshots).toBe(0);
  await shop.write([put("a", "A")]);
  await pass(shop, 400);
  expect(shop.database.logMetrics.snapshots).toBe(0);
  await pass(shop, 1000);
  expect(shop.database.logMetrics.snapshots).toBe(1);
  await pass(shop, 5000);
  expect(shop.database.logMetrics.snapshots).toBe(1);
  await shop.database.close();
});

test("writes a snapshot when much was logged since the last one", async () => {
  const shop = await open({ snapshotIntervalMs: 1e9, snapshotLogBytes: 2000 });
  await shop.write([put("a", "A".repeat(500))]);
  await pass(shop, 10);
  expect(shop.database.logMetrics.snapshots).toBe(0);
  for (let index = 0; index < 4; index++) await shop.write([put("a", "A".repeat(500))]);
  await pass(shop, 10);
  expect(shop.database.logMetrics.snapshots).toBe(1);
  await shop.database.close();
});

test("delays snapshots fourfold while an operation replaces records", async () => {
  const shop = await open({ snapshotIntervalMs: 1e9, snapshotLogBytes: 2000 });
  const hold = shop.database.holdCompaction();
  for (let index = 0; index < 8; index++) await shop.write([put("a", "A".repeat(500))]);
  await pass(shop, 10);
  expect(shop.database.logMetrics.snapshots).toBe(0);
  for (let index = 0; index < 10; index++) await shop.write([put("a", "A".repeat(500))]);
  await pass(shop, 10);
  expect(shop.database.logMetrics.snapshots).toBe(1);
  for (let index = 0; index < 20; index++) await shop.write([put("a", "A".repeat(500))]);
  await pass(shop, 10);
  expect(shop.database.logMetrics.snapshots).toBe(1);
  // The first write after the operation.
  hold.release();
  await shop.write([put("a", "A")]);
  await pass(shop, 10);
  expect(shop.database.logMetrics.snapshots).toBe(2);
  await shop.database.close();
});

test("delays the next snapshot until twice its size was logged", async () => {
  const shop = await open({ snapshotIntervalMs: 1e9, snapshotLogBytes: 1 });
  await shop.write([put("a", "A")]);
  await pass(shop, 10);
  expect(shop.database.logMetrics.snapshots).toBe(1);
  await shop.write([put("a", "A")]);
  await pass(shop, 10);
  expect(shop.database.logMetrics.snapshots).toBe(1);
  for (let index = 0; index < 4; index++) await shop.write([put("b", "B".repeat(100_000))]);
  await pass(shop, 10);
  expect(shop.database.logMetrics.snapshots).toBe(2);
  await shop.database.close();
});

test("writes a snapshot of the frames replayed on opening", async () => {
  const files = new SimulatedFileSystem();
  const first = await SimulatedDatabase.open(files);
  await first.write([put("a", "A")]);
  await first.database.abandon();
  const again = await SimulatedDatabase.open(files, first.history, {
    maintenance: { snapshotIntervalMs: 1000 },
  });
  await pass(again, 1000);
  expect(again.database.logMetrics.snapshots).toBe(1);
  await again.database.close();
});

test("sorts new ids while no writes arrive", async () => {
  const shop = await open();
  for (let index = 0; index < 200; index++) {
    await shop.write([put(`a/${(index * 7919) % 1000}`, "")]);
  }
  for (let tick = 0; tick < 20; tick++) await pass(shop, 200);
  expect(shop.database.state.documents.settleOrder(0)).toBe(true);
  await shop.check();
  await shop.database.close();
});

test("scrubs automatically and lists damaged records", async () => {
  const shop = await open({ scrubIntervalMs: 1000 });
  await shop.write([put("a", "A"), { kind: "attach", id: "a", name: "f", content: "content" }]);
  await pass(shop, 1000);
  expect(shop.database.damaged).toEqual([]);
  const blob = shop.files.paths().find((path) => path.includes("/blobs/")) as string;
  shop.files.damage(blob, () => Buffer.from("other"));
  await pass(shop, 1000);
  expect(shop.database.damaged).toMatchObject([{ kind: "attachment" }]);
  await shop.database.close();
});

test("starts nothing after closing, and closing waits for running tasks", async () => {
  const shop = await open({
    scrubIntervalMs: 10,
    snapshotIntervalMs: 10,
    tombstoneCleanupIntervalMs: 10,
  });
  await shop.write([put("a", "A".repeat(2000))]);
  await shop.write([{ kind: "delete", id: "a" }]);
  shop.clock.advance(100);
  await shop.database.close();
  const { length } = shop.files.calls;
  await pass(shop, 1_000_000);
  expect(shop.files.calls.length).toBe(length);
});

test("a closed database leaves no timer that retains it in memory", async () => {
  const shop = await open();
  const { database } = shop;
  const { queries } = database;
  await shop.write([put("a", "A"), put("b", "B")]);
  // The second index supersedes the first, which is dropped later.
  for (const condition of ["X = 1", "X = 1 and Y = 2"]) {
    const { access } = queries.compile(`from @all_docs where ${condition}`, "read", null);
    if (access.kind !== "automatic-index")
      throw new Error("a condition is served by an automatic index");
    const { name } = queries.indexes.automatic(access.definition);
    await queries.indexes.waitForNonStale(name, 1e6);
  }
  await shop.write([{ kind: "delete", id: "a" }]);
  expect(shop.clock.plannedCount).toBeGreaterThan(1);
  await database.close();
  expect(shop.clock.plannedCount).toBe(0);
});
