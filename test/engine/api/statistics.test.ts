import { afterEach, expect, test } from "vitest";
import { Database } from "../../../engine/api/database.ts";
import { closeDatabases, openDatabase, putAll } from "../../support/open-database.ts";

afterEach(closeDatabases);

test("reports the counts of the database and of each collection", async () => {
  const opened = await openDatabase();
  const { statistics, ...database } = Database.of(opened);
  await putAll(opened, "A", { a: {}, b: {} });
  await putAll(opened, "B", { c: {} });
  await opened.delete("b");
  await database.attachments.put({ id: "a", name: "x" }, "", [Buffer.from("x")]);
  await database.identities.next("a|");
  await database.compareExchange.put("k", 0, "{}");
  expect(statistics.counts()).toMatchObject({
    CountOfDocuments: 2,
    CountOfTombstones: 1,
    CountOfAttachments: 1,
  });
  const lastEtag = opened.state.committedEtag;
  expect(statistics.figures()).toEqual({
    identities: 1,
    compareExchangeValues: 1,
    deletedSeriesRanges: 0,
    attachmentContents: 1,
    lastDocumentEtag: opened.state.documents.lastEtag,
    lastEtag,
  });
  expect(statistics.collections()).toEqual([
    { name: "A", documents: 1, tombstones: 1, revisions: 0 },
    { name: "B", documents: 1, tombstones: 0, revisions: 0 },
  ]);
  const details = await statistics.collectionDetails();
  expect(details.map(({ name, revisionBytes }) => [name, revisionBytes])).toEqual([
    ["A", 0],
    ["B", 0],
  ]);
  expect(details[0]?.bytes).toBeGreaterThan(details[1]?.bytes ?? 0); // This one has an attachment.
});
