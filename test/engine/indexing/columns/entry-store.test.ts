import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BytesColumn } from "../../../../engine/indexing/columns/bytes-column.ts";
import { EntryStore } from "../../../../engine/indexing/columns/entry-store.ts";
import type { FieldColumn } from "../../../../engine/indexing/columns/field-column.ts";
import { NumberColumn } from "../../../../engine/indexing/columns/number-column.ts";
import { gapTerm, textKind } from "../../../../engine/indexing/columns/term-dictionary.ts";
import { PartReader, PartWriter } from "../../../../engine/indexing/saved/saved-parts.ts";

/**
 * The stored values of a document: the terms of a column, the words of a text, a number and a
 * stored text.
 */
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
/** The new entries of a document; most documents have one. */
const anyEntries = fc.record({
  document: fc.nat(7),
  entries: fc.oneof(
    { weight: 6, arbitrary: fc.array(anyValues, { minLength: 1, maxLength: 1 }) },
    { weight: 1, arbitrary: fc.array(anyValues, { maxLength: 3 }) },
  ),
  /** Number of positions that a compaction copies. */
  copied: fc.option(fc.nat(3), { freq: 2, nil: 0 }),
});
const anyChange = fc.record({ document: fc.nat(5), values: fc.option(anyValues, { freq: 4 }) });

describe("EntryStore", () => {
  it("keeps the entry of a document whose values are unchanged, and creates a new one otherwise", () => {
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

  it("discards the additions to an entry that was not finished", () => {
    const store = newStore();
    const values: Values = { terms: ["a"], words: ["b", "b"], number: 1, stored: "text" };
    add(store, values);
    store.dropPending();
    store.checkInvariants();
    add(store, { ...values, terms: [], stored: null });
    expect(valuesOf(store, store.endEntry(7))).toEqual({ ...values, terms: [], stored: null });
    store.checkInvariants();
  });

  it("replaces several entries of a document by one, even if the first is equal", () => {
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

  it("keeps the position of a document with one entry before and after, also when it is copied and restored", () => {
    fc.assert(
      fc.property(fc.array(anyEntries, { maxLength: 80 }), fc.boolean(), (changes, isSaved) => {
        let store = newStore();
        // A map keeps the position of a key that is set again.
        const expected = new Map<number, readonly Values[]>();
        for (const { document, entries, copied } of changes) {
          const [only, ...others] = entries;
          if (only !== undefined && others.length === 0) {
            add(store, only);
            store.replaceEntry(document);
            if (expected.get(document)?.length !== 1) expected.delete(document);
          } else {
            store.remove(document);
            expected.delete(document);
            for (const values of entries) {
              add(store, values);
              store.endEntry(document);
            }
          }
          if (entries.length > 0) expected.set(document, entries);
          for (let n = 0; n < copied; n++) store = store.compact(() => true) ?? store;
          store.checkInvariants();
          expect(inOrder(store)).toEqual([...expected]);
        }
        if (isSaved) store = restoredFrom(store);
        const documents = [...expected].map(([document, entries]) => [
          isSaved ? numberNow(document) : document,
          entries,
        ]);
        store.checkInvariants();
        expect(inOrder(store)).toEqual(documents);
        // A compaction may have started before.
        for (let n = 0; n < 2; n++) {
          store = store.compact(() => false) as EntryStore;
          store.checkInvariants();
          expect(inOrder(store)).toEqual(documents);
        }
        expect(store.places).toBeNull();
      }),
      { numRuns: 500 },
    );
  });
});

/** The documents with their entries, in position order. */
function inOrder(store: EntryStore): [number, Values[]][] {
  const found: [number, Values[]][] = [];
  for (let place = 0; place < store.entryCount; place++) {
    const first = store.entryAt(place);
    if (first < 0) continue;
    const document = store.documents[first] as number;
    expect(store.placeOf(first)).toBe(place);
    const values = valuesOf(store, first);
    if (store.firstOf(document) !== first) found.at(-1)?.[1].push(values);
    else found.push([document, [values]]);
  }
  return found;
}

/** The number of a document after the database was reopened. */
function numberNow(document: number): number {
  return (3 * document + 1) % 8;
}

function restoredFrom(store: EntryStore): EntryStore {
  const writer = new PartWriter();
  store.save(writer);
  const sections = new Map(
    writer.sections.map(({ name, parts }) => [name, Buffer.from(Buffer.concat([...parts]))]),
  );
  const values = JSON.parse(JSON.stringify(writer.values)) as Record<string, unknown>;
  const restored = newStore();
  for (const _ of restored.restore(new PartReader(sections, values), numberNow));
  return restored;
}
