/**
 * The package as used by programs: databases, documents, batches, counters, attachments, dumps,
 * errors.
 */
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { type Engine, EngineError, openEngine, salvageDatabase } from "../../library/library.ts";

interface User {
  Name: string;
  Age?: number;
}

const engines: Engine[] = [];
const folders: string[] = [];

afterEach(async () => {
  for (const engine of engines.splice(0)) await engine.close();
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

async function open(folder?: string): Promise<Engine> {
  const engine = await openEngine(folder === undefined ? {} : { folder });
  engines.push(engine);
  return engine;
}

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "jackdaw-library-"));
  folders.push(folder);
  return folder;
}

async function openShop() {
  return await (await open()).database("shop");
}

describe("an engine", () => {
  test("opens an existing database, and creates a missing one", async () => {
    const folder = newFolder();
    const first = await open(folder);
    await (await first.database("Shop")).put("users/1", { Name: "Ann" });
    expect(first.databaseNames()).toEqual(["Shop"]);
    await first.close();
    const second = await open(folder);
    const shop = await second.database("shop");
    expect(shop.name).toBe("Shop");
    expect(await shop.get<User>("users/1")).toMatchObject({ Name: "Ann" });
  });

  test("returns the same new database to concurrent callers", async () => {
    const engine = await open(newFolder());
    const [one, other] = await Promise.all([engine.database("a"), engine.database("A")]);
    await one.put("x", { N: 1 });
    expect(await other.get("x")).toMatchObject({ N: 1 });
    expect(engine.databaseNames()).toHaveLength(1);
  });

  test("deletes a database with its files; it is missing from then on", async () => {
    const folder = newFolder();
    const engine = await open(folder);
    const shop = await engine.database("shop");
    expect(existsSync(join(folder, "Databases/shop"))).toBe(true);
    expect(await engine.deleteDatabase("shop")).toBe(true);
    expect(await engine.deleteDatabase("shop")).toBe(false);
    expect(existsSync(join(folder, "Databases/shop"))).toBe(false);
    await expect(shop.get("x")).rejects.toMatchObject({ code: "database-missing" });
  });

  test("rejects an invalid name, and a folder in use by another engine", async () => {
    const folder = newFolder();
    const engine = await open(folder);
    await expect(engine.database("a/b")).rejects.toMatchObject({ code: "database-name-invalid" });
    await expect(openEngine({ folder })).rejects.toMatchObject({ code: "database-locked" });
  });

  test("is closed once, for any number of calls", async () => {
    const engine = await open(newFolder());
    const shop = await engine.database("shop");
    await Promise.all([engine.close(), engine.close(), engine[Symbol.asyncDispose]()]);
    await expect(shop.put("x", {})).rejects.toBeInstanceOf(EngineError);
  });

  test("salvages a database that is not open", async () => {
    const folder = newFolder();
    const engine = await open(folder);
    await (await engine.database("shop")).put("users/1", { Name: "Ann" });
    await engine.close();
    const target = join(newFolder(), "Databases");
    const found = await salvageDatabase(join(folder, "Databases/shop"), join(target, "shop"));
    expect(found).toMatchObject({ documents: 1, losses: [], orphans: [] });
  });
});

describe("documents", () => {
  test("are returned as objects with their metadata, and as text with exact numbers", async () => {
    const shop = await openShop();
    const text = '{"N":1.50,"Long":12345678901234567890,"@metadata":{"@collection":"Numbers"}}';
    expect(await shop.put("n/1", text)).toMatchObject({ id: "n/1", collection: "Numbers" });
    expect(await shop.getText("n/1")).toContain('{"N":1.50,"Long":12345678901234567890,');
    expect(await shop.get("n/1")).toMatchObject({ N: 1.5, "@metadata": { "@id": "n/1" } });
    expect(await shop.get("n/2")).toBeNull();
    expect(await shop.getText("n/2")).toBeNull();
  });

  test("can be given a collection in addition to their metadata", async () => {
    const shop = await openShop();
    const document = { Name: "Ann", "@metadata": { Own: true } };
    await shop.put("users/1", document, { collection: "Users" });
    const ann = await shop.get<User>("users/1");
    expect(ann?.["@metadata"]).toMatchObject({ "@collection": "Users", Own: true });
    expect(document["@metadata"]).toEqual({ Own: true });
    const asText = shop.put("users/2", "{}", { collection: "Users" });
    await expect(asText).rejects.toMatchObject({ code: "invalid-argument" });
  });

  test("get generated ids on request", async () => {
    const shop = await openShop();
    expect((await shop.put("users/", {})).id).toMatch(/^users\/\d+-A$/);
    expect((await shop.put("users|", {})).id).toBe("users/1");
  });

  test("are stored and deleted only if the expected version matches", async () => {
    const shop = await openShop();
    const { changeVector } = await shop.put("a", { N: 1 }, { expected: null });
    await expect(shop.put("a", {}, { expected: null })).rejects.toMatchObject({
      code: "concurrency",
    });
    const next = await shop.put("a", { N: 2 }, { expected: changeVector });
    await expect(shop.delete("a", { expected: changeVector })).rejects.toMatchObject({
      code: "concurrency",
    });
    expect(await shop.delete("a", { expected: next.changeVector })).toBe(true);
    expect(await shop.delete("a")).toBe(false);
  });

  test("are objects", async () => {
    const shop = await openShop();
    for (const [document, code] of [
      ["[1]", "json-not-object"],
      [[1], "json-not-object"],
      [() => 1, "json-not-object"],
      ['{"a"', "json-truncated"],
    ] as const) {
      await expect(shop.put("a", document)).rejects.toMatchObject({ code });
    }
  });
});

describe("patches", () => {
  test("report their outcome, and return the document", async () => {
    const shop = await openShop();
    const script = "if (args.by) this.Age += args.by; else if (args.gone) del(id(this));";
    expect(await shop.patch("a", script)).toEqual({ status: "missing", document: null });
    const orCreate = { Age: 1, "@metadata": { "@collection": "Users" } };
    const created = await shop.patch("a", script, { orCreate });
    expect(created).toMatchObject({ status: "created", document: { Age: 1 } });
    const patched = await shop.patch<User>("a", script, { args: { by: 2 } });
    expect(patched.status).toBe("patched");
    expect(patched.document?.Age).toBe(3);
    expect(await shop.patch("a", script)).toMatchObject({ status: "unchanged" });
    const gone = await shop.patch("a", script, { args: { gone: true } });
    expect(gone.document).toBeNull();
  });

  test("fail with a code", async () => {
    const shop = await openShop();
    await shop.put("a", {});
    await expect(shop.patch("a", "this.")).rejects.toMatchObject({ code: "script-syntax" });
    await expect(shop.patch("a", "throw 'no'")).rejects.toMatchObject({ code: "script-failed" });
    const late = shop.patch("a", "this.X = 1", { expected: "A:99-x" });
    await expect(late).rejects.toMatchObject({ code: "concurrency" });
  });
});

describe("batches", () => {
  test("execute all of their commands in order", async () => {
    const shop = await openShop();
    await shop.put("b", {});
    const results = await shop.batch([
      { type: "put", id: "users|", document: { N: 1 }, collection: "Users" },
      { type: "patch", id: "users/1", script: "this.N += args.n", args: { n: 1 } },
      { type: "increment", id: "users/1", counter: "likes", by: 5n },
      { type: "increment", id: "users/1", counter: "likes" },
      { type: "delete", id: "b" },
    ]);
    expect(results.map(({ id }) => id)).toEqual(["users/1", "users/1", "users/1", "users/1", "b"]);
    expect(results.map(({ changeVector }) => changeVector === null)).toEqual([
      ...[false, false, false, false],
      true,
    ]);
    expect(await shop.get("users/1")).toMatchObject({ N: 2 });
    expect(await shop.counters("users/1")).toEqual({ likes: 6n });
    expect(await shop.batch([])).toEqual([]);
  });

  test("have no effect if one of the commands fails", async () => {
    const shop = await openShop();
    const failing = shop.batch([
      { type: "put", id: "a", document: {} },
      { type: "put", id: "a", document: {}, expected: null },
    ]);
    await expect(failing).rejects.toMatchObject({ code: "concurrency" });
    expect(await shop.get("a")).toBeNull();
  });
});

describe("counters", () => {
  test("have 64 bits", async () => {
    const shop = await openShop();
    await shop.put("a", {});
    expect(await shop.incrementCounter("a", "n", 2n ** 62n)).toBe(2n ** 62n);
    expect(await shop.incrementCounter("a", "n")).toBe(2n ** 62n + 1n);
    expect(await shop.counters("a")).toEqual({ n: 2n ** 62n + 1n });
    expect(await shop.deleteCounter("a", "n")).toBe(true);
    expect(await shop.deleteCounter("a", "n")).toBe(false);
  });

  test("belong to documents, and change by whole numbers", async () => {
    const shop = await openShop();
    await expect(shop.incrementCounter("a", "n")).rejects.toMatchObject({
      code: "document-missing",
    });
    await shop.put("a", {});
    await expect(shop.incrementCounter("a", "n", 0.5)).rejects.toMatchObject({
      code: "invalid-argument",
    });
  });
});

describe("attachments", () => {
  test("are streamed in both directions", async () => {
    const shop = await openShop();
    await shop.put("a", {});
    async function* pieces() {
      yield Buffer.from("one ");
      yield Buffer.from("two");
    }
    const facts = await shop.putAttachment("a", "f.txt", pieces(), { contentType: "text/plain" });
    expect(facts).toMatchObject({ name: "f.txt", contentType: "text/plain", size: 7 });
    const found = await shop.attachment("a", "F.TXT");
    expect(found).toMatchObject({ name: "f.txt", hash: facts.hash, size: 7 });
    expect(Buffer.from((await found?.bytes()) ?? []).toString()).toBe("one two");
    expect(await shop.deleteAttachment("a", "f.txt")).toBe(true);
    expect(await shop.deleteAttachment("a", "f.txt")).toBe(false);
    expect(await shop.attachment("a", "f.txt")).toBeNull();
    await expect(found?.bytes()).rejects.toMatchObject({ code: "attachment-missing" });
  });

  test("belong to documents", async () => {
    const shop = await openShop();
    const put = shop.putAttachment("a", "f", new Uint8Array([1]));
    await expect(put).rejects.toMatchObject({ code: "document-missing" });
  });
});

describe("dumps", () => {
  test("transfer all or some collections to another database", async () => {
    const engine = await open();
    const shop = await engine.database("shop");
    await shop.put("users/1", { Name: "Ann" }, { collection: "Users" });
    await shop.put("orders/1", { Total: 1 }, { collection: "Orders" });
    const all = await engine.database("all");
    await all.importDump(shop.exportDump());
    expect(await all.get("orders/1")).toMatchObject({ Total: 1 });
    const some = await engine.database("some");
    await some.importDump(shop.exportDump({ collections: ["Users"] }));
    expect(await some.get("users/1")).toMatchObject({ Name: "Ann" });
    expect(await some.get("orders/1")).toBeNull();
  });
});

test("a query compares all digits of a bigint", async () => {
  const shop = await openShop();
  await shop.put("a", '{"N":9007199254740993,"@metadata":{"@collection":"Numbers"}}');
  const ids = async (n: bigint) => {
    const rows = await shop.query("from Numbers where N = $n", { n }).toArray();
    return rows.map((row) => row["@metadata"]["@id"]);
  };
  expect(await ids(9007199254740993n)).toEqual(["a"]);
  expect(await ids(9007199254740992n)).toEqual([]);
});

test("settings are changed as a whole, by a function applied to a copy", async () => {
  const shop = await openShop();
  const Expiration = { Disabled: false, DeleteFrequencyInSec: 60 };
  await shop.changeSettings((settings) => ({ ...settings, Expiration }));
  const settings = await shop.settings();
  expect(settings).toMatchObject({ DatabaseName: "shop", Expiration });
  settings["Expiration"] = null;
  expect(await shop.settings()).toMatchObject({ Expiration });
});
