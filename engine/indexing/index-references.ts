/**
 * Cross-references of an index: which documents each document's map read. A change of a document that was read requires
 * mapping the readers again. Packed like entries: a name is a term, and the names that a document's map read are its
 * entry.
 *
 * Invariants:
 * - A name leads to a document exactly when the document's last map read it.
 */
import { EntryStore, type SavedDocuments } from "./columns/entry-store.ts";
import type { FieldColumn } from "./columns/field-column.ts";
import { firstTerm, textKind } from "./columns/term-dictionary.ts";
import type { PartReader, PartWriter } from "./saved/saved-parts.ts";

export class IndexReferences {
  #store = new EntryStore(1);

  get isEmpty(): boolean {
    return this.#store.liveCount === 0;
  }

  /** Replaces the references of a document. */
  set(docNum: number, names: ReadonlySet<string>): void {
    this.remove(docNum);
    if (names.size === 0) return;
    const column = this.#column;
    for (const name of names) {
      const bytes = Buffer.from(name);
      column.add(column.dictionary.intern(textKind, bytes, bytes.length, Number.NaN));
    }
    this.#store.endEntry(docNum);
  }

  remove(docNum: number): void {
    this.#store.remove(docNum);
  }

  /**
   * Numbers of the documents that reference `name`. Cost: in proportion to all that ever did since the last compaction.
   */
  *documentsOf(name: string): Generator<number> {
    const term = this.#column.dictionary.findText(textKind, name);
    if (term >= 0) yield* this.#documentsOfTerm(term);
  }

  *names(): Generator<string> {
    const { dictionary } = this.#column;
    for (let term = firstTerm; term < dictionary.count; term++) {
      if (this.#documentsOfTerm(term).next().done !== true) yield dictionary.textOf(term);
    }
  }

  /** Compacts dead entries, a slice at a time. */
  compact(isTimeUp: () => boolean): void {
    if (this.#store.needsCompaction && !isTimeUp())
      this.#store = this.#store.compact(isTimeUp) ?? this.#store;
  }

  save(parts: PartWriter): SavedDocuments {
    return this.#store.save(parts);
  }

  *restore(parts: PartReader, documentOf: (saved: number) => number): Generator<void> {
    yield* this.#store.restore(parts, documentOf);
  }

  checkInvariants(): void {
    this.#store.checkInvariants();
  }

  get #column(): FieldColumn {
    return this.#store.columns[0] as FieldColumn; // one
  }

  *#documentsOfTerm(term: number): Generator<number> {
    const store = this.#store;
    const { firsts, nexts, entries } = this.#column;
    for (let at = firsts[term] ?? 0; at !== 0; at = nexts[at - 1] as number) {
      const entry = entries[at - 1] as number; // at - 1 is a value
      if (store.isLive(entry)) yield store.documents[entry] as number;
    }
  }
}
