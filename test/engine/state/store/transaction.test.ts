/** A transaction's view of its own changes, and the changes it submits. */
import { describe, expect, test } from "vitest";
import {
  RecordNotResident,
  Scratch,
  type Transaction,
} from "../../../../engine/state/store/transaction.ts";
import { deleteDocument, putText } from "../../../../engine/writes/documents.ts";
import { openTestDatabase } from "../../../support/open-test-database.ts";

const bodyOf = (transaction: Transaction, id: string) => {
  const { bytes, start } = transaction.recordOf(transaction.find(id));
  return bytes.toString("utf8", start).match(/\{"n":\d\}/)?.[0];
};

describe("a transaction", () => {
  test("sees its own writes and deletions", async () => {
    const database = await openTestDatabase();
    await database.put("old", { n: 1 });
    await database.write((transaction) => {
      expect(transaction.isEmpty).toBe(true);
      putText(transaction, "new", '{"n":2}');
      expect(transaction.isEmpty).toBe(false);
      expect(bodyOf(transaction, "new")).toBe('{"n":2}');
      putText(transaction, "old", '{"n":3}');
      expect(bodyOf(transaction, "old")).toBe('{"n":3}');
      deleteDocument(transaction, "old");
      expect(transaction.find("old")).toBe(-1);
    });
    expect(await database.get("old")).toBeNull();
    expect(await database.get("new")).toMatchObject({ n: 2 });
  });

  test("assigns increasing, unique etags", async () => {
    const database = await openTestDatabase();
    const etags = await database.write((transaction) => [
      putText(transaction, "a", "{}").etag,
      transaction.nextEtag(),
      putText(transaction, "b", "{}").etag,
    ]);
    expect(etags).toEqual([...new Set(etags)].sort((left, right) => left - right));
    const later = await database.write((transaction) => putText(transaction, "c", "{}").etag);
    expect(later).toBeGreaterThan(etags[2] ?? 0);
  });

  test("writes nothing if it is discarded", async () => {
    const database = await openTestDatabase();
    const { committedEtag } = database.state;
    await database.write((transaction) => {
      putText(transaction, "a", "{}");
      transaction.discard();
    });
    expect(database.find("a")).toBe(-1);
    expect(database.state.committedEtag).toBe(committedEtag);
  });

  test("sees its own entries, also by prefix", async () => {
    const database = await openTestDatabase();
    const { values } = database.state.keyspaces;
    await database.write((transaction) => transaction.putEntry(values, "x/1", 1));
    const seen = await database.write((transaction) => {
      transaction.putEntry(values, "x/2", 2);
      transaction.putEntry(values, "x/1", undefined);
      expect(transaction.entry(values, "x/1")).toBeUndefined();
      expect(values.get("x/1")).toBe(1);
      return transaction.entriesWithPrefix(values, "x/");
    });
    expect(seen).toEqual([["x/2", 2]]);
    expect([...values.withPrefix("x/")]).toEqual([["x/2", 2]]);
  });
});

test("reports a record that is not in memory by its position", () => {
  const missing = new RecordNotResident(7, 4096, 100);
  expect(missing).toMatchObject({ document: 7, position: 4096, length: 100 });
});

test("the scratch buffer is empty at the start of each transaction", async () => {
  const scratch = new Scratch();
  expect(scratch.length).toBe(0);
  scratch.trim();
  expect(scratch.length).toBe(0);
  expect(scratch.isTight).toBe(false);
});

test("after submitting a payload, the scratch buffer has its own, empty memory", () => {
  const scratch = new Scratch();
  const own = scratch.bytes;
  for (let round = 0; round < 3; round++) {
    const given = Buffer.alloc(256);
    scratch.give(given);
    expect(scratch.bytes).toBe(given);
    expect(scratch.length).toBe(256);
    scratch.reset();
    expect(scratch.bytes).toBe(own);
    expect(scratch.length).toBe(0);
  }
});
