import { afterEach, expect, test } from "vitest";
import type { OpenDatabase } from "../../../engine/api/database/open-database.ts";
import { finish } from "../../../engine/base/scheduling/work-budget.ts";
import { formatTimestamp } from "../../../engine/base/timestamp.ts";
import { BatchRows } from "../../../engine/batches/batch-rows.ts";
import { documentFlags } from "../../../engine/state/documents/document-record.ts";
import { putText, StoredDocument } from "../../../engine/writes/documents.ts";
import { closeDatabases, openDatabase } from "../../support/open-database.ts";

afterEach(closeDatabases);

/** A simple implementation of `addStored`. */
function rowOf(stored: StoredDocument, collection: string): string {
  const { id, changeVector, lastModified } = stored;
  const parts = [
    '"Type":"PUT"',
    `"@id":${JSON.stringify(id)}`,
    `"@collection":${JSON.stringify(collection)}`,
    `"@change-vector":"${changeVector}"`,
    `"@last-modified":"${formatTimestamp(lastModified)}"`,
    ...(stored.flags === 0 ? [] : ['"@flags":"HasAttachments"']),
  ];
  return `{${parts.join(",")}}`;
}

const ids = ["a", 'quote"', "back\\slash", "tab\t", "é", "\u007f", "\ud83d\ude00", "x".repeat(400)];
const collections = ["Users", "Größe", 'with "quotes"', "@empty"];

function documentIn(collection: string): string {
  if (collection === "@empty") return "{}";
  return JSON.stringify({ "@metadata": { "@collection": collection } });
}

async function written(
  database: OpenDatabase,
  add: (rows: BatchRows, expected: string[]) => void,
): Promise<void> {
  await database.write((transaction) => {
    const rows = new BatchRows(1);
    const expected: string[] = [];
    for (const collection of collections) {
      for (const id of ids) {
        const stored = putText(transaction, `${id}-${collection}`, documentIn(collection));
        for (const flags of [0, documentFlags.HasAttachments]) {
          for (const vector of ["", "B:7-AAAAAAAAAAAAAAAAAAAAAA"]) {
            const { document, etag, lastModified } = stored;
            const state = database.state;
            const one = new StoredDocument(
              state,
              id,
              document,
              // Up to the largest etag.
              flags === 0 ? etag : Number.MAX_SAFE_INTEGER,
              collection,
              lastModified,
              flags,
              vector,
            );
            rows.addStored(transaction, one);
            expected.push(rowOf(one, collection));
          }
        }
        add(rows, expected);
      }
    }
    expect(finish(rows.whole()).toString()).toBe(expected.join(","));
  });
}

test("the row of a stored document is its JSON text, for any id, collection, vector and flags", async () => {
  await written(await openDatabase(), () => undefined);
});

test("rows of other commands, and rows known later, are in command order", async () => {
  let count = 0;
  await written(await openDatabase(), (rows, expected) => {
    const text = `{"N":${count++},"Text":"größer ${"y".repeat(count * 100)}"}`;
    rows.add(text);
    expected.push(text);
    if (count % 3 !== 0) return;
    rows.add(() => `{"Late":"ä${text.length}"}`);
    expected.push(`{"Late":"ä${text.length}"}`);
  });
});

test("no rows produce no text; rows known later are joined as well", () => {
  expect(finish(new BatchRows(0).whole()).length).toBe(0);
  const rows = new BatchRows(3);
  for (const text of ["1", "2", "3"]) rows.add(() => text);
  expect(finish(rows.whole()).toString()).toBe("1,2,3");
});
