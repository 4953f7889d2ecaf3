import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { FreeBudget, finish } from "../../../../engine/base/scheduling/work-budget.ts";
import { FieldColumn } from "../../../../engine/indexing/columns/field-column.ts";
import { sortByKey } from "../../../../engine/indexing/columns/packed.ts";
import { numberKind, textKind } from "../../../../engine/indexing/columns/term-dictionary.ts";

function addText(column: FieldColumn, text: string): void {
  const bytes = Buffer.from(text);
  column.add(column.dictionary.intern(textKind, bytes, bytes.length, Number.NaN));
}

function orderedTexts(column: FieldColumn): string[] {
  const order = finish(column.orderInSlices("bytes", new FreeBudget()));
  return Array.from(order.terms, (term) => column.dictionary.textOf(term));
}

function byBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

const texts = fc.array(
  fc.oneof(fc.string(), fc.constantFrom("a", "aa", "aaaa", "aaaab", "b\0", "b")),
);

describe("FieldColumn", () => {
  it("keeps terms in order while batches arrive", () => {
    fc.assert(
      fc.property(fc.array(texts, { maxLength: 5 }), (batches) => {
        const column = new FieldColumn();
        const seen = new Set<string>();
        for (const batch of batches) {
          for (const text of batch) {
            addText(column, text);
            column.endEntry();
            seen.add(text);
          }
          expect(orderedTexts(column)).toEqual([...seen].sort(byBytes));
        }
        column.checkInvariants();
      }),
    );
  });

  it("sorts many terms with long common prefixes as comparisons do", () => {
    const column = new FieldColumn();
    const all = Array.from(
      { length: 20_000 },
      (_, i) => `users/${"x".repeat(i % 7)}${(i * 7919) % 20_011}`,
    );
    for (const text of all) {
      addText(column, text);
      column.endEntry();
    }
    expect(orderedTexts(column)).toEqual([...new Set(all)].sort(byBytes));
  });

  it("sorts numbers by value, beyond double precision", () => {
    const digits = [
      "-3.5",
      "0.1",
      "10",
      "9",
      "9007199254740993",
      "9007199254740992",
      "1e300",
      "-1e300",
    ];
    const column = new FieldColumn();
    for (const text of digits) {
      const bytes = Buffer.from(text);
      column.add(column.dictionary.intern(numberKind, bytes, bytes.length, Number(text)));
      column.endEntry();
    }
    const order = finish(column.orderInSlices("number", new FreeBudget()));
    expect(Array.from(order.terms, (term) => column.dictionary.textOf(term))).toEqual([
      "-1e300",
      "-3.5",
      "0.1",
      "9",
      "10",
      "9007199254740992",
      "9007199254740993",
      "1e300",
    ]);
  });

  it("sorts more numbers than a radix pass needs", () => {
    const column = new FieldColumn();
    const numbers = Array.from(
      { length: 10_000 },
      (_, i) => ((i * 7919) % 10_007) - 5000 + (i % 4) / 4,
    );
    for (const number of numbers) {
      const bytes = Buffer.from(String(number));
      column.add(column.dictionary.intern(numberKind, bytes, bytes.length, number));
      column.endEntry();
    }
    const order = finish(column.orderInSlices("number", new FreeBudget()));
    const values = Array.from(order.terms, (term) => column.dictionary.values[term]);
    expect(values).toEqual([...new Set(numbers)].sort((a, b) => a - b));
  });
});

describe("sortByKey", () => {
  it("is stable below and above the size where the algorithm changes", () => {
    for (const count of [10, 5000]) {
      const keys = Uint32Array.from(
        { length: count },
        (_, i) => ((i * 2_654_435_761) % 97) * 70_000,
      );
      const items = Uint32Array.from({ length: count }, (_, i) => i);
      sortByKey(items, count, keys);
      const expected = Array.from({ length: count }, (_, i) => i).sort(
        (a, b) => (keys[a] as number) - (keys[b] as number) || a - b,
      );
      expect([...items]).toEqual(expected);
    }
  });
});
