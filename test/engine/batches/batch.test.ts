import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { type OpenFolder, openFolder } from "../../../engine/api/database/open-folder.ts";

import { executeBatch } from "../../../engine/batches/batch.ts";
import { parseBatch } from "../../../engine/batches/batch-parser.ts";

const folder = mkdtempSync(join(tmpdir(), "jackdaw-batch-"));
let engine: OpenFolder | undefined;

async function open() {
  engine = await openFolder({ folder });
  return (await engine.databases.find("db")) ?? (await engine.databases.create("db", {}));
}

async function reopen() {
  await engine?.close();
  return open();
}

afterEach(async () => {
  await engine?.close();
  engine = undefined;
  rmSync(folder, { recursive: true, force: true });
});

const batchOf = (...Commands: object[]) => parseBatch(Buffer.from(JSON.stringify({ Commands })));

describe("executeBatch", () => {
  test("deletes by prefix the undurable documents of an earlier batch", async () => {
    const database = await open();
    await executeBatch(database, await batchOf({ Type: "PUT", Id: "a/0", Document: {} }));
    const stored = executeBatch(
      database,
      await batchOf(
        { Type: "PUT", Id: "A/1", Document: {} },
        { Type: "PUT", Id: "b/1", Document: {} },
      ),
    );
    const deleted = executeBatch(
      database,
      await batchOf({ Type: "DELETE", Id: "a/", IdPrefixed: true }),
    );
    await Promise.all([stored, deleted]);
    expect([database.find("a/0"), database.find("a/1")]).toEqual([-1, -1]);
    expect(database.find("b/1")).toBeGreaterThanOrEqual(0);
    const again = await reopen();
    expect([again.find("a/0"), again.find("a/1")]).toEqual([-1, -1]);
    again.checkInvariants();
  });

  test("deletes by prefix at most the permitted number of commands, or none", async () => {
    const database = await open();
    for (let n = 0; n < 6; n++) {
      await executeBatch(database, await batchOf({ Type: "PUT", Id: `a/${n}`, Document: {} }));
    }
    const deletions = (prefixes: readonly string[], commandsMax: number) => {
      const Commands = prefixes.map((Id) => ({ Type: "DELETE", Id, IdPrefixed: true }));
      return parseBatch(Buffer.from(JSON.stringify({ Commands })), commandsMax);
    };
    for (const prefixes of [["A/"], ["a/1", "a/2", "a/"], ["a/", "b/", "a/"]]) {
      const refused = executeBatch(database, await deletions(prefixes, 5));
      await expect(refused).rejects.toMatchObject({ code: "too-large" });
      await expect(refused).rejects.toThrow("Delete them by query");
    }
    expect(database.find("a/1")).toBeGreaterThanOrEqual(0);
    await executeBatch(database, await deletions(["a/1", "A/1", "a/"], 6));
    expect(database.state.documents.documentCount).toBe(0);
  });

  test("makes commands of all types durable together", async () => {
    const database = await open();
    const lease = await database.blobs.store([Buffer.from("content")]);
    const Operations = [{ Type: "Increment", CounterName: "n", Delta: 2 }];
    await executeBatch(
      database,
      await batchOf(
        { Type: "PUT", Id: "d", Document: { a: 1 } },
        { Type: "AttachmentPUT", Id: "d", Name: "f", ContentType: "t" },
        { Type: "Counters", Id: "d", Counters: { DocumentId: "d", Operations } },
        { Type: "PATCH", Id: "d", Patch: { Script: "this.b = 2" } },
        {
          Type: "JsonPatch",
          Id: "d",
          JsonPatch: { Operations: [{ op: "add", path: "/c", value: 3 }] },
        },
      ),
      [lease],
    );
    lease.release();
    const before = await database.getText("d");
    const again = await reopen();
    expect(await again.getText("d")).toEqual(before);
    expect(await again.get("d")).toMatchObject({
      a: 1,
      b: 2,
      c: 3,
      "@metadata": { "@attachments": [{ Name: "f", Size: 7 }], "@counters": ["n"] },
    });
    expect(again.blobs.count).toBe(1);
    expect(again.state.keyspaces.counterOwners.count).toBe(1);
    again.checkInvariants();
  });
});

/** Commands that take several event-loop ticks. */
function longBatch(count: number): Promise<Awaited<ReturnType<typeof parseBatch>>> {
  const commands = Array.from({ length: count }, (_, n) => [
    { Type: "PUT", Id: `long/${n}`, Document: { N: n, Text: "x".repeat(300) } },
    {
      Type: "Counters",
      Id: `long/${n}`,
      Counters: {
        DocumentId: `long/${n}`,
        Operations: [{ Type: "Increment", CounterName: "n", Delta: n }],
      },
    },
  ]).flat();
  return batchOf(...commands);
}

const tick = () => new Promise((resolve) => setImmediate(resolve));

describe("a time-sliced batch", () => {
  test("is visible only as a whole, to readers and to concurrent writers", async () => {
    const database = await open();
    await executeBatch(database, await batchOf({ Type: "PUT", Id: "a", Document: { N: 0 } }));
    const batch = await longBatch(5_000);
    let isDone = false;
    const long = executeBatch(database, batch).then(() => {
      isDone = true;
    });
    const seen: string[] = [];
    let turns = 0;
    const others: Promise<unknown>[] = [];
    while (!isDone) {
      await tick();
      turns++;
      const count = database.state.documents.documentCount;
      if (!seen.includes(`${count}`)) seen.push(`${count}`);
      if (turns > 3) continue;
      // Other writes are not executed in between.
      const script = "this.N = (load('long/4999') || { N: -1 }).N";
      others.push(
        executeBatch(
          database,
          await batchOf({ Type: "PATCH", Id: "a", Patch: { Script: script } }),
        ),
      );
    }
    await Promise.all([long, ...others]);
    expect(turns).toBeGreaterThan(5);
    expect(seen).toEqual(["1", "5001"]);
    expect((await database.getText("a"))?.toString()).toContain('"N":4999');
    database.checkInvariants();
    const again = await reopen();
    expect(again.state.documents.documentCount).toBe(5001);
    expect((await again.getText("long/4999"))?.toString()).toContain('"@counters":["n"]');
    again.checkInvariants();
  });

  test("has no effect if its last command fails", async () => {
    const database = await open();
    const { commands } = await longBatch(5_000);
    const failing = await batchOf({ Type: "DELETE", Id: "none", ChangeVector: "A:1-x" });
    const all = {
      commands: [...commands, ...failing.commands],
      transactionMode: undefined,
      commandsMax: 25_000,
    };
    const long = executeBatch(database, all);
    await tick();
    const other = executeBatch(database, await batchOf({ Type: "PUT", Id: "b", Document: {} }));
    await expect(long).rejects.toThrow();
    await other;
    expect(database.state.documents.documentCount).toBe(1);
    database.checkInvariants();
    const again = await reopen();
    expect(again.state.documents.documentCount).toBe(1);
    again.checkInvariants();
  });

  test("is rejected without effect if its database closes", async () => {
    const database = await open();
    const long = executeBatch(database, await longBatch(5_000));
    const refused = expect(long).rejects.toThrow(/closed/);
    await tick();
    await tick();
    const again = await reopen();
    await refused;
    expect(again.state.documents.documentCount).toBe(0);
    again.checkInvariants();
  });
});
