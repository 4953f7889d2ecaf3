/**
 * One index as a query sees it: its entries, the fields to search and to sort by. Made for one query, which
 * runs to the end of its list of entries without giving the event loop back.
 */
import type { Analyzer } from "./analyzer.ts";
import { difference, type EntrySet, EntrySetBuilder } from "./entry-set.ts";
import type { EntryStore } from "./entry-store.ts";
import type { FieldColumn } from "./field-column.ts";
import { FieldSearch } from "./field-search.ts";
import type { EntryBoosts, FieldForm, FollowedIndex } from "./followed-index.ts";
import { firstTerm, nullTerm } from "./term-dictionary.ts";

/** How null is shown among terms. */
const nullText = "NULL_VALUE";

export class IndexReader {
  readonly store: EntryStore;
  readonly #index: FollowedIndex;
  readonly #idOf: ((docNum: number) => string) | null;

  /** `idOf`: the lower-cased id of the document of an entry, null where entries come from no document. */
  constructor(index: FollowedIndex, idOf: ((docNum: number) => string) | null) {
    this.store = index.store;
    this.#index = index;
    this.#idOf = idOf;
  }

  all(): EntrySet {
    return this.store.all();
  }

  complement(set: EntrySet): EntrySet {
    return difference(this.all(), set);
  }

  /** The field's terms. Undefined: the index has the field not, or not in this form. */
  field(name: string, form: FieldForm): FieldSearch | undefined {
    const column = this.column(name, form);
    if (column === undefined) return undefined;
    return new FieldSearch(this.store, column, this.#index.keepsCase(name, form));
  }

  column(name: string, form: FieldForm): FieldColumn | undefined {
    return this.#index.formColumn(name, form);
  }

  /** What makes terms of the text of a search in this field. */
  analyzerOf(name: string): Analyzer {
    return this.#index.analyzerOf(name);
  }

  /** What scores are multiplied by; undefined: nothing. */
  get boosts(): EntryBoosts | undefined {
    return this.#index.boosts;
  }

  /** Entries of the documents with these numbers; -1 is none. */
  ofDocuments(docNums: readonly number[]): EntrySet {
    const builder = new EntrySetBuilder(this.store.entryCount);
    if (this.#idOf === null) return builder.finish();
    for (const docNum of docNums) {
      if (docNum < 0) continue;
      const first = this.store.firstOf(docNum);
      for (let entry = first; entry >= 0 && this.isOf(entry, docNum); entry++) builder.add(entry);
    }
    return builder.finish();
  }

  isOf(entry: number, docNum: number): boolean {
    return (
      entry < this.store.entryCount &&
      this.store.documents[entry] === docNum &&
      this.store.isLive(entry)
    );
  }

  /** Entries whose document's lower-cased id fulfils `test`. Cost: one call for each entry. */
  idsMatching(test: (id: string) => boolean): EntrySet {
    const builder = new EntrySetBuilder(this.store.entryCount);
    if (this.#idOf === null) return builder.finish();
    for (const entry of this.all().toList()) {
      if (test(this.#idOf(this.store.documents[entry] as number))) builder.add(entry);
    }
    return builder.finish();
  }

  /** An entry's fields with their terms, as JSON text: one term as itself, several as a list, in order. */
  entryText(entry: number): string {
    const members: string[] = [];
    if (this.#idOf !== null) {
      const id = this.#idOf(this.store.documents[entry] as number);
      members.push(`"id()":${JSON.stringify(id)}`);
    }
    for (const name of this.#index.columnNames) {
      const terms = this.#termTexts(name, entry);
      if (terms.length === 0) continue;
      const text = terms.length === 1 ? terms[0] : `[${terms.join(",")}]`;
      members.push(`${JSON.stringify(name)}:${text}`);
    }
    return `{${members.join(",")}}`;
  }

  /**
   * Terms of a field after `after` in the order of their bytes, at most `countMax`; undefined: no such field. Null is a
   * term here as RavenDB 7.2.7 shows it.
   */
  termsOf(name: string, after: string, countMax: number): string[] | undefined {
    if (name === "id()" && this.#idOf !== null) return this.#idTerms(after, countMax);
    const column = this.#index.column(name);
    if (column === undefined) return undefined;
    const { dictionary } = column;
    const order = column.order("bytes");
    const bytes = Buffer.from(after);
    let at = after === "" ? 0 : order.lowerBound((term) => dictionary.compareTo(term, bytes) || -1);
    const terms: string[] = [];
    let hasNull = after < nullText && this.#isUsed(column, nullTerm);
    for (; at < order.terms.length && terms.length < countMax; at++) {
      const term = order.terms[at] as number;
      const text = dictionary.textOf(term);
      if (hasNull && text > nullText) {
        terms.push(nullText);
        hasNull = false;
      }
      if (text !== terms.at(-1) && this.#isUsed(column, term)) terms.push(text);
    }
    if (hasNull) terms.push(nullText);
    return terms.slice(0, countMax);
  }

  #idTerms(after: string, countMax: number): string[] {
    const ids = new Set<string>();
    for (const entry of this.all().toList()) {
      const id = this.#idOf?.(this.store.documents[entry] as number) ?? "";
      if (id > after) ids.add(id);
    }
    return [...ids].sort().slice(0, countMax);
  }

  #isUsed(column: FieldColumn, term: number): boolean {
    for (let at = column.firsts[term] ?? 0; at !== 0; at = column.nexts[at - 1] as number) {
      if (this.store.isLive(column.entries[at - 1] as number)) return true;
    }
    return false;
  }

  #termTexts(name: string, entry: number): string[] {
    const column = this.#index.column(name);
    if (column === undefined) return [];
    const texts = new Set<string>();
    let hasNull = false;
    const end = column.starts[entry + 1] as number;
    for (let at = column.starts[entry] as number; at < end; at++) {
      const term = column.terms[at] as number;
      if (term === nullTerm) hasNull = true;
      else if (term >= firstTerm) texts.add(JSON.stringify(column.dictionary.textOf(term)));
    }
    const sorted = [...texts].sort();
    return hasNull ? [...sorted, "null"] : sorted;
  }
}
