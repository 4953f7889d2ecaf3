import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { FreeBudget, finish } from "../../../engine/base/work-budget.ts";
import { FieldColumn } from "../../../engine/indexing/field-column.ts";
import {
  dateKind,
  gapTerm,
  nullTerm,
  numberKind,
  textKind,
} from "../../../engine/indexing/term-dictionary.ts";
import { EntryNumbers, TermTally, totalsOf } from "../../../engine/indexing/term-tally.ts";

type Value = string | number | null;

function columnOf(entries: readonly (readonly Value[])[]): FieldColumn {
  const column = new FieldColumn();
  for (const values of entries) {
    for (const value of values) column.add(termOf(column, value));
    if (values.length > 1) column.add(gapTerm);
    column.endEntry();
  }
  return column;
}

function termOf({ dictionary }: FieldColumn, value: Value): number {
  if (value === null) return nullTerm;
  const bytes = Buffer.from(String(value));
  return typeof value === "number"
    ? dictionary.intern(numberKind, bytes, bytes.length, value)
    : dictionary.intern(textKind, bytes, bytes.length, Number.NaN);
}

function shown(value: Value): string {
  return value === null ? "NULL_VALUE" : value === "" ? "EMPTY_STRING" : String(value);
}

const first = ["NULL_VALUE", "EMPTY_STRING"];

/** Each text with its entries, those of null and the empty text first. */
function slowCounts(entries: readonly (readonly Value[])[], among: readonly number[]) {
  const counts = new Map<string, number>();
  for (const entry of among) {
    for (const value of new Set(entries[entry])) {
      counts.set(shown(value), (counts.get(shown(value)) ?? 0) + 1);
    }
  }
  const place = (text: string) => (first.includes(text) ? first.indexOf(text) : first.length);
  return [...counts].sort(
    ([a], [b]) => place(a) - place(b) || Buffer.compare(Buffer.from(a), Buffer.from(b)),
  );
}

const value = fc.oneof(
  fc.constantFrom<Value>("", "a", "b", "ab", "5", "z", "é", null),
  fc.integer({ min: -3, max: 9 }),
);
const values = fc.uniqueArray(value, { maxLength: 3 });

describe("TermTally", () => {
  it("counts each term once for an entry, as counting by hand does", () => {
    fc.assert(
      fc.property(
        fc.array(values, { maxLength: 30 }),
        fc.array(values, { maxLength: 30 }),
        fc.array(fc.nat(29)),
        (entries, numbers, picked) => {
          const column = columnOf(entries);
          const numberColumn = columnOf(entries.map((_, i) => numbers[i] ?? []));
          const among = [...new Set(picked)]
            .filter((i) => i < entries.length)
            .sort((a, b) => a - b);
          const budget = new FreeBudget();
          const tally = finish(
            TermTally.of(column, Uint32Array.from(among), [new EntryNumbers(numberColumn)], budget),
          );
          const ordered = [...finish(tally.ordered())];
          const counted = ordered.map((term) => [tally.textOf(term), tally.countOf(term)]);
          expect(counted).toEqual(slowCounts(entries, among));
          for (const term of ordered) {
            const text = tally.textOf(term);
            const having = among.filter((i) => entries[i]?.some((one) => shown(one) === text));
            // An entry with a number and the same text counts twice in a merged term.
            if (having.length !== tally.countOf(term)) continue;
            const found = having.flatMap((i) =>
              (numbers[i] ?? []).filter((one) => typeof one === "number"),
            );
            const [totals] = tally.totalsOf(term);
            expect(totals?.sum).toBeCloseTo(found.reduce((sum, one) => sum + one, 0));
            expect(totals?.min).toBe(found.length === 0 ? Number.MAX_VALUE : Math.min(...found));
            expect(totals?.max).toBe(found.length === 0 ? -Number.MAX_VALUE : Math.max(...found));
          }
        },
      ),
    );
  });

  it("sums up distinct numbers of an entry, and takes dates and texts for none", () => {
    const column = columnOf([[8, 8, 2.5], ["7"], [], [-1]]);
    const date = Buffer.from("2024-01-01");
    column.add(column.dictionary.intern(dateKind, date, date.length, 1));
    column.endEntry();
    const [totals] = finish(
      totalsOf(Uint32Array.of(0, 1, 2, 3, 4), [new EntryNumbers(column)], new FreeBudget()),
    );
    expect(totals).toEqual({ count: 2, sum: 9.5, min: -1, max: 8 });
    expect(
      finish(totalsOf(Uint32Array.of(0), [new EntryNumbers(undefined)], new FreeBudget())),
    ).toEqual([{ count: 0, sum: 0, min: Number.MAX_VALUE, max: -Number.MAX_VALUE }]);
  });

  it("counts numbers within intervals", () => {
    const bound = fc.constantFrom(-1, 0, 0.5, 1, 2, Number.POSITIVE_INFINITY);
    const numbers = fc.array(fc.constantFrom<Value>(-1, 0, 0.5, 1, 1.5, 2, "1", null));
    fc.assert(
      fc.property(
        numbers,
        bound,
        fc.boolean(),
        bound,
        fc.boolean(),
        (all, a, hasLow, high, hasHigh) => {
          const low = Number.isFinite(a) ? a : Number.NEGATIVE_INFINITY;
          const column = columnOf(all.map((one) => [one]));
          const entries = Uint32Array.from(all.keys());
          const tally = finish(TermTally.of(column, entries, [], new FreeBudget()));
          const within = all.filter(
            (one) =>
              typeof one === "number" &&
              (hasLow ? one >= low : one > low) &&
              (hasHigh ? one <= high : one < high),
          );
          const counts = finish(tally.countsWithin([{ low, hasLow, high, hasHigh }]));
          expect(counts).toEqual([within.length]);
          expect(tally.hasSeveral).toBe(false);
        },
      ),
    );
  });

  it("orders few of many terms without the order of all", () => {
    const names = Array.from({ length: 5_000 }, (_, i) => `n${(i * 7919) % 5_003}`);
    const column = columnOf(names.map((name) => [name]));
    const entries = Uint32Array.of(7, 11, 4_000);
    const tally = finish(TermTally.of(column, entries, [], new FreeBudget()));
    const sought = [...entries].map((entry) => names[entry] as string).sort();
    expect([...finish(tally.ordered())].map((term) => tally.textOf(term))).toEqual(sought);
    expect(column.hasOrder("bytes")).toBe(false);
  });
});
