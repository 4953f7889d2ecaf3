import { afterEach, expect, test } from "vitest";
import type { Database } from "../../../engine/engine.ts";
import { closeDatabaseApis, openDatabaseApi, putText } from "../../support/open-database-api.ts";

afterEach(closeDatabaseApis);

const settings = { Revisions: { Default: { Disabled: false } } };

async function withThree(): Promise<{ database: Database; vectors: string[] }> {
  const database = await openDatabaseApi(settings);
  const vectors: string[] = [];
  for (const Age of [1, 2, 3]) vectors.push(await putText(database, "users/1", { Age }));
  return { database, vectors };
}

test("reads a page of revisions, newest first, with the total count", async () => {
  const { database } = await withThree();
  const { rows, total } = await database.revisions.read("users/1", { start: 1, pageSize: 1 });
  expect(total).toBe(3);
  expect(rows.map((row) => row.body())).toEqual([{ Age: 2 }]);
  expect(database.revisions.count("users/1")).toBe(3);
  expect(database.revisions.count("users/2")).toBe(0);
});

test("finds a revision by its change vector", async () => {
  const { database, vectors } = await withThree();
  const found = await database.revisions.byChangeVector(vectors[1] ?? "");
  expect(found?.body()).toEqual({ Age: 2 });
  expect(found?.changeVector).toBe(vectors[1]);
  expect(await database.revisions.byChangeVector("A:9-AAAAAAAAAAAAAAAAAAAAAA")).toBeNull();
});

test("lists ids with revisions by prefix, in id order, including deleted documents", async () => {
  const { database } = await withThree();
  for (const id of ["orders/2", "Orders/10", "ORDERS/1", "zebras/1", "ordinary"]) {
    await putText(database, id, {});
  }
  await database.documents.delete("orders/2");
  await database.documents.delete("zebras/1");
  const ids = (prefix: string, most = 1_000) => database.revisions.idsWithPrefix(prefix, most);
  expect(await ids("Ord")).toEqual(["ORDERS/1", "Orders/10", "orders/2", "ordinary"]);
  expect(await ids("orders/1")).toEqual(["ORDERS/1", "Orders/10"]);
  expect(await ids("ord", 2)).toEqual(["ORDERS/1", "Orders/10"]);
  expect(await ids("orders/2")).toEqual(["orders/2"]);
  expect(await ids("z")).toEqual(["zebras/1"]);
  expect(await ids("ord", 0)).toEqual([]);
  expect(await ids("ord", -1)).toEqual([]);
  expect(await ids("nothing")).toEqual([]);
});

test("skips documents without revisions and returns the first ids", async () => {
  const database = await openDatabaseApi({
    Revisions: { Collections: { Kept: { Disabled: false } } },
  });
  const id = (n: number) => `many/${String(n).padStart(5, "0")}`;
  for (let n = 0; n < 3_000; n++) {
    await putText(database, id(n), {}, n % 3 === 0 ? "Kept" : "Others");
  }
  // Deleted in reverse order, so that the first ids are found last.
  for (let n = 2_400; n >= 0; n -= 6) await database.documents.delete(id(n));
  const wanted = Array.from({ length: 1_000 }, (_, n) => id(3 * n));
  expect(await database.revisions.idsWithPrefix("many/", 2_000)).toEqual(wanted);
  expect(await database.revisions.idsWithPrefix("MANY/", 7)).toEqual(wanted.slice(0, 7));
});

test("reverts a document to a revision", async () => {
  const { database, vectors } = await withThree();
  await database.revisions.revertDocuments([["users/1", vectors[0] ?? ""]]);
  const row = await database.documents.find("users/1")?.read();
  expect(row?.body()).toEqual({ Age: 1 });
});

test("the revision bin lists deleted documents, most recent first", async () => {
  const { database } = await withThree();
  await putText(database, "users/2", {});
  expect((await database.revisions.bin(0, 10)).newest).toBeNull();
  await database.documents.delete("users/2");
  await database.documents.delete("users/1");
  const bin = await database.revisions.bin(0, 10);
  expect(bin.newest?.id).toBe("users/1");
  expect(bin.rows.map(({ id }) => id)).toEqual(["users/1", "users/2"]);
  const older = await database.revisions.bin(0, 10, bin.rows[1]?.etag);
  expect(older.rows.map(({ id }) => id)).toEqual(["users/2"]);
});
