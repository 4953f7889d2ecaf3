/** The best entries for some words are the same as after scoring and sorting all entries. */
import { expect, test } from "vitest";
import { FreeBudget, finish } from "../../../../engine/base/scheduling/work-budget.ts";
import { BestEntries } from "../../../../engine/indexing/columns/best-entries.ts";
import { EntryStore } from "../../../../engine/indexing/columns/entry-store.ts";
import { EntryView } from "../../../../engine/indexing/columns/entry-view.ts";
import { textKind } from "../../../../engine/indexing/columns/term-dictionary.ts";
import { BestWords, type WeighedWord } from "../../../../engine/indexing/text/best-words.ts";
import type { TextColumn } from "../../../../engine/indexing/text/text-column.ts";
import { CoraxWeigher, type WeightOf } from "../../../../engine/indexing/text/word-weights.ts";
import { SeededRandom } from "../../../support/random.ts";

const budget = new FreeBudget();

function storeOf(random: SeededRandom, count: number): EntryStore {
  const store = new EntryStore(["text"]);
  const { dictionary } = store.columns[0] as TextColumn;
  for (let document = 0; document < count; document++) {
    const length = 1 + random.below(random.chance(0.01) ? 900 : 30);
    for (let i = 0; i < length; i++) {
      const word = `w${Math.floor(1 / (random.next() + 0.002))}`;
      store.columns[0]?.add(dictionary.internText(textKind, word, Number.NaN));
    }
    store.endEntry(document);
    if (random.chance(0.2)) store.remove(random.below(document + 1));
  }
  return store;
}

function weightOf(column: TextColumn, term: number, found: number, boost: number): WeightOf {
  return new CoraxWeigher().termWeight({ total: column.entryCount, found, boost }, column, term);
}

/** By definition: a sum over the words, in their order. */
function slowly(store: EntryStore, words: readonly WeighedWord[], isAll: boolean) {
  const column = store.columns[0] as TextColumn;
  const found: { readonly entry: number; readonly score: number }[] = [];
  for (const entry of store.all().toList()) {
    const terms = [...column.termsOf(entry)];
    const counts = words.map(({ term }) => terms.filter((one) => one === term).length);
    if (isAll ? counts.includes(0) : counts.every((count) => count === 0)) continue;
    const score = words.reduce((sum, { weightOf }, i) => {
      const count = counts[i] as number;
      return count === 0 ? sum : sum + weightOf(count);
    }, 0);
    found.push({ entry, score });
  }
  found.sort((a, b) => b.score - a.score || a.entry - b.entry);
  return found.map(({ entry }) => entry);
}

test("finds any or all of several words, in small and large lists", () => {
  const random = new SeededRandom(3);
  for (const count of [50, 3_000, 9_000]) {
    const store = storeOf(random, count);
    const column = store.columns[0] as TextColumn;
    for (let round = 0; round < 60; round++) {
      const words = Array.from({ length: 1 + random.below(4) }, () => {
        const rank = Math.floor(1 / (random.next() + 0.002));
        const term = column.dictionary.findText(textKind, `w${rank}`);
        const found = 1 + random.below(column.entryCount - 1);
        return { term, weightOf: weightOf(column, term, found, 0.01 + random.next() * 4) };
      }).filter(({ term }) => term >= 0);
      if (words.length === 0) continue;
      for (const isAll of [false, true]) {
        const wanted = 1 + random.below(round % 5 === 0 ? 500 : 12);
        const view = new EntryView(store);
        const best = new BestWords(column, view, words, wanted, budget);
        const { entries, total } = finish(isAll ? best.ofAll() : best.ofAny());
        const expected = slowly(store, words, isAll);
        expect(total).toBe(expected.length);
        expect([...entries], JSON.stringify(words)).toEqual(expected.slice(0, wanted));
      }
    }
  }
});

test("excludes entries that are added or removed while the query is paused", () => {
  const random = new SeededRandom(4);
  const store = storeOf(random, 6_000);
  const column = store.columns[0] as TextColumn;
  const term = column.dictionary.findText(textKind, "w1");
  const other = column.dictionary.findText(textKind, "w2");
  const words = [
    { term, weightOf: weightOf(column, term, 100, 1) },
    { term: other, weightOf: weightOf(column, other, 50, 1.5) },
  ];
  const expected = slowly(store, words, false);
  const due = new FreeBudget();
  Object.defineProperty(due, "isDue", { get: () => true });
  const view = new EntryView(store);
  const work = new BestWords(column, view, words, 10, due).ofAny();
  for (let step = work.next(); ; step = work.next()) {
    if (step.done === true) {
      expect(step.value.total).toBe(expected.length);
      expect([...step.value.entries]).toEqual(expected.slice(0, 10));
      break;
    }
    view.freeze();
    column.add(term);
    store.endEntry(10_000 + store.entryCount);
    store.remove(random.below(6_000));
  }
});

test("a heap keeps the best entries, the lower number first for equal scores", () => {
  const random = new SeededRandom(9);
  for (let round = 0; round < 300; round++) {
    const offered = Array.from({ length: random.below(60) }, (_, entry) => ({
      entry,
      score: random.below(6) / 2,
    })).sort(() => random.next() - 0.5);
    const wanted = 1 + random.below(20);
    const best = new BestEntries(wanted);
    for (const { entry, score } of offered) best.offer(entry, score);
    const expected = offered.toSorted((a, b) => b.score - a.score || a.entry - b.entry);
    const worst = expected[wanted - 1]?.score ?? Number.NEGATIVE_INFINITY;
    expect(best.threshold).toBe(worst);
    expect([...best.take()]).toEqual(expected.slice(0, wanted).map(({ entry }) => entry));
  }
});
