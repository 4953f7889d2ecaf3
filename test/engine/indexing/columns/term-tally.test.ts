import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { FreeBudget, finish } from "../../../../engine/base/scheduling/work-budget.ts";
import { EntryStore } from "../../../../engine/indexing/columns/entry-store.ts";
import { EntryView } from "../../../../engine/indexing/columns/entry-view.ts";
import { FieldColumn } from "../../../../engine/indexing/columns/field-column.ts";
import { FieldSearch } from "../../../../engine/indexing/columns/field-search.ts";
import {
  dateKind,
  gapTerm,
  nullTerm,
  numberKind,
  textKind,
} from "../../../../engine/indexing/columns/term-dictionary.ts";
import {
  EntryNumbers,
  TermTally,
  totalsOf,
  totalsWithin,
} from "../../../../engine/indexing/columns/term-tally.ts";

type Value = string | number | null;

const choice = { hasExtremes: true, isLucene: false };

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

/** Each text with its entries, starting with null and the empty text. */
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

/** All of `count` entries, in a store with nothing else. */
function viewOf(count: number): EntryView {
  const store = new EntryStore(0);
  for (let document = 0; document < count; document++) store.endEntry(document);
  return new EntryView(store);
}

const value = fc.oneof(
  fc.constantFrom<Value>("", "a", "b", "ab", "5", "z", "é", null),
  fc.integer({ min: -3, max: 9 }),
);
const values = fc.uniqueArray(value, { maxLength: 3 });

describe("TermTally", () => {
  it("counts each term once per entry, as a simple count does", () => {
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
            TermTally.of(
              column,
              Uint32Array.from(among),
              [new EntryNumbers(numberColumn, choice)],
              budget,
            ),
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

  it("sums the distinct numbers of an entry, reads dates as ticks, and ignores texts", () => {
    const column = columnOf([[8, 8, 2.5], ["7"], [], [-1]]);
    const date = Buffer.from("2024-01-01");
    column.add(column.dictionary.intern(dateKind, date, date.length, 1));
    column.endEntry();
    const totals = (isLucene: boolean) => {
      const numbers = [new EntryNumbers(column, { hasExtremes: true, isLucene })];
      return finish(totalsOf(Uint32Array.of(0, 1, 2, 3, 4), numbers, new FreeBudget()))[0];
    };
    const ticks = 621_355_968_000_010_000;
    expect(totals(false)).toEqual({ count: 3, sum: 9.5 + ticks, min: -1, max: ticks });
    expect(totals(true)).toEqual({ count: 2, sum: 7, min: -1, max: 8 });
    expect(
      finish(totalsOf(Uint32Array.of(0), [new EntryNumbers(undefined, choice)], new FreeBudget())),
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
          const counts = finish(
            tally.countsWithin([{ low, hasLow, high, hasHigh, isWhole: false }]),
          );
          expect(counts).toEqual([within.length]);
          expect(tally.hasSeveral).toBe(false);
        },
      ),
    );
  });

  it("sums numbers within intervals as the equivalent conditions do", () => {
    const bounds = fc.uniqueArray(fc.constantFrom(-2, -1, 0, 1, 2, 3), { maxLength: 5 });
    const compared = fc.constantFrom<Value>(-2, -1.5, -0.5, 0, 0.5, 1, 1.5, 2, 2.9, "1", null);
    const rows = fc.array(fc.tuple(compared, value));
    const forms = fc.record({ isWhole: fc.boolean(), isSeveral: fc.boolean() });
    fc.assert(
      fc.property(
        rows,
        bounds,
        fc.boolean(),
        forms,
        (all, ends, hasLow, { isWhole, isSeveral }) => {
          const entries = all.map(([one]) => (one === null ? [] : [one]));
          const column = columnOf(isSeveral ? [...entries, [1, 2]] : entries);
          const numbers = columnOf(all.map(([, one]) => [one]));
          const limits = [Number.NEGATIVE_INFINITY, ...ends.sort((a, b) => a - b), Infinity];
          const intervals = limits.slice(1).map((high, i) => {
            const low = limits[i] as number; // The previous one.
            return { low, hasLow, high, hasHigh: !hasLow, isWhole };
          });
          const budget = new FreeBudget();
          const listed = Uint32Array.from(all.keys());
          const found = finish(
            totalsWithin(column, intervals, listed, [new EntryNumbers(numbers, choice)], budget),
          );
          expect(found === null).toBe(isSeveral);
          if (found === null) return;
          const search = new FieldSearch(viewOf(all.length), column, false, budget);
          for (const [i, { low, high, hasHigh }] of intervals.entries()) {
            const bound = (one: number, isInclusive: boolean) =>
              Number.isFinite(one) ? { text: String(one), isInclusive } : null;
            const [from, to] = [bound(low, hasLow), bound(high, hasHigh)];
            const within = finish(
              isWhole ? search.rangeLong(from, to) : search.rangeDouble(from, to),
            );
            const [totals] = finish(
              totalsOf(within.toList(), [new EntryNumbers(numbers, choice)], budget),
            );
            expect(found[i]).toEqual({ count: within.count, totals: [totals] });
          }
        },
      ),
      { numRuns: 300 },
    );
  });

  it("rejects overlapping intervals and intervals of dates", () => {
    const column = columnOf([[1], [5]]);
    const interval = { low: 0, hasLow: true, high: 3, hasHigh: true, isWhole: false };
    const within = (...intervals: (typeof interval)[]) =>
      finish(totalsWithin(column, intervals, Uint32Array.of(0, 1), [], new FreeBudget()));
    expect(within(interval, { ...interval, low: 4, high: 5 })?.map(({ count }) => count)).toEqual([
      1, 1,
    ]);
    expect(within(interval, { ...interval, low: 1 })).toBe(null);
    const date = Buffer.from("2024-01-01");
    column.dictionary.intern(dateKind, date, date.length, 1);
    expect(within(interval)).toBe(null);
  });

  it("orders the first few of many terms without sorting all", () => {
    const names = Array.from({ length: 5_000 }, (_, i) => `n${(i * 7919) % 5_003}`);
    const column = columnOf(names.map((name) => [name]));
    const entries = Uint32Array.of(7, 11, 4_000);
    const tally = finish(TermTally.of(column, entries, [], new FreeBudget()));
    const sought = [...entries].map((entry) => names[entry] as string).sort();
    expect([...finish(tally.ordered())].map((term) => tally.textOf(term))).toEqual(sought);
    expect(column.hasOrder("bytes")).toBe(false);
  });
});
