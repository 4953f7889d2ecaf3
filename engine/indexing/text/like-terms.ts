/**
 * The entries that share terms with a base: its terms, how often each occurs in it, and which of them count. The caller
 * supplies the base.
 */
import type { Work, WorkBudget } from "../../base/scheduling/work-budget.ts";
import { EntrySet, EntrySetBuilder } from "../columns/entry-set.ts";
import type { EntryView } from "../columns/entry-view.ts";
import type { FieldColumn } from "../columns/field-column.ts";
import { dateKind, firstTerm, numberKind, textKind } from "../columns/term-dictionary.ts";
import type { Analyzer } from "./analyzer.ts";

/** Which terms of a base count. All bounds are inclusive. */
export interface LikenessLimits {
  /** Times that a term occurs in the base. */
  readonly frequencyMin: number;
  /** Entries that have the term. */
  readonly entriesMin: number;
  readonly entriesMax: number;
  /** Entries that have the term, in percent of all. */
  readonly percentMax: number;
  /** UTF-16 units of a term. */
  readonly lengthMin: number;
  readonly lengthMax: number;
  /** At most as many terms; the rarest remain. */
  readonly countMax: number;
}

/** A column whose terms count, and how texts are made terms of it. */
export interface LikenessColumn {
  readonly column: FieldColumn;
  readonly analyze: Analyzer;
}

const kinds = [textKind, numberKind, dateKind];
/** Postings that are visited between two checks of the budget. */
const stride = 4096;
/** Bytes of a term in the tables. */
const termBytes = 64;
/** Cost of a term of a text. */
const wordUnits = 16;
/** Maximum length of a text that is analyzed in one call, in UTF-16 units. */
const textLengthMax = 1024 * 1024;

/** How often the terms of each column occur in a base. */
export class TermFrequencies {
  readonly tables: readonly {
    readonly column: FieldColumn;
    readonly analyze: Analyzer;
    readonly counts: Map<number, number>;
  }[];
  readonly #budget: WorkBudget;

  constructor(columns: readonly LikenessColumn[], budget: WorkBudget) {
    this.tables = columns.map((one) => ({ ...one, counts: new Map<number, number>() }));
    this.#budget = budget;
  }

  /** Adds the terms of an entry. */
  *addEntry(entry: number): Work<void> {
    for (const { column, counts } of this.tables) {
      for (const term of column.termsOf(entry).slice()) {
        if (term >= firstTerm) this.#count(counts, term);
        if (this.#budget.isDue) yield;
      }
    }
  }

  /** Adds the terms that a text has in any of the columns. */
  *addText(text: string): Work<void> {
    for (const { column, counts, analyze } of this.tables) {
      const words: string[] = [];
      analyze(text.slice(0, textLengthMax), (word) => words.push(word));
      this.#budget.spend(text.length);
      for (const word of words) {
        for (const kind of kinds) {
          const term = column.dictionary.findText(kind, word);
          if (term >= 0) this.#count(counts, term);
        }
        this.#budget.spend(wordUnits);
        if (this.#budget.isDue) yield;
      }
    }
  }

  #count(counts: Map<number, number>, term: number): void {
    const known = counts.get(term);
    if (known === undefined) this.#budget.hold(termBytes);
    counts.set(term, (known ?? 0) + 1);
    this.#budget.spend(1);
  }
}

/** A term that counts. */
export interface LikeTerm {
  readonly column: FieldColumn;
  readonly term: number;
  readonly frequency: number;
  readonly entries: number;
}

/** Returns the terms that count, the rarest first. `stopWords`: lower-cased words that do not; null: none. */
export function* likeTerms(
  view: EntryView,
  frequencies: TermFrequencies,
  limits: LikenessLimits,
  stopWords: ReadonlySet<string> | null,
  budget: WorkBudget,
): Work<LikeTerm[]> {
  const total = view.all().count;
  const entriesMax = Math.min(limits.entriesMax, Math.floor((total * limits.percentMax) / 100));
  const terms: LikeTerm[] = [];
  for (const { column, counts } of frequencies.tables) {
    for (const [term, frequency] of counts) {
      budget.spend(wordUnits);
      if (budget.isDue) yield;
      if (frequency < limits.frequencyMin) continue;
      const text = column.dictionary.textOf(term);
      if (text.length < limits.lengthMin || text.length > limits.lengthMax) continue;
      if (stopWords?.has(text.toLowerCase())) continue;
      // The count of the column includes entries that are gone.
      if ((column.counts[term] as number) < limits.entriesMin) continue;
      const entries = yield* walk(view, column, term, null, budget);
      if (entries < Math.max(1, limits.entriesMin) || entries > entriesMax) continue;
      terms.push({ column, term, frequency, entries });
    }
  }
  terms.sort((a, b) => a.entries - b.entries || b.frequency - a.frequency);
  return terms.slice(0, limits.countMax);
}

/** Returns the live entries with one of the terms. */
export function* entriesOfTerms(
  view: EntryView,
  terms: readonly LikeTerm[],
  budget: WorkBudget,
): Work<EntrySet> {
  if (terms.length === 0) return EntrySet.empty;
  const builder = new EntrySetBuilder(view.size);
  for (const { column, term } of terms) yield* walk(view, column, term, builder, budget);
  return builder.finish();
}

/**
 * Returns the score of each entry, by position: the sum of the weights of its terms, where rare terms and terms that
 * are frequent in the base weigh more.
 */
export function* likenessScores(
  entries: Uint32Array,
  terms: readonly LikeTerm[],
  total: number,
  budget: WorkBudget,
): Work<Float64Array> {
  const scores = new Float64Array(entries.length);
  budget.hold(scores.byteLength);
  const weightOf = (one: LikeTerm) => one.frequency * rarityOf(one, total);
  const best = Math.max(...terms.map(weightOf));
  for (const one of terms) {
    const weight = (rarityOf(one, total) * weightOf(one)) / best;
    for (let i = 0; i < entries.length; i++) {
      if (hasTerm(one, entries[i] as number, budget)) scores[i] = (scores[i] as number) + weight;
      if (budget.isDue) yield;
    }
  }
  return scores;
}

/** As in Lucene. */
/**
 * As `likenessScores`, with the scores of Lucene's classic similarity without norms: a term counts by the root of its
 * occurrences in the entry and by the square of its rarity, and the sum by the share of the terms that the entry has.
 * `isBoosted`: terms that are frequent in the base weigh more.
 */
export function* luceneLikenessScores(
  entries: Uint32Array,
  terms: readonly LikeTerm[],
  total: number,
  isBoosted: boolean,
  budget: WorkBudget,
): Work<Float64Array> {
  const scores = new Float64Array(entries.length);
  const matched = new Uint32Array(entries.length);
  budget.hold(scores.byteLength + matched.byteLength);
  const weightOf = (one: LikeTerm) => one.frequency * rarityOf(one, total);
  const best = Math.max(...terms.map(weightOf));
  const boostOf = (one: LikeTerm) => (isBoosted ? weightOf(one) / best : 1);
  const squares = terms.map((one) => (rarityOf(one, total) * boostOf(one)) ** 2);
  const norm = 1 / Math.sqrt(squares.reduce((sum, square) => sum + square, 0));
  for (const one of terms) {
    const weight = rarityOf(one, total) ** 2 * boostOf(one) * norm;
    for (let i = 0; i < entries.length; i++) {
      const count = occurrencesOf(one, entries[i] as number, budget);
      if (count > 0) {
        scores[i] = (scores[i] as number) + weight * Math.sqrt(count);
        matched[i] = (matched[i] as number) + 1;
      }
      if (budget.isDue) yield;
    }
  }
  // Lucene's scores are of 32 bits.
  return scores.map((score, i) => Math.fround((score * (matched[i] as number)) / terms.length));
}

function occurrencesOf({ column, term }: LikeTerm, entry: number, budget: WorkBudget): number {
  let count = 0;
  const terms = column.termsOf(entry);
  for (let at = 0; at < terms.length; at++) if (terms[at] === term) count++;
  budget.spend(terms.length);
  return count;
}

function rarityOf({ entries }: LikeTerm, total: number): number {
  return 1 + Math.log(total / (entries + 1));
}

function hasTerm({ column, term }: LikeTerm, entry: number, budget: WorkBudget): boolean {
  const terms = column.termsOf(entry);
  const at = terms.indexOf(term);
  budget.spend(at < 0 ? terms.length : at + 1);
  return at >= 0;
}

/** Visits the live entries of a term, each once. @returns their number */
function* walk(
  view: EntryView,
  column: FieldColumn,
  term: number,
  builder: EntrySetBuilder | null,
  budget: WorkBudget,
): Work<number> {
  let count = 0;
  let visited = 0;
  let last = -1;
  for (const entry of column.entriesOf(term)) {
    if (entry >= view.size) break;
    if (++visited % stride === 0) {
      budget.spend(stride);
      if (budget.isDue) yield;
    }
    if (entry === last || !view.isLive(entry)) continue;
    last = entry;
    count++;
    builder?.add(entry);
  }
  budget.spend(visited % stride);
  return count;
}
