import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type ChangeVector,
  databaseHash,
  formatChangeVector,
  mergeChangeVectors,
  parseChangeVector,
} from "../../../../engine/state/documents/change-vector.ts";

const hashes = ["0", "1", "2"].map((part) => databaseHash(part));
const vectors: fc.Arbitrary<ChangeVector> = fc
  .array(
    fc.record({
      tag: fc.constantFrom("A", "B", "RAFT", "TRXN"),
      etag: fc.nat({ max: 3 }),
      hash: fc.constantFrom(...hashes),
    }),
    { maxLength: 4 },
  )
  .map((entries) => mergeChangeVectors(entries, []));

/** Meaning of a vector: the number of included writes of each database. */
function included(vector: ChangeVector): number[] {
  return hashes.map((hash) => vector.find((entry) => entry.hash === hash)?.etag ?? 0);
}

describe("the text of a change vector", () => {
  it("is parsed back to the same vector", () => {
    fc.assert(
      fc.property(vectors, (vector) => {
        expect(parseChangeVector(formatChangeVector(vector))).toEqual(vector);
      }),
    );
  });

  it("matches RavenDB 7.2.7", () => {
    const text =
      "RAFT:1-3SeHpzjGgkee3Juiea+j6A, A:8-SujxUHKKb0KlgkspLLr2KQ, TRXN:119-wbdsyUufokyM9NkmhCwH3g";
    expect(formatChangeVector(parseChangeVector(text))).toBe(text);
    const joined = "RAFT:1-3SeHpzjGgkee3Juiea+j6A,TRXN:119-wbdsyUufokyM9NkmhCwH3g";
    expect(parseChangeVector(joined).map((entry) => entry.etag)).toEqual([1, 119]);
  });

  it.each([
    "x",
    "A:1",
    "A:-1-SujxUHKKb0KlgkspLLr2KQ",
    "A:1.5-SujxUHKKb0KlgkspLLr2KQ",
    "A:1-short",
    "A:9007199254740993-SujxUHKKb0KlgkspLLr2KQ",
    "A:1-SujxUHKKb0KlgkspLLr2KQ,",
    "A:1-SujxUHKKb0KlgkspLLr2KQ;B:1-SujxUHKKb0KlgkspLLr2KQ",
  ])("is rejected when it is %s", (text) => {
    expect(() => parseChangeVector(text)).toThrow(/is not a change vector/);
  });
});

describe("merging", () => {
  it("takes the larger number of each database", () => {
    fc.assert(
      fc.property(vectors, vectors, (a, b) => {
        const merged = mergeChangeVectors(a, b);
        expect(included(merged)).toEqual(
          included(a).map((etag, i) => Math.max(etag, included(b)[i] as number)),
        );
        expect(merged.map((entry) => entry.hash)).toEqual(merged.map((entry) => entry.hash).sort());
      }),
    );
  });

  it("is commutative, associative and idempotent", () => {
    fc.assert(
      fc.property(vectors, vectors, vectors, (a, b, c) => {
        const merge = mergeChangeVectors;
        expect(included(merge(a, b))).toEqual(included(merge(b, a)));
        expect(included(merge(a, merge(b, c)))).toEqual(included(merge(merge(a, b), c)));
        expect(included(merge(a, a))).toEqual(included(a));
      }),
    );
  });
});

describe("a database's hash", () => {
  it("is 22 characters of base64 that depend on every part", () => {
    expect(databaseHash("a", "b")).toMatch(/^[A-Za-z0-9+/]{22}$/);
    expect(databaseHash("a", "b")).toBe(databaseHash("a", Buffer.from("b")));
    const lists = [["a", "b"], ["ab"], ["b", "a"], ["a", "b", ""], [""], []];
    expect(new Set(lists.map((parts) => databaseHash(...parts))).size).toBe(lists.length);
  });
});
