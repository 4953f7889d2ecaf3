import fc from "fast-check";
import { expect, test } from "vitest";
import { TransactionDocuments } from "../../../../engine/state/store/transaction-documents.ts";

const row = fc.record({
  document: fc.nat(40),
  etag: fc.nat(2 ** 40),
  at: fc.nat(2 ** 31),
  recordLength: fc.nat(2 ** 28),
  collection: fc.nat(0xffff),
  flags: fc.nat(0xffff),
});

test("finds the newest row of each document, in consecutive transactions", () => {
  const rows = new TransactionDocuments();
  fc.assert(
    fc.property(fc.array(fc.array(row, { maxLength: 200 }), { maxLength: 4 }), (transactions) => {
      for (const transaction of transactions) {
        rows.reset();
        const newest = new Map<number, number>();
        for (const [at, each] of transaction.entries()) {
          rows.push(
            each.document,
            each.etag,
            each.at,
            each.recordLength,
            each.collection,
            each.flags,
          );
          newest.set(each.document, at);
          // Sometimes queried in between, sometimes only at the end.
          if (each.etag % 3 === 0) expect(rows.newestOf(each.document)).toBe(at);
        }
        expect(rows.count).toBe(transaction.length);
        for (let document = 0; document <= 41; document++) {
          expect(rows.newestOf(document)).toBe(newest.get(document) ?? -1);
        }
        for (const [at, each] of transaction.entries()) {
          expect({
            document: rows.documentOf(at),
            etag: rows.etagOf(at),
            at: rows.offsetOf(at),
            recordLength: rows.recordLengthOf(at),
            collection: rows.collectionOf(at),
            flags: rows.flagsOf(at),
          }).toEqual(each);
        }
      }
    }),
  );
});

test("releases the memory of a transaction beyond the retained size", () => {
  const rows = new TransactionDocuments();
  for (let document = 0; document < 5_000; document++) rows.push(document, 1, 0, 8, 0, 0);
  expect(rows.newestOf(4_999)).toBe(4_999);
  rows.reset();
  expect(rows.newestOf(4_999)).toBe(-1);
  rows.push(7, 2, 0, 8, 0, 0);
  expect(rows.newestOf(7)).toBe(0);
});
