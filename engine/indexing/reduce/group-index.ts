/**
 * An automatic map-reduce index: groups of documents by keys, with a count and sums. The contribution of each document
 * is kept packed, so that it can be subtracted without reading the document again; each group is an entry with its keys
 * and aggregates as fields.
 *
 * The sums of a group are always current, and so is its object, which is built when it is read. Its entry is created
 * when the group appears; the terms of its aggregates are updated when a query needs them (`refresh`). Most queries
 * look a group up by its keys, which never change, and a changed document affects two groups: updating terms that no
 * query reads would dominate the cost.
 *
 * A sum includes all numbers of a group, and is a double if one of them is a double. (RavenDB 7.2.7 omits numbers of
 * another type than the first: 4 + 4.5 = 4.) The doubles of a few documents are added in order, those of many documents
 * exactly (exact-sums.ts), so that the cost of a change is independent of their number.
 *
 * Invariants:
 * - Between slices, a group has an entry exactly when it has contributions and none of them is spoiled.
 * - An entry has the aggregates of its group, unless the group is in `#outdated`.
 */

import { assert } from "../../base/assert.ts";
import { foldedName } from "../../base/case-folding.ts";
import { doubleText } from "../../base/json/double-text.ts";
import type { Work, WorkBudget } from "../../base/scheduling/work-budget.ts";
import { bodyStartOf } from "../../state/documents/document-record.ts";
import {
  CollectionFollower,
  type FollowedCollection,
  type SavedProgress,
} from "../collection-follower.ts";
import { AmountsColumn } from "../columns/amounts-column.ts";
import { EntryStore, type SavedDocuments } from "../columns/entry-store.ts";
import type { FieldColumn } from "../columns/field-column.ts";
import { NumberColumn } from "../columns/number-column.ts";
import { NumberQueue } from "../columns/number-queue.ts";
import { grownUint32 } from "../columns/packed.ts";
import { goneStride, restoreStride } from "../columns/store-column.ts";
import { allDocuments, type IndexDefinition } from "../definitions/index-definition.ts";
import { addNumberTerm, addValueTerms, type FieldMode } from "../fields/document-fields.ts";
import type {
  FieldForm,
  FollowedIndex,
  IndexCounters,
  RestoredDocuments,
} from "../followed-index.ts";
import type { IndexHost, StoredRow } from "../index-host.ts";
import { columnNameOf, exactColumn, searchColumn } from "../map-index.ts";
import {
  type PartReader,
  type PartWriter,
  restoredTexts,
  savedTexts,
} from "../saved/saved-parts.ts";
import { type Analyzer, standardAnalyzer } from "../text/analyzer.ts";
import { ExactSums } from "./exact-sums.ts";
import { type ContributionVisitor, GroupValues, numberKinds } from "./group-values.ts";

const documentStride = 64;

/** So many contributions are added up in order when there are doubles; two at most have the same sum in any order. */
const orderedMin = 3;
const orderedMax = 64;
/** Cost of bringing a group's entry up to date. */
const groupUnits = 32;
const noTexts: readonly string[] = [];
/** Separator of the texts of several keys, which do not contain this character. */
const keySeparator = "\u0000";

interface OutputField {
  readonly column: string;
  readonly mode: FieldMode;
  /** Position of the value among the group's texts: keys, then aggregates. */
  readonly source: number;
}

export class GroupIndex implements ContributionVisitor, FollowedIndex {
  readonly keyNames: readonly string[];
  readonly outputs = this;
  store: EntryStore;
  readonly counters: IndexCounters = { mapAttempts: 0, mapErrors: 0 };
  readonly #follower: CollectionFollower;
  readonly #values: GroupValues;
  readonly #names: readonly string[];
  readonly #aggregates: readonly { readonly name: string; readonly sum: number }[];
  readonly #fields: readonly OutputField[];
  readonly #columnNumbers: ReadonlyMap<string, number>;
  readonly #sumCount: number;
  /** By group: the JSON texts of its keys. Numbers of deleted groups, which have null, are reused. */
  readonly #keys: (string | null)[] = [];
  readonly #freeNumbers: number[] = [];
  readonly #groupNumbers = new Map<string, number>();
  /** By group: its contributions. */
  #counts: Uint32Array = new Uint32Array(16);
  /** By group: contributions with a value that is not a number, where there are any. */
  readonly #spoiledCounts = new Map<number, number>();
  /** Groups with an inexact sum; true if the group changed since then and must be summed again. */
  readonly #inexact = new Map<number, boolean>();
  /** Groups that have changed since the last slice. */
  readonly #touched = new Set<number>();
  /** Groups whose entry may have other aggregates. */
  readonly #outdated = new NumberQueue();
  /** By group and sum. */
  readonly #sums = new ExactSums();
  /** By group and sum: contributions with doubles. */
  #doubleCounts: Uint32Array = new Uint32Array(16);
  /** By aggregate or key: start of its member, after the end of the previous member. */
  readonly #memberTexts: readonly string[];
  /** Contributions of documents: an entry for each, with the number of its group and the amounts and their `numberKinds`. */
  #contributions: EntryStore;
  #currentDocument = 0;
  readonly #sumsFound: Float64Array;

  constructor(definition: IndexDefinition, host: IndexHost) {
    const group = definition.groupBy;
    assert(group !== null, "a group index groups by something");
    const isAll = foldedName(definition.collection) === allDocuments;
    const target = {
      remove: (docNum: number) => this.#remove(docNum),
      take: (row: StoredRow) => this.#takeRow(row),
    };
    const followed = isAll ? null : definition.collection;
    this.#follower = new CollectionFollower([followed], target, host, documentStride);
    this.#values = new GroupValues(definition);
    this.keyNames = group.keys.map((key) => key.name);
    let sumCount = 0;
    this.#aggregates = group.aggregates.map((one) => ({
      name: one.name,
      sum: one.kind === "sum" ? sumCount++ : -1,
    }));
    this.#sumCount = sumCount;
    this.#sumsFound = new Float64Array(sumCount);
    this.#contributions = new EntryStore(0, [new NumberColumn(), new AmountsColumn(sumCount)]);
    this.#names = [...this.keyNames, ...this.#aggregates.map((one) => one.name)];
    this.#memberTexts = this.#names.map(
      (name, i) => `${i === 0 ? "{" : ","}${JSON.stringify(name)}:`,
    );
    this.#fields = outputFields(definition);
    this.#columnNumbers = new Map(this.#fields.map((field, number) => [field.column, number]));
    this.store = new EntryStore(this.#fields.length);
  }

  get followed(): readonly FollowedCollection[] {
    return this.#follower.sources;
  }

  get changeCount(): number {
    return this.#follower.changeCount;
  }

  get columnNames(): readonly string[] {
    return this.#fields.map((field) => field.column);
  }

  column(name: string): FieldColumn | undefined {
    const number = this.#columnNumbers.get(name);
    return number === undefined ? undefined : this.store.columns[number];
  }

  /** See `GroupOutputs.textOf`. */
  textOf(entry: number): string {
    const number = this.store.documents[entry] as number;
    const texts = this.#keyTextsOf(number);
    const sums = this.#sumsOf(number);
    for (const { sum } of this.#aggregates) texts.push(this.#aggregateText(number, sum, sums));
    return `${texts.map((text, i) => (this.#memberTexts[i] as string) + text).join("")}}`;
  }

  /** See `FollowedIndex.refresh`. */
  refresh(fields: ReadonlySet<string> | null, budget: WorkBudget): Work<void> | null {
    if (this.#outdated.size === 0) return null;
    const isRead = fields === null || this.#aggregates.some(({ name }) => fields.has(name));
    const renew = (number: number) => {
      if (this.store.firstOf(number) >= 0) this.#setEntry(number);
    };
    return isRead ? this.#outdated.takeAll(renew, groupUnits, budget) : null;
  }

  formColumn(name: string, form: FieldForm): FieldColumn | undefined {
    return this.column(columnNameOf(name, form));
  }

  keepsCase(_name: string, form: FieldForm): boolean {
    return form === "exact";
  }

  analyzerOf(): Analyzer {
    return standardAnalyzer;
  }

  get sources(): readonly FollowedCollection[] {
    return this.#follower.sources;
  }

  get isStale(): boolean {
    return this.#follower.isStale;
  }

  catchUp(isTimeUp: () => boolean): Promise<void> | null {
    const pending = this.#follower.catchUp(isTimeUp);
    this.#settle();
    if (this.#contributions.needsCompaction && !isTimeUp())
      this.#contributions = this.#contributions.compact(isTimeUp) ?? this.#contributions;
    if (this.store.needsCompaction && !isTimeUp())
      this.store = this.store.compact(isTimeUp) ?? this.store;
    return pending;
  }

  /** A contribution of the current document; called by GroupValues. */
  contribute(
    keys: readonly string[],
    sums: Float64Array,
    kinds: Uint8Array,
    lows: Int16Array,
  ): void {
    const key = keys.length === 1 ? (keys[0] as string) : keys.join(keySeparator);
    const number = this.#groupNumbers.get(key) ?? this.#addGroup(key);
    this.#append(number, sums, kinds, lows);
  }

  #addGroup(key: string): number {
    const number = this.#freeNumbers.pop() ?? this.#keys.length;
    this.#keys[number] = key;
    this.#groupNumbers.set(key, number);
    this.#clear(number);
    return number;
  }

  /** Makes the group of this number an empty one. */
  #clear(number: number): void {
    this.#counts = grownUint32(this.#counts, number + 1);
    this.#counts[number] = 0;
    const end = (number + 1) * this.#sumCount;
    this.#doubleCounts = grownUint32(this.#doubleCounts, end);
    for (let sum = number * this.#sumCount; sum < end; sum++) {
      this.#doubleCounts[sum] = 0;
      this.#sums.clear(sum);
    }
  }

  #takeRow(row: StoredRow): null {
    this.#remove(row.docNum);
    this.counters.mapAttempts++;
    this.#currentDocument = row.docNum;
    this.#values.visit(row.bytes, bodyStartOf(row.bytes, row.start), this);
    return null;
  }

  #append(number: number, sums: Float64Array, kinds: Uint8Array, lows: Int16Array): void {
    this.#groupOf.set(number);
    this.#amounts.set(sums, kinds, lows);
    const at = this.#contributions.endEntry(this.#currentDocument);
    this.#addTo(number, at, 1);
    this.#touched.add(number);
  }

  #remove(document: number): void {
    const contributions = this.#contributions;
    const first = contributions.firstOf(document);
    if (first < 0) return;
    const end = contributions.endOf(first);
    for (let at = first; at < end; at++) {
      const number = this.#groupOf.numbers[at] as number;
      this.#addTo(number, at, -1);
      this.#touched.add(number);
    }
    contributions.remove(document);
  }

  get #groupOf(): NumberColumn {
    return this.#contributions.extras[0] as NumberColumn; // the first of both
  }

  get #amounts(): AmountsColumn {
    return this.#contributions.extras[1] as AmountsColumn; // the second of both
  }

  /** `sign` 1 adds a contribution, -1 subtracts it. */
  #addTo(number: number, at: number, sign: 1 | -1): void {
    this.#counts[number] = (this.#counts[number] as number) + sign;
    const width = this.#sumCount;
    const amounts = this.#amounts;
    const { values, kinds } = amounts;
    let isSpoiled = false;
    let isInexact = this.#inexact.size > 0 && this.#inexact.has(number);
    for (let i = 0; i < width; i++) {
      const sum = number * width + i;
      const value = values[at * width + i] as number;
      if (Number.isNaN(value)) {
        isSpoiled = true;
        continue;
      }
      if (!this.#sums.add(sum, sign * value)) isInexact = true;
      const low = amounts.lowAt(at * width + i);
      if (low !== 0 && !this.#sums.add(sum, sign * low)) isInexact = true;
      if (kinds[at * width + i] === numberKinds.doubles) {
        this.#doubleCounts[sum] = (this.#doubleCounts[sum] as number) + sign;
      }
    }
    if (isInexact) this.#inexact.set(number, true);
    if (isSpoiled) this.#addSpoiled(number, sign);
  }

  #addSpoiled(number: number, sign: 1 | -1): void {
    const count = (this.#spoiledCounts.get(number) ?? 0) + sign;
    if (count === 0) this.#spoiledCounts.delete(number);
    else this.#spoiledCounts.set(number, count);
    if (sign === 1) this.counters.mapErrors++;
  }

  /** Adds the entries of new groups, and removes the entries of empty groups. */
  #settle(): void {
    for (const number of this.#touched) {
      const isEmpty = this.#counts[number] === 0;
      const hasEntry = this.store.firstOf(number) >= 0;
      if (!isEmpty && !this.#spoiledCounts.has(number)) {
        if (hasEntry) this.#outdated.add(number);
        else this.#setEntry(number);
        continue;
      }
      this.store.remove(number);
      if (isEmpty) this.#free(number);
    }
    this.#touched.clear();
  }

  #free(number: number): void {
    this.#groupNumbers.delete(this.#keys[number] as string);
    this.#keys[number] = null;
    this.#inexact.delete(number);
    this.#freeNumbers.push(number);
  }

  /** Sums a group again from its contributions. Cost: in proportion to its contributions since the last compaction. */
  #resum(number: number): void {
    const from = number * this.#sumCount;
    for (let i = 0; i < this.#sumCount; i++) this.#sums.clear(from + i);
    this.#inexact.delete(number);
    this.#visitAmounts(number, (i, value) => {
      if (!this.#sums.add(from + i, value)) this.#inexact.set(number, false);
    });
  }

  /** Returns the sums of a group; valid until the next call. */
  #sumsOf(number: number): Float64Array {
    if (this.#inexact.get(number) === true) this.#resum(number);
    const from = number * this.#sumCount;
    const sums = this.#sumsFound;
    const count = this.#counts[number] as number;
    let hasDoubles = false;
    for (let i = 0; i < sums.length; i++) {
      if ((this.#doubleCounts[from + i] as number) > 0) hasDoubles = true;
      sums[i] = this.#sums.valueOf(from + i);
    }
    if (!hasDoubles || count < orderedMin || count > orderedMax) return sums;
    sums.fill(0);
    this.#visitAmounts(number, (i, value) => {
      sums[i] = (sums[i] as number) + value;
    });
    return sums;
  }

  /** Visits the numbers of a group's contributions, in order. */
  #visitAmounts(number: number, visit: (sum: number, value: number) => void): void {
    const groupOf = this.#groupOf;
    const amounts = this.#amounts;
    const { values } = amounts;
    const width = this.#sumCount;
    for (let at = groupOf.firstOf(number); at >= 0; at = groupOf.nextOf(at)) {
      if (!this.#contributions.isLive(at)) continue;
      for (let i = 0; i < width; i++) {
        const value = values[at * width + i] as number;
        if (Number.isNaN(value)) continue;
        visit(i, value);
        const low = amounts.lowAt(at * width + i);
        if (low !== 0) visit(i, low);
      }
    }
  }

  #keyTextsOf(number: number): string[] {
    const key = this.#keys[number] as string; // the group exists
    return this.keyNames.length === 1 ? [key] : key.split(keySeparator);
  }

  /** `sum`: which of `sums`; -1: the count. */
  #aggregateText(number: number, sum: number, sums: Float64Array): string {
    if (sum < 0) return String(this.#counts[number]);
    const value = sums[sum] as number;
    const at = number * this.#sumCount + sum;
    if ((this.#doubleCounts[at] as number) > 0) return doubleText(value);
    // As in RavenDB 7.2.7, a sum of integers wraps at 64 bits.
    if (Number.isSafeInteger(value)) return String(value);
    return String(BigInt.asIntN(64, this.#sums.integerOf(at)));
  }

  /** Creates or updates the entry of a group. The existing entry is retained if its aggregates are unchanged. */
  #setEntry(number: number): void {
    const previous = this.store.firstOf(number);
    const keys = previous < 0 ? this.#keyTextsOf(number) : noTexts;
    const sums = this.#sumsOf(number);
    for (let i = 0; i < this.#fields.length; i++) {
      const { mode, source } = this.#fields[i] as OutputField;
      const column = this.store.columns[i] as FieldColumn;
      const aggregate = this.#aggregates[source - this.keyNames.length];
      if (aggregate !== undefined) {
        const { sum } = aggregate;
        const value = (sum < 0 ? this.#counts[number] : sums[sum]) as number;
        if (Number.isSafeInteger(value)) addNumberTerm(column, value, previous);
        else addValueTerms(column, mode, Buffer.from(this.#aggregateText(number, sum, sums)), 0);
      } else if (previous < 0) {
        addValueTerms(column, mode, Buffer.from(keys[source] as string), 0);
      } else {
        // The keys retain their terms.
        const terms = column.termsOf(previous);
        for (let at = 0; at < terms.length; at++) column.add(terms[at] as number);
      }
    }
    this.store.replaceEntry(number);
  }

  save(parts: PartWriter): readonly SavedDocuments[] {
    this.store.save(parts.under("groups"));
    parts.add("keys", ...savedTexts(this.#keys));
    parts.add("outdated", this.#outdated.toArray());
    parts.set("counters", { ...this.counters });
    parts.set("follower", this.#follower.progress());
    return [this.#contributions.save(parts.under("contributions"))];
  }

  *restore(parts: PartReader, documents: RestoredDocuments): Generator<void> {
    yield* this.store.restore(parts.under("groups"), (group) => group);
    for (const key of restoredTexts(parts.bytes("keys"))) {
      const number = this.#keys.length;
      this.#keys.push(key);
      if (key === null) this.#freeNumbers.push(number);
      else {
        this.#groupNumbers.set(key, number);
        this.#clear(number);
      }
      if (number % restoreStride === 0) yield;
    }
    for (const number of parts.uint32("outdated")) this.#outdated.add(number);
    yield* this.#contributions.restore(parts.under("contributions"), documents.documentOf);
    const groupOf = this.#groupOf;
    for (let at = 0; at < this.#contributions.entryCount; at++) {
      if (at % restoreStride === 0) yield;
      if (!this.#contributions.isLive(at)) continue;
      this.#addTo(groupOf.numbers[at] as number, at, 1);
    }
    Object.assign(this.counters, parts.get<IndexCounters>("counters"));
    this.#follower.resume(parts.get<SavedProgress[]>("follower"), documents);
    let count = 0;
    for (const document of documents.gone) {
      this.#remove(document);
      if (++count % goneStride === 0) yield;
    }
    this.#settle();
  }
}

function outputFields(definition: IndexDefinition): OutputField[] {
  const fields: OutputField[] = [];
  const keys = definition.groupBy?.keys ?? [];
  keys.forEach((key, source) => {
    fields.push({ column: key.name, mode: "lower", source });
    if (key.hasExact) fields.push({ column: exactColumn(key.name), mode: "exact", source });
    if (key.hasSearch || key.hasHighlight || key.hasSuggest) {
      fields.push({ column: searchColumn(key.name), mode: standardAnalyzer, source });
    }
  });
  (definition.groupBy?.aggregates ?? []).forEach((one, i) => {
    fields.push({ column: one.name, mode: "lower", source: keys.length + i });
  });
  return fields;
}
