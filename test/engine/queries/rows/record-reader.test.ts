import { setImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
import type { OpenDatabase } from "../../../../engine/api/database/open-database.ts";
import { DocumentCursor } from "../../../../engine/queries/rows/query-rows.ts";
import { RecordReader } from "../../../../engine/queries/rows/record-reader.ts";
import { bodyTextOf } from "../../../../engine/state/documents/document-record.ts";
import { allCollections } from "../../../../engine/state/keyspaces/document-table.ts";
import { ImagePool } from "../../../../engine/storage/segments/image-pool.ts";
import { SegmentCache } from "../../../../engine/storage/segments/segment-cache.ts";
import { openTestDatabase } from "../../../support/open-test-database.ts";
import { SeededRandom } from "../../../support/random.ts";

const count = 1_000;
const batch = 250;

/** Documents that are all on disk only, except the last; every 50th is long. */
async function coldDatabase(cacheBytes: number): Promise<OpenDatabase> {
  const cache = new SegmentCache(cacheBytes, new ImagePool(true), 4096);
  const database = await openTestDatabase({
    log: { segmentBytesMin: 32_768, segmentBytesMax: 65_536, cache },
  });
  for (let from = 0; from < count; from += batch) {
    const puts = Array.from({ length: batch }, (_, i) => {
      const n = from + i;
      const text = "x".repeat(n % 50 === 0 ? 20_000 : n % 90);
      const next = `users/${(n * 7) % count}`;
      return database.put(`users/${n}`, { n, text, next, "@metadata": { "@collection": "Users" } });
    });
    await Promise.all(puts);
  }
  return database;
}

const numberIn = (bytes: Buffer, start: number): number =>
  (JSON.parse(bodyTextOf(bytes, start)) as { n: number }).n;

test.each([0, 100_000])(
  "a scan reads many records in one call (cache of %i bytes)",
  async (cacheBytes) => {
    const database = await coldDatabase(cacheBytes);
    const view = database.view();
    const numbers = view.documents.byEtag(allCollections, 0);
    const cursor = new DocumentCursor(view.documents, numbers, new RecordReader(database));
    let waits = 0;
    const seen: number[] = [];
    for (;;) {
      if (cursor.next()) {
        const { bytes, start } = cursor.row;
        seen.push(numberIn(bytes, start));
        // The row stays valid, whatever others read in the meantime.
        if (seen.length % 100 === 0) {
          for (let n = 0; n < count; n += 100) await database.getText(`users/${n}`);
          await setImmediate();
          expect(numberIn(bytes, start)).toBe(seen.length - 1);
        }
      } else if (cursor.pending === null) break;
      else {
        waits++;
        await cursor.pending;
      }
    }
    view.release();
    expect(seen).toEqual(Array.from({ length: count }, (_, n) => n));
    expect(waits).toBeLessThan(count / 10);
  },
);

test("a scan in any order finds every document, and completes without any cache capacity", async () => {
  const database = await coldDatabase(0);
  const { documents } = database.state;
  const random = new SeededRandom(3);
  const ids = Array.from({ length: 500 }, () => random.below(count));
  const order = Uint32Array.from(ids, (n) => documents.find(`users/${n}`));
  let at = 0;
  const numbers = {
    fill(target: Uint32Array, limit: number) {
      const part = order.subarray(at, at + limit);
      target.set(part);
      at += part.length;
      return part.length;
    },
  };
  const cursor = new DocumentCursor(documents, numbers, new RecordReader(database));
  const seen: number[] = [];
  for (;;) {
    if (cursor.next()) seen.push(numberIn(cursor.row.bytes, cursor.row.start));
    else if (cursor.pending === null) break;
    else await cursor.pending;
  }
  expect(seen).toEqual(ids);
});

test("a script that loads a document for each row is rerun for that row only", async () => {
  const database = await coldDatabase(0);
  const rows: string[] = [];
  const text = "from Users as u where u.n >= 0 select { n: u.n, next: load(u.next).n }";
  await database.query(
    text,
    { waitForNonStale: true, timeoutMs: 20_000 },
    {
      add(row) {
        rows.push(row.toString());
        return null;
      },
    },
  );
  expect(rows.length).toBe(count);
  for (const row of rows) {
    const { n, next } = JSON.parse(row) as { n: number; next: number };
    expect(next).toBe((n * 7) % count);
  }
});
