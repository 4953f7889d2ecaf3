/**
 * Queries of a program: rows are streamed with back-pressure, and a query ends with the loop over
 * it.
 */
import { afterEach, expect, test, vi } from "vitest";
import { rowsWaitingMax } from "../../engine/base/limits.ts";
import type { Database as OpenDatabase, Queries } from "../../engine/engine.ts";
import { EmbeddedQuery } from "../../library/embedded-query.ts";
import { closeDatabases, openDatabase } from "../support/open-database.ts";

afterEach(closeDatabases);

const count = 4 * rowsWaitingMax;

/** A database of `count` users, and a counter of the rows that a query has delivered. */
async function openUsers() {
  const database = await openDatabase();
  const puts = Array.from({ length: count }, (_, n) =>
    database.put(`users/${n}`, {
      N: n,
      Next: "users/5",
      "@metadata": { "@collection": "Users" },
    }),
  );
  await Promise.all(puts);
  const seen = { rows: 0, hasEnded: false };
  const run: Queries["run"] = async (text, options, sink) => {
    try {
      const add = (row: Buffer) => {
        seen.rows++;
        return sink.add(row);
      };
      return await database.query(text, options, { add });
    } finally {
      seen.hasEnded = true;
    }
  };
  const watched = { queries: { run } } as OpenDatabase;
  const send = (rql: string, parameters = {}, options = {}) =>
    new EmbeddedQuery<{ N: number }>(async () => watched, rql, parameters, options);
  return { seen, send };
}

test("returns each row once, in every way of reading", async () => {
  const { send } = await openUsers();
  const query = send("from Users where N >= $min", { min: 10 });
  const wanted = Array.from({ length: count - 10 }, (_, n) => n + 10);
  const ordered = (rows: { N: number }[]) => rows.map(({ N }) => N).sort((a, b) => a - b);
  expect(ordered(await query.toArray())).toEqual(wanted);
  const looped: { N: number }[] = [];
  for await (const row of query) looped.push(row);
  expect(ordered(looped)).toEqual(wanted);
  const texts: { N: number }[] = [];
  for await (const text of query.texts()) texts.push(JSON.parse(text) as { N: number });
  expect(ordered(texts)).toEqual(wanted);
});

test("the query waits for a busy loop", async () => {
  const { seen, send } = await openUsers();
  const rows = send("from Users")[Symbol.asyncIterator]();
  await rows.next();
  await vi.waitFor(() => expect(seen.rows).toBeGreaterThanOrEqual(rowsWaitingMax));
  // Independent of the loop's duration: only the loop lets the query continue.
  for (let tick = 0; tick < 100; tick++) await new Promise((resolve) => setImmediate(resolve));
  expect(seen.rows).toBeLessThanOrEqual(1 + rowsWaitingMax);
  expect(seen.hasEnded).toBe(false);
  let read = 1;
  while ((await rows.next()).done !== true) read++;
  expect(read).toBe(count);
  expect(seen).toEqual({ rows: count, hasEnded: true });
});

test("leaving the loop ends the query", async () => {
  const { seen, send } = await openUsers();
  for await (const row of send("from Users")) {
    expect(row).toHaveProperty("N");
    break;
  }
  expect(seen.hasEnded).toBe(true);
  // The row that was read, and the rows in the queue when the loop was left.
  expect(seen.rows).toBeLessThanOrEqual(1 + rowsWaitingMax);
  expect(await send("from Users order by N as long desc").first()).toMatchObject({ N: count - 1 });
  expect(await send("from Users where N < 0").first()).toBeNull();
});

test("a signal aborts the query with its reason", async () => {
  const { send } = await openUsers();
  const controller = new AbortController();
  const { signal } = controller;
  const reason = new Error("enough");
  let read = 0;
  const loop = async () => {
    for await (const _ of send("from Users", {}, { signal })) {
      read++;
      controller.abort(reason);
    }
  };
  await expect(loop()).rejects.toBe(reason);
  expect(read).toBeLessThan(count);
  await expect(send("from Users", {}, { signal }).toArray()).rejects.toBe(reason);
});

test("an error in the query is thrown where its rows are read", async () => {
  const { send } = await openUsers();
  const wrong = send("from Users where");
  await expect(wrong.toArray()).rejects.toMatchObject({ code: "query-syntax" });
  await expect(wrong.first()).rejects.toMatchObject({ code: "query-syntax" });
  const missing = send("from Users where N = $n", { n: undefined });
  await expect(missing.toArray()).rejects.toMatchObject({ name: "EngineError" });
});

test("a result has the totals and the included documents", async () => {
  const { send } = await openUsers();
  const result = await send("from Users where N = 3 or N = 4 include Next limit 1").result();
  expect(result).toMatchObject({ totalResults: 2, isStale: false, indexName: "Auto/Users/ByN" });
  expect(result.rows).toHaveLength(1);
  expect(result.includes).toMatchObject({ "users/5": { N: 5 } });
});
