/** A search in a field of an index finds the same live entries as a scan of all entries. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { FreeBudget, finish } from "../../../../engine/base/scheduling/work-budget.ts";
import { EntrySet } from "../../../../engine/indexing/columns/entry-set.ts";
import type { EntryView } from "../../../../engine/indexing/columns/entry-view.ts";
import { FieldColumn } from "../../../../engine/indexing/columns/field-column.ts";
import { FieldSearch } from "../../../../engine/indexing/columns/field-search.ts";
import { numberKind, textKind } from "../../../../engine/indexing/columns/term-dictionary.ts";

type Entry = readonly (string | number)[];

function addTo(column: FieldColumn, terms: Entry): void {
  for (const term of new Set(terms)) {
    const bytes = Buffer.from(String(term));
    const kind = typeof term === "string" ? textKind : numberKind;
    const value = typeof term === "string" ? Number.NaN : term;
    column.add(column.dictionary.intern(kind, bytes, bytes.length, value));
  }
  column.endEntry();
}

/** A field with these entries, every third of which is dead, and the same as a list. */
function fieldOf(entries: readonly Entry[], budget = new FreeBudget()) {
  const column = new FieldColumn();
  const live = new Uint32Array((entries.length >>> 5) + 1);
  for (const [at, terms] of entries.entries()) {
    addTo(column, terms);
    if (at % 3 !== 2) live[at >>> 5] = (live[at >>> 5] as number) | (1 << (at & 31));
  }
  const isLive = (at: number) => at % 3 !== 2;
  const all = () => EntrySet.ofWords(live.slice());
  const view = { size: entries.length, live, isLive, all, freeze: () => undefined };
  const searchIn = (within: EntrySet | null) =>
    new FieldSearch(view as unknown as EntryView, column, false, budget, within);
  const search = searchIn(null);
  const scan = (isFound: (term: string | number) => boolean) =>
    [...entries.keys()].filter((at) => isLive(at) && entries[at]?.some(isFound));
  return { column, search, searchIn, scan };
}

const numbersOf = (set: EntrySet) => [...set.toList()];

const term = fc.oneof(
  fc.constantFrom("a", "ab", "abc", "b", "ba"),
  fc.integer({ min: -3, max: 3 }),
);
const entries = fc.array(fc.array(term, { maxLength: 3 }), { maxLength: 70 });

test("finds whole terms, whatever other terms an entry has", () => {
  fc.assert(
    fc.property(entries, fc.constantFrom("a", "ab", "none"), (all, text) => {
      const { search, scan } = fieldOf(all);
      expect(numbersOf(finish(search.equalsTerm(text)))).toEqual(scan((one) => one === text));
      expect(numbersOf(finish(search.exists()))).toEqual(scan(() => true));
      expect(finish(search.isNull()).count).toBe(0);
    }),
  );
});

test("finds numbers in ranges, inclusive or exclusive", () => {
  const bound = fc.record({
    text: fc.integer({ min: -3, max: 3 }).map(String),
    isInclusive: fc.boolean(),
  });
  fc.assert(
    fc.property(entries, fc.option(bound), fc.option(bound), (all, low, high) => {
      const { search, scan } = fieldOf(all);
      const isIn = (one: string | number) =>
        typeof one === "number" &&
        (low === null || one > Number(low.text) || (low.isInclusive && one === Number(low.text))) &&
        (high === null ||
          one < Number(high.text) ||
          (high.isInclusive && one === Number(high.text)));
      expect(numbersOf(finish(search.rangeLong(low, high)))).toEqual(scan(isIn));
    }),
  );
});

describe("finds a range that contains many of the values", () => {
  /** The values of an entry, by its number. */
  const fields: Readonly<Record<string, (at: number) => Entry>> = {
    "one value each": (at) => [at % 7 === 0 ? `t${at % 10}` : (at * 7) % 1000],
    "one value at most": (at) => (at % 11 === 0 ? [] : [(at * 7) % 1000]),
    "several values": (at) => Array.from({ length: at % 4 }, (_, i) => (at * (i + 3)) % 1000),
    "unique values": (at) => [at % 2 === 0 ? at / 20 : `t${at}`],
  };

  test.each(Object.entries(fields))("finds all entries: %s", (_name, valuesOf) => {
    const { search, scan } = fieldOf(Array.from({ length: 20_000 }, (_, at) => valuesOf(at)));
    for (const [low, high] of [
      [0, 1000],
      [5, 900],
      [400, 600],
      [998, 999],
    ] as const) {
      const ends = [low, high].map((end) => ({ text: String(end), isInclusive: true }));
      const found = finish(search.rangeDouble(ends[0] ?? null, ends[1] ?? null));
      const isIn = (one: string | number) => typeof one === "number" && one >= low && one <= high;
      expect(numbersOf(found)).toEqual(scan(isIn));
    }
    for (const prefix of ["t", "t1"]) {
      const isFound = (one: string | number) => typeof one === "string" && one.startsWith(prefix);
      expect(numbersOf(finish(search.startsWith(prefix)))).toEqual(scan(isFound));
    }
  });

  test.each(Object.entries(fields))("finds entries within a subset: %s", (_name, valuesOf) => {
    const { searchIn, scan } = fieldOf(Array.from({ length: 20_000 }, (_, at) => valuesOf(at)));
    for (const step of [1, 3, 20, 60, 400, 5_000]) {
      const some = Array.from({ length: 20_000 }, (_, at) => at).filter((at) => at % step === 0);
      const within = EntrySet.ofSorted(Uint32Array.from(some.filter((at) => at % 3 !== 2)));
      const among = (found: EntrySet) => numbersOf(found).filter((at) => within.has(at));
      const search = searchIn(within);
      const expected = (isFound: (one: string | number) => boolean) =>
        scan(isFound).filter((at) => within.has(at));
      for (const low of [0, 500, 990]) {
        const found = finish(search.rangeDouble({ text: String(low), isInclusive: true }, null));
        expect(among(found)).toEqual(expected((one) => typeof one === "number" && one >= low));
      }
      expect(among(finish(search.equalsTerm("7")))).toEqual(expected((one) => one === 7));
      const isText = (one: string | number) => typeof one === "string";
      expect(among(finish(search.startsWith("t")))).toEqual(expected(isText));
    }
  });

  test.each(Object.entries(fields))("excludes entries added during a pause: %s", (_n, valuesOf) => {
    const due = new FreeBudget();
    Object.defineProperty(due, "isDue", { get: () => true });
    const all = Array.from({ length: 20_000 }, (_, at) => valuesOf(at));
    const { column, search, scan } = fieldOf(all, due);
    const work = search.rangeDouble({ text: "3", isInclusive: true }, null);
    for (let step = work.next(), at = 0; ; step = work.next(), at++) {
      if (step.done === true) {
        expect(at).toBeGreaterThan(3);
        expect(numbersOf(step.value)).toEqual(scan((one) => typeof one === "number" && one >= 3));
        break;
      }
      addTo(column, [50, 100 + at, 1000.5 + at].slice(0, at % 4));
    }
  });
});
