import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { OpenDatabase } from "../../../engine/api/database/open-database.ts";
import { nodeEnvironment } from "../../../engine/base/platform/node-environment.ts";
import { revertToVectors } from "../../../engine/services/background/revision-tasks.ts";
import { documentText } from "../../../engine/state/documents/document-composing.ts";
import { flagsText } from "../../../engine/state/documents/document-text.ts";
import { putAttachment } from "../../../engine/writes/attachments.ts";
import { incrementCounter } from "../../../engine/writes/counters.ts";
import { forceRevisionOf } from "../../../engine/writes/documents.ts";
import { query } from "../../support/open-database.ts";
import { openTestDatabase } from "../../support/open-test-database.ts";

const folders: string[] = [];
const open: OpenDatabase[] = [];

afterEach(async () => {
  for (const database of open.splice(0)) {
    database.checkInvariants();
    await database.close();
  }
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true });
});

async function openDatabase(folder: string | null = null): Promise<OpenDatabase> {
  const database = await OpenDatabase.open(nodeEnvironment(), "shop", folder);
  open.push(database);
  return database;
}

async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "revisions-"));
  folders.push(folder);
  return folder;
}

const configure = (database: OpenDatabase, rule: object | null, name = "Users") =>
  database.putSettings(rule === null ? {} : { Revisions: { Collections: { [name]: rule } } });

const user = (fields: object) => ({ ...fields, "@metadata": { "@collection": "Users" } });

/**
 * The revisions visible to readers, newest first: their content, their etag in the change vector,
 * their flags.
 */
async function revisionsOf(database: OpenDatabase, id: string): Promise<unknown[][]> {
  const { revisions } = database.state.keyspaces;
  const rows: unknown[][] = [];
  const document = database.state.documents.lookup(id);
  for (let row = revisions.newestOf(document); row >= 0; row = revisions.olderThan(row)) {
    const record = await database.recordAt(
      document,
      revisions.positionOfRow(row),
      revisions.lengthOf(row),
    );
    const text = documentText(database.state, record, 0).toString();
    const { "@metadata": metadata, ...body } = JSON.parse(text);
    const etag = Number(/^A:(\d+)-/.exec(metadata["@change-vector"])?.[1]);
    rows.push([body, etag, flagsText(revisions.flagsOf(row)).replace("HasRevisions, ", "")]);
  }
  expect(rows.length).toBe(revisions.countOf(document));
  return rows;
}

const flagsOf = async (database: OpenDatabase, id: string) => {
  const document = await database.get(id);
  return (document?.["@metadata"] as Record<string, unknown> | undefined)?.["@flags"];
};

describe("revisions", () => {
  test("are created by each write of a configured collection, the newest equal to the document", async () => {
    const database = await openDatabase();
    await configure(database, { MinimumRevisionsToKeep: 9 });
    await database.put("u/1", user({ n: 1 }));
    await database.put("u/1", user({ n: 2 }));
    await database.put("o/1", { n: 1 });
    expect(await revisionsOf(database, "u/1")).toEqual([
      [{ n: 2 }, 3, "Revision"],
      [{ n: 1 }, 1, "Revision"],
    ]);
    expect(await revisionsOf(database, "o/1")).toEqual([]);
    expect(await flagsOf(database, "u/1")).toBe("HasRevisions");
    expect(await flagsOf(database, "o/1")).toBeUndefined();
  });

  test("are not created again for unchanged content", async () => {
    const database = await openDatabase();
    await configure(database, {});
    await database.put("u/1", user({ n: 1 }));
    await database.put("u/1", user({ n: 1 }));
    expect(await revisionsOf(database, "u/1")).toHaveLength(1);
  });

  test("preserve the state from before the configuration, on the next change or deletion", async () => {
    const database = await openDatabase();
    await database.put("u/1", user({ n: 1 }));
    await database.put("u/2", user({ n: 1 }));
    await configure(database, {});
    await database.put("u/1", user({ n: 2 }));
    expect(await revisionsOf(database, "u/1")).toEqual([
      [{ n: 2 }, 3, "Revision"],
      [{ n: 1 }, 1, "FromOldDocumentRevision, Revision"],
    ]);
    await database.delete("u/2");
    expect(await revisionsOf(database, "u/2")).toEqual([
      [{}, 7, "DeleteRevision"],
      [{ n: 1 }, 2, "FromOldDocumentRevision, Revision"],
    ]);
  });

  test("beyond the maximum number are dropped, oldest first, with tombstones", async () => {
    const database = await openDatabase();
    await configure(database, { MinimumRevisionsToKeep: 2 });
    for (let n = 0; n < 5; n++) await database.put("u/1", user({ n }));
    expect((await revisionsOf(database, "u/1")).map(([body]) => body)).toEqual([
      { n: 4 },
      { n: 3 },
    ]);
    expect(database.state.keyspaces.revisions.count).toBe(2);
    expect(database.state.keyspaces.tombstones.count).toBe(3);
  });

  test("are retained beyond the maximum number while young, and dropped a few at a time if so configured", async () => {
    const database = await openDatabase();
    await configure(database, {
      MinimumRevisionsToKeep: 1,
      MinimumRevisionAgeToKeep: "1.00:00:00",
    });
    for (let n = 0; n < 4; n++) await database.put("u/1", user({ n }));
    expect(await revisionsOf(database, "u/1")).toHaveLength(4);
    await configure(database, {
      MinimumRevisionsToKeep: 1,
      MaximumRevisionsToDeleteUponDocumentUpdate: 2,
    });
    await database.put("u/1", user({ n: 4 }));
    expect(await revisionsOf(database, "u/1")).toHaveLength(3);
  });

  test("of a deleted document are marked and stay, or are deleted with it", async () => {
    const database = await openDatabase();
    await configure(database, { MinimumRevisionsToKeep: 2 });
    await database.put("u/1", user({ n: 1 }));
    await database.delete("u/1");
    const rows = await revisionsOf(database, "u/1");
    expect(rows.map(([, , flags]) => flags)).toEqual(["DeleteRevision", "Revision"]);
    const { revisions } = database.state.keyspaces;
    expect(revisions.deletedDocuments(4)).toHaveLength(1);
    await configure(database, { PurgeOnDelete: true });
    await database.put("u/1", user({ n: 2 }));
    expect(revisions.deletedDocuments(4)).toHaveLength(0);
    await database.delete("u/1");
    expect(await revisionsOf(database, "u/1")).toEqual([]);
    expect(revisions.isEmpty).toBe(true);
  });

  test("contain the values of counters and the contents of attachments", async () => {
    const database = await openDatabase();
    await configure(database, {});
    await database.put("u/1", user({ n: 1 }));
    const lease = await database.blobs.store([Buffer.from("hello")]);
    await database.write((transaction) => {
      incrementCounter(transaction, "u/1", "likes", 5n);
      const { hash, size } = lease;
      putAttachment(transaction, "u/1", { name: "A.txt", contentType: "", hash, size });
    });
    lease.release();
    expect((await revisionsOf(database, "u/1"))[0]?.[2]).toBe(
      "Revision, HasAttachments, HasCounters",
    );
    expect(database.state.keyspaces.attachments.count).toBe(2);
    await database.delete("u/1");
    expect(database.state.keyspaces.attachments.count).toBe(1);
    const reader = await database.blobs.open(lease.hash);
    expect(reader.size).toBe(5);
    await reader.close();
  });

  test("can be forced once for each state", async () => {
    const database = await openDatabase();
    await database.put("f/1", { n: 1 });
    const force = () => database.write((transaction) => forceRevisionOf(transaction, "f/1"));
    expect((await force())?.etag).toBe(2);
    expect(await force()).toBeNull();
    await database.put("f/1", { n: 2 });
    expect((await force())?.etag).toBe(4);
    expect(await revisionsOf(database, "f/1")).toEqual([
      [{ n: 2 }, 4, "Revision, ForceCreated"],
      [{ n: 1 }, 2, "Revision, ForceCreated"],
    ]);
    expect(await flagsOf(database, "f/1")).toBe("HasRevisions");
    await database.delete("f/1");
    await database.put("f/1", { n: 3 });
    expect(await flagsOf(database, "f/1")).toBe("HasRevisions");
  });

  test("survive closing, a crash, and the loss of the snapshot", async () => {
    const folder = await temporaryFolder();
    const database = await openDatabase(folder);
    await configure(database, { MinimumRevisionsToKeep: 3 });
    for (let n = 0; n < 5; n++) {
      await database.put("u/1", user({ n }));
      await database.put("u/2", user({ n }));
    }
    await database.delete("u/2");
    const expected = [await revisionsOf(database, "u/1"), await revisionsOf(database, "u/2")];
    await database.writeSnapshot();
    await database.put("u/3", user({ n: 1 }));
    await database.abandon();
    open.pop();
    const second = await openDatabase(folder);
    expect(await revisionsOf(second, "u/3")).toHaveLength(1);
    expect([await revisionsOf(second, "u/1"), await revisionsOf(second, "u/2")]).toEqual(expected);
    second.checkInvariants();
    await second.close();
    open.pop();
    const third = await openDatabase(folder);
    expect([await revisionsOf(third, "u/1"), await revisionsOf(third, "u/2")]).toEqual(expected);
  });
});

test("a document reverted to another collection leaves its current collection", async () => {
  const database = await openTestDatabase();
  await database.putSettings({ Revisions: { Default: { Disabled: false } } });
  const inCollection = (n: number, name: string) => ({ n, "@metadata": { "@collection": name } });
  const first = await database.put("a", inCollection(1, "Users"));
  await database.delete("a");
  await database.put("a", inCollection(1, "Others"));
  await database.delete("a");
  await database.put("a", inCollection(2, "Others"));
  expect((await query(database, "from Others where n > 0")).ids).toEqual(["a"]);
  await revertToVectors(database, [["a", first.changeVector]]);
  expect((await query(database, "from Others where n > 0")).ids).toEqual([]);
  expect((await query(database, "from Users where n > 0")).ids).toEqual(["a"]);
  // The files are compared at the end: replay drops the tombstones that were dropped here.
});
