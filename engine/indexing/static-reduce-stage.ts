/**
 * The second stage of a deployed index with a reduce: keeps what the maps gave by key, and reduces a key again when some
 * of its values changed. Many values of one key are reduced in pages first, so that a change costs one page and the list of
 * the pages' results: the reduce must be one that can be applied to its own results.
 *
 * Invariants:
 * - A group has an entry exactly when it has values and its reduce gave an object, once no group is dirty.
 * - Every value of a document is in one page, and the document's list names that page.
 */
import { EngineError } from "../errors.ts";
import { reducePageValuesMax } from "../limits.ts";
import type { GroupOutputs } from "./followed-index.ts";
import type { IndexErrors } from "./index-errors.ts";
import type { IndexHost } from "./index-host.ts";
import type { IndexProgram, MapResult } from "./index-program.ts";
import type { OutputSink } from "./reduce-output.ts";
import type { StaticEntries } from "./static-entries.ts";
import type { MapTarget } from "./static-map-stage.ts";

/** Some values of a group, by a number of their own, in the order they came. */
interface Page {
  readonly group: Group;
  readonly values: Map<number, string>;
  /** What they were reduced to; null: not yet. */
  result: string | null;
}

interface Group {
  readonly number: number;
  /** JSON text. */
  readonly key: string;
  readonly pages: Set<Page>;
  /** The page that new values go to. */
  last: Page | null;
  valueCount: number;
  /** The reduced object; null: none. */
  text: string | null;
}

interface PlacedValue {
  readonly page: Page;
  readonly number: number;
}

export class StaticReduceStage implements MapTarget, GroupOutputs {
  readonly keyNames: readonly string[] = [];
  readonly #program: IndexProgram;
  readonly #entries: StaticEntries;
  readonly #errors: IndexErrors;
  readonly #host: IndexHost;
  readonly #name: string;
  readonly #groupByKey = new Map<string, Group>();
  /** By number; the numbers of groups that are gone are given to new ones. */
  readonly #groups: (Group | null)[] = [];
  readonly #freeNumbers: number[] = [];
  readonly #valuesOf = new Map<number, readonly PlacedValue[]>();
  readonly #dirty = new Set<Group>();
  #nextValue = 0;
  readonly #sink: OutputSink | null;

  constructor(
    name: string,
    program: IndexProgram,
    entries: StaticEntries,
    errors: IndexErrors,
    host: IndexHost,
    sink: OutputSink | null,
  ) {
    this.#sink = sink;
    this.#name = name;
    this.#program = program;
    this.#entries = entries;
    this.#errors = errors;
    this.#host = host;
  }

  /** Every group is reduced. */
  get isSettled(): boolean {
    return this.#dirty.size === 0;
  }

  set(docNum: number, { values }: MapResult): void {
    this.remove(docNum);
    if (values.length === 0) return;
    const placed = values.map(({ key, text }) => this.#place(key, text));
    this.#valuesOf.set(docNum, placed);
  }

  remove(docNum: number): void {
    for (const { page, number } of this.#valuesOf.get(docNum) ?? []) {
      const { group } = page;
      page.values.delete(number);
      page.result = null;
      group.valueCount--;
      if (page.values.size === 0) {
        group.pages.delete(page);
        if (group.last === page) group.last = null;
      }
      this.#dirty.add(group);
    }
    this.#valuesOf.delete(docNum);
  }

  /** Reduces dirty groups until `isTimeUp`. */
  settle(isTimeUp: () => boolean): void {
    for (const group of this.#dirty) {
      if (!this.#reducePages(group, isTimeUp)) return;
      this.#dirty.delete(group);
      this.#finish(group);
      if (isTimeUp()) return;
    }
  }

  textOf(entry: number): string {
    return this.#groups[this.#entries.store.documents[entry] as number]?.text ?? "{}";
  }

  #place(key: string, text: string): PlacedValue {
    const group = this.#groupByKey.get(key) ?? this.#addGroup(key);
    if (group.last === null || group.last.values.size >= reducePageValuesMax) {
      group.last = { group, values: new Map(), result: null };
      group.pages.add(group.last);
    }
    const page = group.last;
    const number = this.#nextValue++;
    page.values.set(number, text);
    page.result = null;
    group.valueCount++;
    this.#dirty.add(group);
    return { page, number };
  }

  #addGroup(key: string): Group {
    const number = this.#freeNumbers.pop() ?? this.#groups.length;
    const group: Group = { number, key, pages: new Set(), last: null, valueCount: 0, text: null };
    this.#groups[number] = group;
    this.#groupByKey.set(key, group);
    return group;
  }

  /** @returns false when the time was up before the last page */
  #reducePages(group: Group, isTimeUp: () => boolean): boolean {
    if (group.pages.size < 2) return true;
    for (const page of group.pages) {
      if (page.result !== null) continue;
      page.result = this.#reduce(group, [...page.values.values()]) ?? "";
      if (isTimeUp()) return false;
    }
    return true;
  }

  #finish(group: Group): void {
    this.#refresh(group);
    this.#sink?.changed(group.key, group.text);
  }

  /** Reduces a group as a whole. */
  #refresh(group: Group): void {
    this.#entries.remove(group.number);
    group.text = null;
    if (group.valueCount === 0) {
      this.#groupByKey.delete(group.key);
      this.#groups[group.number] = null;
      this.#freeNumbers.push(group.number);
      return;
    }
    const pages = [...group.pages];
    const values =
      pages.length === 1
        ? [...(pages[0] as Page).values.values()]
        : pages.map((page) => page.result ?? "");
    // A page that could not be reduced makes the whole wrong.
    if (values.includes("")) return;
    group.text = this.#reduce(group, values);
    if (group.text === null) return;
    try {
      const fields = this.#program.fieldsOf(group.text);
      this.#entries.set(group.number, [{ fields, boosts: null }]);
    } catch (error) {
      this.#fail(group, error);
    }
  }

  #reduce(group: Group, values: readonly string[]): string | null {
    this.#errors.reduceAttempts += values.length;
    try {
      return this.#program.reduce(group.key, values);
    } catch (error) {
      this.#errors.reduceErrors += values.length;
      this.#fail(group, error);
      return null;
    }
  }

  #fail(group: Group, error: unknown): void {
    if (!(error instanceof EngineError)) throw error;
    this.#errors.add({
      atMicros: this.#host.nowMicros(),
      document: `Reduce key: ${group.key}`,
      action: "Reduce",
      message:
        `Failed to execute reduce function on '${this.#name}' index. The relevant reduce result is going to be ` +
        `removed from the index as it would be incorrect due to encountered errors. Exception: ${error.message}`,
    });
  }
}
