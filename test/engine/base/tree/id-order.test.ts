import fc from "fast-check";
import { expect, test } from "vitest";
import { IdCursor, IdOrder } from "../../../../engine/base/tree/id-order.ts";
import { IdSlab } from "../../../../engine/base/tree/id-slab.ts";
import { RowStore } from "../../../../engine/base/tree/row-columns.ts";
import { ByteReader } from "../../../../engine/base/tree/sections.ts";

/** Writes rows and members like the document table. */
class Writer {
  readonly slab = new IdSlab(2048, 16);
  readonly rows = new RowStore(8);
  readonly order = new IdOrder(this.slab, 4, 32);

  write(id: string): number {
    const bytes = Buffer.from(id);
    this.slab.add(bytes, bytes.length);
    const docNum = this.slab.count - 1;
    this.revive(docNum);
    return docNum;
  }

  revive(docNum: number): void {
    this.rows.set(docNum, 1, 0, 24, 0);
    this.rows.count(0, 1);
    this.rows.noteEtag(1);
    this.order.add(docNum);
  }

  remove(docNum: number): void {
    this.rows.set(docNum, 0, 0, 0, 0);
    this.rows.count(0, -1);
  }

  ids(prefix = "", after?: string, columns = this.rows.columns): string[] {
    const cursor = new IdCursor(
      this.order,
      () => columns,
      Buffer.from(prefix),
      after === undefined ? undefined : Buffer.from(after),
    );
    const batch = new Int32Array(3);
    const ids: string[] = [];
    for (;;) {
      const count = cursor.fill(batch, 3);
      for (const docNum of batch.subarray(0, count)) ids.push(this.slab.textOf(docNum));
      if (count < 3) return ids;
    }
  }
}

function sorted(ids: Iterable<string>): string[] {
  return [...ids].sort((left, right) => Buffer.compare(Buffer.from(left), Buffer.from(right)));
}

const ids = fc.uniqueArray(
  fc.string({ unit: fc.constantFrom("a", "b", "/", "é", "😀"), maxLength: 5 }),
  {
    maxLength: 80,
  },
);

test("orders ids like a sorted array, in slices of any size", () => {
  fc.assert(
    fc.property(ids, fc.array(fc.nat(9), { maxLength: 20 }), (given, slices) => {
      const writer = new Writer();
      for (const [at, id] of given.entries()) {
        writer.write(id);
        let left = slices[at] ?? 0;
        if (left > 0) writer.order.settle(writer.rows, () => --left > 0);
        writer.order.checkInvariants(writer.rows);
      }
      writer.order.settlePending(writer.rows);
      writer.order.checkInvariants(writer.rows);
      const all = sorted(given);
      expect(writer.ids()).toEqual(all);
      for (const prefix of ["a", "é", "😀", "b/"]) {
        const inside = all.filter((id) => id.startsWith(prefix));
        expect(writer.ids(prefix)).toEqual(inside);
        for (const after of given.slice(0, 10)) {
          const behind = inside.filter(
            (id) => Buffer.compare(Buffer.from(id), Buffer.from(after)) > 0,
          );
          expect(writer.ids(prefix, after)).toEqual(behind);
        }
      }
    }),
  );
});

test("leaves full leaves if ids arrive in order", () => {
  const writer = new Writer();
  for (let at = 0; at < 400; at++) {
    writer.write(String(at).padStart(4, "0"));
    if (at % 16 === 15) while (!writer.order.settle(writer.rows, () => true));
  }
  const sizes = writer.order.leaves.map((leaf) => leaf.length);
  expect(sizes.reduce((sum, size) => sum + size, 0) / sizes.length).toBeGreaterThan(2);
  expect(writer.ids()).toHaveLength(400);
});

test("removes deleted ids, unless a view still sees them", () => {
  const writer = new Writer();
  const docNums = Array.from({ length: 100 }, (_, at) => writer.write(`users/${at}`));
  const held = writer.rows.hold();
  for (const docNum of docNums) if (docNum % 10 !== 0) writer.remove(docNum);
  while (!writer.order.settle(writer.rows, () => false));
  expect(writer.ids()).toHaveLength(10);
  expect(writer.ids("", undefined, held.columns)).toHaveLength(100);

  writer.rows.release(held);
  while (!writer.order.settle(writer.rows, () => false)) writer.order.checkInvariants(writer.rows);
  expect(writer.order.leaves.reduce((sum, leaf) => sum + leaf.length, 0)).toBe(10);

  writer.revive(11);
  writer.revive(12);
  writer.order.settlePending(writer.rows);
  writer.order.checkInvariants(writer.rows);
  expect(writer.ids("users/1")).toEqual(["users/10", "users/11", "users/12"]);
});

test("a sweep ends although documents are added between its slices", () => {
  const writer = new Writer();
  const docNums = Array.from({ length: 200 }, (_, at) => writer.write(`users/${at}`));
  writer.order.settlePending(writer.rows);
  for (const docNum of docNums) if (docNum % 4 !== 0) writer.remove(docNum);
  let isDone = false;
  for (let tick = 0; tick < 400 && !isDone; tick++) {
    if (tick % 4 === 0) writer.write(`later/${tick}`);
    isDone = writer.order.settle(writer.rows, () => false);
  }
  expect(isDone).toBe(true);
  writer.order.checkInvariants(writer.rows);
});

test("a cursor continues correctly when leaves move between two batches", () => {
  const writer = new Writer();
  for (let at = 10; at < 30; at++) writer.write(`users/${at}`);
  writer.order.settlePending(writer.rows);
  const cursor = new IdCursor(
    writer.order,
    () => writer.rows.columns,
    Buffer.from("users/"),
    undefined,
  );
  const batch = new Int32Array(5);
  const next = () => {
    const count = cursor.fill(batch, 5);
    return [...batch.subarray(0, count)].map((docNum) => writer.slab.textOf(docNum));
  };
  expect(next()).toEqual(["users/10", "users/11", "users/12", "users/13", "users/14"]);
  for (const id of ["users/100", "users/14+", "users/15+"]) writer.write(id);
  writer.order.settlePending(writer.rows);
  expect(next()).toEqual(["users/14+", "users/15", "users/15+", "users/16", "users/17"]);
});

test("is unchanged by a dump and restore, including pending documents", () => {
  const writer = new Writer();
  for (let at = 0; at < 50; at++) writer.write(`users/${at}`);
  writer.order.settlePending(writer.rows);
  for (let at = 50; at < 75; at++) writer.write(`users/${at}`);
  const parts = writer.order.parts();
  for (let at = 75; at < 90; at++) writer.write(`users/${at}`);
  const restored = new IdOrder(writer.slab, 4, 32);
  const reader = new ByteReader("order", parts);
  restored.restore(reader);
  reader.end();
  for (let docNum = 75; docNum < 90; docNum++) restored.add(docNum);
  restored.checkInvariants(writer.rows);

  const whole = Buffer.concat(parts);
  for (const at of [0, 4, 8, whole.length - 1]) {
    const damaged = Buffer.from(whole);
    damaged[at] = damaged[at]! ^ 0x55;
    const restore = () => {
      const other = new ByteReader("order", [damaged]);
      new IdOrder(writer.slab, 4, 32).restore(other);
      other.end();
    };
    expect(restore, `byte ${at}`).toThrow(expect.objectContaining({ code: "database-damaged" }));
  }
});
