import { afterEach, beforeEach, expect, test } from "vitest";
import { Database } from "../../../engine/api/database.ts";
import { closeDatabases, openDatabase } from "../../support/open-database.ts";

let database: Database;
beforeEach(async () => {
  database = Database.of(await openDatabase());
});
afterEach(closeDatabases);

const put = (Id: string, more: object = {}) => ({ Type: "PUT", Id, Document: {}, ...more });
const bytesOf = (Commands: object[], more: object = {}) =>
  Buffer.from(JSON.stringify({ Commands, ...more }));
const count = () => database.statistics.counts().CountOfDocuments;

async function* contents(...texts: string[]): AsyncGenerator<AsyncIterable<Buffer>> {
  for (const text of texts) {
    yield (async function* content() {
      yield Buffer.from(text);
    })();
  }
}

test("executes all commands or none", async () => {
  const batch = await database.batches.prepare(bytesOf([put("a"), put("b")]));
  expect(batch.isClusterWide).toBe(false);
  const rows = JSON.parse(`[${await batch.run()}]`) as { "@id": string }[];
  expect(rows.map((row) => row["@id"])).toEqual(["a", "b"]);
  const bad = await database.batches.prepare(bytesOf([put("c"), put("a", { ChangeVector: "" })]));
  await expect(bad.run()).rejects.toMatchObject({ code: "concurrency" });
  expect(count()).toBe(2);
});

test("assigns contents to attachments in order", async () => {
  const attach = (Name: string) => ({ Type: "AttachmentPUT", Id: "a", Name, ContentType: "" });
  const bytes = bytesOf([put("a"), attach("x"), attach("y")]);
  const batch = await database.batches.prepare(bytes, { contents: contents("xx", "yyy") });
  await batch.run();
  expect(database.attachments.find({ id: "a", name: "x" })?.size).toBe(2);
  expect(database.attachments.find({ id: "a", name: "y" })?.size).toBe(3);
});

test("a cluster-wide batch has an index and guards", async () => {
  const bytes = bytesOf([put("a")], { TransactionMode: "ClusterWide" });
  const batch = await database.batches.prepare(bytes);
  expect(batch.isClusterWide).toBe(true);
  const { index } = await batch.runClusterWide(true);
  expect(index).toBe(1);
  expect(database.compareExchange.get("rvn-atomic/a")?.index).toBe(1);
});

test("rejects too many commands", async () => {
  const prepared = database.batches.prepare(bytesOf([put("a"), put("b")]), { commandsMax: 1 });
  await expect(prepared).rejects.toMatchObject({ code: "too-large" });
});
