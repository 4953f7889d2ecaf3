/**
 * What a condition on one field of one index finds: from terms to entries. Only living entries come out.
 *
 * Knows nothing of queries' syntax: values come as text with what they are.
 *
 * Hot: bench/query.bench.ts.
 */
import { lowerInvariant, type SearchPiece } from "./analyzer.ts";
import { parseInstant, termsOfInstant } from "./date-terms.ts";
import { EntrySet, EntrySetBuilder, intersection, union } from "./entry-set.ts";
import type { EntryStore } from "./entry-store.ts";
import type { FieldColumn } from "./field-column.ts";
import {
  dateKind,
  firstTerm,
  gapTerm,
  nullTerm,
  numberKind,
  objectTerm,
  textKind,
} from "./term-dictionary.ts";
import type { TermOrder } from "./term-order.ts";

/** One end of a range. */
export interface Bound {
  readonly text: string;
  readonly isInclusive: boolean;
}

const kinds = [textKind, numberKind, dateKind];

/** Characters of `yyyy-MM-dd`. */
const dayLength = 10;

export class FieldSearch {
  readonly #store: EntryStore;
  readonly #column: FieldColumn;
  /** Terms of this field keep their case. */
  readonly #isExact: boolean;

  constructor(store: EntryStore, column: FieldColumn, isExact: boolean) {
    this.#store = store;
    this.#column = column;
    this.#isExact = isExact;
  }

  isNull(): EntrySet {
    return this.#entriesOf([nullTerm]);
  }

  /** Entries with any term, null and objects included. */
  exists(): EntrySet {
    const builder = new EntrySetBuilder(this.#store.entryCount);
    const { starts } = this.#column;
    for (let entry = 0; entry < this.#store.entryCount; entry++) {
      if (starts[entry] !== starts[entry + 1] && this.#store.isLive(entry)) builder.add(entry);
    }
    return builder.finish();
  }

  /** A string: a date is compared as an instant, anything else as a term, whatever it was made from. */
  equalsText(text: string): EntrySet {
    const instant = parseInstant(text);
    if (instant !== null) {
      const { dictionary } = this.#column;
      return this.#entriesOf(
        termsOfInstant(instant).map((term) => dictionary.findText(dateKind, term)),
      );
    }
    return this.equalsTerm(this.#folded(text));
  }

  /** A string in a list: a date is the term that it would be indexed as, so that a day is no moment. */
  equalsListedText(text: string): EntrySet {
    const instant = parseInstant(text);
    if (instant === null) return this.equalsTerm(this.#folded(text));
    const isDay = text.length === dayLength;
    const terms = termsOfInstant(instant).filter((term) => (term.length === dayLength) === isDay);
    const { dictionary } = this.#column;
    return this.#entriesOf(terms.map((term) => dictionary.findText(dateKind, term)));
  }

  /** Any term of exactly this text. */
  equalsTerm(text: string): EntrySet {
    return this.#entriesOf(kinds.map((kind) => this.#column.dictionary.findText(kind, text)));
  }

  /** Numbers whose whole part is this integer, given by its digits. */
  equalsLong(digits: string): EntrySet {
    const { dictionary } = this.#column;
    if (!dictionary.hasInexact) {
      return this.#entriesOf([dictionary.findText(numberKind, BigInt(digits).toString())]);
    }
    return this.rangeLong({ text: digits, isInclusive: true }, { text: digits, isInclusive: true });
  }

  /** Numbers whose double is this one. */
  equalsDouble(value: number): EntrySet {
    const text = value.toString();
    return this.rangeDouble({ text, isInclusive: true }, { text, isInclusive: true });
  }

  /** Numbers by their whole parts. Null: no bound on that side. */
  rangeLong(low: Bound | null, high: Bound | null): EntrySet {
    const { dictionary } = this.#column;
    const compare = (digits: string) => {
      const sought = BigInt(digits);
      return (term: number) => compareWhole(dictionary.values[term] as number, term, sought);
    };
    const compareWhole = (value: number, term: number, sought: bigint) => {
      const whole = Number.isSafeInteger(value)
        ? BigInt(value)
        : wholePart(dictionary.textOf(term));
      return whole < sought ? -1 : whole > sought ? 1 : 0;
    };
    return this.#range(this.#column.order("number"), low, high, compare);
  }

  rangeDouble(low: Bound | null, high: Bound | null): EntrySet {
    const { values } = this.#column.dictionary;
    const compare = (text: string) => {
      const sought = Number(text);
      return (term: number) => (values[term] as number) - sought;
    };
    return this.#range(this.#column.order("number"), low, high, compare);
  }

  /** Dates as instants when every bound is one, else all terms by their bytes. */
  rangeText(low: Bound | null, high: Bound | null): EntrySet {
    const isDates = [low, high].every(
      (bound) => bound === null || parseInstant(bound.text) !== null,
    );
    if (isDates) return this.#rangeDates(low, high);
    const { dictionary } = this.#column;
    const compare = (text: string) => {
      const sought = Buffer.from(this.#folded(text));
      return (term: number) => dictionary.compareTo(term, sought);
    };
    return this.#range(this.#column.order("bytes"), low, high, compare);
  }

  startsWith(text: string): EntrySet {
    const prefix = Buffer.from(this.#folded(text));
    if (prefix.length === 0) return this.equalsTerm("");
    const { dictionary } = this.#column;
    const order = this.#column.order("bytes");
    const builder = new EntrySetBuilder(this.#store.entryCount);
    const from = order.lowerBound((term) => dictionary.compareTo(term, prefix));
    for (let i = from; i < order.terms.length; i++) {
      const term = order.terms[i] as number;
      if (!dictionary.startsWith(term, prefix)) break;
      this.#addEntries(builder, term);
    }
    return builder.finish();
  }

  endsWith(text: string): EntrySet {
    const suffix = Buffer.from(this.#folded(text));
    const { dictionary } = this.#column;
    return this.#scanTerms((term) => dictionary.endsWith(term, suffix));
  }

  /** Entries with a term whose text fulfils `test`. Cost: one call for each distinct term. */
  matching(test: (text: string) => boolean): EntrySet {
    const { dictionary } = this.#column;
    return this.#scanTerms((term) => test(dictionary.textOf(term)));
  }

  /** Full text: entries that any piece (`isAll`: every piece) is found in. */
  search(pieces: readonly SearchPiece[], isAll: boolean): EntrySet {
    let result: EntrySet | null = null;
    for (const piece of pieces) {
      const found = this.#searchPiece(piece);
      if (result === null) result = found;
      else result = isAll ? intersection(result, found) : union(result, found);
    }
    return result ?? EntrySet.empty;
  }

  #searchPiece(piece: SearchPiece): EntrySet {
    if (piece.kind === "words") {
      return piece.words.length === 1
        ? this.equalsTerm(piece.words[0] as string)
        : this.phrase(piece.words, 0);
    }
    const { text, startsOpen, endsOpen } = piece;
    if (!startsOpen && endsOpen) return this.startsWith(text);
    if (startsOpen && !endsOpen) return this.endsWith(text);
    return this.matching((term) => term.includes(text));
  }

  /** Entries with the words one behind the other. With `slop`: moved by at most so much, see `#isNear`. */
  phrase(words: readonly string[], slop: number): EntrySet {
    const { dictionary } = this.#column;
    let candidates: EntrySet | null = null;
    const terms: number[] = [];
    for (const word of words) {
      const text = dictionary.findText(textKind, word);
      const term = text >= 0 ? text : dictionary.findText(numberKind, word);
      if (term < 0) return EntrySet.empty;
      terms.push(term);
      const found = this.#entriesOf([term]);
      candidates = candidates === null ? found : intersection(candidates, found);
    }
    const builder = new EntrySetBuilder(this.#store.entryCount);
    for (const entry of (candidates ?? EntrySet.empty).toList()) {
      if (slop === 0 ? this.#hasPhrase(entry, terms) : this.#isNear(entry, terms, slop)) {
        builder.add(entry);
      }
    }
    return builder.finish();
  }

  #hasPhrase(entry: number, terms: readonly number[]): boolean {
    const column = this.#column;
    const end = (column.starts[entry + 1] as number) - terms.length;
    for (let at = column.starts[entry] as number; at <= end; at++) {
      let i = 0;
      while (i < terms.length && column.terms[at + i] === terms[i]) i++;
      if (i === terms.length) return true;
    }
    return false;
  }

  /**
   * Is there a place for each word so that they stand as in the phrase, but for moves that together go at most `slop` far?
   * Two neighbours that changed places have moved by 2: as Lucene counts.
   */
  #isNear(entry: number, terms: readonly number[], slop: number): boolean {
    const column = this.#column;
    const start = column.starts[entry] as number;
    const end = column.starts[entry + 1] as number;
    // By word: where the phrase would begin if this word of it stood there.
    const begins = terms.map((term, word) => {
      const places: number[] = [];
      for (let at = start; at < end; at++) if (column.terms[at] === term) places.push(at - word);
      return places;
    });
    if (begins.some((places) => places.length === 0)) return false;
    // The narrowest range that holds a place of every word: whichever is the lowest moves on.
    const next = terms.map(() => 0);
    for (;;) {
      const now = begins.map((places, word) => places[next[word] as number] as number);
      const lowest = Math.min(...now);
      if (Math.max(...now) - lowest <= slop) return true;
      const word = now.indexOf(lowest);
      next[word] = (next[word] as number) + 1;
      if ((next[word] as number) >= (begins[word]?.length ?? 0)) return false;
    }
  }

  #rangeDates(low: Bound | null, high: Bound | null): EntrySet {
    const { dictionary } = this.#column;
    const compare = (text: string) => {
      const sought = parseInstant(text);
      if (sought === null) return () => 1;
      return (term: number) => {
        const value = dictionary.values[term] as number;
        if (value !== sought.milliseconds) return value < sought.milliseconds ? -1 : 1;
        return dictionary.ticksOf(term) - sought.ticks;
      };
    };
    return this.#range(this.#column.order("date"), low, high, compare);
  }

  #range(
    order: TermOrder,
    low: Bound | null,
    high: Bound | null,
    compareWith: (text: string) => (term: number) => number,
  ): EntrySet {
    let from = 0;
    let to = order.terms.length;
    if (low !== null) {
      const compare = compareWith(low.text);
      const { isInclusive } = low;
      from = order.lowerBound((term) => compare(term) || (isInclusive ? 0 : -1));
    }
    if (high !== null) {
      const compare = compareWith(high.text);
      const { isInclusive } = high;
      to = order.lowerBound((term) => compare(term) || (isInclusive ? -1 : 0));
    }
    const builder = new EntrySetBuilder(this.#store.entryCount);
    for (let i = from; i < to; i++) this.#addEntries(builder, order.terms[i] as number);
    return builder.finish();
  }

  #scanTerms(test: (term: number) => boolean): EntrySet {
    const builder = new EntrySetBuilder(this.#store.entryCount);
    for (let term = firstTerm; term < this.#column.dictionary.count; term++) {
      if (test(term)) this.#addEntries(builder, term);
    }
    return builder.finish();
  }

  /** Entries with one of the terms; -1 is none. */
  #entriesOf(terms: readonly number[]): EntrySet {
    const builder = new EntrySetBuilder(this.#store.entryCount);
    for (const term of terms) if (term >= 0) this.#addEntries(builder, term);
    return builder.finish();
  }

  #addEntries(builder: EntrySetBuilder, term: number): void {
    const { nexts, entries } = this.#column;
    const store = this.#store;
    for (let at = this.#column.firsts[term] ?? 0; at !== 0; at = nexts[at - 1] as number) {
      const entry = entries[at - 1] as number;
      if (store.isLive(entry)) builder.add(entry);
    }
  }

  #folded(text: string): string {
    return this.#isExact ? text : lowerInvariant(text);
  }
}

/** True for terms that have a text. */
export function isTextTerm(term: number): boolean {
  return term !== gapTerm && term !== nullTerm && term !== objectTerm;
}

/** The whole part of a number's text, digits dropped towards zero. */
function wholePart(text: string): bigint {
  if (/^-?\d+(\.\d*)?$/.test(text)) return BigInt(text.split(".")[0] as string);
  const value = Math.trunc(Number(text));
  return Number.isFinite(value) ? BigInt(value) : 0n;
}
