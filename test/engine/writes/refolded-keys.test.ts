import { afterEach, expect, test } from "vitest";
import { OpenDatabase } from "../../../engine/api/database/open-database.ts";
import { Database } from "../../../engine/api/database.ts";
import { DocumentTable, keysInSnapshot } from "../../../engine/state/keyspaces/document-table.ts";
import type { EntryKeyspace } from "../../../engine/state/keyspaces/entry-keyspace.ts";
import type { WholeSection } from "../../../engine/storage/log/log.ts";
import { simulatedEnvironment } from "../../support/simulated-database.ts";
import { SimulatedFileSystem } from "../../support/simulated-file-system.ts";

const open: OpenDatabase[] = [];
afterEach(async () => {
  for (const database of open.splice(0)) await database.close();
});

async function openShop(files: SimulatedFileSystem): Promise<OpenDatabase> {
  const database = await OpenDatabase.open(simulatedEnvironment(files), "shop", "/data/shop");
  open.push(database);
  return database;
}

const affected = [
  "counters",
  "attachments",
  "timeSeries",
  "timeSeriesSegments",
  "compareExchange",
  "identities",
] as const;

/** Changes the keys of all entries to those of an older version. */
async function writeOldKeys(database: OpenDatabase, spellings: readonly string[]): Promise<void> {
  await database.write((transaction) => {
    for (const name of affected) {
      const keyspace = transaction.keyspaces[name] as EntryKeyspace<unknown>;
      for (const [key, value] of [...keyspace.withPrefix("")]) {
        const old = key.split("\u0000").map((part) => {
          const spelled = spellings.find((one) => one.toLowerCase().replaceAll("ς", "σ") === part);
          return spelled?.toLowerCase() ?? part;
        });
        transaction.putEntry(keyspace, key, undefined);
        transaction.putEntry(keyspace, old.join("\u0000"), value);
      }
    }
  });
}

test("data stored by an older version under a final sigma is found after an upgrade", async () => {
  const files = new SimulatedFileSystem();
  const database = await openShop(files);
  const { counters, attachments, timeSeries, compareExchange, identities } = Database.of(database);
  await database.put("ΟΔΟΣ", { a: 1 });
  await database.put("ς/1", { a: 2 });
  for (const id of ["ΟΔΟΣ", "ς/1"]) {
    await counters.increment(id, "ΛΕΞΕΙΣ", 7n);
    await attachments.put({ id, name: "ΑΣ" }, "", [Buffer.from("text")]);
    const append = { Timestamp: "2026-01-01T00:00:00Z", Values: [1] };
    await timeSeries.apply(id, { Name: "ΒΗΜΑΤΑΣ", Appends: [append] });
  }
  await compareExchange.put("ΚΛΕΙΣ", 0, '{"Object":1}');
  await identities.seed("ΠΕΛΑΤΕΣ|", 41, true);
  const names = ["ΟΔΟΣ", "ΛΕΞΕΙΣ", "ΑΣ", "ΒΗΜΑΤΑΣ", "ΚΛΕΙΣ"];
  await writeOldKeys(database, names);
  await database.write((transaction) => {
    const keyspace = transaction.keyspaces.identities;
    transaction.putEntry(keyspace, "πελατεσ|", undefined);
    transaction.putEntry(keyspace, "πελατες|", 41);
  });
  expect(counters.get("ΟΔΟΣ", "ΛΕΞΕΙΣ")).toBeNull();

  const afterKill = files.restart();
  // The first start replays the log and replaces the keys; the second one has the snapshot of a
  // clean stop.
  for (const start of ["first", "second"]) {
    const again = await openShop(afterKill);
    const api = Database.of(again);
    for (const id of ["ΟΔΟΣ", "ς/1"]) {
      expect(api.counters.get(id, "ΛΕΞΕΙΣ")).toMatchObject({ value: "7" });
      expect(api.attachments.find({ id, name: "ασ" })).toMatchObject({ name: "ΑΣ" });
      expect(api.timeSeries.summary(id, "ΒΗΜΑΤΑΣ")).toMatchObject({ count: 1 });
    }
    expect(api.compareExchange.get("κλεισ")).toMatchObject({ key: "ΚΛΕΙΣ" });
    const next = start === "first" ? 42 : 43;
    expect(await api.identities.next("ΠΕΛΑΤΕΣ|")).toBe(next);
    expect(await api.identities.next("πελατες|")).toBe(next);
    expect(again.find("οδοσ")).toBeGreaterThanOrEqual(0);
    await open.pop()?.close();
  }
});

test("a snapshot of an older version is used unless an id in it may now have another folded form", () => {
  const keysWith = (id: string, version: number) => {
    const table = new DocumentTable();
    table.applyCommitted(table.intern(id), 1, 100, 64, 1, 0);
    const view = table.view();
    const sections = new Map(
      table
        .sections(view)
        .map(({ name, parts }: WholeSection) => [name, Buffer.concat(parts)] as const),
    );
    view.release();
    sections.get("documents.head")?.writeUInt32LE(version, 0);
    return keysInSnapshot(sections);
  };
  for (const version of [2, 3]) {
    for (const id of ["users/1", "café", "σ", "ß", "я", "ა"]) {
      expect([id, keysWith(id, version)]).toEqual([id, "possibly"]);
    }
    for (const id of ["οδος", "i\u0307stanbul", "\u{10428}", "\u1c8a", "\u0264", "\ua7cd"]) {
      expect([id, keysWith(id, version)]).toEqual([id, "outdated"]);
    }
  }
  expect(keysWith("οδος", 4)).toBe("current");
});
