/**
 * The second stage of a deployed index with a reduce: stores the map results by key, and reduces a key again if some of
 * its values changed. Many values of one key are reduced in pages, the pages' results in pages of their own, and so on,
 * so that a change costs a page of each level: the reduce must be applicable to its own results.
 *
 *   values of a group   [v v v … v] [v v … v] [v v … v] … [v v]
 *   level 0: pages           r          r         r    …    r        a result for each, once it is known
 *   level 1                       r                    …    r        a result for each `resultsOfPage` of them
 *
 * A reduce that only adds up needs no pages (reduced-sums.ts): its groups have no stored results, and the terms of a
 * sum are updated when a query needs them (`refresh`).
 *
 * Invariants:
 * - When no group is dirty, a group has an entry exactly when it has values and its reduce returned an object.
 * - The pages of a group, when known, hold each of its live values once.
 * - An entry has the fields of its group, unless the group is dirty or in `#outdated`.
 */

import { assert } from "../../base/assert.ts";
import { EngineError } from "../../base/errors.ts";
import { reducePageValuesMax } from "../../base/limits.ts";
import { partitionPoint } from "../../base/partition-point.ts";
import type { Work, WorkBudget } from "../../base/scheduling/work-budget.ts";
import { BytesColumn } from "../columns/bytes-column.ts";
import { EntryStore, type SavedDocuments } from "../columns/entry-store.ts";
import { NumberColumn } from "../columns/number-column.ts";
import { NumberQueue } from "../columns/number-queue.ts";
import { goneStride, restoreStride } from "../columns/store-column.ts";
import type { GroupOutputs, RestoredDocuments } from "../followed-index.ts";
import type { IndexErrors } from "../index-errors.ts";
import type { IndexHost } from "../index-host.ts";
import type { IndexProgram, MappedField, MapResult } from "../index-program.ts";
import type { MapTarget } from "../map-outcomes.ts";
import {
  type PartReader,
  type PartWriter,
  restoredTexts,
  savedTexts,
} from "../saved/saved-parts.ts";
import type { StaticEntries } from "../static-entries.ts";
import type { OutputSink } from "./reduce-output.ts";
import { ReducedSums } from "./reduced-sums.ts";

/** Results of pages that are reduced together. */
const resultsOfPage = 16;
/** Cost of bringing an entry up to date. */
const groupUnits = 64;
/** In place of a result: reducing failed, or there are no values. */
const failed = "";
const vacant = "-";

/**
 * Some values of a group: the entries of its list from `first` up to the next page's `first`, at most
 * `reducePageValuesMax`, including dead ones.
 */
interface Page {
  readonly first: number;
  added: number;
  live: number;
}

interface Group {
  readonly number: number;
  /** JSON text. */
  readonly key: string;
  /** In the order of their entries; null: to be rebuilt from the list of the group. */
  pages: Page[] | null;
  /** By level: the result of each page; null: not known. Null: none is. */
  results: (string | null)[][] | null;
  valueCount: number;
  /** The reduced object; null: none, or its members are in `#sums`. */
  text: string | null;
  /** Whether its values can be summed. */
  readonly isOfSums: boolean;
}

export class StaticReduceStage implements MapTarget, GroupOutputs {
  readonly keyNames: readonly string[] = [];
  readonly #program: IndexProgram;
  readonly #entries: StaticEntries;
  readonly #errors: IndexErrors;
  readonly #host: IndexHost;
  readonly #name: string;
  readonly #groupByKey = new Map<string, Group>();
  /** By number; numbers of deleted groups are reused. */
  readonly #groups: (Group | null)[] = [];
  readonly #freeNumbers: number[] = [];
  /** Map results: an entry for each value, with the number of its group and its JSON text. */
  #values = new EntryStore(0, [new NumberColumn(), new BytesColumn()]);
  readonly #dirty = new Set<Group>();
  readonly #sink: OutputSink | null;
  /** Null: the reduce does more than adding up. */
  readonly #sums: ReducedSums | null;
  /** Groups whose entry may have other sums. */
  readonly #outdated = new NumberQueue();

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
    const { sums = null } = program;
    this.#sums = sums === null ? null : new ReducedSums(sums);
  }

  /** Every group is reduced. */
  get isSettled(): boolean {
    return this.#dirty.size === 0;
  }

  /** A document whose values are unchanged changes no group: nothing is reduced again. */
  set(docNum: number, { values }: MapResult): null {
    if (this.#hasAll(docNum, values)) return null;
    this.remove(docNum);
    for (const { key, text } of values) this.#add(docNum, key, text);
    return null;
  }

  /** Returns whether these are, in this order, the values of a document. */
  #hasAll(docNum: number, values: MapResult["values"]): boolean {
    const first = this.#values.firstOf(docNum);
    if (first < 0) return values.length === 0;
    if (this.#values.endOf(first) - first !== values.length) return false;
    return values.every(
      ({ key, text }, at) =>
        this.#groupAt(first + at).key === key && this.#texts.textOf(first + at) === text,
    );
  }

  remove(docNum: number): void {
    const values = this.#values;
    const first = values.firstOf(docNum);
    if (first < 0) return;
    const end = values.endOf(first);
    for (let entry = first; entry < end; entry++) this.#takeBack(entry);
    values.remove(docNum);
  }

  /** Reduces dirty groups until `isTimeUp`. */
  settle(isTimeUp: () => boolean): void {
    for (const group of this.#dirty) {
      const isSummed = this.#isSummed(group);
      if (!isSummed && !this.#reducePages(group, isTimeUp)) return;
      this.#dirty.delete(group);
      // Counts as many attempts as the function would have values, since the failure rate is judged by their share.
      if (isSummed) this.#errors.reduceAttempts += Math.min(group.valueCount, reducePageValuesMax);
      if (isSummed && this.#canWait(group)) this.#outdated.add(group.number);
      else this.#finish(group);
      if (isTimeUp()) return;
    }
  }

  /** See `FollowedIndex.refresh`. */
  refresh(fields: ReadonlySet<string> | null, budget: WorkBudget): Work<void> | null {
    if (this.#outdated.size === 0 || this.#sums?.hasAny(fields) !== true) return null;
    const renew = (number: number) => {
      const group = this.#groups[number] ?? null;
      // Dirty groups are reduced later.
      if (group !== null && !this.#dirty.has(group) && this.#isSummed(group)) this.#refresh(group);
    };
    return this.#outdated.takeAll(renew, groupUnits, budget);
  }

  textOf(entry: number): string {
    const group = this.#groups[this.#entries.store.documents[entry] as number] ?? null;
    return (group === null ? null : this.#textOf(group)) ?? "{}";
  }

  /** Returns the reduced object; null: none. */
  #textOf(group: Group): string | null {
    if (group.valueCount === 0 || !this.#isSummed(group)) return group.text;
    const members = this.#membersOf(group).map(
      ({ name, text }) => `${JSON.stringify(name)}:${text}`,
    );
    return `{${members.join(",")}}`;
  }

  /** Returns whether the result of the group is computed from its sums. */
  #isSummed(group: Group): boolean {
    return group.isOfSums && this.#sums?.has(group.number) === true;
  }

  /** Its values are reduced by sums. */
  #membersOf(group: Group): { readonly name: string; readonly text: string }[] {
    const sums = this.#sums as ReducedSums; // it is summed
    return sums.members(group.number, group.key, group.valueCount, (visit) => {
      const groupOf = this.#groupOf;
      const texts = this.#texts;
      for (let at = groupOf.firstOf(group.number); at >= 0; at = groupOf.nextOf(at)) {
        if (!this.#values.isLive(at)) continue;
        texts.find(at);
        visit(texts.chunk, texts.at);
      }
    });
  }

  /** Returns whether its entry may stay outdated until a query reads a sum: it has no other consumers. */
  #canWait(group: Group): boolean {
    const isFound = group.valueCount > 0 && this.#entries.store.firstOf(group.number) >= 0;
    return isFound && this.#sink === null && !this.#entries.hasStored;
  }

  /** Compacts dead values, a slice at a time. This renumbers entries, so pages must be rebuilt. */
  compact(isTimeUp: () => boolean): void {
    if (!this.#values.needsCompaction || isTimeUp()) return;
    const compacted = this.#values.compact(isTimeUp);
    if (compacted === null) return;
    this.#values = compacted;
    for (const group of this.#groups) if (group !== null) forgetPages(group);
  }

  /** See `FollowedIndex.save`. */
  save(parts: PartWriter): readonly SavedDocuments[] {
    parts.add("keys", ...savedTexts(this.#groups.map((group) => group?.key ?? null)));
    // Not named `texts`, under which earlier versions expect the texts of all groups: they rebuild the index.
    parts.add("reduced", ...savedTexts(this.#groups.map((group) => group?.text ?? null)));
    parts.add("outdated", this.#outdated.toArray());
    parts.add(
      "dirty",
      Uint32Array.from(this.#dirty, ({ number }) => number),
    );
    return [this.#values.save(parts.under("values"))];
  }

  *restore(parts: PartReader, documents: RestoredDocuments): Generator<void> {
    const texts = restoredTexts(parts.bytes("reduced"));
    for (const key of restoredTexts(parts.bytes("keys"))) {
      const text = texts.next().value ?? null;
      const number = this.#groups.length;
      if (key === null) {
        this.#groups.push(null);
        this.#freeNumbers.push(number);
      } else {
        this.#setGroup(number, key, null, text);
      }
      if (number % restoreStride === 0) yield;
    }
    const values = this.#values;
    yield* values.restore(parts.under("values"), documents.documentOf);
    for (let entry = 0; entry < values.entryCount; entry++) {
      if (entry % restoreStride === 0) yield;
      if (!values.isLive(entry)) continue;
      const group = this.#groupAt(entry);
      group.valueCount++;
      if (group.isOfSums) this.#count(group, entry, 1);
    }
    for (const number of parts.uint32("outdated")) this.#outdated.add(number);
    for (const number of parts.uint32("dirty")) this.#dirty.add(this.#groups[number] as Group);
  }

  /** Reports every object whose document is in doubt. */
  *resend(sink: OutputSink): Generator<void> {
    for (const [number, group] of this.#groups.entries()) {
      if (number % goneStride === 0) yield;
      // Dirty groups are reported when they are reduced.
      if (group !== null && !this.#dirty.has(group) && sink.isInDoubt(group.key)) {
        sink.changed(group.key, this.#textOf(group));
      }
    }
  }

  get #groupOf(): NumberColumn {
    return this.#values.extras[0] as NumberColumn; // the first of both
  }

  get #texts(): BytesColumn {
    return this.#values.extras[1] as BytesColumn; // the second of both
  }

  #groupAt(entry: number): Group {
    return this.#groups[this.#groupOf.numbers[entry] as number] as Group; // it has this value
  }

  #add(docNum: number, key: string, text: string): void {
    const group = this.#groupByKey.get(key) ?? this.#addGroup(key);
    const texts = this.#texts;
    this.#groupOf.set(group.number);
    texts.setText(text);
    if (group.isOfSums) this.#sums?.add(group.number, texts.chunk, texts.at, 1);
    group.valueCount++;
    this.#dirty.add(group);
    if (this.#isSummed(group)) {
      this.#values.endEntry(docNum);
      return;
    }
    const pages = this.#pagesOf(group);
    const entry = this.#values.endEntry(docNum);
    let last = pages.at(-1);
    if (last === undefined || last.added >= reducePageValuesMax) {
      last = { first: entry, added: 0, live: 0 };
      pages.push(last);
    }
    last.added++;
    last.live++;
    forgetResults(group, pages.length - 1);
  }

  /** Adds a value to the sums of its group, or subtracts it. */
  #count(group: Group, entry: number, sign: 1 | -1): void {
    const texts = this.#texts;
    texts.find(entry);
    this.#sums?.add(group.number, texts.chunk, texts.at, sign);
  }

  /** Removes a value from its group and page. */
  #takeBack(entry: number): void {
    const group = this.#groupAt(entry);
    group.valueCount--;
    this.#dirty.add(group);
    if (group.isOfSums) this.#count(group, entry, -1);
    if (this.#isSummed(group)) forgetPages(group);
    const { pages } = group;
    if (pages === null) return;
    const low = partitionPoint(1, pages.length, (at) => (pages[at] as Page).first <= entry) - 1;
    const page = pages[low] as Page; // the last that does not begin after the entry
    page.live--;
    forgetResults(group, low);
    const last = pages.at(-1) as Page; // there is one
    if (pages.length === 1 || last.live < group.valueCount) return;
    // Of a small group that changes often one page remains.
    group.pages = [last];
    group.results = null;
  }

  /** Returns the pages of a group, rebuilt when not known. */
  #pagesOf(group: Group): Page[] {
    if (group.pages !== null) return group.pages;
    const pages: Page[] = [];
    const groupOf = this.#groupOf;
    let page: Page | null = null;
    for (let at = groupOf.firstOf(group.number); at >= 0; at = groupOf.nextOf(at)) {
      if (!this.#values.isLive(at)) continue;
      if (page === null || page.added >= reducePageValuesMax) {
        page = { first: at, added: 0, live: 0 };
        pages.push(page);
      }
      page.added++;
      page.live++;
    }
    group.pages = pages;
    return pages;
  }

  /** Returns the texts of the live values of a page. */
  #valuesOf(group: Group, page: Page): string[] {
    const groupOf = this.#groupOf;
    const found: string[] = [];
    for (let at = page.first; found.length < page.live; at = groupOf.nextOf(at)) {
      assert(at >= 0, "a page has as many live values as it counts");
      if (this.#values.isLive(at)) found.push(this.#texts.textOf(at) as string); // every value has
    }
    assert(this.#groupOf.numbers[page.first] === group.number, "a page is of its group");
    return found;
  }

  #addGroup(key: string): Group {
    const number = this.#freeNumbers.pop() ?? this.#groups.length;
    return this.#setGroup(number, key, [], null);
  }

  #setGroup(number: number, key: string, pages: Page[] | null, text: string | null): Group {
    const isOfSums = this.#sums?.takesKey(key) === true;
    this.#sums?.clear(number);
    const known = isOfSums ? null : pages;
    const group = { number, key, pages: known, results: null, valueCount: 0, text, isOfSums };
    this.#groups[number] = group;
    this.#groupByKey.set(key, group);
    return group;
  }

  /** @returns false when the time was up before the last page */
  #reducePages(group: Group, isTimeUp: () => boolean): boolean {
    const { length } = this.#pagesOf(group);
    if (length < 2) return true;
    const top = topLevelOf(length);
    group.results ??= [];
    while (group.results.length <= top) group.results.push([]);
    const count = pagesAt(length, top);
    return this.#reduceAll(group, top, 0, count, isTimeUp);
  }

  /** Computes the results of pages, up to the first failing page. @returns false if the time was up before that */
  #reduceAll(
    group: Group,
    level: number,
    from: number,
    to: number,
    isTimeUp: () => boolean,
  ): boolean {
    for (let at = from; at < to; at++) {
      if (!this.#reducePage(group, level, at, isTimeUp)) return false;
      if (group.results?.[level]?.[at] === failed) break;
    }
    return true;
  }

  /** Computes the result of a page, and of the pages below it. @returns false if the time was up before that */
  #reducePage(group: Group, level: number, at: number, isTimeUp: () => boolean): boolean {
    const known = group.results as (string | null)[][]; // made before
    const results = known[level] as (string | null)[];
    if ((results[at] ?? null) !== null) return true;
    if (level === 0) {
      const page = this.#pagesOf(group)[at] as Page;
      results[at] =
        page.live === 0 ? vacant : (this.#reduce(group, this.#valuesOf(group, page)) ?? failed);
      return !isTimeUp();
    }
    const below = known[level - 1] as (string | null)[];
    const end = Math.min((at + 1) * resultsOfPage, pagesAt(this.#pagesOf(group).length, level - 1));
    const from = at * resultsOfPage;
    if (!this.#reduceAll(group, level - 1, from, end, isTimeUp)) return false;
    results[at] = this.#joined(group, below.slice(from, end) as string[]);
    return !isTimeUp();
  }

  /** Returns the result of the results of pages. */
  #joined(group: Group, results: readonly string[]): string {
    const values = results.filter((result) => result !== vacant);
    const [only] = values;
    if (only === undefined) return vacant;
    // A page that could not be reduced invalidates the whole.
    if (values.includes(failed)) return failed;
    return values.length === 1 ? only : (this.#reduce(group, values) ?? failed);
  }

  #finish(group: Group): void {
    this.#refresh(group);
    this.#sink?.changed(group.key, this.#textOf(group));
  }

  /** Reduces a group as a whole. */
  #refresh(group: Group): void {
    group.text = null;
    if (group.valueCount > 0 && this.#isSummed(group)) {
      this.#setEntry(group, () =>
        this.#membersOf(group).map(({ name, text }) => ({ name, text, dynamic: null })),
      );
      return;
    }
    this.#entries.remove(group.number);
    if (group.valueCount === 0) {
      this.#groupByKey.delete(group.key);
      this.#groups[group.number] = null;
      this.#freeNumbers.push(group.number);
      return;
    }
    const pages = this.#pagesOf(group);
    const values =
      pages.length === 1
        ? this.#valuesOf(group, pages[0] as Page)
        : (group.results as string[][])[topLevelOf(pages.length)]?.filter((one) => one !== vacant);
    // A page that could not be reduced invalidates the whole.
    if (values === undefined || values.includes(failed)) return;
    group.text = this.#reduce(group, values);
    if (group.text === null) return;
    this.#setEntry(group, () => this.#program.fieldsOf(group.text as string));
  }

  #setEntry(group: Group, fields: () => readonly MappedField[]): void {
    try {
      this.#entries.set(group.number, [{ fields: fields(), boosts: null }]);
    } catch (error) {
      this.#entries.remove(group.number);
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
      document: `Reduce key: ${keyLabel(group.key, this.#program.keyName ?? null)}`,
      action: "Reduce",
      message:
        `Failed to execute reduce function on '${this.#name}' index. The relevant reduce result is going to be ` +
        `removed from the index as it would be incorrect due to encountered errors. Exception: ${error.message}`,
    });
  }
}

/** Returns a key as RavenDB 7.2.7 names it in errors. */
function keyLabel(key: string, name: string | null): string {
  const value: unknown = JSON.parse(key);
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  if (name === null && !isObject) return key;
  const members = isObject && name === null ? Object.entries(value) : [[name, value] as const];
  return `{ ${members.map(([field, one]) => `'${field}' : ${labelOf(one)}`).join("")} }`;
}

function labelOf(value: unknown): string {
  if (typeof value === "string") return value;
  return Number.isInteger(value) ? `${value}.0` : JSON.stringify(value);
}

/** Discards the results of a page, and of the pages above it. */
function forgetResults({ results }: Group, page: number): void {
  let at = page;
  for (const level of results ?? []) {
    level[at] = null;
    at = Math.floor(at / resultsOfPage);
  }
}

function forgetPages(group: Group): void {
  group.pages = null;
  group.results = null;
}

/** Returns the number of pages on a level above as many pages of values. */
function pagesAt(pageCount: number, level: number): number {
  return Math.ceil(pageCount / resultsOfPage ** level);
}

/** Returns the lowest level whose results are reduced together. */
function topLevelOf(pageCount: number): number {
  let level = 0;
  while (pagesAt(pageCount, level) > resultsOfPage) level++;
  return level;
}
