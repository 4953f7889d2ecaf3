/**
 * One automatic map-reduce index: groups of documents by keys, with a count and sums. What a document contributed is kept packed,
 * so that it can be taken back without reading the document again; each group is an entry with its keys and
 * aggregates as fields, replaced when the group changes.
 *
 * A sum is of all numbers of a group, and a double when one of them is. (RavenDB 7.2.7 leaves out those of the other kind
 * than the first: 4 + 4.5 = 4.)
 *
 * Invariants:
 * - A group has an entry exactly when it has contributions and none of them is spoiled, once `settle` has run.
 */
import { assert } from "../assert.ts";
import { bodyStartOf } from "../document.ts";
import { type Analyzer, standardAnalyzer } from "./analyzer.ts";
import { CollectionFollower, type FollowedCollection } from "./collection-follower.ts";
import { addValueTerms, type FieldMode } from "./document-fields.ts";
import { EntryStore } from "./entry-store.ts";
import type { FieldColumn } from "./field-column.ts";
import type { FieldForm, FollowedIndex, IndexCounters } from "./followed-index.ts";
import { type ContributionVisitor, GroupValues, numberKinds } from "./group-values.ts";
import { allDocuments, type IndexDefinition } from "./index-definition.ts";
import type { IndexHost, StoredRow } from "./index-host.ts";
import { columnNameOf, exactColumn, searchColumn } from "./map-index.ts";
import { grownBytes, grownFloat64, grownUint32 } from "./packed.ts";

const documentStride = 64;
/** Contributions are packed anew when more of them are dead than alive, and more than this. */
const deadCountMin = 1024;

interface Group {
  readonly keyTexts: readonly string[];
  count: number;
  readonly sums: Float64Array;
  /** By sum: contributions with doubles. */
  readonly doubleCounts: Uint32Array;
  /** Something was taken back from a sum with doubles since the sums were last made anew. */
  isInexact: boolean;
  /** Contributions with something that is no number. */
  spoiledCount: number;
  /** The first contribution of its list, plus one. */
  firstContribution: number;
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
  readonly #groups: Group[] = [];
  readonly #groupNumbers = new Map<string, number>();
  readonly #dirty = new Set<number>();
  /** By document: its first contribution plus one. */
  #firsts: Uint32Array = new Uint32Array(16);
  #contributionCount = 0;
  #deadCount = 0;
  /** By contribution. The document is stored plus one; 0 marks a dead one. */
  #documents: Uint32Array = new Uint32Array(16);
  #groupOf: Uint32Array = new Uint32Array(16);
  #nexts: Uint32Array = new Uint32Array(16);
  #sums: Float64Array = new Float64Array(16);
  /** As `#sums`: of `numberKinds`. */
  #kinds: Buffer = Buffer.alloc(16);
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
    this.#fields = outputFields(definition);
    this.#columnNumbers = new Map(this.#fields.map((field, number) => [field.column, number]));
    this.store = new EntryStore(this.#fields.length);
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
    if (this.#deadCount > deadCountMin && this.#deadCount * 2 > this.#contributionCount)
      this.#pack();
    if (this.store.needsCompaction && !isTimeUp())
      this.store = this.store.compact(isTimeUp) ?? this.store;
    return pending;
  }

  /** A contribution of the document that is being taken in; called by GroupValues. */
  contribute(keys: readonly string[], sums: Float64Array, kinds: Uint8Array): void {
    const key = keys.join("\u0000");
    let number = this.#groupNumbers.get(key);
    if (number === undefined) {
      number = this.#groups.length;
      this.#groupNumbers.set(key, number);
      this.#groups.push({
        keyTexts: [...keys],
        count: 0,
        sums: new Float64Array(this.#sumCount),
        doubleCounts: new Uint32Array(this.#sumCount),
        isInexact: false,
        spoiledCount: 0,
        firstContribution: 0,
        text: "",
      });
    }
    this.#append(number, sums, kinds);
  }

  #takeRow(row: StoredRow): null {
    this.#remove(row.docNum);
    this.counters.mapAttempts++;
    this.#currentDocument = row.docNum;
    this.#values.visit(row.bytes, bodyStartOf(row.bytes, row.start), this);
    return null;
  }

  #append(number: number, sums: Float64Array, kinds: Uint8Array): void {
    const at = this.#contributionCount++;
    const width = this.#sumCount;
    if (at >= this.#documents.length) {
      this.#documents = grownUint32(this.#documents, at + 1);
      this.#groupOf = grownUint32(this.#groupOf, at + 1);
      this.#nexts = grownUint32(this.#nexts, at + 1);
    }
    this.#sums = grownFloat64(this.#sums, (at + 1) * width);
    this.#kinds = grownBytes(this.#kinds, (at + 1) * width);
    const document = this.#currentDocument;
    this.#documents[at] = document + 1;
    this.#groupOf[at] = number;
    for (let i = 0; i < width; i++) {
      this.#sums[at * width + i] = sums[i] as number;
      this.#kinds[at * width + i] = kinds[i] as number;
    }
    if (document >= this.#firsts.length) this.#firsts = grownUint32(this.#firsts, document + 1);
    if (this.#firsts[document] === 0) this.#firsts[document] = at + 1;
    const group = this.#groups[number] as Group;
    this.#nexts[at] = group.firstContribution;
    group.firstContribution = at + 1;
    this.#addTo(group, at, 1);
    this.#dirty.add(number);
  }

  #remove(document: number): void {
    const first = (this.#firsts[document] ?? 0) - 1;
    if (first < 0) return;
    for (let at = first; at < this.#contributionCount; at++) {
      if (this.#documents[at] !== document + 1) break;
      this.#documents[at] = 0;
      this.#deadCount++;
      const number = this.#groupOf[at] as number;
      this.#addTo(this.#groups[number] as Group, at, -1);
      this.#dirty.add(number);
    }
    this.#firsts[document] = 0;
  }

  /** `sign` 1 adds a contribution, -1 takes it back; sums that had doubles are made anew in `settle`. */
  #addTo(group: Group, at: number, sign: 1 | -1): void {
    group.count += sign;
    let isSpoiled = false;
    for (let i = 0; i < this.#sumCount; i++) {
      const value = this.#sums[at * this.#sumCount + i] as number;
      const kind = this.#kinds[at * this.#sumCount + i] as number;
      if (Number.isNaN(value)) {
        isSpoiled = true;
        continue;
      }
      group.sums[i] = (group.sums[i] as number) + sign * value;
      if (sign === -1 && (group.doubleCounts[i] as number) > 0) group.isInexact = true;
      if (kind === numberKinds.doubles) {
        group.doubleCounts[i] = (group.doubleCounts[i] as number) + sign;
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
      this.store.remove(number);
      if (group.count === 0 || group.spoiledCount > 0) continue;
      if (group.isInexact) this.#resum(group);
      this.#addEntry(number, group);
    }
    this.#dirty.clear();
  }

  /**
   * Adding and taking back doubles leaves rounding behind, so all is added anew in the order it came. Cost: in proportion to
   * all contributions that the group ever had.
   */
  #resum(group: Group): void {
    const living: number[] = [];
    for (let at = group.firstContribution; at !== 0; at = this.#nexts[at - 1] as number) {
      if (this.#documents[at - 1] !== 0) living.push(at - 1);
    }
    group.isInexact = false;
    group.sums.fill(0);
    for (const at of living.reverse()) {
      for (let i = 0; i < this.#sumCount; i++) {
        const value = this.#sums[at * this.#sumCount + i] as number;
        if (!Number.isNaN(value)) group.sums[i] = (group.sums[i] as number) + value;
      }
    }
  }

  #sumText(group: Group, sum: number): string {
    const text = String(group.sums[sum]);
    if (group.doubleCounts[sum] === 0) return text;
    return /^-?\d+$/.test(text) ? `${text}.0` : text;
  }

  #addEntry(number: number, group: Group): void {
    const texts = [
      ...group.keyTexts,
      ...this.#aggregates.map(({ sum }) =>
        sum < 0 ? String(group.count) : this.#sumText(group, sum),
      ),
    ];
    const members = texts.map((text, i) => `${JSON.stringify(this.#names[i])}:${text}`);
    group.text = `{${members.join(",")}}`;
    for (let i = 0; i < this.#fields.length; i++) {
      const field = this.#fields[i] as OutputField;
      const bytes = Buffer.from(texts[field.source] as string);
      addValueTerms(this.store.columns[i] as FieldColumn, field.mode, bytes, 0);
    }
    this.store.endEntry(number);
  }

  /** Drops dead contributions. */
  #pack(): void {
    for (const group of this.#groups) group.firstContribution = 0;
    this.#firsts.fill(0);
    let kept = 0;
    const width = this.#sumCount;
    for (let at = 0; at < this.#contributionCount; at++) {
      const document = (this.#documents[at] as number) - 1;
      if (document < 0) continue;
      this.#documents[kept] = document + 1;
      this.#groupOf[kept] = this.#groupOf[at] as number;
      this.#kinds.copyWithin(kept * width, at * width, (at + 1) * width);
      this.#sums.copyWithin(kept * width, at * width, (at + 1) * width);
      if (this.#firsts[document] === 0) this.#firsts[document] = kept + 1;
      const group = this.#groups[this.#groupOf[kept] as number] as Group;
      this.#nexts[kept] = group.firstContribution;
      group.firstContribution = kept + 1;
      kept++;
    }
    this.#contributionCount = kept;
    this.#deadCount = 0;
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
