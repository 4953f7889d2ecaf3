/**
 * Data exported from one database and imported into another is unchanged; damaged dumps do no harm.
 */
import { readFileSync } from "node:fs";
import fc from "fast-check";
import { Decompress } from "fzstd";
import { describe, expect, test } from "vitest";
import type { OpenDatabase } from "../../../../engine/api/database/open-database.ts";
import { EngineError } from "../../../../engine/base/errors.ts";
import {
  type DumpOptions,
  parseDumpOptions,
  wholeDump,
} from "../../../../engine/services/smuggler/dump-options.ts";
import { exportDump } from "../../../../engine/services/smuggler/export.ts";
import { importDump } from "../../../../engine/services/smuggler/import.ts";
import { SmugglerResult } from "../../../../engine/services/smuggler/smuggler-result.ts";
import { incrementCounter } from "../../../../engine/writes/counters.ts";
import { describeDatabase } from "../../../support/database-picture.ts";
import {
  dumpedContents,
  expectEngineError,
  play,
  type Step,
  step,
} from "../../../support/dump-steps.ts";
import { openTestDatabase } from "../../../support/open-test-database.ts";
import { projectRoot } from "../../../support/project-root.ts";

const dumps = `${projectRoot}test/cases/dumps/`;
let commands = 0;
const settings = {
  mayChangeRecord: true,
  mayDeployCSharp: true,
  nextIndex: () => Promise.resolve(++commands),
};

function resultOf(database: OpenDatabase): SmugglerResult {
  return new SmugglerResult(() => database.state.nowMicros());
}

async function exported(database: OpenDatabase, options: DumpOptions = wholeDump): Promise<Buffer> {
  const pieces: Buffer[] = [];
  const dump = exportDump(database, options, resultOf(database));
  for await (const piece of dump) pieces.push(Buffer.from(piece));
  return Buffer.concat(pieces);
}

async function* inPieces(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) {
    // A copy that is overwritten afterwards, so that no receiver can rely on a reused chunk.
    yield Buffer.from(bytes.subarray(at, at + size));
  }
}

async function imported(
  bytes: Buffer,
  pieceBytes = 1000,
  options: DumpOptions = wholeDump,
  into?: OpenDatabase,
): Promise<{ readonly database: OpenDatabase; readonly result: SmugglerResult }> {
  const database = into ?? (await openTestDatabase({ isInMemory: true }));
  const result = resultOf(database);
  await importDump(database, inPieces(bytes, pieceBytes), options, settings, result);
  return { database, result };
}

/** A database with items of all types. */
async function shop(): Promise<OpenDatabase> {
  const database = await openTestDatabase({ isInMemory: true });
  await database.putSettings({
    Revisions: { Default: null, Collections: { Users: { MinimumRevisionsToKeep: 5 } } },
    Settings: { "Some.Key": "1" },
  });
  const steps: Step[] = [
    { kind: "put", id: "Users/1", body: '{"Name":"Ann","@metadata":{"@collection":"Users"}}' },
    { kind: "attach", id: "Users/1", name: "a.txt", content: "hello" },
    { kind: "put", id: "orders/1", body: '{"N":1,"@metadata":{"@collection":"Orders"}}' },
    { kind: "attach", id: "orders/1", name: "same.txt", content: "hello" },
    { kind: "count", id: "orders/1", name: "Likes", by: 2n ** 60n + 1n },
    { kind: "append", id: "orders/1", name: "Rate", times: [1, 5, 1000], tag: "w" },
    { kind: "identity", name: "users|", value: 7 },
    { kind: "exchange", name: "K", value: { a: 1 } },
  ];
  for (const one of steps) await play(database, one);
  return database;
}

describe("a dump", () => {
  test("contains everything: the import equals the export", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { minLength: 1, maxLength: 25 }),
        fc.constantFrom(1, 7, 100, 100_000),
        async (steps, pieceBytes) => {
          const source = await openTestDatabase({ isInMemory: true });
          for (const one of steps) await play(source, one);
          const { database, result } = await imported(await exported(source), pieceBytes);
          expect(await dumpedContents(database)).toBe(await dumpedContents(source));
          expect(JSON.stringify(result.toJson(true))).not.toContain("ERROR");
        },
      ),
      { numRuns: 60 },
    );
  });

  test("preserves revisions with their change vectors, flags, times and attachments", async () => {
    const source = await shop();
    await source.put("Users/1", { Name: "Bea", "@metadata": { "@collection": "Users" } });
    await source.delete("Users/1");
    const { database } = await imported(await exported(source));
    const revisionsOf = async (of: OpenDatabase): Promise<string> => {
      const types = parseDumpOptions({ OperateOnTypes: "RevisionDocuments,Attachments" });
      return (await exported(of, types)).toString("latin1");
    };
    expect(await revisionsOf(database)).toBe(await revisionsOf(source));
    expect(await revisionsOf(source)).toContain("HasRevisions, DeleteRevision");
  });

  test("preserves the times of changes, and a second import changes nothing", async () => {
    const source = await shop();
    const { database } = await imported(await exported(source));
    await imported(await exported(source), 1000, wholeDump, database);
    const time = async (of: OpenDatabase) =>
      ((await of.get("Users/1"))?.["@metadata"] as Record<string, string> | undefined)?.[
        "@last-modified"
      ];
    expect(await time(database)).toBe(await time(source));
    expect(database.state.keyspaces.counters.count).toBe(1);
    expect(database.settings).toMatchObject(source.settings);
  });

  test("imports missing subscriptions, which start at the first document", async () => {
    const source = await shop();
    await source.subscriptions.put({ name: "Mine", query: "from Users", isDisabled: true }, 900);
    const { database } = await imported(await exported(source));
    await imported(await exported(source), 1000, wholeDump, database);
    expect([...database.subscriptions.tasks()]).toMatchObject([
      { name: "Mine", query: "from Users", changeVector: null, isDisabled: false },
    ]);
    const wrong =
      '{"Subscriptions":[{"SubscriptionName":"a","Query":"bogus"},{"Query":"from Users"}]}';
    const { result } = await imported(Buffer.from(wrong));
    expect(result.of("Subscriptions").erroredCount).toBe(2);
  });

  test("contains deployed indexes, and reports indexes that cannot be deployed", async () => {
    const database = await openTestDatabase({ isInMemory: true });
    const map = "map('Users', u => ({ Name: u.Name }))";
    const fields = { Name: { Indexing: "Search", Analyzer: "StopAnalyzer" } };
    const definition = { Name: "I", Maps: [map], Priority: "High", Fields: fields };
    await database.queries.administration.deploy([definition], true);
    const bytes = await exported(database);
    const { database: copy, result } = await imported(bytes);
    expect(result.of("Indexes")).toMatchObject({ readCount: 1, erroredCount: 0 });
    expect(copy.queries.administration.hasChanged(definition)).toBe(false);
    const plain = { ...wholeDump, removesAnalyzers: true };
    const { database: without } = await imported(bytes, 1000, plain);
    expect(without.queries.administration.hasChanged(definition)).toBe(true);
    const broken = Buffer.from(bytes.toString().replace("map('Users'", "from u in docs('Users'"));
    const { result: reported } = await imported(broken);
    expect(reported.of("Indexes")).toMatchObject({ readCount: 1, erroredCount: 1 });
  });

  test("is consistent despite concurrent writes", async () => {
    const source = await openTestDatabase({ isInMemory: true });
    for (let i = 0; i < 600; i++) await source.put(`d/${i}`, { i, text: "x".repeat(500) });
    const before = await describeDatabase(source);
    const pieces: Buffer[] = [];
    const dump = exportDump(source, wholeDump, resultOf(source));
    for await (const piece of dump) {
      pieces.push(piece);
      for (let i = 0; i < 600; i += 50) await source.put(`d/${i}`, { late: pieces.length });
      await source.delete(`d/${pieces.length}`);
    }
    const { database } = await imported(Buffer.concat(pieces));
    expect(await describeDatabase(database)).toBe(before);
  });

  test("contains a large document in small chunks, with the same text", async () => {
    const source = await shop();
    await source.write((transaction) => incrementCounter(transaction, "Users/1", "Likes", 5n));
    for (const bytes of [100, 700 * 1024]) {
      const body = { Text: "x".repeat(bytes), "@metadata": { "@collection": "Users", mine: 1 } };
      await source.put("Users/1", body);
      for (const types of ["Documents,RevisionDocuments", "Documents,CounterGroups"]) {
        const options = parseDumpOptions({ OperateOnTypes: types, Collections: ["Users"] });
        const result = resultOf(source);
        const sizes: number[] = [];
        const texts: string[] = [];
        for await (const piece of exportDump(source, options, result)) {
          sizes.push(piece.length);
          texts.push(piece.toString("latin1"));
        }
        const text = texts.join("");
        const [document] = (JSON.parse(text) as { Docs: Record<string, unknown>[] }).Docs.slice(-1);
        const metadata = document?.["@metadata"] as Record<string, unknown>;
        expect(document?.["Text"]).toBe("x".repeat(bytes));
        expect(Math.max(...sizes)).toBeLessThan(bytes < 1000 ? 8 * 1024 : 129 * 1024);
        expect(result.of("Documents").sizeBytes).toBeGreaterThan(bytes);
        const hasCounters = types.includes("Counter");
        expect(metadata).toMatchObject({ "@collection": "Users", "@id": "Users/1", mine: 1 });
        expect(metadata["@attachments"]).toBeUndefined();
        expect(metadata["@counters"] !== undefined).toBe(hasCounters);
        expect(metadata["@flags"]).toBe(hasCounters ? undefined : "HasRevisions");
      }
    }
    const { database } = await imported(await exported(source), 64 * 1024);
    expect(await describeDatabase(database)).toBe(await describeDatabase(source));
  });

  test("of RavenDB 7.2.7 can be read with its original zstd compression", async () => {
    const packed = Buffer.from(readFileSync(`${dumps}reference-zstd.txt`, "latin1"), "base64");
    const parts: Uint8Array[] = [];
    new Decompress((part) => parts.push(part)).push(packed, true);
    const { database, result } = await imported(Buffer.concat(parts));
    expect(result.toJson(true)).toMatchObject({
      Documents: { ReadCount: 5, ErroredCount: 0, Attachments: { ReadCount: 3, ErroredCount: 0 } },
      RevisionDocuments: { ReadCount: 4 },
      Identities: { ReadCount: 2 },
      CompareExchange: { ReadCount: 3 },
      Counters: { ReadCount: 2, ErroredCount: 0 },
      TimeSeries: { ReadCount: 4, ErroredCount: 0 },
    });
    const { keyspaces } = database.state;
    expect([...keyspaces.identities.withPrefix("")]).toEqual([
      ["inv|", 77],
      ["users|", 2],
    ]);
    expect(keyspaces.revisions.count).toBe(4);
    expect(await database.get("users/1")).toMatchObject({
      Name: "Ann2",
      "@metadata": {
        "@attachments": [{ Name: "b.bin" }, { Name: "c.bin" }],
        "@counters": ["Likes"],
      },
    });
  });
});

describe("options", () => {
  test("choose types, collections and documents", async () => {
    const source = await shop();
    await source.put("old/1", { "@metadata": { "@expires": "2000-01-01T00:00:00.0000000Z" } });
    const options = { OperateOnTypes: "Documents", Collections: ["orders"] };
    const orders = (await exported(source, parseDumpOptions(options))).toString();
    expect(Object.keys(JSON.parse(orders) as object)).toEqual(["BuildVersion", "Docs"]);
    expect(orders).toContain('"orders/1"');
    expect(orders).not.toMatch(/Users\/1|@attachments|@counters|@timeseries|HasAttachments/);
    const fresh = { OperateOnTypes: "Documents", IncludeExpired: false };
    expect((await exported(source, parseDumpOptions(fresh))).toString()).not.toContain("old/1");
    const bytes = await exported(source);
    const { database } = await imported(bytes, 1000, parseDumpOptions(options));
    expect(database.state.documents.documentCount).toBe(1);
  });

  test("a script changes documents during the transfer, or omits them", async () => {
    const source = await shop();
    const script = "if (this.N) throw 'skip'; this.Name += '!'; this['@metadata'].seen = true;";
    const options = parseDumpOptions({
      TransformScript: script,
      OperateOnTypes: "Documents,Attachments",
    });
    const text = (await exported(source, options)).toString();
    expect(text).toContain('"Name":"Ann!"');
    expect(text).toContain('"@attachments":[{"Name":"a.txt"');
    expect(text).not.toContain("orders/1");
    const { database, result } = await imported(await exported(source), 1000, options);
    expect(await database.get("Users/1")).toMatchObject({
      Name: "Ann!",
      "@metadata": { seen: true, "@attachments": [{ Name: "a.txt" }] },
    });
    expect(await database.get("orders/1")).toBeNull();
    expect(result.of("Documents").skippedCount).toBe(1);
  });

  test("a script cannot access anything else or run endlessly", async () => {
    const source = await shop();
    for (const script of ["put('x/1', {})", "load('Users/1')", "while (true) {}"]) {
      const options = parseDumpOptions({ TransformScript: script });
      await expect(exported(source, options)).rejects.toBeInstanceOf(EngineError);
    }
  });

  test("are rejected if unknown or if they request encryption", () => {
    expect(() => parseDumpOptions({ OperateOnTypes: "Bogus" })).toThrow("not parsable");
    expect(() => parseDumpOptions({ EncryptionKey: "abc" })).toThrow("Encrypted dumps");
  });

  test("deletions of a dump are imported on request", async () => {
    const source = await shop();
    const { database } = await imported(await exported(source));
    await source.delete("orders/1");
    const options = parseDumpOptions({ OperateOnTypes: "Tombstones" });
    await imported(await exported(source, options), 1000, options, database);
    expect(await database.get("orders/1")).toBeNull();
    expect(await database.get("Users/1")).not.toBeNull();
  });
});

describe("a damaged dump", () => {
  test("that is truncated anywhere is an error, and completely read items are stored", async () => {
    const bytes = await exported(await shop());
    const database = await openTestDatabase({ isInMemory: true });
    for (let length = 0; length < bytes.length; length += 37) {
      const cut = imported(bytes.subarray(0, length), 500, wholeDump, database);
      await expect(cut).rejects.toBeInstanceOf(EngineError);
    }
    expect(await database.get("Users/1")).toMatchObject({ Name: "Ann" });
  });

  test("with changed bytes gives an error or another database, never a broken one", async () => {
    const bytes = await exported(await shop());
    for (let at = 0; at < bytes.length; at += 41) {
      const damaged = Buffer.from(bytes);
      damaged[at] = (damaged[at] as number) ^ 4;
      const database = await openTestDatabase({ isInMemory: true });
      await imported(damaged, 997, wholeDump, database).catch(expectEngineError);
      database.checkInvariants();
      expect(await database.blobs.findDamaged()).toEqual([]);
      await database.close();
    }
  });

  test("attaches no content with a wrong hash, and reports it", async () => {
    const text = (await exported(await shop())).toString("latin1");
    const { database, result } = await imported(
      Buffer.from(text.replace("}hello,", "}jello,"), "latin1"),
    );
    expect((await database.getText("Users/1"))?.toString()).not.toContain("@attachments");
    const reply = JSON.stringify(result.toJson(true));
    expect(reply).toContain("A content in the dump is damaged");
    expect(reply).toContain("no content for 1 of 1 attachments of 'Users/1'");
  });

  test("reports how much was imported before the error", async () => {
    const text = `{"BuildVersion":72051,"Docs":[{"@metadata":{"@id":"a"}},{"@metadata":{"@id":"b`;
    const cut = imported(Buffer.from(text));
    await expect(cut).rejects.toThrow("1 items of the dump were imported before");
  });

  test("with counters and series of missing documents reports them and continues", async () => {
    const counters = '{"DocId":"gone","Values":{"@names":{"n":"N"},"@vals":{"n":[5,1]}}}';
    const text = `{"CounterGroups":[${counters}],"Bogus":[{"a":[1]}],"Identities":[{"Key":"x|","Value":"4"},]}`;
    const { database, result } = await imported(Buffer.from(text));
    expect(result.of("Counters").erroredCount).toBe(1);
    const reply = JSON.stringify(result.toJson(true));
    expect(reply).toContain("Document 'gone' does not exist");
    expect(reply).toContain("items of type 'Bogus'");
    expect(database.state.keyspaces.identities.get("x|")).toBe(4);
  });
});
