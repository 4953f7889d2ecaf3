import { afterEach, beforeEach, expect, test } from "vitest";
import { Database } from "../../../engine/api/database.ts";
import { closeDatabases, openDatabase } from "../../support/open-database.ts";

let database: Database;
beforeEach(async () => {
  database = Database.of(await openDatabase());
});
afterEach(closeDatabases);

async function* chunks(...texts: string[]): AsyncGenerator<Buffer> {
  for (const text of texts) yield Buffer.from(text);
}

const options = { skipsUnchanged: false };

test("stores the commands as documents and counts them in the operation", async () => {
  const started = database.bulkInserts.start(
    7,
    chunks('[{"Type":"PUT","Id":"a","Document":{}},', '{"Type":"PUT","Id":"b","Document":{}}]'),
    options,
  );
  expect(database.operations.get(7)?.state.status).toBe("running");
  const { info, error } = await started.ended;
  expect(error).toBeUndefined();
  expect(info).toMatchObject({ kind: "BulkInsert", state: { result: { DocumentsProcessed: 2 } } });
  expect(database.statistics.counts().CountOfDocuments).toBe(2);
});

test("fails the operation when the stream ends before the closing bracket", async () => {
  const started = database.bulkInserts.start(1, chunks('[{"Type":"PUT","Id":"a"'), options);
  const { info, error } = await started.ended;
  expect(error).toMatchObject({ code: "invalid-operation" });
  expect(info.state.status).toBe("failed");
});
