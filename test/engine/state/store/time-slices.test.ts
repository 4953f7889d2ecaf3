/** Transactions over several event-loop ticks, and records that are in memory for one tick only. */
import { setImmediate, setTimeout as sleep } from "node:timers/promises";
import { expect, test, vi } from "vitest";
import type { OpenDatabase } from "../../../../engine/api/database/open-database.ts";
import {
  type BorrowedBytes,
  type OwnedBytes,
  ownedCopy,
} from "../../../../engine/base/memory/borrowed-bytes.ts";
import { verifyRecord } from "../../../../engine/base/record.ts";
import { executeBatch } from "../../../../engine/batches/batch.ts";
import { parseBatch } from "../../../../engine/batches/batch-parser.ts";
import { FetchedRecords } from "../../../../engine/state/store/fetched-records.ts";
import { newPlace } from "../../../../engine/storage/segments/blocks.ts";
import { ImagePool } from "../../../../engine/storage/segments/image-pool.ts";
import { SegmentCache } from "../../../../engine/storage/segments/segment-cache.ts";
import { openTestDatabase } from "../../../support/open-test-database.ts";

/** Only the newest segment is in memory, so nearly every record must be read from disk. */
function coldLog(cacheBytes = 1) {
  const cache = new SegmentCache(cacheBytes, new ImagePool(true), 1024);
  return { log: { segmentBytesMin: 4096, segmentBytesMax: 4096, cache } };
}

async function putDocuments(database: OpenDatabase, count: number): Promise<void> {
  for (let n = 0; n < count; n++) {
    const text = `{"n":${n},"text":"${String(n).repeat(300)}","@metadata":{"@collection":"Things"}}`;
    await database.put(`things/${n}`, text);
  }
}

/** Counts the starts of transactions. */
function transactionsOf(database: OpenDatabase): () => number {
  const spy = vi.spyOn(database.state, "beginTransaction");
  return () => spy.mock.calls.length;
}

async function batch(database: OpenDatabase, commands: readonly object[]): Promise<unknown[]> {
  const parsed = await parseBatch(Buffer.from(JSON.stringify({ Commands: commands })));
  return JSON.parse(`[${await executeBatch(database, parsed)}]`) as unknown[];
}

test("abandoned work cleans up", async () => {
  const database = await openTestDatabase({ isInMemory: true });
  let isCleanedUp = false;
  const work = database.writeInSlices(function* endless() {
    try {
      for (;;) yield;
    } finally {
      isCleanedUp = true;
    }
  });
  const refused = expect(work).rejects.toThrow("is closed");
  await setImmediate();
  await database.abandon();
  await refused;
  expect(isCleanedUp).toBe(true);
});

test("failed work cleans up once, and its own error is reported", async () => {
  const database = await openTestDatabase({ isInMemory: true });
  const steps: string[] = [];
  const work = database.writeInSlices(function* failing() {
    try {
      yield;
      throw new Error("the work has failed");
    } finally {
      steps.push("cleaned up");
    }
  });
  await expect(work).rejects.toThrow("the work has failed");
  expect(steps).toEqual(["cleaned up"]);
  await database.put("a", "{}");
});

test("borrowed bytes are invalid in the next tick, and bytes that were read or copied stay valid", async () => {
  const database = await openTestDatabase(coldLog());
  await database.put("a", '{"a":1}');
  const { documents, log } = database.state;
  const document = database.find("a");
  const [position, length] = [documents.positionOf(document), documents.lengthOf(document)];
  const read = await log.read(position, length);
  const peeked = log.peek(position, length);
  if (peeked === null) throw new Error("the newest record is in memory");
  expect(read.equals(peeked)).toBe(true);
  const copy = ownedCopy(peeked);
  await setImmediate();
  expect(peeked.every((byte) => byte === 0xdb)).toBe(true);
  expect(copy.equals(read)).toBe(true);
  expect(copy.includes('{"a":1}')).toBe(true);
});

test("only copied bytes can be retained for a transaction", () => {
  const fetched = new FetchedRecords(null);
  const bytes = newPlace().bytes;
  // @ts-expect-error: it is lent until the next turn
  fetched.set(1, bytes);
  // @ts-expect-error: and so is a part of it
  fetched.set(2, bytes.subarray(1));
  fetched.set(3, ownedCopy(bytes));
  fetched.set(4, Buffer.from("own"));
  const own = (one: OwnedBytes): OwnedBytes => one;
  const short = (one: BorrowedBytes): Buffer => one;
  expect(own(ownedCopy(short(bytes))).length).toBe(0);
});

test("a record read concurrently by others is not borrowed by a time-sliced transaction", async () => {
  const cacheBytes = 16 * 1024;
  const database = await openTestDatabase(coldLog(cacheBytes));
  await putDocuments(database, 120);
  // Between the miss and the read, the record enters the cache and is evicted again.
  const readAll = async () => {
    for (let n = 0; n < 120; n++) await database.getText(`things/${n}`);
  };
  const ids = await Promise.all([
    database.writeInSlices(function* read(transaction) {
      const found: string[] = [];
      for (let n = 0; n < 60; n++) {
        const { bytes, start } = transaction.recordOf(transaction.find(`things/${n}`));
        found.push(bytes.toString("latin1", start, start + 400));
        yield;
      }
      return found;
    }),
    readAll(),
    readAll(),
  ]);
  for (let n = 0; n < 60; n++) expect(ids[0][n]).toContain(`{"n":${n},"text":"${n}${n}`);
});

test("a large record held by a reader stays valid after its eviction from the cache", async () => {
  const database = await openTestDatabase(coldLog(2 * 1024 * 1024));
  const text = `{"text":"${"x".repeat(600_000)}"}`;
  const { document } = await database.put("large", Buffer.from(text));
  const { documents } = database.state;
  const [position, length] = [documents.positionOf(document), documents.lengthOf(document)];
  const view = database.view();
  const lentOnly = newPlace();
  expect(database.state.log.place(position, length, lentOnly)).toBe(true);
  const held = await database.holdRecord(document, position, length);
  expect(held.bytes.includes(text.slice(0, -1))).toBe(true);
  const isResident = () => database.state.log.place(position, length, newPlace());
  for (let n = 0; n < 100 && isResident(); n++) {
    await database.put(`other/${n}`, Buffer.from(text));
    await sleep(5);
  }
  expect(isResident()).toBe(false);
  expect(held.bytes.includes(text.slice(0, -1))).toBe(true);
  expect(verifyRecord(held.bytes, 0, length)).toBe(true);
  held.release();
  held.release();
  // A view pins the segment, not its memory.
  const { bytes, start } = lentOnly;
  for (let n = 0; n < 100 && verifyRecord(bytes, start, length); n++) await setImmediate();
  expect(verifyRecord(bytes, start, length)).toBe(false);
  view.release();
});

test("a batch over records on disk runs once, at most twice", async () => {
  const database = await openTestDatabase(coldLog());
  await putDocuments(database, 80);
  const started = transactionsOf(database);
  const patch = { Script: "this.n += 1000", Values: {} };
  const commands = Array.from({ length: 60 }, (_, n) => ({
    Type: "PATCH",
    Id: `things/${n}`,
    Patch: patch,
  }));
  const rows = await batch(database, [
    ...commands,
    { Type: "DELETE", Id: "things/60" },
    { Type: "BatchPATCH", Ids: [{ Id: "things/61" }, { Id: "things/62" }], Patch: patch },
  ]);
  expect(rows.length).toBe(62);
  expect(started()).toBeLessThanOrEqual(2);
  for (let n = 0; n < 63; n++) {
    if (n === 60) expect(database.find("things/60")).toBe(-1);
    else expect(await database.get(`things/${n}`)).toMatchObject({ n: n + 1000 });
  }
});

test("a batch runs again for records that its ids do not show", async () => {
  const database = await openTestDatabase(coldLog());
  await putDocuments(database, 40);
  const started = transactionsOf(database);
  const Script = "this.other = load(args.id).text";
  await batch(database, [
    { Type: "PATCH", Id: "things/0", Patch: { Script, Values: { id: "things/1" } } },
    { Type: "PATCH", Id: "things/2", Patch: { Script, Values: { id: "things/3" } } },
    { Type: "PATCH", Id: "things/none", Patch: { Script, Values: {} } },
  ]);
  expect(started()).toBe(3);
  expect(await database.get("things/2")).toMatchObject({ other: "3".repeat(300) });
});

test("scripts and rows of a time-sliced batch read no memory of an earlier tick", async () => {
  const database = await openTestDatabase(coldLog(8 * 1024));
  await putDocuments(database, 60);
  const commands: object[] = [];
  for (let n = 0; n < 40; n++) {
    const Id = `things/${n}`;
    // Long enough for a tick of its own, over its own record, another's, and one written by this
    // batch.
    const Script = `
      const other = load(args.other);
      let sum = 0;
      for (let i = 0; i < 4000; i++) sum += i % 7;
      put("made/" + args.n, { from: other.text, sum, "@metadata": { "@collection": "Made" } });
      this.other = other.text; this.made = load("made/" + args.n).from; this.sum = sum;`;
    const Values = { other: `things/${n + 10}`, n };
    commands.push({ Type: "PATCH", Id, Patch: { Script, Values } });
    commands.push({
      Type: "Counters",
      Id,
      Counters: { DocumentId: Id, Operations: [{ Type: "Increment", CounterName: "c", Delta: n }] },
    });
    commands.push({
      Type: "TimeSeries",
      Id,
      TimeSeries: { Name: "s", Appends: [{ Timestamp: "2026-01-01T00:00:00.000Z", Values: [n] }] },
    });
  }
  const rows = await batch(database, commands);
  expect(rows.length).toBe(120);
  for (let n = 0; n < 40; n++) {
    expect(await database.get(`things/${n}`)).toMatchObject({
      n,
      text: String(n).repeat(300),
      other: String(n + 10).repeat(300),
      made: String(n + 10).repeat(300),
      "@metadata": { "@counters": ["c"], "@timeseries": ["s"] },
    });
  }
});
