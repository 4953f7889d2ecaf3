/**
 * Indexes skip documents in which a patch changed none of their fields: without reading them, and
 * without missing any.
 */
import fc from "fast-check";
import { afterEach, expect, test } from "vitest";
import type { OpenDatabase } from "../../../../engine/api/database/open-database.ts";
import { startPatchByQuery } from "../../../../engine/services/querying/operations-by-query.ts";
import { closeDatabases, openDatabase, putAll, query } from "../../../support/open-database.ts";

afterEach(closeDatabases);

const options = {
  parametersText: null,
  allowsStale: false,
  staleTimeoutMs: 10_000,
  operationsPerSecondMax: undefined,
  hasDetails: false,
  liftsLimits: false,
};

async function patch(database: OpenDatabase, text: string): Promise<void> {
  const { ended } = await startPatchByQuery(database, text, options);
  await ended;
}

const indexName = "Auto/Users/ByCity";
const cities = ["Rome", "Oslo", "Bern"];

function mapAttempts(database: OpenDatabase): number {
  return database.queries.indexes.byName(indexName)?.index.counters.mapAttempts ?? Number.NaN;
}

async function withUsers(count: number): Promise<OpenDatabase> {
  const database = await openDatabase();
  for (let n = 0; n < count; n++) {
    await putAll(database, "Users", { [`users/${n}`]: { City: cities[n % 3], Age: n } });
  }
  await query(database, "from Users where City = 'Rome'");
  return database;
}

test("patching a field that is not in an index does not make the index read anything", async () => {
  const database = await withUsers(30);
  const before = mapAttempts(database);
  await patch(database, "from Users update { this.Age += 1 }");
  await patch(database, "from Users where City = 'Rome' update { this.Age = this.Age * 2 }");
  const { rows } = await query(database, "from Users where City = 'Rome'");
  expect(rows.map(({ Age }) => Age)).toEqual([2, 8, 14, 20, 26, 32, 38, 44, 50, 56]);
  expect(mapAttempts(database)).toBe(before);
  expect(database.queries.indexes.byName(indexName)?.index.isStale).toBe(false);
  // The field in the index is read.
  await patch(database, "from Users where City = 'Rome' update { this.City = 'Bern' }");
  expect((await query(database, "from Users where City = 'Bern'")).rows).toHaveLength(20);
  expect(mapAttempts(database)).toBe(before + 10);
});

test("a document that the index had not read before the patch is read", async () => {
  const database = await withUsers(3);
  const index = database.queries.indexes.byName(indexName);
  if (index === undefined) throw new Error("the query made it");
  index.isPaused = true;
  // A new document, and one with another city: the index has read neither when the patch is
  // committed.
  await putAll(database, "Users", { "users/3": { City: "Oslo", Age: 3 } });
  await putAll(database, "Users", { "users/0": { City: "Oslo", Age: 0 } });
  await patch(database, "from Users update { this.Age += 1 }");
  // A document that it had already read changes in the same transaction, and is read, too.
  await patch(database, "from Users where id() = 'users/1' update { this.Age += 1 }");
  index.isPaused = false;
  const { rows, ids } = await query(database, "from Users where City = 'Oslo'");
  expect([...ids].sort()).toEqual(["users/0", "users/1", "users/3"]);
  expect(rows.map(({ Age }) => Age).sort()).toEqual([1, 3, 4]);
  expect((await query(database, "from Users where City = 'Rome'")).ids).toEqual([]);
});

test("a write between two patches is read", async () => {
  const database = await withUsers(3);
  const index = database.queries.indexes.byName(indexName);
  if (index === undefined) throw new Error("the query made it");
  index.isPaused = true;
  const before = mapAttempts(database);
  await patch(database, "from Users where id() in ('users/0', 'users/1') update { this.Age += 1 }");
  await putAll(database, "Users", { "users/5": { City: "Bern", Age: 5 } });
  await patch(database, "from Users where id() = 'users/2' update { this.Age += 1 }");
  await putAll(database, "Users", { "users/1": { City: "Bern", Age: 9 } });
  index.isPaused = false;
  const { ids } = await query(database, "from Users where City = 'Bern'");
  expect([...ids].sort()).toEqual(["users/1", "users/2", "users/5"]);
  expect(mapAttempts(database)).toBe(before + 2);
});

type Step =
  | { readonly kind: "put"; readonly id: number; readonly city: string }
  | { readonly kind: "delete"; readonly id: number }
  | { readonly kind: "patch"; readonly text: string }
  | { readonly kind: "query"; readonly city: string };

const id = fc.integer({ min: 0, max: 9 });
const city = fc.constantFrom(...cities);
const anyStep: fc.Arbitrary<{ readonly step: Step; readonly isAwaited: boolean }> = fc.record({
  isAwaited: fc.boolean(),
  step: fc.oneof(
    fc.record({ kind: fc.constant("put" as const), id, city }),
    fc.record({ kind: fc.constant("delete" as const), id }),
    fc.record({
      kind: fc.constant("patch" as const),
      text: fc.constantFrom(
        "from Users update { this.Age += 1 }",
        "from Users where City = 'Rome' update { this.Age += 1 }",
        "from Users where City = 'Oslo' update { this.City = 'Bern' }",
        "from Users update { if (this.Age > 3) this.City = 'Rome'; }",
        "from Users update { this.Age += 1; this.Note = 'new'; }",
        "from @all_docs update { this.Age = 1 }",
      ),
    }),
    fc.record({ kind: fc.constant("query" as const), city }),
  ),
});

test("an index matches its documents under concurrent puts, patches and deletions", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(anyStep, { maxLength: 25 }), async (steps) => {
      const database = await withUsers(6);
      const running: Promise<unknown>[] = [];
      for (const { step, isAwaited } of steps) {
        const done =
          step.kind === "put"
            ? putAll(database, "Users", { [`users/${step.id}`]: { City: step.city, Age: step.id } })
            : step.kind === "delete"
              ? database.delete(`users/${step.id}`)
              : step.kind === "patch"
                ? patch(database, step.text)
                : query(database, `from Users where City = '${step.city}'`);
        if (isAwaited) await done;
        else running.push(done);
      }
      await Promise.all(running);
      const all = (await query(database, "from Users")).rows;
      for (const name of cities) {
        const expected = all.filter(({ City }) => City === name).map(({ Age }) => Age);
        const { rows, outcome } = await query(database, `from Users where City = '${name}'`);
        expect(rows.map(({ Age }) => Age).sort()).toEqual(expected.sort());
        expect(outcome?.isStale).toBe(false);
      }
      await closeDatabases();
    }),
    { numRuns: 60 },
  );
});
