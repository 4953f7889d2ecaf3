import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  difference,
  type EntrySet,
  EntrySetBuilder,
  intersection,
  union,
} from "../../../engine/indexing/entry-set.ts";

const size = 4096;
const entries = fc.oneof(
  fc.array(fc.nat(size - 1), { maxLength: 20 }),
  fc.array(fc.nat(size - 1), { minLength: 100, maxLength: 400 }),
);

function built(list: readonly number[]): EntrySet {
  const builder = new EntrySetBuilder(size);
  for (const entry of list) builder.add(entry);
  return builder.finish();
}

function sorted(set: Iterable<number>): number[] {
  return [...new Set(set)].sort((a, b) => a - b);
}

describe("EntrySet", () => {
  it("holds what was added, ascending and without repeats", () => {
    fc.assert(
      fc.property(entries, (list) => {
        const set = built(list);
        expect([...set.toList()]).toEqual(sorted(list));
        expect(set.count).toBe(new Set(list).size);
        for (const entry of [0, 1, 31, 32, ...list]) {
          expect(set.has(entry)).toBe(list.includes(entry));
        }
      }),
    );
  });

  it("joins sets as sets of numbers do, whatever form they have", () => {
    fc.assert(
      fc.property(entries, entries, (left, right) => {
        const a = built(left);
        const b = built(right);
        expect([...union(a, b).toList()]).toEqual(sorted([...left, ...right]));
        expect([...intersection(a, b).toList()]).toEqual(
          sorted(left.filter((entry) => right.includes(entry))),
        );
        expect([...difference(a, b).toList()]).toEqual(
          sorted(left.filter((entry) => !right.includes(entry))),
        );
        expect(union(a, b).count).toBe(new Set([...left, ...right]).size);
      }),
    );
  });

  it("leaves its operands as they were", () => {
    const dense = built(Array.from({ length: 500 }, (_, i) => i * 3));
    const sparse = built([1, 3, 5]);
    union(dense, sparse);
    difference(dense, sparse);
    intersection(dense, sparse);
    expect(dense.count).toBe(500);
    expect([...sparse.toList()]).toEqual([1, 3, 5]);
  });
});
