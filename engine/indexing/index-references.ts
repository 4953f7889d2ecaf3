/**
 * Which documents of an index looked at which others: whoever is looked at changes what the index has of the first.
 *
 * Invariants:
 * - A name is listed for a document exactly when the document is listed for the name.
 */
export class IndexReferences {
  readonly #documentsOf = new Map<string, Set<number>>();
  readonly #namesOf = new Map<number, readonly string[]>();

  get isEmpty(): boolean {
    return this.#namesOf.size === 0;
  }

  /** Replaces what the document looked at. */
  set(docNum: number, names: ReadonlySet<string>): void {
    this.remove(docNum);
    if (names.size === 0) return;
    this.#namesOf.set(docNum, [...names]);
    for (const name of names) {
      const documents = this.#documentsOf.get(name);
      if (documents === undefined) this.#documentsOf.set(name, new Set([docNum]));
      else documents.add(docNum);
    }
  }

  remove(docNum: number): void {
    for (const name of this.#namesOf.get(docNum) ?? []) {
      const documents = this.#documentsOf.get(name);
      documents?.delete(docNum);
      if (documents?.size === 0) this.#documentsOf.delete(name);
    }
    this.#namesOf.delete(docNum);
  }

  /** Numbers of the documents that looked at `name`. */
  documentsOf(name: string): Iterable<number> {
    return this.#documentsOf.get(name) ?? [];
  }

  /** Every name that is looked at. */
  names(): Iterable<string> {
    return this.#documentsOf.keys();
  }
}
