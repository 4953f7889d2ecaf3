import { afterEach, beforeEach, expect, test } from "vitest";
import type { OpenDatabase } from "../../../engine/api/database/open-database.ts";
import { Database } from "../../../engine/api/database.ts";
import { storedChangeVectorOf } from "../../../engine/state/documents/document-record.ts";
import { closeDatabases, openDatabase } from "../../support/open-database.ts";

let opened: OpenDatabase;
let database: Database;
beforeEach(async () => {
  opened = await openDatabase();
  database = Database.of(opened);
  await opened.put("a/1", {});
});
afterEach(closeDatabases);

const name = { id: "a/1", name: "photo" };
const bytes = (text: string) => [Buffer.from(text)];

async function contentOf(attachment: Parameters<Database["attachments"]["open"]>[0]) {
  const content = await database.attachments.open(attachment);
  const chunks: Buffer[] = [];
  for await (const chunk of content.read(0, attachment.size)) chunks.push(chunk);
  await content.close();
  return Buffer.concat(chunks).toString();
}

test("stores, finds in any letter case, reads and deletes an attachment", async () => {
  const stored = await database.attachments.put(name, "text/plain", bytes("hello"));
  expect(stored).toMatchObject({ name: "photo", contentType: "text/plain", size: 5 });
  expect(database.attachments.find({ id: "A/1", name: "PHOTO" })).toEqual(stored);
  expect(await contentOf(stored)).toBe("hello");
  await expect(database.attachments.delete(name, "A:99-x")).rejects.toThrow();
  await database.attachments.delete(name, stored.changeVector);
  expect(database.attachments.find(name)).toBeUndefined();
});

test("keeps the content while a reference retains it, even if the attachment is deleted", async () => {
  const stored = await database.attachments.put(name, "", bytes("kept"));
  const release = database.attachments.retain([stored]);
  await database.attachments.deleteAll([name, { id: "a/1", name: "none" }]);
  expect(await contentOf(stored)).toBe("kept");
  release();
  await expect(database.attachments.open(stored)).rejects.toThrow();
});

test("reads nothing when the document is missing", async () => {
  const never: Iterable<Buffer> = {
    [Symbol.iterator]: () => {
      throw new Error("was read");
    },
  };
  const put = database.attachments.put({ id: "none", name: "photo" }, "", never);
  await expect(put).rejects.toMatchObject({ code: "document-missing" });
});

test("finds an attachment in the state of a revision", async () => {
  await database.changeSettings(() => ({ Revisions: { Default: { Disabled: false } } }));
  const first = await database.attachments.put(name, "", bytes("first"));
  await opened.put("a/1", { n: 1 });
  const { revisions } = opened.state.keyspaces;
  const row = revisions.newestOf(opened.find("a/1"));
  const position = revisions.positionOfRow(row);
  const record = await opened.recordAt(opened.find("a/1"), position, revisions.lengthOf(row));
  const vector = storedChangeVectorOf(record, 0);
  await database.attachments.put(name, "", bytes("second"));
  const found = await database.attachments.findInRevision(name, vector);
  expect(found?.hash).toBe(first.hash);
  const other = { id: "a/2", name: "photo" };
  expect(await database.attachments.findInRevision(other, vector)).toBeUndefined();
  expect(await database.attachments.findInRevision(name, "A:1-x")).toBeUndefined();
});
