import fc from "fast-check";
import { expect, test } from "vitest";
import { EtagCursor, EtagList } from "../../../../engine/base/tree/etag-list.ts";
import { type HeldRows, RowStore } from "../../../../engine/base/tree/row-columns.ts";
import { ByteReader } from "../../../../engine/base/tree/sections.ts";

const docCount = 40;

/** Writes rows like the document table. */
class Writer {
  readonly rows = new RowStore(8);
  readonly list = new EtagList(4);

  write(docNum: number, etag: number): void {
    this.remove(docNum);
    this.rows.set(docNum, etag, 0, 24, 0);
    this.rows.count(0, 1);
    this.rows.noteEtag(etag);
    this.list.add(docNum, etag);
    this.list.sweep(this.rows);
  }

  remove(docNum: number): void {
    const etag = this.rows.columns.etagOf(docNum);
    if (etag === 0) return;
    this.rows.set(docNum, 0, 0, 0, 0);
    this.rows.count(0, -1);
    this.list.remove(etag);
    this.list.sweep(this.rows);
  }
}

function all(cursor: EtagCursor, limit: number): number[] {
  const batch = new Int32Array(limit);
  const docNums: number[] = [];
  for (;;) {
    const count = cursor.fill(batch, limit);
    docNums.push(...batch.subarray(0, count));
    if (count < limit) return docNums;
  }
}

function expected(columns: RowStore["columns"], from: number, descending: boolean): number[] {
  const docNums = Array.from({ length: docCount }, (_, docNum) => docNum)
    .filter((docNum) => columns.etagOf(docNum) !== 0)
    .filter((docNum) =>
      descending ? columns.etagOf(docNum) <= from : columns.etagOf(docNum) >= from,
    )
    .sort((left, right) => columns.etagOf(left) - columns.etagOf(right));
  return descending ? docNums.reverse() : docNums;
}

const write = fc.record({
  docNum: fc.nat(docCount - 1),
  kind: fc.constantFrom("write", "write", "write", "late", "remove", "view", "release"),
  step: fc.constantFrom(1, 2, 10, 2 ** 31, 2 ** 33),
});

test("returns live entries in etag order, including late entries and sweeps", () => {
  fc.assert(
    fc.property(fc.array(write, { maxLength: 250, size: "max" }), fc.nat(), (writes, pick) => {
      const writer = new Writer();
      const held: HeldRows[] = [];
      const used = new Set<number>();
      let last = 0;
      for (const { docNum, kind, step } of writes) {
        let etag = last + step;
        if (kind === "late") {
          // An etag in the middle, as for a record moved by compaction, but newer than the
          // document's current one.
          etag = Math.max(1, last - step);
          while (used.has(etag)) etag++;
          if (etag <= writer.rows.columns.etagOf(docNum)) continue;
        }
        if (kind === "view") held.push(writer.rows.hold());
        else if (kind === "release") {
          const gone = held.shift();
          if (gone !== undefined) writer.rows.release(gone);
        } else if (kind === "remove") writer.remove(docNum);
        else {
          used.add(etag);
          last = Math.max(last, etag);
          writer.write(docNum, etag);
        }
        writer.list.checkInvariants(writer.rows);
      }
      const etags = [
        0,
        last,
        Number.POSITIVE_INFINITY,
        [...used][pick % Math.max(1, used.size)] ?? 1,
      ];
      for (const etag of used) {
        const docNum = writer.list.documentOf(etag);
        const alive = [...Array(docCount).keys()].find(
          (each) => writer.rows.columns.etagOf(each) === etag,
        );
        if (alive !== undefined) expect(docNum).toBe(alive);
        expect(used.has(etag + 1) ? -1 : writer.list.documentOf(etag + 1)).toBe(-1);
      }
      for (const columns of [writer.rows.columns, ...held.map((each) => each.columns)]) {
        for (const from of etags) {
          for (const descending of [false, true]) {
            const cursor = new EtagCursor(writer.list, () => columns, from, descending);
            expect(all(cursor, 3)).toEqual(expected(columns, from, descending));
          }
        }
      }
      for (const columns of [writer.rows.columns, ...held.map((each) => each.columns)]) {
        const restored = new EtagList(4);
        const reader = new ByteReader("list", writer.list.parts(columns.lastEtag));
        restored.restore(reader, columns.documentCount);
        reader.end();
        const cursor = new EtagCursor(restored, () => columns, 0, false);
        expect(all(cursor, 5)).toEqual(expected(columns, 0, false));
      }
    }),
    { numRuns: 80 },
  );
});

test("does not grow with changes of the same documents", () => {
  const writer = new Writer();
  let largest = 0;
  for (let etag = 1; etag <= 20_000; etag++) {
    writer.write((etag * 7) % docCount, etag);
    largest = Math.max(largest, writer.list.memoryBytes());
  }
  expect(largest).toBeLessThan(docCount * 8 * 12);
  writer.list.checkInvariants(writer.rows);
});

test("does not change chunks dumped under a view, and reuses emptied chunks without one", () => {
  const writer = new Writer();
  let etag = 0;
  const change = (count: number) => {
    for (let tick = 0; tick < count; tick++) writer.write(tick % docCount, ++etag);
  };
  change(5 * docCount);
  for (let round = 0; round < 20; round++) {
    const held = writer.rows.hold();
    const parts = writer.list.parts(etag);
    const before = Buffer.concat(parts);
    change(3 * docCount + round);
    expect(Buffer.concat(parts).equals(before)).toBe(true);
    writer.rows.release(held);
    change(2 * docCount);
    writer.list.checkInvariants(writer.rows);
  }
  expect(writer.list.memoryBytes()).toBeLessThan(docCount * 8 * 12);
});

test("retains no emptied chunks of deleted documents", () => {
  const writer = new Writer();
  let etag = 0;
  for (let tick = 0; tick < 20_000; tick++) writer.write(tick % 2000, ++etag);
  expect(writer.list.memoryBytes()).toBeGreaterThan(2000 * 8);
  for (let docNum = 1; docNum < 2000; docNum++) writer.remove(docNum);
  // One document, and the maximum number of dead entries before a sweep.
  expect(writer.list.memoryBytes()).toBeLessThan(50 * (8 + 24));
});

test("retains the entries of a view, and frees them after the release", () => {
  const writer = new Writer();
  for (let etag = 1; etag <= docCount; etag++) writer.write(etag - 1, etag);
  const held = writer.rows.hold();
  let etag = docCount;
  const change = (count: number) => {
    for (let tick = 0; tick < count; tick++) writer.write(tick % docCount, ++etag);
  };
  change(2000);
  const cursor = () => new EtagCursor(writer.list, () => held.columns, 0, false);
  expect(all(cursor(), 7)).toEqual(Array.from({ length: docCount }, (_, docNum) => docNum));
  writer.rows.release(held);
  change(2000);
  expect(all(cursor(), 7)).toEqual([]);
});

test("a cursor continues correctly when the list changes between two batches", () => {
  const writer = new Writer();
  for (let etag = 1; etag <= docCount; etag++) writer.write(etag - 1, etag);
  const cursor = new EtagCursor(writer.list, () => writer.rows.columns, 0, false);
  const batch = new Int32Array(10);
  expect(cursor.fill(batch, 10)).toBe(10);
  for (let docNum = 0; docNum < docCount; docNum += 2) writer.remove(docNum);
  expect(cursor.fill(batch, 10)).toBe(10);
  expect([...batch]).toEqual([11, 13, 15, 17, 19, 21, 23, 25, 27, 29]);
});

test("rejects chunks that are out of order or inconsistent", () => {
  const writer = new Writer();
  for (let etag = 1; etag <= 10; etag++) writer.write(etag, etag);
  const whole = Buffer.concat(writer.list.parts(10));
  for (const at of [0, 4, 8 + 7, 8 + 3 * 8]) {
    const damaged = Buffer.from(whole);
    damaged[at] = damaged[at]! ^ 0x41;
    const restore = () => {
      const reader = new ByteReader("list", [damaged]);
      new EtagList(4).restore(reader, 10);
      reader.end();
    };
    expect(restore, `byte ${at}`).toThrow(expect.objectContaining({ code: "database-damaged" }));
  }
});
