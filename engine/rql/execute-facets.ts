/**
 * Facets of the entries that a query finds: counts from the terms of the index, without reading any document, as work that
 * pauses (work-budget.ts).
 *
 * The order of values, and what remains of them, are those of RavenDB 7.2.7: values without aggregations are in the order
 * of their bytes, values with aggregations in that of a dictionary.
 */
import { EngineError } from "../base/errors.ts";
import type { Work, WorkBudget } from "../base/work-budget.ts";
import { type EntrySet, intersection } from "../indexing/entry-set.ts";
import { slicedSort, slicedSortByKey } from "../indexing/sliced-sort.ts";
import { EntryNumbers, type NumberTotals, TermTally, totalsOf } from "../indexing/term-tally.ts";
import { JsonText } from "../json/json-text.ts";
import { findEntries } from "./compile-where.ts";
import type { Facet, FacetAggregation, FacetOptions } from "./facet-query.ts";
import { spendOnSets } from "./functions/finding.ts";
import type { WhereContext } from "./functions/rql-function.ts";

/** The name of a facet of everything, and of its only value. */
const allName = "@AllResults";
const collator = new Intl.Collator("en");
/** Cost of writing a value, and of comparing two texts as in a dictionary. */
const valueUnits = 32;
const compareUnits = 16;
/** Bytes that the reply may grow by before they are charged. */
const chargedBytes = 64 * 1024;
/** Bytes of a text that is being sorted, besides its characters. */
const textBytes = 64;
/** Bytes for each listed entry. */
const entryBytes = 4;
const uint32Max = 2 ** 32 - 1;

/** What facets need besides the conditions' context. */
export interface FacetContext extends WhereContext {
  readonly indexName: string;
  isKnownField(name: string): boolean;
}

/** The rows of facets, each a JSON text. Of several with one name only the last remains, in the place of the first. */
export function* facetRows(
  facets: readonly Facet[],
  matches: EntrySet,
  context: FacetContext,
): Work<Buffer[]> {
  const { budget, view } = context.reader;
  if (facets.some(({ kind }) => kind !== "ranges")) budget.hold(matches.count * entryBytes);
  const entries = matches.toList();
  budget.spend(view.size >>> 6);
  const rows = new Map<string, Buffer>();
  for (const facet of facets) {
    const heldBefore = budget.heldBytes;
    const name = facet.name ?? allName;
    const row = new FacetRow(name, facet.aggregations, budget);
    switch (facet.kind) {
      case "terms":
        yield* addTerms(row, facet, entries, context);
        break;
      case "ranges":
        yield* addRanges(row, facet, matches, context);
        break;
      case "all":
        yield* addAll(row, facet.options, entries, context);
    }
    const text = row.finish();
    budget.release(budget.heldBytes - heldBefore);
    budget.hold(text.length);
    rows.set(name, text);
    if (budget.isDue) yield;
  }
  return [...rows.values()];
}

function* addTerms(
  row: FacetRow,
  facet: Extract<Facet, { readonly kind: "terms" }>,
  entries: Uint32Array,
  context: FacetContext,
): Work<void> {
  const { reader } = context;
  const { options } = facet;
  const column = reader.column(facet.field, "lower");
  if (column === undefined) {
    refuseUnknown(facet.field, context);
    row.setRemaining(0, -options.start, []);
    return;
  }
  const numbers = row.numbersIn(context);
  const tally = yield* TermTally.of(column, entries, numbers, reader.budget);
  const terms = yield* sortedTerms(yield* tally.ordered(), tally, row, options);
  const start = Math.max(0, options.start);
  const shown = terms.subarray(start, start + Math.max(0, options.pageSize));
  for (const term of shown) {
    row.add(tally.textOf(term), tally.countOf(term), tally.totalsOf(term));
    if (reader.budget.isDue) yield;
  }
  let hits = 0;
  const remaining: string[] = [];
  for (let i = start + shown.length; i < terms.length; i++) {
    const term = terms[i] as number;
    hits += tally.countOf(term);
    if (options.includeRemainingTerms) {
      remaining.push(tally.textOf(term));
      reader.budget.hold(textBytes);
    }
    reader.budget.spend(1);
    if (reader.budget.isDue) yield;
  }
  row.setRemaining(hits, terms.length - options.start - shown.length, remaining);
}

/** `terms`: in the order of their bytes. */
function* sortedTerms(
  terms: Uint32Array,
  tally: TermTally,
  { budget, hasAggregations }: FacetRow,
  { termSortMode }: FacetOptions,
): Work<Uint32Array> {
  const sorted = hasAggregations ? yield* inDictionaryOrder(terms, tally, budget) : terms;
  if (termSortMode === "ValueAsc") return sorted;
  if (termSortMode === "ValueDesc") return sorted.slice().reverse();
  const isDescending = termSortMode === "CountDesc";
  budget.hold(3 * sorted.byteLength);
  const keys = sorted.map((term) =>
    isDescending ? uint32Max - tally.countOf(term) : tally.countOf(term),
  );
  const positions = yield* slicedSortByKey(numbersBelow(sorted.length), keys, budget);
  return positions.map((position) => sorted[position] as number);
}

function* inDictionaryOrder(
  terms: Uint32Array,
  tally: TermTally,
  budget: WorkBudget,
): Work<Uint32Array> {
  const texts: string[] = [];
  for (const term of terms) {
    const text = tally.textOf(term);
    texts.push(text);
    budget.hold(2 * text.length + textBytes);
    budget.spend(compareUnits);
    if (budget.isDue) yield;
  }
  const compare = (left: number, right: number) => {
    budget.spend(compareUnits);
    return collator.compare(texts[left] as string, texts[right] as string);
  };
  const positions = yield* slicedSort(numbersBelow(terms.length), compare, budget);
  return positions.map((position) => terms[position] as number);
}

function numbersBelow(count: number): Uint32Array {
  const numbers = new Uint32Array(count);
  for (let i = 0; i < count; i++) numbers[i] = i;
  return numbers;
}

function* addRanges(
  row: FacetRow,
  { field, ranges }: Extract<Facet, { readonly kind: "ranges" }>,
  matches: EntrySet,
  context: FacetContext,
): Work<void> {
  if (context.reader.column(field, "lower") === undefined) refuseUnknown(field, context);
  const { budget } = context.reader;
  for (const { text, condition } of ranges) {
    const found = intersection(matches, yield* findEntries(condition, context));
    spendOnSets(context);
    const totals = row.hasAggregations
      ? yield* totalsOf(found.toList(), row.numbersIn(context), budget)
      : [];
    row.add(text, found.count, totals);
    if (budget.isDue) yield;
  }
}

function* addAll(
  row: FacetRow,
  { pageSize, start }: FacetOptions,
  entries: Uint32Array,
  context: FacetContext,
): Work<void> {
  const termCount = entries.length === 0 ? 0 : 1;
  const shown = termCount === 1 && pageSize > 0 && start <= 0 ? 1 : 0;
  if (shown === 1) {
    const totals = yield* totalsOf(entries, row.numbersIn(context), context.reader.budget);
    row.add(allName, entries.length, totals);
  }
  const hits = shown === 1 || start > 0 ? 0 : entries.length;
  row.setRemaining(hits, termCount - start - shown, []);
}

function refuseUnknown(field: string, { indexName, isKnownField }: FacetContext): void {
  if (isKnownField(field) && field !== "id()") return;
  throw new EngineError("query-invalid", `Field ${field} not found in Index '${indexName}'.`);
}

/** A number as JSON; one beyond the doubles has no other form than its name. */
function numberText(value: number): string {
  return Number.isFinite(value) ? String(value) : `"${value}"`;
}

/** Writes one facet: its values one after another, then what remains. */
class FacetRow {
  readonly hasAggregations: boolean;
  readonly budget: WorkBudget;
  readonly #aggregations: readonly FacetAggregation[];
  readonly #text = new JsonText();
  #remaining = '"RemainingHits":0,"RemainingTermsCount":0,"RemainingTerms":[]';
  #isEmpty = true;
  #charged = 0;

  constructor(name: string, aggregations: readonly FacetAggregation[], budget: WorkBudget) {
    this.budget = budget;
    this.#aggregations = aggregations;
    this.hasAggregations = aggregations.length > 0;
    this.#text.addText(`{"Name":${JSON.stringify(name)},"Values":[`);
  }

  /** For each aggregation, the numbers of its field. */
  numbersIn({ reader }: FacetContext): EntryNumbers[] {
    return this.#aggregations.map(({ field }) => new EntryNumbers(reader.column(field, "lower")));
  }

  /** Adds a value: a row for each aggregation, or one without. */
  add(range: string, count: number, totals: readonly NumberTotals[]): void {
    const tail = `"Count":${count},"Range":${JSON.stringify(range)}}`;
    if (!this.hasAggregations) this.#addText(`{"Name":null,${tail}`);
    for (const [i, { label, kinds }] of this.#aggregations.entries()) {
      const { [i]: found } = totals;
      let text = `{"Name":${JSON.stringify(label)},`;
      if (found !== undefined && count > 0) {
        const { sum, min, max, count: numbers } = found;
        if (kinds.has("Average"))
          text += `"Average":${numberText(numbers === 0 ? 0 : sum / numbers)},`;
        if (kinds.has("Max")) text += `"Max":${numberText(max)},`;
        if (kinds.has("Min")) text += `"Min":${numberText(min)},`;
        if (kinds.has("Sum")) text += `"Sum":${numberText(sum)},`;
      }
      this.#addText(text + tail);
    }
    this.budget.spend(valueUnits);
  }

  setRemaining(hits: number, count: number, terms: readonly string[]): void {
    this.#remaining = `"RemainingHits":${hits},"RemainingTermsCount":${count},"RemainingTerms":${JSON.stringify(terms)}`;
  }

  finish(): Buffer {
    return this.#text.addText(`],${this.#remaining}}`).take();
  }

  #addText(text: string): void {
    if (!this.#isEmpty) this.#text.addText(",");
    this.#isEmpty = false;
    this.#text.addText(text);
    if (this.#text.length - this.#charged < chargedBytes) return;
    this.budget.hold(this.#text.length - this.#charged);
    this.#charged = this.#text.length;
  }
}
