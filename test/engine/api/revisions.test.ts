import { afterEach, expect, test } from "vitest";
import type { Database } from "../../../engine/engine.ts";
import { closeFaces, openFace, putText } from "../../support/open-face.ts";

afterEach(closeFaces);

const settings = { Revisions: { Default: { Disabled: false } } };

async function withThree(): Promise<{ database: Database; vectors: string[] }> {
  const database = await openFace(settings);
  const vectors: string[] = [];
  for (const Age of [1, 2, 3]) vectors.push(await putText(database, "users/1", { Age }));
  return { database, vectors };
}

test("revisions are read newest first, a page of them with the number of all", async () => {
  const { database } = await withThree();
  const { rows, total } = await database.revisions.read("users/1", { start: 1, pageSize: 1 });
  expect(total).toBe(3);
  expect(rows.map((row) => row.body())).toEqual([{ Age: 2 }]);
  expect(database.revisions.count("users/1")).toBe(3);
  expect(database.revisions.count("users/2")).toBe(0);
});

test("one is found by its change vector", async () => {
  const { database, vectors } = await withThree();
  const found = await database.revisions.byChangeVector(vectors[1] ?? "");
  expect(found?.body()).toEqual({ Age: 2 });
  expect(found?.changeVector).toBe(vectors[1]);
  expect(await database.revisions.byChangeVector("A:9-AAAAAAAAAAAAAAAAAAAAAA")).toBeNull();
});

test("a document is made again what a revision is", async () => {
  const { database, vectors } = await withThree();
  await database.revisions.revertDocuments([["users/1", vectors[0] ?? ""]]);
  const row = await database.documents.find("users/1")?.read();
  expect(row?.body()).toEqual({ Age: 1 });
});

test("the bin has the documents that were deleted, the last one first", async () => {
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
