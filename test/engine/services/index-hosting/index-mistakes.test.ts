/**
 * An internal error in one index does not affect other indexes, and an index whose documents were
 * temporarily unreadable recovers.
 */
import { expect, test, vi } from "vitest";
import type { OpenDatabase } from "../../../../engine/api/database/open-database.ts";
import { InvariantError } from "../../../../engine/base/assert.ts";
import { EngineError } from "../../../../engine/base/errors.ts";
import type { OpenIndex } from "../../../../engine/indexing/open-index.ts";
import { query } from "../../../support/open-database.ts";
import { openTestDatabase } from "../../../support/open-test-database.ts";

async function withIndexes(): Promise<{
  database: OpenDatabase;
  first: OpenIndex;
  other: OpenIndex;
}> {
  const database = await openTestDatabase();
  for (const Name of ["Users", "Orders"]) {
    await database.put(`${Name}/1`, { n: 1, "@metadata": { "@collection": Name } });
    await query(database, `from ${Name} where n = 1`);
  }
  const indexes = database.queries.indexes.all();
  const first = indexes.find(({ name }) => name.includes("Users"));
  const other = indexes.find(({ name }) => name.includes("Orders"));
  if (first === undefined || other === undefined) throw new Error("there are two indexes");
  return { database, first, other };
}

async function putBoth(database: OpenDatabase, id: number): Promise<void> {
  for (const Name of ["Users", "Orders"]) {
    await database.put(`${Name}/${id}`, { n: 1, "@metadata": { "@collection": Name } });
  }
}

test("after any exception in one index, the other indexes keep following", async () => {
  const { database, first } = await withIndexes();
  const internalError = new InvariantError("broken");
  vi.spyOn(first.index, "isStale", "get").mockImplementation(() => {
    throw internalError;
  });
  for (const id of [2, 3, 4]) {
    await putBoth(database, id);
    const { ids } = await query(database, "from Orders where n = 1");
    expect(ids).toHaveLength(id);
  }
  expect(first.failure).toBe(internalError);
  vi.restoreAllMocks();
});

test("an index retries soon after its documents could not be read", async () => {
  const { database, first, other } = await withIndexes();
  vi.spyOn(first.index, "catchUp").mockImplementationOnce(() => {
    throw new EngineError("read-failed", "EMFILE");
  });
  await putBoth(database, 2);
  expect((await query(database, "from Orders where n = 1")).ids).toHaveLength(2);
  expect(first.failure).toBeNull();
  expect((await query(database, "from Users where n = 1")).ids).toHaveLength(2);
  expect([first.failure, other.failure]).toEqual([null, null]);
});

test("a document whose indexing was interrupted by a failed read is indexed once", async () => {
  const database = await openTestDatabase();
  const put = (id: string, A: string) =>
    database.put(id, { A, B: 1, "@metadata": { "@collection": "Users" } });
  await put("users/1", "x");
  const ids = async (A: string) =>
    (await query(database, `from Users where A = '${A}' and B = 1`)).ids;
  expect(await ids("x")).toEqual(["users/1"]);
  const [index] = database.queries.indexes.all();
  const [, second] = index?.index.store.columns ?? [];
  if (second === undefined) throw new Error("the index has a column for each field");
  vi.spyOn(second, "add").mockImplementationOnce(() => {
    throw new EngineError("read-failed", "EMFILE");
  });
  await put("users/2", "y");
  await vi.waitFor(() => expect(second.add).toHaveBeenCalled());
  database.queries.indexes.checkInvariants();
  expect(await ids("y")).toEqual(["users/2"]);
  await put("users/2", "z");
  expect(await ids("y")).toEqual([]);
  expect(await ids("z")).toEqual(["users/2"]);
  database.queries.indexes.checkInvariants();
  vi.restoreAllMocks();
});
