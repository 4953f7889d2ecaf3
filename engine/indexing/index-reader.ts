/**
 * A query's view of one index: its entries, and the fields to search and sort by. Created for one query; a caller that
 * yields to the event loop while using it calls `freeze` before and checks `isCurrent` afterward.
 */
import { byteArrayOpen, byteObjectClose } from "../base/json/bytes.ts";
import { doubleText } from "../base/json/double-text.ts";
import {
  decodeString,
  firstElement,
  nextElement,
  skipString,
  skipValue,
} from "../base/json/field-access.ts";
import { FreeBudget, type Work, type WorkBudget } from "../base/scheduling/work-budget.ts";
import { difference, type EntrySet, EntrySetBuilder } from "./columns/entry-set.ts";
import type { EntryStore } from "./columns/entry-store.ts";
import { EntryView } from "./columns/entry-view.ts";
import type { FieldColumn } from "./columns/field-column.ts";
import { FieldSearch } from "./columns/field-search.ts";
import { firstTerm, nullTerm } from "./columns/term-dictionary.ts";
import type { EntryBoosts, FieldForm, FollowedIndex } from "./followed-index.ts";
import { fieldOfColumn } from "./map-index.ts";
import { globe } from "./spatial/space.ts";
import { type SpatialColumn, spatialColumnOf } from "./spatial/spatial-column.ts";
import { type Analyzer, keywordAnalyzer, lowerKeywordAnalyzer } from "./text/analyzer.ts";
import type { LikenessColumn } from "./text/like-terms.ts";
import { plainForm, type VectorForm } from "./vectors/vector-form.ts";

/** Cost of testing an id, and of listing a term. */
const idUnits = 16;
const termUnits = 16;
/** The text of null among terms. */
const nullText = "NULL_VALUE";

export class IndexReader {
  readonly store: EntryStore;
  readonly budget: WorkBudget;
  readonly view: EntryView;
  readonly #index: FollowedIndex;
  readonly #idOf: ((docNum: number) => string) | null;

  /** `idOf`: returns the lower-cased id of an entry's document; null if entries are not documents. */
  constructor(
    index: FollowedIndex,
    idOf: ((docNum: number) => string) | null,
    budget: WorkBudget = new FreeBudget(),
  ) {
    this.store = index.store;
    this.view = new EntryView(index.store);
    this.budget = budget;
    this.#index = index;
    this.#idOf = idOf;
  }

  /** False if the index was compacted in the meantime, which invalidates all results so far. */
  get isCurrent(): boolean {
    return this.#index.store === this.store;
  }

  /**
   * Returns the current entry for one found earlier, which may have been replaced: the entry at the same position
   * within its document or group; -1: none.
   */
  currentOf(entry: number): number {
    const { store } = this.#index;
    if (store === this.store && store.isLive(entry)) return entry;
    const { documents } = this.view;
    const document = documents[entry] as number;
    let place = 0;
    while (entry > place && documents[entry - place - 1] === document) place++;
    const first = store.firstOf(document);
    return first >= 0 && store.documents[first + place] === document ? first + place : first;
  }

  /** Called before yielding to other work, which may change the index. */
  freeze(): void {
    this.view.freeze();
  }

  all(): EntrySet {
    return this.view.all();
  }

  complement(set: EntrySet): EntrySet {
    return difference(this.all(), set);
  }

  /**
   * Returns the field's terms. Undefined: the index lacks the field, or lacks it in this form. `within`: candidate
   * entries; other entries may be omitted from results.
   */
  field(name: string, form: FieldForm, within: EntrySet | null = null): FieldSearch | undefined {
    const column = this.column(name, form);
    if (column === undefined) return undefined;
    const keepsCase = this.#index.keepsCase(name, form);
    return new FieldSearch(this.view, column, keepsCase, this.budget, within);
  }

  column(name: string, form: FieldForm): FieldColumn | undefined {
    return this.#index.formColumn(name, form);
  }

  /**
   * Returns all columns of the index, or the columns of some fields, with the conversion from text to terms of each.
   */
  columnsOf(fields: ReadonlySet<string> | null): LikenessColumn[] {
    const columns: LikenessColumn[] = [];
    for (const name of this.#index.columnNames) {
      const column = this.#index.column(name);
      const field = fieldOfColumn(name);
      if (column === undefined || (fields !== null && !fields.has(field))) continue;
      const isOf = (form: FieldForm) => this.column(field, form) === column;
      const keyword = isOf("exact") ? keywordAnalyzer : lowerKeywordAnalyzer;
      const analyze = isOf("words") ? this.analyzerOf(field) : keyword;
      columns.push({ column, analyze });
    }
    return columns;
  }

  /** Returns the entries of the document, or group, of an entry. */
  sameDocument(entry: number): EntrySet {
    const { documents } = this.view;
    const document = documents[entry] as number;
    let first = entry;
    while (first > 0 && documents[first - 1] === document) first--;
    const builder = new EntrySetBuilder(this.view.size);
    for (let at = first; this.isOf(at, document); at++) builder.add(at);
    return builder.finish();
  }

  /** Returns the shapes of a field. Undefined: the index lacks the field. */
  spatial(
    name: string,
  ): { readonly column: SpatialColumn; readonly isLucene: boolean } | undefined {
    const column = this.column(name, "lower");
    if (column === undefined) return undefined;
    const space = this.#index.spaceOf?.(name) ?? globe;
    return { column: spatialColumnOf(column, space), isLucene: this.isLucene };
  }

  /** Whether the index is to answer as RavenDB's engine Lucene does, where engines differ. */
  get isLucene(): boolean {
    return this.#index.isLucene ?? false;
  }

  /** Returns the form of a field's vectors. */
  vectorForm(name: string): VectorForm {
    return this.#index.vectorFormOf?.(name) ?? plainForm;
  }

  /** Returns the analyzer for search texts on this field. */
  analyzerOf(name: string): Analyzer {
    return this.#index.analyzerOf(name);
  }

  /** The factors that scores are multiplied by; undefined: none. */
  get boosts(): EntryBoosts | undefined {
    return this.#index.boosts;
  }

  /** Returns the entries of the documents with these numbers; -1 is skipped. */
  *ofDocuments(docNums: Iterable<number>): Work<EntrySet> {
    const builder = new EntrySetBuilder(this.view.size);
    if (this.#idOf === null) return builder.finish();
    for (const docNum of docNums) {
      this.budget.spend(1);
      if (this.budget.isDue) yield;
      if (docNum < 0) continue;
      const first = this.store.firstOf(docNum);
      for (let entry = first; entry >= 0 && this.isOf(entry, docNum); entry++) builder.add(entry);
    }
    return builder.finish();
  }

  isOf(entry: number, docNum: number): boolean {
    const { view } = this;
    return entry < view.size && view.documents[entry] === docNum && view.isLive(entry);
  }

  /** Returns the entries whose document's lower-cased id passes `test`. Cost: one call for each entry. */
  *idsMatching(test: (id: string) => boolean): Work<EntrySet> {
    const builder = new EntrySetBuilder(this.view.size);
    if (this.#idOf === null) return builder.finish();
    for (const entry of this.all().toList()) {
      if (test(this.#idOf(this.view.documents[entry] as number))) builder.add(entry);
      this.budget.spend(idUnits);
      if (this.budget.isDue) yield;
    }
    return builder.finish();
  }

  /**
   * Returns an entry's fields as JSON text: their terms in order, then their values in `stored`, the text of an object;
   * a single one as itself, several as a list.
   */
  entryText(entry: number, stored: string | null): string {
    const members: string[] = [];
    const values = valueTexts(Buffer.from(stored ?? "{}"));
    if (this.#idOf !== null) {
      const id = this.#idOf(this.store.documents[entry] as number);
      members.push(`"id()":${JSON.stringify(id)}`);
    }
    for (const name of new Set([...this.#index.columnNames, ...values.keys()])) {
      const texts = [...this.#termTexts(name, entry), ...(values.get(name) ?? [])];
      if (texts.length === 0) continue;
      const text = texts.length === 1 ? texts[0] : `[${texts.join(",")}]`;
      members.push(`${JSON.stringify(name)}:${text}`);
    }
    return `{${members.join(",")}}`;
  }

  /**
   * Returns at most `countMax` terms of a field after `after`, in byte order; undefined if the field does not exist.
   * Null is a term here, in RavenDB 7.2.7's notation.
   */
  *termsOf(name: string, after: string, countMax: number): Work<string[] | undefined> {
    if (name === "id()" && this.#idOf !== null) return yield* this.#idTerms(after, countMax);
    const column = this.#index.column(name);
    if (column === undefined) return undefined;
    const { dictionary } = column;
    const order = yield* column.orderInSlices("bytes", this.budget);
    const ordered = order.terms;
    const bytes = Buffer.from(after);
    let at = after === "" ? 0 : order.lowerBound((term) => dictionary.compareTo(term, bytes) || -1);
    const terms: string[] = [];
    let hasNull = after < nullText && this.isUsed(column, nullTerm);
    for (; at < ordered.length && terms.length < countMax; at++) {
      this.budget.spend(termUnits);
      if (this.budget.isDue) yield;
      const term = ordered[at] as number;
      const text = dictionary.textOf(term);
      if (hasNull && text > nullText) {
        terms.push(nullText);
        hasNull = false;
      }
      if (text !== terms.at(-1) && this.isUsed(column, term)) terms.push(text);
    }
    if (hasNull) terms.push(nullText);
    return terms.slice(0, countMax);
  }

  *#idTerms(after: string, countMax: number): Work<string[]> {
    const ids = new Set<string>();
    for (const entry of this.all().toList()) {
      const id = this.#idOf?.(this.view.documents[entry] as number) ?? "";
      if (id > after) ids.add(id);
      this.budget.spend(idUnits);
      if (this.budget.isDue) yield;
    }
    return [...ids].sort().slice(0, countMax);
  }

  /** Returns whether an entry has the term. */
  isUsed(column: FieldColumn, term: number): boolean {
    for (const entry of column.entriesOf(term)) {
      if (entry < this.view.size && this.view.isLive(entry)) return true;
      this.budget.spend(1);
    }
    return false;
  }

  #termTexts(name: string, entry: number): string[] {
    const column = this.#index.column(name);
    if (column === undefined) return [];
    const texts = new Set<string>();
    let hasNull = false;
    for (const term of column.termsOf(entry)) {
      if (term === nullTerm) hasNull = true;
      else if (term >= firstTerm) texts.add(JSON.stringify(column.dictionary.textOf(term)));
    }
    const sorted = [...texts].sort();
    return hasNull ? [...sorted, "null"] : sorted;
  }
}

/** Returns the JSON texts of the values in the minified text of an object, by name; several for a list. */
function valueTexts(bytes: Buffer): Map<string, string[]> {
  const values = new Map<string, string[]>();
  for (let i = 1; bytes[i] !== byteObjectClose; ) {
    const keyEnd = skipString(bytes, i);
    const end = skipValue(bytes, keyEnd + 1);
    values.set(decodeString(bytes, i, keyEnd), elementTexts(bytes, keyEnd + 1));
    if (bytes[end] === byteObjectClose) break;
    i = end + 1;
  }
  return values;
}

/** Returns the texts of a list, or of a single value. Lists in a list stay text. */
function elementTexts(bytes: Buffer, at: number): string[] {
  if (bytes[at] !== byteArrayOpen) return [shownText(bytes.utf8Slice(at, skipValue(bytes, at)))];
  const texts: string[] = [];
  for (let i = firstElement(bytes, at); i >= 0; ) {
    const end = skipValue(bytes, i);
    texts.push(shownText(bytes.utf8Slice(i, end)));
    i = nextElement(bytes, end);
  }
  return texts;
}

/** As RavenDB 7.2.7 shows stored values: numbers as doubles, booleans as strings. */
function shownText(text: string): string {
  if (/^[-\d]/.test(text)) return doubleText(Number(text));
  return text === "true" || text === "false" ? `"${text}"` : text;
}
