import { afterEach, beforeEach, expect, test } from "vitest";
import type { OpenDatabase } from "../../../engine/api/database/open-database.ts";
import { Database } from "../../../engine/api/database.ts";
import { closeDatabases, openDatabase } from "../../support/open-database.ts";

let opened: OpenDatabase;
let database: Database;
beforeEach(async () => {
  opened = await openDatabase();
  database = Database.of(opened);
  await opened.put("a", {});
});
afterEach(closeDatabases);

const request = (...Operations: object[]) =>
  Buffer.from(JSON.stringify({ Documents: [{ DocumentId: "a", Operations }] }));
const increment = (CounterName: string, Delta: number) => ({
  Type: "Increment",
  CounterName,
  Delta,
});

test("changes counters and lists them in byte order of their names", async () => {
  const { counters } = database;
  const changes = await counters.parse(request(increment("é", 1), increment("z", 2)));
  expect(counters.areChanges(changes)).toBe(true);
  expect(await counters.apply(changes)).toEqual([
    { documentId: "a", name: "é", value: "1" },
    { documentId: "a", name: "z", value: "2" },
  ]);
  expect(counters.all("A").map(({ name }) => name)).toEqual(["z", "é"]);
  expect(counters.get("a", "Z")).toEqual({ documentId: "a", name: "Z", value: "2" });
  expect(counters.get("a", "none")).toBeNull();
});

test("requests without a change only read", async () => {
  const { counters } = database;
  await counters.apply(await counters.parse(request(increment("x", 5))));
  const { lastEtag } = database;
  const reads = await counters.parse(
    request(
      { Type: "Get", CounterName: "x" },
      { Type: "Get", CounterName: "y" },
      { Type: "GetAll" },
    ),
  );
  expect(counters.areChanges(reads)).toBe(false);
  const x = { documentId: "a", name: "x", value: "5" };
  expect(await counters.apply(reads)).toEqual([x, null, x]);
  expect(database.lastEtag).toBe(lastEtag);
});

test("executes a request completely or not at all", async () => {
  const { counters } = database;
  const overflow = request(increment("x", 1), { ...increment("y", 1), CounterName: null });
  const applied = counters.apply(await counters.parse(overflow));
  await expect(applied).rejects.toMatchObject({ code: "null-reference" });
  expect(counters.all("a")).toEqual([]);
});
