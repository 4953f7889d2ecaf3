/**
 * An automatic map-reduce index: groups of documents by keys, with a count and sums. The contribution of each document
 * is kept packed, so that it can be subtracted without reading the document again; each group is an entry with its keys
 * and aggregates as fields, replaced when the group changes.
 *
 * A sum includes all numbers of a group, and is a double when one of them is. (RavenDB 7.2.7 leaves out numbers of
 * another kind than the first: 4 + 4.5 = 4.) The doubles of a few documents are added up in their order, those of many
 * exactly (exact-sums.ts), so that a change costs the same however many there are.
 *
 * Invariants:
 * - After `settle`, a group has an entry exactly when it has contributions and none of them is spoiled.
 */
import { assert } from "../base/assert.ts";
import { bodyStartOf } from "../documents/document-record.ts";
import { type Analyzer, standardAnalyzer } from "./analyzer.ts";
import { BytesColumn } from "./bytes-column.ts";
import {
  CollectionFollower,
  type FollowedCollection,
  type SavedProgress,
} from "./collection-follower.ts";
import { addValueTerms, type FieldMode } from "./document-fields.ts";
import { EntryStore, type SavedDocuments } from "./entry-store.ts";
import { ExactSums } from "./exact-sums.ts";
import type { FieldColumn } from "./field-column.ts";
import type {
  FieldForm,
  FollowedIndex,
  IndexCounters,
  RestoredDocuments,
} from "./followed-index.ts";
import { type ContributionVisitor, GroupValues, numberKinds } from "./group-values.ts";
import { allDocuments, type IndexDefinition } from "./index-definition.ts";
import type { IndexHost, StoredRow } from "./index-host.ts";
import { columnNameOf, exactColumn, searchColumn } from "./map-index.ts";
import { NumberColumn } from "./number-column.ts";
import { grownUint32 } from "./packed.ts";
import { type PartReader, type PartWriter, restoredTexts, savedTexts } from "./saved-parts.ts";
import { goneStride, restoreStride } from "./store-column.ts";

const documentStride = 64;
/** Bytes of a number and its kind (`numberKinds`) in a contribution. */
const amountBytes = 9;

/** So many contributions are added up in order when there are doubles; two at most have the same sum in any order. */
const orderedMin = 3;
const orderedMax = 64;
/** Between the texts of several keys, which have no such character. */
const keySeparator = "\u0000";

interface Group {
  /** The JSON texts of its keys. */
  readonly key: string;
  count: number;
  /** A sum has lost bits since all were last recomputed. */
  isInexact: boolean;
  /** Contributions with a value that is not a number. */
  spoiledCount: number;
  text: string;
}

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
  /** By number; those of deleted groups are reused. */
  readonly #groups: (Group | null)[] = [];
  readonly #freeNumbers: number[] = [];
  readonly #groupNumbers = new Map<string, number>();
  readonly #dirty = new Set<number>();
  /** By group and sum. */
  readonly #sums = new ExactSums();
  /** By group and sum: contributions with doubles. */
  #doubleCounts: Uint32Array = new Uint32Array(16);
  /** By aggregate or key: how a member begins, behind that before it. */
  readonly #memberTexts: readonly string[];
  /** Contributions of documents: an entry for each, with the number of its group and the amounts. */
  #contributions = new EntryStore(0, [new NumberColumn(), new BytesColumn()]);
  #currentDocument = 0;

  constructor(definition: IndexDefinition, host: IndexHost) {
    const group = definition.groupBy;
    assert(group !== null, "a group index groups by something");
    const isAll = definition.collection.toLowerCase() === allDocuments;
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

  /** The JSON text of a group's object. */
  textOf(entry: number): string {
    return (this.#groups[this.store.documents[entry] as number] as Group).text;
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
  contribute(keys: readonly string[], sums: Float64Array, kinds: Uint8Array): void {
    const key = keys.length === 1 ? (keys[0] as string) : keys.join(keySeparator);
    const number = this.#groupNumbers.get(key) ?? this.#addGroup(key);
    this.#append(number, sums, kinds);
  }

  #addGroup(key: string): number {
    const number = this.#freeNumbers.pop() ?? this.#groups.length;
    this.#groupNumbers.set(key, number);
    this.#groups[number] = this.#newGroup(key, number);
    return number;
  }

  #newGroup(key: string, number: number): Group {
    const end = (number + 1) * this.#sumCount;
    this.#doubleCounts = grownUint32(this.#doubleCounts, end);
    for (let sum = number * this.#sumCount; sum < end; sum++) {
      this.#doubleCounts[sum] = 0;
      this.#sums.clear(sum);
    }
    return { key, count: 0, isInexact: false, spoiledCount: 0, text: "" };
  }

  #takeRow(row: StoredRow): null {
    this.#remove(row.docNum);
    this.counters.mapAttempts++;
    this.#currentDocument = row.docNum;
    this.#values.visit(row.bytes, bodyStartOf(row.bytes, row.start), this);
    return null;
  }

  #append(number: number, sums: Float64Array, kinds: Uint8Array): void {
    const width = this.#sumCount;
    this.#groupOf.set(number);
    if (width > 0) {
      const amounts = this.#amounts;
      amounts.reserve(width * amountBytes);
      for (let i = 0, at = amounts.at; i < width; i++, at += amountBytes) {
        amounts.chunk.writeDoubleLE(sums[i] as number, at);
        amounts.chunk[at + amountBytes - 1] = kinds[i] as number;
      }
    }
    const at = this.#contributions.endEntry(this.#currentDocument);
    this.#addTo(number, at, 1);
    this.#dirty.add(number);
  }

  #remove(document: number): void {
    const contributions = this.#contributions;
    const first = contributions.firstOf(document);
    if (first < 0) return;
    const end = contributions.endOf(first);
    for (let at = first; at < end; at++) {
      const number = this.#groupOf.numbers[at] as number;
      this.#addTo(number, at, -1);
      this.#dirty.add(number);
    }
    contributions.remove(document);
  }

  get #groupOf(): NumberColumn {
    return this.#contributions.extras[0] as NumberColumn; // the first of both
  }

  get #amounts(): BytesColumn {
    return this.#contributions.extras[1] as BytesColumn; // the second of both
  }

  /** `sign` 1 adds a contribution, -1 subtracts it. */
  #addTo(number: number, at: number, sign: 1 | -1): void {
    const group = this.#groups[number] as Group;
    group.count += sign;
    if (this.#sumCount === 0) return;
    const amounts = this.#amounts;
    amounts.find(at);
    const { chunk } = amounts;
    let isSpoiled = false;
    const end = (number + 1) * this.#sumCount;
    let from = amounts.at;
    for (let sum = number * this.#sumCount; sum < end; sum++, from += amountBytes) {
      const value = chunk.readDoubleLE(from);
      const kind = chunk[from + amountBytes - 1];
      if (Number.isNaN(value)) {
        isSpoiled = true;
        continue;
      }
      if (!this.#sums.add(sum, sign * value)) group.isInexact = true;
      if (kind === numberKinds.doubles) {
        this.#doubleCounts[sum] = (this.#doubleCounts[sum] as number) + sign;
      }
    }
    if (isSpoiled) {
      group.spoiledCount += sign;
      if (sign === 1) this.counters.mapErrors++;
    }
  }

  /** Replaces the entries of changed groups. */
  #settle(): void {
    for (const number of this.#dirty) {
      const group = this.#groups[number] as Group;
      const previous = this.store.firstOf(number);
      this.store.remove(number);
      if (group.count === 0) {
        this.#groupNumbers.delete(group.key);
        this.#groups[number] = null;
        this.#freeNumbers.push(number);
      }
      if (group.count === 0 || group.spoiledCount > 0) continue;
      if (group.isInexact) this.#resum(number, group);
      const sums = this.#sumsOf(number, group);
      this.#addEntry(number, group, sums, previous);
    }
    this.#dirty.clear();
  }

  /** Adds up a group anew. Cost: in proportion to its contributions since the last compaction. */
  #resum(number: number, group: Group): void {
    const from = number * this.#sumCount;
    group.isInexact = false;
    for (let i = 0; i < this.#sumCount; i++) this.#sums.clear(from + i);
    this.#visitAmounts(number, (i, value) => {
      if (!this.#sums.add(from + i, value)) group.isInexact = true;
    });
  }

  #sumsOf(number: number, { count }: Group): Float64Array {
    const from = number * this.#sumCount;
    const sums = new Float64Array(this.#sumCount);
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
    for (let at = groupOf.firstOf(number); at >= 0; at = groupOf.nextOf(at)) {
      if (!this.#contributions.isLive(at)) continue;
      amounts.find(at);
      for (let i = 0; i < this.#sumCount; i++) {
        const value = amounts.chunk.readDoubleLE(amounts.at + i * amountBytes);
        if (!Number.isNaN(value)) visit(i, value);
      }
    }
  }

  #sumText(value: number, hasDoubles: boolean): string {
    const text = String(value);
    return hasDoubles && /^-?\d+$/.test(text) ? `${text}.0` : text;
  }

  /** `previous`: the entry of the same group that it replaces, or -1. */
  #addEntry(number: number, group: Group, sums: Float64Array, previous: number): void {
    const texts = this.keyNames.length === 1 ? [group.key] : group.key.split(keySeparator);
    for (const { sum } of this.#aggregates) {
      const hasDoubles = sum >= 0 && (this.#doubleCounts[number * this.#sumCount + sum] ?? 0) > 0;
      texts.push(sum < 0 ? String(group.count) : this.#sumText(sums[sum] as number, hasDoubles));
    }
    let text = "";
    const places: number[] = [];
    for (let i = 0; i < texts.length; i++) {
      text += this.#memberTexts[i];
      places.push(text.length);
      text += texts[i];
    }
    text += "}";
    group.text = text;
    const bytes = Buffer.from(text);
    // Places are those of characters.
    const isAscii = bytes.length === text.length;
    for (let i = 0; i < this.#fields.length; i++) {
      const { mode, source } = this.#fields[i] as OutputField;
      const column = this.store.columns[i] as FieldColumn;
      const place = places[source] as number;
      if (previous >= 0 && source < this.keyNames.length) {
        // The keys have the terms that they had.
        const terms = column.termsOf(previous);
        for (let at = 0; at < terms.length; at++) column.add(terms[at] as number);
      } else if (isAscii) addValueTerms(column, mode, bytes, place);
      else addValueTerms(column, mode, Buffer.from(texts[source] as string), 0);
    }
    this.store.endEntry(number);
  }

  /** See `FollowedIndex.save`. Between slices every group is settled. */
  save(parts: PartWriter): readonly SavedDocuments[] {
    this.store.save(parts.under("groups"));
    parts.add("keys", ...savedTexts(this.#groups.map((group) => group?.key ?? null)));
    parts.add("texts", ...savedTexts(this.#groups.map((group) => group?.text ?? null)));
    parts.set("counters", { ...this.counters });
    parts.set("follower", this.#follower.progress());
    return [this.#contributions.save(parts.under("contributions"))];
  }

  *restore(parts: PartReader, documents: RestoredDocuments): Generator<void> {
    yield* this.store.restore(parts.under("groups"), (group) => group);
    const keys = restoredTexts(parts.bytes("keys"));
    for (const text of restoredTexts(parts.bytes("texts"))) {
      const key = keys.next().value ?? null;
      const number = this.#groups.length;
      if (text === null || key === null) {
        this.#groups.push(null);
        this.#freeNumbers.push(number);
      } else {
        const group = this.#newGroup(key, number);
        group.text = text;
        this.#groups.push(group);
        this.#groupNumbers.set(group.key, number);
      }
      if (number % restoreStride === 0) yield;
    }
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
