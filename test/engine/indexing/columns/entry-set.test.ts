import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  difference,
  type EntrySet,
  EntrySetBuilder,
  intersection,
  union,
} from "../../../../engine/indexing/columns/entry-set.ts";

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
  it("holds the added entries, ascending and without duplicates", () => {
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

  it("combines sets in any representation as mathematical sets", () => {
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

  it("accepts bits and leaves out dead entries at the end", () => {
    fc.assert(
      fc.property(entries, entries, entries, (listed, many, alive) => {
        const builder = new EntrySetBuilder(size);
        expect(builder.bits(false)).toBe(null);
        const live = new Uint32Array((size >>> 5) + 2);
        for (const entry of [...alive, ...listed]) {
          live[entry >>> 5] = (live[entry >>> 5] as number) | (1 << (entry & 31));
        }
        for (const entry of listed) builder.add(entry);
        const bits = new Uint32Array((size >>> 5) + 1);
        const own = builder.bits(true) as Uint32Array;
        for (const [at, entry] of many.entries()) {
          const words = at % 2 === 0 ? own : bits;
          words[entry >>> 5] = (words[entry >>> 5] as number) | (1 << (entry & 31));
        }
        builder.addBits(bits);
        expect(builder.bits(false)).toBe(own);
        const isLive = new Set([...alive, ...listed]);
        const expected = sorted([...listed, ...many.filter((entry) => isLive.has(entry))]);
        expect([...builder.finishLive(live).toList()]).toEqual(expected);
      }),
    );
  });

  it("leaves its operands unchanged", () => {
    const dense = built(Array.from({ length: 500 }, (_, i) => i * 3));
    const sparse = built([1, 3, 5]);
    union(dense, sparse);
    difference(dense, sparse);
    intersection(dense, sparse);
    expect(dense.count).toBe(500);
    expect([...sparse.toList()]).toEqual([1, 3, 5]);
  });
});
