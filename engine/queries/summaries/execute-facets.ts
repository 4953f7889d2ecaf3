/**
 * Facets of the entries that a query finds: counts from the terms of the index, without reading any document, as work that
 * pauses (work-budget.ts).
 *
 * The order of values, and the remaining values, follow RavenDB 7.2.7: values of a whole index without aggregations are
 * in byte order, values with aggregations or a `where` clause in dictionary order.
 */
import { EngineError } from "../../base/errors.ts";
import { byteBackslash, byteQuote } from "../../base/json/bytes.ts";
import { shortDoubleText } from "../../base/json/double-text.ts";
import { JsonText } from "../../base/json/json-text.ts";
import { numberBytesMax, writeWhole } from "../../base/json/number-bytes.ts";
import type { Work, WorkBudget } from "../../base/scheduling/work-budget.ts";
import { type EntrySet, intersection } from "../../indexing/columns/entry-set.ts";
import type { FieldColumn } from "../../indexing/columns/field-column.ts";
import { slicedSort, slicedSortByKey } from "../../indexing/columns/sliced-sort.ts";
import { nullTerm, type TermDictionary } from "../../indexing/columns/term-dictionary.ts";
import {
  EntryNumbers,
  type IntervalTotals,
  isSeveral,
  type NumberInterval,
  type NumberTotals,
  TermTally,
  totalsOf,
  totalsPassing,
  totalsWithin,
  type ValueCount,
} from "../../indexing/columns/term-tally.ts";
import type { Bound, Condition } from "../analysis/analyzed-query.ts";
import { rangeTestOf } from "../analysis/operator-meanings.ts";
import { findEntries } from "../conditions/compile-where.ts";
import { spendOnSets } from "../functions/finding.ts";
import type { WhereContext } from "../functions/rql-function.ts";
import type { Facet, FacetAggregation, FacetOptions, FacetRange } from "./facet-query.ts";

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
/** Positions that are filled between two checks of the budget. */
const fillStride = 16_384;
const uint32Max = 2 ** 32 - 1;
/** Between the parts of a value without aggregations. */
const countHead = Buffer.from(',{"Name":null,"Count":');
const rangeHead = Buffer.from(',"Range":"');
const rangeTail = Buffer.from('"}');

/** Context of facets, in addition to the context of conditions. */
export interface FacetContext extends WhereContext {
  readonly indexName: string;
  /** Whether the query has a `where` clause. */
  readonly hasWhere: boolean;
  isKnownField(name: string): boolean;
  /** Names of facets whose values are the ids of documents to include. */
  readonly includedFacets: ReadonlySet<string>;
  include(id: string): void;
}

/** Returns the rows of facets as JSON texts. Of facets with one name, only the last is returned, in the first's place. */
export function* facetRows(
  facets: readonly Facet[],
  matches: EntrySet,
  context: FacetContext,
): Work<Buffer[]> {
  const { budget, view } = context.reader;
  budget.hold(matches.count * entryBytes);
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
        yield* addRanges(row, facet, matches, entries, context);
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
    row.setRemaining(0, -options.start);
    return;
  }
  const numbers = row.numbersIn(context);
  const tally = yield* TermTally.of(column, entries, numbers, reader.budget);
  const isCollated = row.hasAggregations || context.hasWhere || reader.isLucene;
  const terms = yield* sortedTerms(yield* tally.ordered(), tally, row, options, isCollated);
  const start = Math.max(0, options.start);
  const shown = terms.subarray(start, start + Math.max(0, options.pageSize));
  const isIncluded = facet.name !== null && context.includedFacets.has(facet.name);
  const isPlain = !isIncluded && !row.hasAggregations;
  const { dictionary } = column;
  for (const term of shown) {
    if (!isPlain || !tally.isSpelled(term) || !row.addTerm(dictionary, term, tally.countOf(term))) {
      const text = tally.textOf(term);
      if (isIncluded) context.include(text);
      row.add(text, tally.countOf(term), tally.totalsOf(term));
    }
    if (reader.budget.isDue) yield;
  }
  let hits = 0;
  for (let i = start + shown.length; i < terms.length; i++) {
    const term = terms[i] as number;
    hits += tally.countOf(term);
    if (options.includeRemainingTerms) row.addRemaining(tally.textOf(term));
    reader.budget.spend(1);
    if (reader.budget.isDue) yield;
  }
  row.setRemaining(hits, terms.length - options.start - shown.length);
}

/** `terms`: in the order of their bytes, null before them. `isCollated`: sorts them in dictionary order instead. */
function* sortedTerms(
  terms: Uint32Array,
  tally: TermTally,
  { budget }: FacetRow,
  options: FacetOptions,
  isCollated: boolean,
): Work<Uint32Array> {
  const { termSortMode } = options;
  const sorted = isCollated ? yield* inDictionaryOrder(terms, tally, budget) : terms;
  if (termSortMode === "ValueAsc") return sorted;
  const { length } = sorted;
  budget.hold(3 * sorted.byteLength);
  if (termSortMode === "ValueDesc") {
    const kept = !isCollated && sorted[0] === nullTerm ? 1 : 0;
    const at = (i: number) => (i < kept ? i : length - 1 - i + kept);
    return yield* filled(length, (i) => sorted[at(i)] as number, budget);
  }
  const isDescending = termSortMode === "CountDesc";
  const countOf = (i: number) => tally.countOf(sorted[i] as number);
  const keyOf = isDescending ? (i: number) => uint32Max - countOf(i) : countOf;
  const keys = yield* filled(length, keyOf, budget);
  const positions = yield* slicedSortByKey(yield* numbersBelow(length, budget), keys, budget);
  const byCount = yield* filled(length, (i) => sorted[positions[i] as number] as number, budget);
  if (!isCollated) yield* collateTies(byCount, tally, options, budget);
  return byCount;
}

/** Puts terms of equal counts in the order of a dictionary, as far as the reply has them. */
function* collateTies(
  terms: Uint32Array,
  tally: TermTally,
  options: FacetOptions,
  budget: WorkBudget,
): Work<void> {
  const { length } = terms;
  const start = Math.max(0, options.start);
  const end = options.includeRemainingTerms ? length : Math.min(length, start + options.pageSize);
  for (let from = 0; from < end; ) {
    const count = tally.countOf(terms[from] as number);
    let to = from + 1;
    while (to < length && tally.countOf(terms[to] as number) === count) to++;
    budget.spend(to - from);
    if (budget.isDue) yield;
    if (to > start && to > from + 1) {
      terms.set(yield* inDictionaryOrder(terms.subarray(from, to), tally, budget), from);
    }
    from = to;
  }
}

function* inDictionaryOrder(
  terms: Uint32Array,
  tally: TermTally,
  budget: WorkBudget,
): Work<Uint32Array> {
  const texts: string[] = [];
  budget.hold(3 * terms.byteLength);
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
  const positions = yield* slicedSort(yield* numbersBelow(terms.length, budget), compare, budget);
  return yield* filled(terms.length, (i) => terms[positions[i] as number] as number, budget);
}

function numbersBelow(count: number, budget: WorkBudget): Work<Uint32Array> {
  return filled(count, (i) => i, budget);
}

/** Returns the values of a function at all positions below `count`. */
function* filled(
  count: number,
  valueAt: (position: number) => number,
  budget: WorkBudget,
): Work<Uint32Array> {
  const values = new Uint32Array(count);
  for (let from = 0; from < count; from += fillStride) {
    const to = Math.min(count, from + fillStride);
    for (let i = from; i < to; i++) values[i] = valueAt(i);
    budget.spend(to - from);
    if (budget.isDue) yield;
  }
  return values;
}

function* addRanges(
  row: FacetRow,
  facet: Extract<Facet, { readonly kind: "ranges" }>,
  matches: EntrySet,
  entries: Uint32Array,
  context: FacetContext,
): Work<void> {
  const { field } = facet;
  const { reader } = context;
  const { budget } = reader;
  const isWhole = row.hasAggregations && !reader.isLucene;
  const ranges = isWhole ? facet.ranges : facet.ranges.map(asDoubles);
  const column = reader.column(field, "lower");
  const search = reader.field(field, "lower");
  if (column === undefined || search === undefined) refuseUnknown(field, context);
  else {
    let found = yield* totalsOfIntervals(column, ranges, entries, row, context);
    if (found === null && (isSeveral(column) || reader.isLucene)) {
      const { isLucene } = reader;
      const tests = ranges.map(({ low, high }) => rangeTestOf(search, low, high, isLucene));
      const valueCount = valueCountOf(row, context);
      const numbers = row.numbersIn(context);
      found = yield* totalsPassing(column, tests, valueCount, entries, numbers, budget);
    }
    for (const [i, { count, totals }] of (found ?? []).entries()) {
      row.add((ranges[i] as FacetRange).text, count, totals); // as many as ranges
    }
    if (found !== null) return;
  }
  for (const range of ranges) {
    const found = intersection(matches, yield* findEntries(conditionOf(range), context));
    spendOnSets(context);
    const totals = row.hasAggregations
      ? yield* totalsOf(found.toList(), row.numbersIn(context), budget)
      : [];
    row.add(range.text, found.count, totals);
    if (budget.isDue) yield;
  }
}

/** How often an entry counts that has several values in a range, as in RavenDB 7.2.7. */
function valueCountOf({ hasAggregations }: FacetRow, context: FacetContext): ValueCount {
  if (context.reader.isLucene) return "each";
  if (hasAggregations) return "first";
  return context.hasWhere ? "once" : "each";
}

/** Returns the range with integers as doubles, so that they are compared with fractions instead of whole parts. */
function asDoubles(range: FacetRange): FacetRange {
  return { ...range, low: boundAsDouble(range.low), high: boundAsDouble(range.high) };
}

function boundAsDouble(bound: Bound | null): Bound | null {
  if (bound?.value.type !== "long" || !Number.isSafeInteger(Number(bound.value.value)))
    return bound;
  return { ...bound, value: { type: "double", value: Number(bound.value.value) } };
}

function conditionOf({ field, low, high }: FacetRange): Condition {
  const shared = { field, isExact: false } as const;
  if (low !== null && high !== null) return { kind: "between", low, high, ...shared };
  const { value, isInclusive } = (low ?? high) as Bound; // not both are null
  const direction = low === null ? "<" : ">";
  return {
    kind: "comparison",
    operator: isInclusive ? `${direction}=` : direction,
    value,
    ...shared,
  };
}

/**
 * Returns the counts of ranges of numbers, and totals of numbers in them, from one pass over the entries for all of
 * them; null: some range is not of numbers, or some entry has several values and does not count once for each.
 */
function* totalsOfIntervals(
  column: FieldColumn,
  ranges: readonly FacetRange[],
  entries: Uint32Array,
  row: FacetRow,
  context: FacetContext,
): Work<readonly IntervalTotals[] | null> {
  const { budget } = context.reader;
  const intervals = ranges.map(intervalOf);
  if (intervals.includes(null)) return null;
  const known = intervals as NumberInterval[];
  if (row.hasAggregations) {
    return yield* totalsWithin(column, known, entries, row.numbersIn(context), budget);
  }
  if (column.dictionary.hasDates) return null;
  const tally = yield* TermTally.of(column, entries, [], budget);
  if (tally.hasSeveral && valueCountOf(row, context) !== "each") return null;
  const counts = yield* tally.countsWithin(known);
  return counts.map((count) => ({ count, totals: [] }));
}

/** Returns the interval of a range; null: its bounds are not numbers. */
function intervalOf({ low, high }: FacetRange): NumberInterval | null {
  const from = low === null ? { value: Number.NEGATIVE_INFINITY, isWhole: false } : boundOf(low);
  const to = high === null ? { value: Number.POSITIVE_INFINITY, isWhole: false } : boundOf(high);
  if (from === null || to === null) return null;
  return {
    low: from.value,
    hasLow: low?.isInclusive ?? true,
    high: to.value,
    hasHigh: high?.isInclusive ?? true,
    isWhole: from.isWhole || to.isWhole,
  };
}

/** Returns the number that values or their whole parts are compared with; null if no double is equal to it. */
function boundOf({ value }: Bound): { value: number; isWhole: boolean } | null {
  if (value.type === "double") return { value: value.value, isWhole: false };
  if (value.type !== "long" || !Number.isSafeInteger(Number(value.value))) return null;
  return { value: Number(value.value), isWhole: true };
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
  row.setRemaining(hits, termCount - start - shown);
}

function refuseUnknown(field: string, { indexName, isKnownField }: FacetContext): void {
  if (isKnownField(field) && field !== "id()") return;
  throw new EngineError("query-invalid", `Field ${field} not found in Index '${indexName}'.`);
}

/** Writes one facet: its values one by one, then the remaining values. */
class FacetRow {
  readonly hasAggregations: boolean;
  readonly budget: WorkBudget;
  readonly #aggregations: readonly FacetAggregation[];
  readonly #text = new JsonText();
  readonly #remaining = new JsonText();
  #chargedRemaining = 0;
  #remainingHits = 0;
  #remainingCount = 0;
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
    return this.#aggregations.map(({ field, kinds }) => {
      const hasExtremes = kinds.has("Min") || kinds.has("Max");
      const { isLucene } = reader;
      return new EntryNumbers(reader.column(field, "lower"), { hasExtremes, isLucene });
    });
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
        // An entry without a number counts as 0.
        const isEach = numbers === count;
        if (kinds.has("Average")) text += `"Average":${shortDoubleText(sum / count)},`;
        if (kinds.has("Max")) text += `"Max":${shortDoubleText(isEach ? max : Math.max(max, 0))},`;
        if (kinds.has("Min")) text += `"Min":${shortDoubleText(isEach ? min : Math.min(min, 0))},`;
        if (kinds.has("Sum")) text += `"Sum":${shortDoubleText(sum)},`;
      }
      this.#addText(text + tail);
    }
    this.budget.spend(valueUnits);
  }

  /**
   * Adds a value without aggregations from the bytes of its term: a facet may have hundreds of thousands, and decoding
   * their texts takes longer than counting them. @returns false if the term needs escapes; nothing was added then
   */
  addTerm(dictionary: TermDictionary, term: number, count: number): boolean {
    const from = dictionary.startOf(term);
    const to = from + dictionary.lengthOf(term);
    const { slab } = dictionary;
    const rowBytes = countHead.length + numberBytesMax + rangeHead.length + to - from;
    const target = this.#text.reserve(rowBytes + rangeTail.length);
    const start = this.#text.length;
    // Without the comma before the first.
    let at = copied(countHead, this.#isEmpty ? 1 : 0, target, start);
    at = writeWhole(target, at, count);
    at = copied(rangeHead, 0, target, at);
    for (let i = from; i < to; i++) {
      const byte = slab[i] as number;
      if (byte < 0x20 || byte === byteQuote || byte === byteBackslash) return false;
      target[at++] = byte;
    }
    at = copied(rangeTail, 0, target, at);
    this.#text.advance(at - start);
    this.#isEmpty = false;
    this.#charge();
    this.budget.spend(valueUnits);
    return true;
  }

  /** Adds a term to the list of remaining terms. */
  addRemaining(term: string): void {
    if (this.#remaining.length > 0) this.#remaining.addText(",");
    this.#remaining.addString(term);
    if (this.#remaining.length - this.#chargedRemaining < chargedBytes) return;
    this.budget.hold(this.#remaining.length - this.#chargedRemaining);
    this.#chargedRemaining = this.#remaining.length;
  }

  setRemaining(hits: number, count: number): void {
    this.#remainingHits = hits;
    this.#remainingCount = count;
  }

  finish(): Buffer {
    const hits = this.#remainingHits;
    return this.#text
      .addText(`],"RemainingHits":${hits},"RemainingTermsCount":${this.#remainingCount}`)
      .addText(',"RemainingTerms":[')
      .addBytes(this.#remaining.bytes)
      .addText("]}")
      .take();
  }

  #addText(text: string): void {
    if (!this.#isEmpty) this.#text.addText(",");
    this.#isEmpty = false;
    this.#text.addText(text);
    this.#charge();
  }

  #charge(): void {
    if (this.#text.length - this.#charged < chargedBytes) return;
    this.budget.hold(this.#text.length - this.#charged);
    this.#charged = this.#text.length;
  }
}

/** Copies a few bytes, which is faster in a loop than by a call of `Buffer.copy`. @returns the position after them */
function copied(source: Buffer, from: number, target: Buffer, at: number): number {
  let next = at;
  for (let i = from; i < source.length; i++) target[next++] = source[i] as number;
  return next;
}
