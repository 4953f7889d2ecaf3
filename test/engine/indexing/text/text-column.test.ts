/** A packed column returns the same as an unpacked one with the same values. */
import { describe, expect, it } from "vitest";
import { FreeBudget, finish } from "../../../../engine/base/scheduling/work-budget.ts";
import { EntrySetBuilder } from "../../../../engine/indexing/columns/entry-set.ts";
import { EntryStore } from "../../../../engine/indexing/columns/entry-store.ts";
import { EntryView } from "../../../../engine/indexing/columns/entry-view.ts";
import type { FieldColumn } from "../../../../engine/indexing/columns/field-column.ts";
import { FieldSearch } from "../../../../engine/indexing/columns/field-search.ts";
import {
  firstTerm,
  gapTerm,
  nullTerm,
  numberKind,
  textKind,
} from "../../../../engine/indexing/columns/term-dictionary.ts";
import { EntryNumbers, TermTally } from "../../../../engine/indexing/columns/term-tally.ts";
import { PartReader, PartWriter } from "../../../../engine/indexing/saved/saved-parts.ts";
import { TextColumn } from "../../../../engine/indexing/text/text-column.ts";
import { SeededRandom } from "../../../support/random.ts";

const budget = new FreeBudget();

/** Two columns of the same values: packed, and not. */
class Columns {
  store = new EntryStore(["text", "values"]);
  readonly random: SeededRandom;
  readonly #live = new Set<number>();

  constructor(seed: number) {
    this.random = new SeededRandom(seed);
  }

  get packed(): TextColumn {
    return this.store.columns[0] as TextColumn;
  }

  get plain(): FieldColumn {
    return this.store.columns[1] as FieldColumn;
  }

  /** A few words are in most entries, and most words in few. */
  word(): string {
    return `w${Math.floor(1 / (this.random.next() + 0.0005))}`;
  }

  change(): void {
    const { random } = this;
    const document = random.below(4000);
    this.store.remove(document);
    this.#live.delete(document);
    if (random.chance(0.1)) return;
    const length = random.chance(0.02) ? 3000 : random.below(40);
    for (let i = 0; i < length; i++) {
      if (random.chance(0.04)) this.#add(null, random.chance(0.5) ? gapTerm : nullTerm);
      else this.#add(random.chance(0.1) ? String(random.below(20)) : this.word(), 0);
    }
    this.store.endEntry(document);
    this.#live.add(document);
  }

  #add(text: string | null, marker: number): void {
    for (const column of this.store.columns) {
      const isNumber = text !== null && /^\d/.test(text);
      column.add(
        text === null
          ? marker
          : column.dictionary.internText(
              isNumber ? numberKind : textKind,
              text,
              isNumber ? Number(text) : Number.NaN,
            ),
      );
    }
  }

  compare(): void {
    const { packed, plain, store } = this;
    store.checkInvariants();
    expect(packed.valueCount).toBe(plain.valueCount);
    expect(packed.hasSeveral).toBe(plain.hasSeveral);
    expect(packed.emptyCount).toBe(plain.emptyCount);
    expect(packed.dictionary.count).toBe(plain.dictionary.count);
    for (let entry = 0; entry < store.entryCount; entry += 7) {
      expect(packed.lengthOf(entry)).toBe(plain.lengthOf(entry));
      expect([...packed.termsOf(entry)]).toEqual([...plain.termsOf(entry)]);
    }
    for (let term = 1; term < plain.dictionary.count; term += term < 40 ? 1 : 5) {
      const entries = [...new Set(plain.entriesOf(term))];
      expect([...packed.entriesOf(term)].join()).toBe(entries.join());
      expect(packed.counts[term] ?? 0).toBe(plain.counts[term] ?? 0);
      const live = entries.filter((entry) => store.isLive(entry)).length;
      expect(packed.postings.lives[term] ?? 0).toBe(live);
      this.#compareSeeks(term, entries);
      const bits = finish(packed.bitsOf(term, budget));
      if (bits === null) continue;
      const builder = new EntrySetBuilder(store.entryCount);
      builder.addBits(bits);
      expect(builder.finish().toList().join()).toBe(entries.join());
    }
  }

  #compareSeeks(term: number, entries: readonly number[]): void {
    const { packed, plain, random, store } = this;
    const known = new Set(entries);
    const reader = packed.reader().begin(term);
    const found: number[] = [];
    const expected: number[] = [];
    for (let entry = random.below(50); entry < store.entryCount; entry += 1 + random.below(200)) {
      found.push(reader.seek(entry), reader.seek(entry));
      const isKnown = known.has(entry);
      const count = isKnown ? plain.termsOf(entry).filter((one) => one === term).length : 0;
      expected.push(count, count);
    }
    // One comparison for all texts, because there are many.
    expect(found.join()).toBe(expected.join());
  }

  async compareSearches(): Promise<void> {
    const view = new EntryView(this.store);
    const [packed, plain] = this.store.columns.map(
      (column) => new FieldSearch(view, column, false, budget),
    ) as [FieldSearch, FieldSearch];
    const words = [this.word(), this.word()];
    const phrase = { kind: "words", words } as const;
    const each = words.map((word) => ({ kind: "words", words: [word] }) as const);
    const prefix = { kind: "wildcard", text: "w1", startsOpen: false, endsOpen: true } as const;
    for (const search of [
      (one: FieldSearch) => one.search([phrase], false),
      (one: FieldSearch) => one.search(each, false),
      (one: FieldSearch) => one.search(each, true),
      (one: FieldSearch) => one.search([prefix], false),
      (one: FieldSearch) => one.phrase(words, 3),
      (one: FieldSearch) => one.exists(),
      (one: FieldSearch) => one.isNull(),
      (one: FieldSearch) => one.endsWith("7"),
      (one: FieldSearch) => one.rangeDouble({ text: "4", isInclusive: false }, null),
      (one: FieldSearch) => one.rangeText({ text: "w4", isInclusive: true }, null),
    ]) {
      expect([...finish(search(packed)).toList()]).toEqual([...finish(search(plain)).toList()]);
    }
  }

  compareCounts(): void {
    const entries = this.store.all().toList();
    const [packed, plain] = this.store.columns.map((column) => {
      const numbers = [new EntryNumbers(column, { hasExtremes: true, isLucene: false })];
      const tally = finish(TermTally.of(column, entries, numbers, budget));
      const terms = [...finish(tally.ordered())];
      return terms.map((term) => [tally.textOf(term), tally.countOf(term), tally.totalsOf(term)]);
    });
    expect(packed).toEqual(plain);
  }
}

function restored(store: EntryStore): EntryStore {
  const writer = new PartWriter();
  store.save(writer);
  const sections = new Map(
    writer.sections.map(({ name, parts }) => [
      name,
      Buffer.from(new Uint8Array(Buffer.concat(parts))),
    ]),
  );
  const values = JSON.parse(JSON.stringify(writer.values)) as Record<string, unknown>;
  const created = new EntryStore(0);
  const steps = created.restore(new PartReader(sections, values), (document) => document);
  while (steps.next().done !== true);
  return created;
}

describe("a packed column", () => {
  it("has the values of an unpacked one, while documents are added and removed, packed and saved", async () => {
    for (const seed of [1, 2]) {
      const columns = new Columns(seed);
      for (let round = 0; round < 5; round++) {
        for (let step = 0; step < 1_500; step++) columns.change();
        columns.compare();
        await columns.compareSearches();
        columns.compareCounts();
        if (round % 2 === 1) columns.store = restored(columns.store);
        if (!columns.store.needsCompaction) continue;
        for (let created = null; created === null; ) {
          created = columns.store.compact(() => columns.random.chance(0.3));
          columns.change();
          if (created !== null) columns.store = created;
        }
      }
    }
  });

  it("can be read while entries are added", () => {
    const column = new TextColumn();
    const term = column.dictionary.internText(textKind, "word", Number.NaN);
    const add = () => {
      column.add(term);
      column.endEntry();
    };
    add();
    const single = column.reader().begin(term);
    for (let i = 1; i < 3_000; i++) add();
    expect(single.read()).toBe(true);
    expect([...single.entries.subarray(0, single.count)]).toEqual([0]);
    expect(single.read()).toBe(false);
    const reader = column.reader().begin(term);
    const found: number[] = [];
    while (reader.read()) {
      found.push(...reader.entries.subarray(0, reader.count));
      add();
    }
    expect(found.slice(0, 3_000)).toEqual(Array.from({ length: 3_000 }, (_, i) => i));
    expect(term).toBe(firstTerm);
  });

  it("holds entries of many values, and numbers of many bytes", () => {
    const column = new TextColumn();
    const terms = Array.from({ length: 40_000 }, (_, i) =>
      column.dictionary.internText(textKind, `t${i}`, Number.NaN),
    );
    for (const term of terms) column.add(term);
    column.endEntry();
    for (let i = 0; i < 70_000; i++) column.add(terms[i % 2 === 0 ? 0 : 39_999] as number);
    column.endEntry();
    column.checkInvariants();
    expect([...column.termsOf(0)]).toEqual(terms);
    const reader = column.reader().begin(terms[39_999] as number);
    expect([reader.seek(0), reader.seek(1)]).toEqual([1, 35_000]);
  });
});
