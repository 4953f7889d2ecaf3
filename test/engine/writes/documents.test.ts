import { expect, test } from "vitest";
import type { OpenDatabase } from "../../../engine/api/database/open-database.ts";
import { DocumentParser } from "../../../engine/state/documents/document-parser.ts";
import { deleteDocument, putParsed, putText } from "../../../engine/writes/documents.ts";
import { openTestDatabase } from "../../support/open-test-database.ts";

const metadata = '"@metadata":{"note":"é"}';
const texts = [
  "{}",
  '{"a":1}',
  `{"a":1,${metadata}}`,
  `{${metadata},"a":1}`,
  `{ "a" : 1 , ${metadata} , "b" : "\\u00e9\\n" }`,
  `{"é":"日本","x":"${"y".repeat(300)}",${metadata}}`,
  `{"é":"日本","x":"${"é".repeat(9_000)}"}`,
  `{"x":"${"z".repeat(40_000)}",${metadata}}`,
];
const ids = ["users/1", "Büro/1", "users/", "users|"];

test("a text is stored as its bytes, wherever it is parsed", async () => {
  const database = await openTestDatabase();
  const other = await openTestDatabase();
  for (const id of ids) {
    for (const text of texts) {
      // The parser's offset in the transaction's buffer is after earlier documents.
      const stored = await database.write((transaction) => {
        putText(transaction, "first", '{"first":true}');
        return putText(transaction, id, text).id;
      });
      const bytes = Buffer.from(text);
      const expected = await other.write((transaction) => {
        putParsed(transaction, "first", other.state.parseText('{"first":true}'));
        return putParsed(transaction, id, other.state.parser.parse(bytes, 0, bytes.length)).id;
      });
      expect(stored).toBe(expected);
      expect(await textOf(database, stored)).toBe(await textOf(other, expected));
      expect(JSON.parse(await textOf(database, stored))).toMatchObject(JSON.parse(text) as object);
    }
  }
});

test("a rejected text leaves the transaction unchanged", async () => {
  const database = await openTestDatabase({ isInMemory: true });
  await database.write((transaction) => {
    putText(transaction, "a", '{"a":1}');
    expect(() => putText(transaction, "b", '{"b":1')).toThrow("JSON ends too early");
    expect(() => putText(transaction, "b".repeat(600), '{"b":1}')).toThrow("cannot exceed");
    putText(transaction, "c", '{"c":1}');
  });
  expect(database.bodyText("a")).toBe('{"a":1}');
  expect(database.bodyText("b")).toBeNull();
  expect(database.bodyText("c")).toBe('{"c":1}');
});

test("only a document parsed before another one is rejected", async () => {
  const database = await openTestDatabase();
  const { state } = database;
  const late = database.write((transaction) => {
    const first = state.parseText('{"first":true}');
    const second = state.parseText('{"second":true}');
    putParsed(transaction, "second", second);
    putParsed(transaction, "first", first);
  });
  await expect(late).rejects.toThrow("before their parser parses another");
  expect([database.bodyText("first"), database.bodyText("second")]).toEqual([null, null]);
  await database.put("third", '{"third":true}');
  expect(database.bodyText("third")).toBe('{"third":true}');
});

test("a document is stored although others are parsed and written before it", async () => {
  const database = await openTestDatabase();
  const { state } = database;
  const own = new DocumentParser(state.shapes);
  const bytes = Buffer.from('{"own":1,"@metadata":{"@collection":"Own","k":1}}');
  await database.write((transaction) => {
    const parsed = own.parse(bytes, 0, bytes.length);
    putText(transaction, "other", '{"other":2,"@metadata":{"@collection":"Other"}}');
    putParsed(transaction, "own", parsed);
  });
  expect(await textOf(database, "own")).toContain(
    '{"own":1,"@metadata":{"@collection":"Own","k":1',
  );
  expect(await textOf(database, "other")).toContain(
    '{"other":2,"@metadata":{"@collection":"Other"',
  );
});

test("an identity that skips used numbers is staged once", async () => {
  const database = await openTestDatabase();
  for (let n = 1; n <= 50; n++) await database.put(`users/${n}`, "{}");
  const stored = await database.write((transaction) => {
    const { id } = putText(transaction, "users|", "{}");
    const staged = transaction.entries.map(({ keyspace, key }) => [keyspace, key]);
    const { identities, collections } = transaction.keyspaces;
    expect(staged.filter(([keyspace]) => keyspace !== collections.records)).toEqual([
      [identities, "users|"],
    ]);
    return id;
  });
  expect(stored).toBe("users/51");
  expect((await database.put("users|", "{}")).id).toBe("users/52");
  // With an expected change vector, no number is skipped, as before.
  await database.put("users/53", "{}");
  await expect(database.put("users|", "{}", "")).rejects.toThrow("Optimistic concurrency");
  expect((await database.put("users|", "{}")).id).toBe("users/54");
});

test("an identity skips at most ten thousand numbers", async () => {
  const database = await openTestDatabase({ isInMemory: true });
  await database.write((transaction) => {
    for (let n = 1; n <= 10_000; n++) putText(transaction, `users/${n}`, "{}");
  });
  await expect(database.put("users|", "{}")).rejects.toThrow(
    "The next 10000 numbers of the identity 'users|' belong to documents already",
  );
  await database.write((transaction) => deleteDocument(transaction, "users/10000"));
  expect((await database.put("users|", "{}")).id).toBe("users/10000");
});

async function textOf(database: OpenDatabase, id: string): Promise<string> {
  const text = await database.getText(id);
  return String(text).replace(/("@(?:change-vector|last-modified)":)"[^"]*"/g, '$1""');
}
