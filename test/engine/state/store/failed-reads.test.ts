/**
 * A failed read does not prove damage: it is retried, reported as a failed read, and not
 * remembered.
 */
import { expect, test } from "vitest";
import { OpenDatabase } from "../../../../engine/api/database/open-database.ts";
import { put } from "../../../support/database-scenarios.ts";
import {
  databaseFolder,
  logOptions,
  SimulatedDatabase,
  simulatedEnvironment,
} from "../../../support/simulated-database.ts";
import { type SimulatedCall, SimulatedFileSystem } from "../../../support/simulated-file-system.ts";

/** A database whose first documents are only on disk, in half-dead segments. */
async function newStore(): Promise<SimulatedDatabase> {
  const options = { segmentBytesMin: 1024, segmentBytesMax: 1024, cacheBytes: 0 };
  const shop = await SimulatedDatabase.open(new SimulatedFileSystem(), undefined, options);
  for (let index = 0; index < 12; index++) {
    await shop.write([put(`a/${index}`, "A".repeat(200)), put("again", "B".repeat(200))]);
  }
  return shop;
}

/** The same files, opened again: only the part needed for opening has been read. */
async function reopened(shop: SimulatedDatabase): Promise<OpenDatabase> {
  await shop.database.close();
  const options = logOptions({ cacheBytes: 0, mustExist: true });
  return await OpenDatabase.open(simulatedEnvironment(shop.files), "shop", databaseFolder, options);
}

/** Fails the next `times` calls on segment files. */
function failing(
  files: SimulatedFileSystem,
  name: SimulatedCall["name"],
  code: "EIO" | "EMFILE",
  times: number,
): () => number {
  let failed = 0;
  files.onCall = (call) => {
    const isMeant = call.name === name && call.path.includes("/log/") && failed < times;
    if (!isMeant) return undefined;
    failed++;
    return { kind: "error", code };
  };
  return () => failed;
}

test.each([
  ["read", "EIO"],
  ["open", "EMFILE"],
] as const)("a %s that fails once or twice with %s is retried", async (name, code) => {
  const shop = await newStore();
  const again = await reopened(shop);
  const failures = failing(shop.files, name, code, 2);
  expect(await again.getText("a/0")).not.toBeNull();
  expect(failures()).toBe(2);
  expect(again.damaged).toEqual([]);
  shop.files.onCall = undefined;
  await again.abandon();
});

test("a persistent failure is reported as such, and the document is readable when it ends", async () => {
  const shop = await newStore();
  const again = await reopened(shop);
  failing(shop.files, "read", "EIO", Number.POSITIVE_INFINITY);
  await expect(again.getText("a/0")).rejects.toMatchObject({
    code: "read-failed",
    details: { retryAfterSeconds: 1 },
  });
  expect(again.damaged).toEqual([]);
  shop.files.onCall = undefined;
  expect(await again.getText("a/0")).not.toBeNull();
  await again.abandon();
});

test("a scrub that cannot read a segment reports no damage, and compaction includes it later", async () => {
  const shop = await newStore();
  failing(shop.files, "read", "EIO", Number.POSITIVE_INFINITY);
  await shop.database.scrub();
  expect(shop.database.damaged).toEqual([]);
  await shop.database.compact().catch(() => undefined);
  shop.files.onCall = undefined;
  const report = await shop.database.compact();
  expect(report.damaged).toBe(0);
  expect(report.sources).toBeGreaterThan(0);
  await shop.check();
});

test("a compaction that cannot read its source reports this, and not damage", async () => {
  const shop = await newStore();
  const again = await reopened(shop);
  failing(shop.files, "read", "EMFILE", Number.POSITIVE_INFINITY);
  await expect(again.compact()).rejects.toMatchObject({ code: "read-failed" });
  shop.files.onCall = undefined;
  const report = await again.compact();
  expect(report.damaged).toBe(0);
  expect(report.sources).toBeGreaterThan(0);
  await again.close();
  await (await SimulatedDatabase.open(shop.files, shop.history)).check();
});

test("a missing file is damage", async () => {
  const shop = await newStore();
  const again = await reopened(shop);
  const [first] = shop.files
    .paths()
    .filter((path) => path.includes("/log/"))
    .sort();
  await shop.files.unlink(String(first));
  const outcomes = await Promise.allSettled(
    Array.from({ length: 12 }, (_, index) => again.getText(`a/${index}`)),
  );
  const reasons = outcomes.flatMap((one) => (one.status === "rejected" ? [one.reason.code] : []));
  expect(reasons.length).toBeGreaterThan(0);
  expect(new Set(reasons)).toEqual(new Set(["record-damaged"]));
  await again.abandon();
});

test("an opening that cannot read its log fails with this reason, and changes nothing", async () => {
  const shop = await newStore();
  await shop.database.abandon();
  const copy = shop.files.restart();
  copy.onCall = ({ name, path }) =>
    name === "read" && path.endsWith(".seg") ? { kind: "error", code: "EIO" } : undefined;
  await expect(SimulatedDatabase.open(copy, shop.history)).rejects.toMatchObject({
    code: "read-failed",
  });
  copy.onCall = undefined;
  const again = await SimulatedDatabase.open(copy, shop.history);
  await again.check();
});
