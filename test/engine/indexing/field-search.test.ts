/** What a field of an index finds is what a scan of all entries finds, live ones only. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { FreeBudget, finish } from "../../../engine/base/work-budget.ts";
import { EntrySet } from "../../../engine/indexing/entry-set.ts";
import type { EntryView } from "../../../engine/indexing/entry-view.ts";
import { FieldColumn } from "../../../engine/indexing/field-column.ts";
import { FieldSearch } from "../../../engine/indexing/field-search.ts";
import { numberKind, textKind } from "../../../engine/indexing/term-dictionary.ts";

type Entry = readonly (string | number)[];

/** A field with these entries, every third of which is dead, and the same as a list. */
function fieldOf(entries: readonly Entry[]) {
  const column = new FieldColumn();
  const live = new Uint32Array((entries.length >>> 5) + 1);
  for (const [at, terms] of entries.entries()) {
    for (const term of new Set(terms)) {
      const bytes = Buffer.from(String(term));
      const kind = typeof term === "string" ? textKind : numberKind;
      const value = typeof term === "string" ? Number.NaN : term;
      column.add(column.dictionary.intern(kind, bytes, bytes.length, value));
    }
    column.endEntry();
    if (at % 3 !== 2) live[at >>> 5] = (live[at >>> 5] as number) | (1 << (at & 31));
  }
  const isLive = (at: number) => at % 3 !== 2;
  const all = () => EntrySet.ofWords(live.slice());
  const view = { size: entries.length, live, isLive, all, freeze: () => undefined };
  const search = new FieldSearch(view as unknown as EntryView, column, false, new FreeBudget());
  const scan = (isFound: (term: string | number) => boolean) =>
    [...entries.keys()].filter((at) => isLive(at) && entries[at]?.some(isFound));
  return { search, scan };
}

const numbersOf = (set: EntrySet) => [...set.toList()];

const term = fc.oneof(
  fc.constantFrom("a", "ab", "abc", "b", "ba"),
  fc.integer({ min: -3, max: 3 }),
);
const entries = fc.array(fc.array(term, { maxLength: 3 }), { maxLength: 70 });

test("terms are found whole, whatever else an entry has", () => {
  fc.assert(
    fc.property(entries, fc.constantFrom("a", "ab", "none"), (all, text) => {
      const { search, scan } = fieldOf(all);
      expect(numbersOf(finish(search.equalsTerm(text)))).toEqual(scan((one) => one === text));
      expect(numbersOf(finish(search.exists()))).toEqual(scan(() => true));
      expect(finish(search.isNull()).count).toBe(0);
    }),
  );
});

test("numbers are found in ranges, with their ends or without", () => {
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
