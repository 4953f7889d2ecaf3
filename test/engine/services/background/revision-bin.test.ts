import { afterEach, describe, expect, test } from "vitest";
import { OpenDatabase } from "../../../../engine/api/database/open-database.ts";
import { simulatedEnvironment } from "../../../support/simulated-database.ts";
import { SimulatedFileSystem } from "../../../support/simulated-file-system.ts";

const open: OpenDatabase[] = [];
afterEach(async () => {
  for (const database of open.splice(0)) {
    database.checkInvariants();
    await database.close();
  }
});

async function openShop(files = new SimulatedFileSystem()) {
  const environment = simulatedEnvironment(files);
  const database = await OpenDatabase.open(environment, "shop", "/data/shop");
  open.push(database);
  return { database, clock: environment.clock };
}

const Revisions = { Collections: { Users: { MinimumRevisionsToKeep: 5 } } };
const count = ({ state }: OpenDatabase) =>
  state.keyspaces.revisions.documentsWithRevisions().length;

/** Two documents with revisions, one of them deleted. */
async function fill(database: OpenDatabase): Promise<void> {
  for (const id of ["kept", "deleted"]) {
    await database.put(id, { n: 1, "@metadata": { "@collection": "Users" } });
  }
  await database.delete("deleted");
}

const minuteMs = 60_000;

describe("the revision bin", () => {
  test("drops documents deleted long enough ago, and keeps revisions of existing documents", async () => {
    const { database, clock } = await openShop();
    const bin = { MinimumEntriesAgeToKeepInMin: 10, CleanerFrequencyInSec: 3600 };
    await database.putSettings({ Revisions, RevisionsBin: bin });
    await fill(database);
    clock.advance(9 * minuteMs);
    expect(await database.revisionBin.run()).toBe(0);
    clock.advance(2 * minuteMs);
    expect(await database.revisionBin.run()).toBe(1);
    expect(count(database)).toBe(1);
    expect(await database.revisionBin.run()).toBe(0);
  });

  test("keeps a document that was stored again", async () => {
    const { database, clock } = await openShop();
    await database.putSettings({ Revisions, RevisionsBin: { MinimumEntriesAgeToKeepInMin: 1 } });
    await fill(database);
    await database.put("deleted", { n: 2, "@metadata": { "@collection": "Users" } });
    clock.advance(2 * minuteMs);
    expect(await database.revisionBin.run()).toBe(0);
    expect(count(database)).toBe(2);
  });

  test("drops nothing unless the database is configured to", async () => {
    const { database, clock } = await openShop();
    await database.putSettings({ Revisions });
    await fill(database);
    clock.advance(365 * 24 * 60 * minuteMs);
    expect(await database.revisionBin.run()).toBe(0);
    await database.putSettings({ Revisions, RevisionsBin: { Disabled: true } });
    expect(await database.revisionBin.run()).toBe(0);
    await database.putSettings({ Revisions, RevisionsBin: {} });
    expect(await database.revisionBin.run()).toBe(1);
  });

  test("is cleaned by a timer, and the deletions survive a restart", async () => {
    const files = new SimulatedFileSystem();
    const { database, clock } = await openShop(files);
    const bin = { MinimumEntriesAgeToKeepInMin: 1, CleanerFrequencyInSec: 90 };
    await database.putSettings({ Revisions, RevisionsBin: bin });
    await fill(database);
    clock.advance(100_000);
    await expect.poll(() => count(database)).toBe(1);
    await database.close();
    open.length = 0;
    const again = await openShop(files);
    expect(count(again.database)).toBe(1);
  });
});
