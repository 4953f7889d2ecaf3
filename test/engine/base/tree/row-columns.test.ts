import fc from "fast-check";
import { expect, test } from "vitest";
import { type HeldRows, RowStore } from "../../../../engine/base/tree/row-columns.ts";

const docCount = 30;
const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant("set"), value: fc.nat(docCount - 1) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("move"), value: fc.nat(docCount - 1) }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("hold"), value: fc.constant(0) }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("release"), value: fc.nat() }) },
);

function rows(held: { columns: RowStore["columns"] }): number[][] {
  const { columns } = held;
  return Array.from({ length: docCount }, (_, docNum) => [
    columns.etagOf(docNum),
    columns.positionOf(docNum),
    columns.lengthOf(docNum),
    columns.collectionOf(docNum),
    columns.flagsOf(docNum),
  ]);
}

test("held versions do not change, for any number of holds and releases", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200, size: "max" }), (steps) => {
      const store = new RowStore(4);
      const holds: { held: HeldRows; rows: number[][]; counts: number[] }[] = [];
      let etag = 0;
      for (const { kind, value } of steps) {
        if (kind === "set") {
          etag++;
          const previous = store.columns.etagOf(value);
          const collection = store.columns.collectionOf(value);
          store.set(value, etag, etag * 10, 24, (((etag % 7) << 16) | 0xffff) >>> 0);
          if (previous !== 0) store.count(collection, -1);
          store.count(etag % 7, 1);
          store.noteEtag(etag);
        } else if (kind === "move") {
          if (store.columns.etagOf(value) !== 0) store.setPosition(value, ++etag);
        } else if (kind === "hold") {
          const { documentCount, collectionCounts, lastEtag } = store.columns;
          const counts = [documentCount, lastEtag, ...collectionCounts];
          holds.push({ held: store.hold(), rows: rows(store), counts });
        } else {
          const [gone] = holds.splice(value % Math.max(1, holds.length), 1);
          if (gone !== undefined) store.release(gone.held);
        }
        store.checkInvariants(docCount);
      }
      for (const { held, rows: expected, counts } of holds) {
        expect(rows(held)).toEqual(expected);
        const { documentCount, collectionCounts, lastEtag } = held.columns;
        expect([documentCount, lastEtag, ...collectionCounts]).toEqual(counts);
        for (const [docNum, row] of expected.entries()) {
          expect(store.isEtagHeld(docNum, row[0]!)).toBe(true);
          if (row[0] !== 0) expect(store.isDocumentSeen(docNum)).toBe(true);
        }
      }
    }),
    { numRuns: 80 },
  );
});

test("copies a chunk once per view, and reuses the copies", () => {
  const store = new RowStore(4);
  for (let docNum = 0; docNum < 16; docNum++) store.set(docNum, 1, 0, 1, 0);
  const before = store.memoryBytes();
  for (let tick = 0; tick < 100; tick++) {
    const held = store.hold();
    store.set(tick % 16, 2, 0, 1, 0);
    store.set(tick % 16, 3, 0, 1, 0);
    store.release(held);
  }
  expect(store.memoryBytes()).toBeLessThanOrEqual(before * 2);
});

test("holders of the same version share it", () => {
  const store = new RowStore(4);
  const first = store.hold();
  expect(store.hold()).toBe(first);
  store.release(first);
  store.set(0, 1, 0, 1, 0);
  expect(first.columns.etagOf(0)).toBe(0);
  store.release(first);
  expect(() => store.release(first)).toThrow("releases a view once");
});
