import { describe, expect, it } from "vitest";
import { FreeBudget, finish } from "../../../../engine/base/scheduling/work-budget.ts";
import { type EntrySet, EntrySetBuilder } from "../../../../engine/indexing/columns/entry-set.ts";
import { EntryStore } from "../../../../engine/indexing/columns/entry-store.ts";
import { EntryView } from "../../../../engine/indexing/columns/entry-view.ts";
import { firstInPlaces, sortedByPlace } from "../../../../engine/indexing/columns/place-order.ts";
import { textKind } from "../../../../engine/indexing/columns/term-dictionary.ts";
import { SeededRandom } from "../../../support/random.ts";
import { seedOfRun } from "../../../support/seed.ts";

let versions = 0;

/** Adds an entry to a document without one. */
function change(store: EntryStore, document: number): void {
  const [column] = store.columns;
  column?.add(column.dictionary.internText(textKind, `version ${versions++}`, Number.NaN));
  store.replaceEntry(document);
}

describe("the order of entry positions", () => {
  const seed = seedOfRun();
  /** Sets that are lists and bitmaps, from stores in which few and most documents were changed. */
  it.each([
    [200, 3],
    [200, 150],
    [5000, 2],
    [5000, 4000],
    [40_000, 30_000],
  ])("of %i documents, after %i changes", (count, changes) => {
    const random = new SeededRandom(seed);
    const store = new EntryStore(1);
    /** The documents in the expected order. */
    const order = new Set<number>();
    for (let n = 0; n < count; n++) {
      change(store, n);
      order.add(n);
    }
    for (let n = 0; n < changes; n++) {
      const document = random.below(count);
      if (!random.chance(0.1)) change(store, document);
      else {
        store.remove(document);
        order.delete(document);
        continue;
      }
      order.add(document);
    }
    for (const share of [1, 0.5, 0.1, 0.01, 0.001]) {
      const set = chosen(store, () => random.chance(share));
      const members = new Set([...set.toList()].map((entry) => store.documents[entry] as number));
      const expected = [...order].filter((document) => members.has(document));
      const reader = { view: new EntryView(store), store, budget: new FreeBudget() };
      const documents = (entries: Uint32Array) =>
        [...entries].map((entry) => store.documents[entry]);
      expect(documents(finish(sortedByPlace(set.toList(), reader)))).toEqual(expected);
      for (const page of [0, 1, 10, 1000]) {
        expect(documents(finish(firstInPlaces(set, page, reader)))).toEqual(
          expected.slice(0, page),
        );
      }
    }
  });

  it("is the order at the start of the query", () => {
    const store = new EntryStore(1);
    for (let n = 0; n < 100; n++) change(store, n);
    change(store, 5);
    const view = new EntryView(store);
    const set = view.all();
    view.freeze();
    for (const document of [5, 7, 7, 2]) change(store, document);
    store.remove(3);
    const reader = { view, store, budget: new FreeBudget() };
    const documents = [...finish(firstInPlaces(set, 10, reader))].map((n) => store.documents[n]);
    expect(documents).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  });
});

function chosen(store: EntryStore, isIn: () => boolean): EntrySet {
  const builder = new EntrySetBuilder(store.entryCount);
  for (let entry = 0; entry < store.entryCount; entry++) {
    if (store.isLive(entry) && isIn()) builder.add(entry);
  }
  return builder.finish();
}
