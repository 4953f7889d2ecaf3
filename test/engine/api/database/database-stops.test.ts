/**
 * Consequences of internal errors: before staging, only the request fails; later, the database
 * stops, and the catalog reopens it from the disk with all acknowledged writes.
 */
import { rm } from "node:fs/promises";
import { expect, onTestFinished, test, vi } from "vitest";
import { DatabaseCatalog } from "../../../../engine/api/database/database-catalog.ts";
import { OpenDatabase } from "../../../../engine/api/database/open-database.ts";
import { InvariantError } from "../../../../engine/base/assert.ts";
import { EngineError } from "../../../../engine/base/errors.ts";
import { reopeningsMax, reopeningWindowMs } from "../../../../engine/base/limits.ts";
import { nodeEnvironment } from "../../../../engine/base/platform/node-environment.ts";
import { pictureOf } from "../../../support/database-picture.ts";
import { newTestFolder, openTestDatabase } from "../../../support/open-test-database.ts";
import { SimulatedClock } from "../../../support/simulated-clock.ts";
import { simulatedEnvironment } from "../../../support/simulated-database.ts";
import { SimulatedFileSystem } from "../../../support/simulated-file-system.ts";

function breakOnce<Target extends object>(target: Target, method: keyof Target): void {
  const spy = vi.spyOn(target, method as never) as unknown as ReturnType<typeof vi.fn>;
  spy.mockImplementationOnce(() => {
    throw new InvariantError("broken on purpose");
  });
}

interface Kept {
  readonly catalog: DatabaseCatalog;
  readonly reports: string[];
  readonly clock: SimulatedClock;
}

async function openCatalog(folder: string | null): Promise<Kept> {
  const reports: string[] = [];
  const real = nodeEnvironment();
  const clock = new SimulatedClock();
  const catalog = await DatabaseCatalog.open(
    {
      ...real,
      clock: {
        ...real.clock,
        monotonicMs: () => clock.monotonicMs(),
        nowMicros: () => real.clock.nowMicros(),
        setTimer: (ms, run, isAwaited) => real.clock.setTimer(ms, run, isAwaited),
      },
    },
    folder,
    { report: (message) => reports.push(message) },
  );
  onTestFinished(() => catalog.close());
  return { catalog, reports, clock };
}

async function found(catalog: DatabaseCatalog, name = "shop"): Promise<OpenDatabase> {
  for (let tick = 0; tick < 2000; tick++) {
    try {
      const database = await catalog.find(name);
      if (database !== undefined) return database;
    } catch (error) {
      if (!(error instanceof EngineError) || error.code !== "database-stopped") throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  return expect.fail("the database was not opened again");
}

test("an error before staging fails only that write", async () => {
  const database = await openTestDatabase();
  await database.put("a", { a: 1 });
  for (const internalError of [
    new InvariantError("broken"),
    new TypeError("x is not a function"),
  ]) {
    const failing = database.write((transaction) => {
      transaction.putEntry(transaction.keyspaces.values, "half", 1);
      throw internalError;
    });
    await expect(failing).rejects.toBe(internalError);
  }
  await database.put("b", { b: 1 });
  expect(await database.get("a")).toMatchObject({ a: 1 });
  expect(database.state.keyspaces.values.get("half")).toBeUndefined();
});

test("an error during staging stops the database before the log has the write", async () => {
  const folder = `${await newTestFolder()}/shop`;
  const database = await OpenDatabase.open(nodeEnvironment(), "shop", folder);
  const stopped = vi.fn();
  database.whenStopped = stopped;
  await database.put("a", { a: 1 });
  const other = database.put("other", {});
  breakOnce(database.state.documents, "stageAll");
  await expect(database.put("b", { b: 1 })).rejects.toThrow("broken on purpose");
  // Writes in flight are rejected too, because their state is unknown.
  await expect(other).rejects.toMatchObject({ code: "database-stopped" });
  expect(stopped).toHaveBeenCalledTimes(1);
  await expect(database.put("c", {})).rejects.toMatchObject({ code: "database-stopped" });
  expect(() => database.find("a")).toThrow("has stopped");
  await database.abandon();
  const again = await OpenDatabase.open(nodeEnvironment(), "shop", folder);
  onTestFinished(() => again.close());
  again.checkInvariants();
  expect(await again.get("a")).toMatchObject({ a: 1 });
  expect(await again.get("b")).toBeNull();
});

test("an error while writes become visible rejects all waiting writes", async () => {
  const folder = `${await newTestFolder()}/shop`;
  const database = await OpenDatabase.open(nodeEnvironment(), "shop", folder);
  const real = database.state.documents.commitStaged.bind(database.state.documents);
  let commits = 0;
  vi.spyOn(database.state.documents, "commitStaged").mockImplementation((...args) => {
    if (++commits === 3) throw new InvariantError("broken on purpose");
    real(...args);
  });
  const writes = ["a", "b", "c", "d"].map((id) => database.put(id, {}));
  const outcomes = await Promise.allSettled(writes);
  expect(outcomes.map(({ status }) => status)).toEqual([
    "fulfilled",
    "fulfilled",
    "rejected",
    "rejected",
  ]);
  await expect(database.put("e", {})).rejects.toMatchObject({ code: "database-stopped" });
  await database.abandon();
  vi.restoreAllMocks();
  const again = await OpenDatabase.open(nodeEnvironment(), "shop", folder);
  onTestFinished(() => again.close());
  again.checkInvariants();
  expect(await again.get("a")).not.toBeNull();
  expect(await again.get("b")).not.toBeNull();
});

test("the catalog reopens a stopped database with all acknowledged writes", async () => {
  const { catalog, reports } = await openCatalog(await newTestFolder());
  const first = await catalog.create("shop", { Mark: 1 });
  for (let i = 0; i < 50; i++) await first.put(`a/${i}`, { i });
  breakOnce(first.state.documents, "commitStaged");
  const lost = first.put("lost", {});
  const meanwhile = first.put("meanwhile", {});
  await expect(lost).rejects.toThrow("broken on purpose");
  await meanwhile.catch(() => undefined);
  await expect(catalog.find("shop")).rejects.toMatchObject({
    code: "database-stopped",
    message: expect.stringContaining("Try again"),
    details: { retryAfterSeconds: 1 },
  });
  const again = await found(catalog);
  expect(again).not.toBe(first);
  again.checkInvariants();
  for (let i = 0; i < 50; i++) expect(await again.get(`a/${i}`)).toMatchObject({ i });
  expect(again.settings).toMatchObject({ Mark: 1 });
  await again.put("later", {});
  expect(reports).toEqual([
    "Database 'shop' has stopped and is opened again from the disk",
    expect.stringContaining("Database 'shop' is open again"),
  ]);
  const picture = pictureOf(again);
  await again.flush();
  expect(pictureOf(again)).toEqual(picture);
});

test("reports once why a database cannot be opened", async () => {
  const folder = await newTestFolder();
  const { catalog, reports } = await openCatalog(folder);
  await (await catalog.create("shop", {})).put("a", {});
  await catalog.unload("shop");
  await rm(`${folder}/shop/log`, { recursive: true });
  for (let i = 0; i < 2; i++) {
    await expect(Promise.resolve().then(() => catalog.find("shop"))).rejects.toThrow();
  }
  expect(reports).toEqual(["Database 'shop' cannot be opened"]);
});

test("limits how often a database that stops repeatedly is reopened, and reports when it may be opened", async () => {
  const { catalog, reports, clock } = await openCatalog(await newTestFolder());
  await (await catalog.create("shop", {})).put("kept", {});
  for (let time = 0; time <= reopeningsMax; time++) {
    const database = await found(catalog);
    breakOnce(database.state.documents, "stageAll");
    await expect(database.put("b", {})).rejects.toThrow("broken on purpose");
    // Wait until the catalog has released it.
    while (!database.hasEnded) await new Promise((resolve) => setTimeout(resolve, 1));
    await Promise.resolve(catalog.find("shop")).catch(() => undefined);
  }
  await vi.waitFor(() => expect(reports.at(-1)).toContain("stays closed for 3600 s"));
  await expect(catalog.find("shop")).rejects.toMatchObject({
    code: "database-stopped",
    details: { retryAfterSeconds: reopeningWindowMs / 1000 },
  });
  clock.advance(reopeningWindowMs);
  const again = await found(catalog);
  expect(await again.get("kept")).not.toBeNull();
});

test("reports that a stopped in-memory database cannot be reopened", async () => {
  const { catalog, reports } = await openCatalog(null);
  const database = await catalog.create("shop", {});
  breakOnce(database.state.documents, "stageAll");
  await expect(database.put("b", {})).rejects.toThrow("broken on purpose");
  expect(() => database.find("a")).toThrow("It is in memory only");
  expect(reports).toEqual([expect.stringContaining("in memory only")]);
  expect(await catalog.delete("shop")).toBe(true);
  await (await catalog.create("shop", {})).put("new", {});
});

test("reopens a database after a failed sync and rewrites its last segment", async () => {
  const files = new SimulatedFileSystem();
  const reports: string[] = [];
  const catalog = await DatabaseCatalog.open(simulatedEnvironment(files), "/data", {
    report: (message) => reports.push(message),
  });
  const first = await catalog.create("shop", {});
  await first.put("a", { a: 1 });
  files.onCall = ({ name, path }) =>
    name === "sync" && path.includes("/shop/log/") ? { kind: "error", code: "EIO" } : undefined;
  await expect(first.put("b", {})).rejects.toMatchObject({ code: "database-stopped" });
  files.onCall = undefined;
  const again = await found(catalog);
  expect(await again.get("a")).toMatchObject({ a: 1 });
  await again.put("c", {});
  expect(reports[0]).toContain("has stopped and is opened again");
  // The content on the device, whatever the failed sync wrote.
  for (const seed of [1, 2, 3]) {
    const after = await DatabaseCatalog.open(simulatedEnvironment(files.powerLoss(seed)), "/data");
    const recovered = await after.find("shop");
    expect(await recovered?.get("a")).toMatchObject({ a: 1 });
    expect(await recovered?.get("c")).not.toBeNull();
  }
});

test("a background failure of the log stops its database", async () => {
  const database = await OpenDatabase.open(
    nodeEnvironment(),
    "shop",
    `${await newTestFolder()}/shop`,
  );
  onTestFinished(() => database.abandon());
  const stopped = vi.fn();
  database.whenStopped = stopped;
  database.blobs.host.failed(new Error("the folder could not be synced"));
  expect(stopped).toHaveBeenCalledTimes(1);
  await expect(database.put("a", {})).rejects.toMatchObject({ code: "database-stopped" });
});

test("reports a failed background task and keeps the database running", async () => {
  const reports: unknown[] = [];
  const database = await openTestDatabase({
    report: (_message, cause) => reports.push(cause),
    maintenance: { tombstoneCleanupIntervalMs: 1 },
  });
  const internalError = new InvariantError("broken on purpose");
  vi.spyOn(database.maintenance, "cleanTombstones").mockRejectedValueOnce(internalError);
  await database.put("a", {});
  await database.delete("a");
  await vi.waitFor(() => expect(reports).toContain(internalError));
  await database.put("b", {});
});
