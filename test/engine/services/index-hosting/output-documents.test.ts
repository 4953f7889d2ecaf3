/**
 * Reduced objects as documents: kept in step with the results, found after a restart, and rejected
 * if they would feed themselves.
 */
import { afterEach, describe, expect, it } from "vitest";
import type { OpenDatabase } from "../../../../engine/api/database/open-database.ts";
import { referenceId } from "../../../../engine/indexing/reduce/reduce-output.ts";
import { putParsed } from "../../../../engine/writes/documents.ts";
import {
  closeDatabases,
  openAfterCrash,
  openDatabase,
  putAll,
  query,
  temporaryFolder,
} from "../../../support/open-database.ts";
import { SimulatedDatabase } from "../../../support/simulated-database.ts";
import { SimulatedFileSystem } from "../../../support/simulated-file-system.ts";

afterEach(closeDatabases);

const definition = {
  Name: "Totals",
  Maps: ["map('Orders', o => ({ Company: o.Company, At: o.At, Total: o.Total }))"],
  Reduce:
    "groupBy(r => ({ Company: r.Company, At: r.At })).aggregate(g => ({ Company: g.key.Company, At: g.key.At, " +
    "Total: g.values.reduce((sum, one) => sum + one.Total, 0) }))",
  OutputReduceToCollection: "Daily",
};
const at = (day: number) => `2020-01-0${day}T10:00:00.0000000`;
const orders = {
  "orders/1": { Company: "A", At: at(1), Total: 10 },
  "orders/2": { Company: "A", At: at(1), Total: 5.5 },
  "orders/3": { Company: "B", At: at(2), Total: 7 },
};

async function deploy(database: OpenDatabase, more: Record<string, unknown> = {}): Promise<void> {
  await database.queries.administration.deploy([{ ...definition, ...more }], true);
  await settle(database);
}

async function settle(database: OpenDatabase): Promise<void> {
  const { indexes } = database.queries;
  for (const { name } of indexes.all()) await indexes.waitForNonStale(name, 20_000);
}

type Row = Record<string, unknown> & { "@metadata": Record<string, unknown> };

async function rowsOf(database: OpenDatabase, collection: string): Promise<Row[]> {
  return (await query(database, `from '${collection}'`)).rows as unknown as Row[];
}

async function totals(database: OpenDatabase, collection = "Daily"): Promise<unknown[]> {
  const rows = await rowsOf(database, collection);
  return rows.map(({ Company, Total }) => [Company, Total]).sort();
}

async function withOrders(folder?: string): Promise<OpenDatabase> {
  const database = await openDatabase(folder);
  await putAll(database, "Orders", orders);
  return database;
}

describe("documents of reduced objects", () => {
  it("have doubles for all numbers from scripts, and no other change", async () => {
    const database = await openDatabase();
    const order = { Company: '5 "6": 7', At: 8, Total: -9 };
    await putAll(database, "Orders", { "orders/1": order, "orders/2": { ...order, Total: 9.5 } });
    await deploy(database);
    const rows: string[] = [];
    await database.query(
      "from Daily select Company, At, Total",
      {},
      {
        add(row) {
          rows.push(row.toString());
          return null;
        },
      },
    );
    expect(rows.join()).toContain(String.raw`{"Company":"5 \"6\": 7","At":8.0,"Total":0.5,`);
  });

  it("wait for free disk space without delaying other indexes", async () => {
    const files = new SimulatedFileSystem();
    const { database, clock } = await SimulatedDatabase.open(files, undefined, {
      cacheBytes: 1 << 20,
      segmentBytesMax: 1 << 12,
    });
    await deploy(database);
    const maps = ["map('Orders', o => ({ Company: o.Company }))"];
    await database.queries.administration.deploy([{ Name: "Z", Maps: maps }], true);
    await settle(database);
    const { indexes, administration } = database.queries;
    administration.setPaused(true);
    const companies = "ABCDE".split("").map((letter) => letter.repeat(5_000));
    for (const [i, Company] of companies.entries()) {
      const order = { Company, At: at(1), Total: i, "@metadata": { "@collection": "Orders" } };
      await database.put(`orders/${i}`, order);
    }
    files.capacityBytes = files.usedBytes();
    administration.setPaused(false);
    for (let tries = 1; tries <= 2; tries++) {
      // Only reading the clock advances it, so a wait for one second would never end.
      for (let tick = 0; tick < 300; tick++) await new Promise(setImmediate);
      expect(indexes.byName("Z")?.isStale).toBe(false);
      expect(indexes.byName("Totals")?.isStale).toBe(true);
      expect(await totals(database)).toEqual([]);
      clock.advance(1_000);
    }
    files.capacityBytes = Number.POSITIVE_INFINITY;
    for (let tick = 0; indexes.byName("Totals")?.isStale === true && tick < 1_000; tick++) {
      clock.advance(1_000);
      await new Promise(setImmediate);
    }
    expect((await totals(database)).length).toBe(companies.length);
    await database.close();
  });

  it("are created, changed and deleted with the objects", async () => {
    const database = await withOrders();
    await deploy(database);
    const [first] = await rowsOf(database, "Daily");
    expect(first?.["@metadata"]).toMatchObject({
      "@collection": "Daily",
      "@flags": "Artificial, FromIndex",
      "@id": expect.stringMatching(/^Daily\/\d+\/\d+$/),
    });
    expect(await totals(database)).toEqual([
      ["A", 15.5],
      ["B", 7],
    ]);
    await putAll(database, "Orders", { "orders/4": { Company: "B", At: at(2), Total: 1 } });
    await settle(database);
    expect(await totals(database)).toEqual([
      ["A", 15.5],
      ["B", 8],
    ]);
    await database.delete("orders/3");
    await database.delete("orders/4");
    await settle(database);
    expect(await totals(database)).toEqual([["A", 15.5]]);
  });

  it("are as many as there are keys, stored in several transactions", async () => {
    const database = await openDatabase();
    await database.write((transaction) => {
      for (let i = 0; i < 2500; i++) {
        const body = { Company: `c${i}`, At: at(1), Total: i };
        const text = JSON.stringify({ ...body, "@metadata": { "@collection": "Orders" } });
        putParsed(transaction, `orders/${i}`, transaction.state.parseText(text));
      }
    });
    await deploy(database);
    expect(await rowsOf(database, "Daily")).toHaveLength(2500);
  });

  it("are not rewritten after a restart, and follow earlier changes", async () => {
    const folder = temporaryFolder();
    const database = await withOrders(folder);
    await deploy(database);
    const before = await rowsOf(database, "Daily");
    database.queries.administration.setPaused(true);
    await database.delete("orders/3");
    const again = await openAfterCrash(folder);
    await settle(again);
    const after = await rowsOf(again, "Daily");
    expect(after.map((row) => row["@metadata"])).toEqual([before[0]?.["@metadata"]]);
  });

  it("are replaced by the documents of a new definition, in any collection", async () => {
    const database = await withOrders();
    await deploy(database);
    const [old] = await rowsOf(database, "Daily");
    const doubled = definition.Maps[0]?.replace("o.Total", "2 * o.Total");
    await deploy(database, { Maps: [doubled] });
    expect(await totals(database)).toEqual([
      ["A", 31],
      ["B", 14],
    ]);
    const ids = (await rowsOf(database, "Daily")).map((row) => row["@metadata"]["@id"]);
    expect(ids).not.toContain(old?.["@metadata"]["@id"]);
    await deploy(database, { OutputReduceToCollection: "Other" });
    expect(await totals(database)).toEqual([]);
    expect(await totals(database, "Other")).toEqual([
      ["A", 15.5],
      ["B", 7],
    ]);
  });

  it("stay when their index is deleted, and then block another index", async () => {
    const database = await withOrders();
    await deploy(database);
    await database.queries.administration.delete("Totals");
    expect(await totals(database)).toHaveLength(2);
    await expect(deploy(database)).rejects.toMatchObject({
      code: "index-output",
      message: expect.stringContaining("This collection currently has 2 documents"),
    });
  });

  it("can be mapped by another index", async () => {
    const database = await withOrders();
    await deploy(database);
    await database.queries.administration.deploy(
      [{ Name: "ByTotal", Maps: ["map('Daily', d => ({ Total: d.Total }))"] }],
      true,
    );
    await settle(database);
    const { rows } = await query(database, "from index 'ByTotal' where Total > 10");
    expect(rows).toMatchObject([{ Company: "A" }]);
  });
});

describe("documents that refer to them", () => {
  it("have ids made of fields, with dates formatted by the pattern", async () => {
    const database = await withOrders();
    await putAll(database, "Orders", { "orders/4": { Company: "C", At: at(1), Total: 1 } });
    await deploy(database, {
      PatternForOutputReduceToCollectionReferences: "daily/{At:yyyy-MM-dd}",
    });
    const outputs = await rowsOf(database, "Daily");
    const references = await rowsOf(database, "Daily/References");
    const idsOf = (day: number) =>
      outputs.filter(({ At }) => At === at(day)).map((row) => row["@metadata"]["@id"]);
    const listed = new Map(
      references.map((row) => [row["@metadata"]["@id"], row["ReduceOutputs"]]),
    );
    expect([...listed.keys()].sort()).toEqual(["daily/2020-01-01", "daily/2020-01-02"]);
    expect(new Set(listed.get("daily/2020-01-01") as string[])).toEqual(new Set(idsOf(1)));
    await database.delete("orders/3");
    await database.delete("orders/4");
    await settle(database);
    expect(await rowsOf(database, "Daily/References")).toMatchObject([
      { ReduceOutputs: [expect.any(String)], "@metadata": { "@id": "daily/2020-01-01" } },
    ]);
  });

  it("belong to the named collection, and change with the pattern", async () => {
    const database = await withOrders();
    const more = { PatternReferencesCollectionName: "Refs" };
    await deploy(database, {
      ...more,
      PatternForOutputReduceToCollectionReferences: "of/{Company}",
    });
    await deploy(database, {
      ...more,
      PatternForOutputReduceToCollectionReferences: "by/{Company}",
    });
    const ids = (await rowsOf(database, "Refs")).map((row) => row["@metadata"]["@id"]).sort();
    expect(ids).toEqual(["by/A", "by/B"]);
  });

  it("do not replace a user's document under such an id", async () => {
    const database = await withOrders();
    await putAll(database, "Others", { "of/A": { Mine: true } });
    await deploy(database, { PatternForOutputReduceToCollectionReferences: "of/{Company}" });
    expect(await rowsOf(database, "Others")).toMatchObject([{ Mine: true }]);
    const references = await rowsOf(database, "Daily/References");
    expect(references.map((row) => row["@metadata"]["@id"])).toEqual(["of/B"]);
    for (const id of Object.keys(orders)) await database.delete(id);
    await settle(database);
    expect(await rowsOf(database, "Others")).toHaveLength(1);
    expect(await rowsOf(database, "Daily/References")).toEqual([]);
  });

  it("are not created if the object lacks a field", () => {
    const object = { At: "2020-01-31T09:08:07.0060000", N: 5, Text: "x", No: null };
    expect(referenceId("a/{N}/{Text}", object)).toBe("a/5/x");
    expect(referenceId("{At:yy/M/d H}h{N:yyyy}", object)).toBe("20/1/31 9h5");
    expect(referenceId("a/{No}", object)).toBeNull();
    expect(referenceId("a/{Nope}", object)).toBeNull();
  });
});

describe("a definition is rejected", () => {
  it("that feeds itself, or reads the output of another index", async () => {
    const database = await withOrders();
    const refused = { code: "index-output" };
    await expect(deploy(database, { OutputReduceToCollection: "orders" })).rejects.toMatchObject(
      refused,
    );
    await deploy(database);
    const other = { ...definition, Name: "Other" };
    const { administration } = database.queries;
    await expect(administration.deploy([other], true)).rejects.toMatchObject(refused);
    const loop = {
      ...other,
      Maps: ["map('Daily', d => ({ Company: d.Company, At: d.At, Total: d.Total }))"],
      OutputReduceToCollection: "Orders",
    };
    await expect(administration.deploy([loop], true)).rejects.toMatchObject({
      message: expect.stringContaining("infinite loop"),
    });
    const all = { ...loop, Maps: ["map('@all_docs', d => ({ Company: 1, At: 1, Total: 1 }))"] };
    await expect(administration.deploy([all], true)).rejects.toMatchObject(refused);
  });

  it("with a pattern without fields, with a duplicate field, or with unbalanced braces", async () => {
    const database = await openDatabase();
    for (const pattern of ["daily", "daily/{At", "a}", "{At:yyyy}{At:MM}"]) {
      const more = { PatternForOutputReduceToCollectionReferences: pattern };
      await expect(deploy(database, more)).rejects.toMatchObject({ code: "index-invalid" });
    }
  });
});
