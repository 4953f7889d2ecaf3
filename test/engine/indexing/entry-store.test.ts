import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BytesColumn } from "../../../engine/indexing/bytes-column.ts";
import { EntryStore } from "../../../engine/indexing/entry-store.ts";
import type { FieldColumn } from "../../../engine/indexing/field-column.ts";
import { NumberColumn } from "../../../engine/indexing/number-column.ts";
import { gapTerm, textKind } from "../../../engine/indexing/term-dictionary.ts";

/** What a document has in the store: the terms of a column of values, the words of a text, a number and a stored text. */
interface Values {
  readonly terms: readonly string[];
  readonly words: readonly string[];
  readonly number: number;
  readonly stored: string | null;
}

function newStore(): EntryStore {
  return new EntryStore(["values", "text"], [new NumberColumn(), new BytesColumn()]);
}

function add(store: EntryStore, { terms, words, number, stored }: Values): void {
  const [values, text] = store.columns as [FieldColumn, FieldColumn];
  for (const term of terms) values.add(values.dictionary.internText(textKind, term, Number.NaN));
  for (const word of words) text.add(text.dictionary.internText(textKind, word, Number.NaN));
  if (words.length > 0) text.add(gapTerm);
  const [numbers, bytes] = store.extras as [NumberColumn, BytesColumn];
  numbers.set(number);
  if (stored !== null) bytes.setText(stored);
}

function valuesOf(store: EntryStore, entry: number): Values {
  const [terms, words] = store.columns.map((column) =>
    [...column.termsOf(entry)]
      .filter((term) => term !== gapTerm)
      .map((term) => column.dictionary.textOf(term)),
  ) as [string[], string[]];
  const [numbers, bytes] = store.extras as [NumberColumn, BytesColumn];
  return { terms, words, number: numbers.numbers[entry] as number, stored: bytes.textOf(entry) };
}

const word = fc.constantFrom("a", "b", "cc", "ddd");
const anyValues: fc.Arbitrary<Values> = fc.record({
  terms: fc.array(word, { maxLength: 2 }),
  words: fc.array(word, { maxLength: 4 }),
  number: fc.integer({ min: 0, max: 2 }),
  stored: fc.option(word),
});
const anyChange = fc.record({ document: fc.nat(5), values: fc.option(anyValues, { freq: 4 }) });

describe("EntryStore", () => {
  it("keeps the entry of a document whose values are the same, and makes a new one otherwise", () => {
    fc.assert(
      fc.property(fc.array(anyChange, { maxLength: 60 }), (changes) => {
        const store = newStore();
        const expected = new Map<number, { readonly entry: number; readonly values: Values }>();
        for (const { document, values } of changes) {
          if (values === null) {
            expect(store.remove(document)).toBe(expected.delete(document) ? 1 : 0);
            continue;
          }
          const before = expected.get(document);
          const isSame = JSON.stringify(before?.values) === JSON.stringify(values);
          const entry = isSame ? (before?.entry as number) : store.entryCount;
          add(store, values);
          expect(store.replaceEntry(document)).toBe(entry);
          expected.set(document, { entry, values });
        }
        store.checkInvariants();
        expect(store.liveCount).toBe(expected.size);
        for (const [document, { entry, values }] of expected) {
          expect(store.firstOf(document)).toBe(entry);
          expect(valuesOf(store, entry)).toEqual(values);
        }
      }),
      { numRuns: 300 },
    );
  });

  it("forgets what was added to an entry that is not ended", () => {
    const store = newStore();
    const values: Values = { terms: ["a"], words: ["b", "b"], number: 1, stored: "text" };
    add(store, values);
    store.dropPending();
    store.checkInvariants();
    add(store, { ...values, terms: [], stored: null });
    expect(valuesOf(store, store.endEntry(7))).toEqual({ ...values, terms: [], stored: null });
    store.checkInvariants();
  });

  it("replaces several entries of a document by one, though the first is the same", () => {
    const store = newStore();
    const values: Values = { terms: ["a"], words: [], number: 0, stored: null };
    for (let n = 0; n < 2; n++) {
      add(store, values);
      store.endEntry(3);
    }
    add(store, values);
    expect(store.replaceEntry(3)).toBe(2);
    expect(store.liveCount).toBe(1);
    store.checkInvariants();
  });
});
