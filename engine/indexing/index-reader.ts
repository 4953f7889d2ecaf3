/**
 * One index as a query sees it: its entries, the fields to search and to sort by. Made for one query, which
 * runs to the end of its list of entries without giving the event loop back.
 */
import { difference, type EntrySet, EntrySetBuilder } from "./entry-set.ts";
import type { EntryStore } from "./entry-store.ts";
import type { FieldColumn } from "./field-column.ts";
import { FieldSearch } from "./field-search.ts";
import { exactColumn, searchColumn } from "./map-index.ts";

export class IndexReader {
  readonly store: EntryStore;
  readonly #column: (name: string) => FieldColumn | undefined;
  readonly #idOf: (docNum: number) => string;

  /** `column`: by the names of map-index.ts. `idOf`: the lower-cased id of the document of an entry. */
  constructor(
    store: EntryStore,
    column: (name: string) => FieldColumn | undefined,
    idOf: (docNum: number) => string,
  ) {
    this.store = store;
    this.#column = column;
    this.#idOf = idOf;
  }

  all(): EntrySet {
    return this.store.all();
  }

  complement(set: EntrySet): EntrySet {
    return difference(this.all(), set);
  }

  /** The field's terms: lower-cased, in their own case, or its words. Undefined: the index has no such field. */
  field(name: string, form: "lower" | "exact" | "words"): FieldSearch | undefined {
    const column = this.column(name, form);
    return column === undefined ? undefined : new FieldSearch(this.store, column, form === "exact");
  }

  column(name: string, form: "lower" | "exact" | "words"): FieldColumn | undefined {
    if (form === "lower") return this.#column(name);
    return this.#column(form === "exact" ? exactColumn(name) : searchColumn(name));
  }

  /** Entries of the documents with these numbers; -1 is none. */
  ofDocuments(docNums: readonly number[]): EntrySet {
    const builder = new EntrySetBuilder(this.store.entryCount);
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
    for (const entry of this.all().toList()) {
      if (test(this.#idOf(this.store.documents[entry] as number))) builder.add(entry);
    }
    return builder.finish();
  }
}
