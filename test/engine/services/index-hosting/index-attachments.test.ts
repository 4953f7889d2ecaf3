/** Attachments in maps: their properties, their contents as text, and when a map runs again. */
import { afterEach, describe, expect, it } from "vitest";
import type { OpenDatabase } from "../../../../engine/api/database/open-database.ts";
import { indexedContentBytesMax } from "../../../../engine/base/limits.ts";
import { deleteAttachment, putAttachment } from "../../../../engine/writes/attachments.ts";
import {
  closeDatabases,
  openDatabase,
  putAll,
  query,
  temporaryFolder,
} from "../../../support/open-database.ts";

afterEach(closeDatabases);

async function attach(database: OpenDatabase, id: string, name: string, content: string | Buffer) {
  const lease = await database.blobs.store([Buffer.from(content)]);
  await database.write((transaction) =>
    putAttachment(transaction, id, {
      name,
      contentType: "text/plain",
      hash: lease.hash,
      size: lease.size,
    }),
  );
  lease.release();
}

async function withFiles(folder?: string): Promise<OpenDatabase> {
  const database = await openDatabase(folder);
  await putAll(database, "Files", { "files/1": {}, "files/2": {}, "files/3": { Of: "files/1" } });
  await attach(database, "files/1", "Readme.txt", "hello w\u00f6rld");
  await attach(database, "files/1", "b.txt", "\ufeffsecond");
  return database;
}

async function mapped(database: OpenDatabase, body: string): Promise<unknown[]> {
  await database.queries.administration.deploy(
    [{ Name: "I", Maps: [`map('Files', f => ${body})`], Fields: { X: { Storage: "Yes" } } }],
    true,
  );
  await database.queries.indexes.waitForNonStale("ReplacementOf/I", 10_000);
  return await values(database);
}

/** The stored text of a field. */
async function values(database: OpenDatabase): Promise<unknown[]> {
  const text = "from index 'I' order by id() select X";
  const { rows } = await query(database, text, { waitForNonStale: true });
  return rows.map(({ X }) => X);
}

describe("loadAttachment", () => {
  it("returns an attachment by its name in any case, or null", async () => {
    const database = await withFiles();
    const reported =
      "{ const a = loadAttachment(f, 'README.TXT'); return { X: a === null ? 'none' : [a.Name, a.Size, a.ContentType] } }";
    expect(await mapped(database, reported)).toEqual([
      ["Readme.txt", "12", "text/plain"],
      "none",
      "none",
    ]);
    expect(await mapped(database, "({ X: loadAttachment(null, 'x') === null })")).toEqual([
      "true",
      "true",
      "true",
    ]);
  });

  it("returns contents from files as text in several encodings", async () => {
    const database = await withFiles(temporaryFolder());
    const content = (encoding: string) =>
      `{ const a = loadAttachment(f, 'readme.txt'); return a && { X: a.getContentAsString(${encoding}) } }`;
    expect(await mapped(database, content(""))).toEqual(["hello w\u00f6rld"]);
    expect(await mapped(database, content("'utf-8'"))).toEqual(["hello w\u00f6rld"]);
    expect(await mapped(database, content("'ASCII'"))).toEqual(["hello w??rld"]);
    expect(await mapped(database, content("'Latin1'"))).toEqual(["hello w\u00c3\u00b6rld"]);
    const marked =
      "{ const a = loadAttachment(f, 'b.txt'); return a && { X: a.getContentAsString() } }";
    expect(await mapped(database, marked)).toEqual(["second"]);
  });

  it("is LoadAttachment in C#, with an optional encoding", async () => {
    const database = await withFiles();
    const map =
      'from f in docs.Files let a = LoadAttachment(f, "README.TXT") where a != null select new { X = a.GetContentAsString(Encoding.ASCII) + a.Size }';
    const all =
      "from f in docs.Files from a in LoadAttachments(f) select new { X = a.Name + a.GetContentAsString() }";
    for (const [text, found] of [
      [map, ["hello w??rld12"]],
      [all, ["Readme.txthello w\u00f6rld", "b.txtsecond"]],
    ] as const) {
      const definition = { Name: "I", Maps: [text], Fields: { X: { Storage: "Yes" } } };
      await database.queries.administration.deploy([definition], true);
      await expect.poll(async () => (await values(database)).sort()).toEqual(found);
    }
  });

  it("runs again when the attachment of a loaded document changed", async () => {
    const database = await withFiles();
    const ofOther =
      "{ const o = f.Of && load(f.Of, 'Files'); const a = loadAttachment(o, 'b.txt'); return a && { X: a.getContentAsString() } }";
    expect(await mapped(database, ofOther)).toEqual(["second"]);
    await attach(database, "files/1", "B.TXT", "third");
    expect(await values(database)).toEqual(["third"]);
    await database.write((transaction) => deleteAttachment(transaction, "files/1", "b.txt"));
    expect(await values(database)).toEqual([]);
  });

  it("fails for a document that requests an unknown encoding or too much", async () => {
    const database = await withFiles();
    await attach(database, "files/2", "Readme.txt", Buffer.alloc(indexedContentBytesMax + 1, 97));
    const content =
      "{ const a = loadAttachment(f, 'readme.txt'); return { X: a ? a.getContentAsString().length : 0 } }";
    expect(await mapped(database, content)).toEqual(["11", "0"]);
    expect(
      await mapped(
        database,
        "({ X: f.Of ? 1 : loadAttachments(f).map(a => a.getContentAsString('x')) })",
      ),
    ).toEqual(["1"]);
  });

  it("reports that it needs a document", async () => {
    const database = await withFiles();
    await mapped(database, "({ X: f.Of ? loadAttachment('files/1', 'b.txt') : 1 })");
    const index = database.queries.indexes.byName("I");
    expect(
      JSON.stringify((index as unknown as { errors: { list: unknown } }).errors.list),
    ).toContain("loadAttachment(doc, name) must be called with a document");
  });
});

describe("loadAttachments", () => {
  it("lists attachments in the order of their names", async () => {
    const database = await withFiles();
    expect(await mapped(database, "({ X: loadAttachments(f).map(a => a.Name + a.Size) })")).toEqual(
      [["b.txt9", "Readme.txt12"], [], []],
    );
  });
});
