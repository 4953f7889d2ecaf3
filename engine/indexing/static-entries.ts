/**
 * The entries of one deployed index: fields produced by the maps, indexed as defined, and their stored values. A field
 * is created when it is first seen; dynamically named fields are treated like the others.
 *
 * Invariants:
 * - Every field has one column, in the form that its options specify when it is first seen.
 */
import { EngineError } from "../base/errors.ts";
import { indexFieldsMax } from "../base/limits.ts";
import { finish, type Work } from "../base/scheduling/work-budget.ts";
import { BytesColumn } from "./columns/bytes-column.ts";
import { DocumentBits } from "./columns/document-bits.ts";
import { EntryStore, type SavedDocuments } from "./columns/entry-store.ts";
import type { FieldColumn } from "./columns/field-column.ts";
import { storedDates } from "./dates/date-terms.ts";
import {
  allFields,
  isStored,
  modeOf,
  modeOfOptions,
  type StaticDefinition,
  spaceOf,
  vectorFormOf,
} from "./definitions/static-definition.ts";
import { addValueTerms, columnKindOf, type FieldMode } from "./fields/document-fields.ts";
import type { DynamicFieldOptions, MappedEntry, MappedField } from "./index-program.ts";
import type { StoredFields } from "./open-index.ts";
import type { PartReader, PartWriter } from "./saved/saved-parts.ts";
import { addSpatialText, isSpatialText } from "./spatial/spatial-values.ts";
import { type Analyzer, keywordAnalyzer, lowerKeywordAnalyzer } from "./text/analyzer.ts";
import { addVectorText, isVectorText } from "./vectors/vector-terms.ts";

interface EntryField {
  readonly position: number;
  /** Null: the field has no terms. */
  readonly mode: FieldMode | null;
  readonly isStored: boolean;
  readonly dynamic: DynamicFieldOptions | null;
}

/** Data of each entry besides its terms, by position among the store's extras. */
const storedAt = 0;
/** The whole object, where maps provide it. */
const textAt = 1;
/** The score factors of the entry, as JSON. */
const boostsAt = 2;
const extraCount = 3;
/** Entries of a document that are indexed without a pause. */
const entriesAtOnceMax = 16;
/** Cached parsed boosts. */
const knownBoostsMax = 256;

export class StaticEntries implements StoredFields {
  store = new EntryStore(
    0,
    Array.from({ length: extraCount }, () => new BytesColumn()),
  );
  readonly #definition: StaticDefinition;
  readonly #fields = new Map<string, EntryField>();
  /** By field: the documents with a list as its value. */
  readonly #arrays = new Map<string, DocumentBits>();
  /** By JSON text: most entries have the same boosts. */
  readonly #boostsOf = new Map<string, ReadonlyMap<string, number>>();
  #hasDynamic = false;
  /** Fields that are null in an entry without a value for them. */
  readonly #nullFields: readonly EntryField[];

  /**
   * @param names fields known before any document is mapped
   * @param hasNulls a field of `names` that is missing in an entry is found as null
   */
  constructor(definition: StaticDefinition, names: Iterable<string>, hasNulls: boolean) {
    this.#definition = definition;
    const known: EntryField[] = [];
    for (const name of names) known.push(this.#fieldOf({ name, text: "", dynamic: null }));
    this.#nullFields = hasNulls ? known : [];
    for (const name of Object.keys(definition.fields)) {
      if (name !== allFields) this.#fieldOf({ name, text: "", dynamic: null });
    }
  }

  get columnNames(): readonly string[] {
    return [...this.#fields.keys()];
  }

  get hasDynamicFields(): boolean {
    return this.#hasDynamic;
  }

  /** Returns whether some entry has a list as the value of this field. */
  hasArrays(name: string): boolean {
    return (this.#arrays.get(name)?.count ?? 0) > 0;
  }

  column(name: string): FieldColumn | undefined {
    const field = this.#fields.get(name);
    return field === undefined ? undefined : this.store.columns[field.position];
  }

  /** Returns whether the terms of a field are case-sensitive. */
  keepsCase(name: string): boolean {
    const mode = this.#fields.get(name)?.mode ?? null;
    if (typeof mode !== "function") return mode === "exact";
    let isKept = false;
    mode("A", (word) => {
      isKept = word === "A";
    });
    return isKept;
  }

  /** Returns the analyzer for search texts on this field. */
  analyzerOf(name: string): Analyzer {
    const mode = this.#fields.get(name)?.mode ?? "lower";
    if (typeof mode === "function") return mode;
    return mode === "exact" ? keywordAnalyzer : lowerKeywordAnalyzer;
  }

  /**
   * Replaces the entries of a document. @returns the work that is left, if there are many: until it is done, the document
   * has some of them
   * @throws EngineError if they cannot be indexed, as the work that is left: the caller must then `remove` the document
   */
  set(docNum: number, entries: readonly MappedEntry[]): Work<void> | null {
    if (entries.length > entriesAtOnceMax) return this.#setInSteps(docNum, entries);
    finish(this.#setInSteps(docNum, entries));
    return null;
  }

  *#setInSteps(docNum: number, entries: readonly MappedEntry[]): Work<void> {
    try {
      if (entries.length !== 1) this.store.remove(docNum);
      this.#removeArrays(docNum);
      const resolved = entries.map(({ fields }) => fields.map((field) => this.#fieldOf(field)));
      for (const [at, entry] of entries.entries()) {
        this.#add(docNum, entry, resolved[at] as readonly EntryField[]);
        if (entries.length === 1) this.store.replaceEntry(docNum);
        else this.store.endEntry(docNum);
        if (at % entriesAtOnceMax === entriesAtOnceMax - 1) yield;
      }
    } catch (error) {
      this.store.dropPending();
      throw error;
    }
  }

  #add(docNum: number, { fields, text, boosts }: MappedEntry, found: readonly EntryField[]): void {
    for (const [i, { name, text }] of fields.entries()) {
      if (text.startsWith("[")) this.#addArray(name, docNum);
      const field = found[i] as EntryField;
      if (isSpatialText(text)) this.#addShapes(name, field, text);
      else if (isVectorText(text)) this.#addVectors(name, field, text);
      else this.#addTerms(field, text);
    }
    for (const field of this.#nullFields) {
      if (!found.includes(field)) this.#addTerms(field, "null");
    }
    const stored = storedText(fields, found);
    if (stored !== null) this.#extra(storedAt).setText(stored);
    if (text !== undefined) this.#extra(textAt).setText(text);
    if (boosts !== null) this.#extra(boostsAt).setText(JSON.stringify([...boosts]));
  }

  remove(docNum: number): void {
    this.store.remove(docNum);
    this.#removeArrays(docNum);
  }

  #removeArrays(docNum: number): void {
    for (const documents of this.#arrays.values()) documents.delete(docNum);
  }

  #addArray(name: string, docNum: number): void {
    const documents = this.#arrays.get(name) ?? new DocumentBits();
    documents.add(docNum);
    this.#arrays.set(name, documents);
  }

  #extra(position: number): BytesColumn {
    return this.store.extras[position] as BytesColumn; // all are
  }

  /** Whether some entry is boosted. */
  get hasBoosts(): boolean {
    return !this.#extra(boostsAt).isEmpty;
  }

  fieldBoostOf(entry: number, field: string): number {
    return this.#boostsOfEntry(entry)?.get(field) ?? 1;
  }

  entryBoostOf(entry: number): number {
    return this.#boostsOfEntry(entry)?.get("") ?? 1;
  }

  #boostsOfEntry(entry: number): ReadonlyMap<string, number> | null {
    const text = this.#extra(boostsAt).textOf(entry);
    if (text === null) return null;
    let boosts = this.#boostsOf.get(text);
    if (boosts === undefined) {
      boosts = new Map(JSON.parse(text) as [string, number][]);
      if (this.#boostsOf.size >= knownBoostsMax) this.#boostsOf.clear();
      this.#boostsOf.set(text, boosts);
    }
    return boosts;
  }

  /** Compacts dead entries, a slice at a time. */
  compact(isTimeUp: () => boolean): void {
    if (this.store.needsCompaction && !isTimeUp())
      this.store = this.store.compact(isTimeUp) ?? this.store;
  }

  has(name: string): boolean {
    return this.#fields.get(name)?.isStored ?? false;
  }

  textOf(entry: number): string | null {
    return this.#extra(storedAt).textOf(entry);
  }

  /** Returns the whole object of an entry. */
  objectText(entry: number): string {
    return this.#extra(textAt).textOf(entry) ?? "{}";
  }

  save(parts: PartWriter): SavedDocuments {
    const fields = [...this.#fields].map(([name, { dynamic }]) => ({ name, dynamic }));
    parts.set("fields", fields);
    const arrays = [...this.#arrays];
    parts.set(
      "arrays",
      arrays.map(([name]) => name),
    );
    for (const [i, [, documents]] of arrays.entries()) parts.add(`arrays-${i}`, documents.words());
    return this.store.save(parts.under("store"));
  }

  *restore(parts: PartReader, documentOf: (saved: number) => number): Generator<void> {
    for (const { name, dynamic } of parts.get<{ name: string; dynamic: DynamicFieldOptions }[]>(
      "fields",
    )) {
      this.#fieldOf({ name, text: "", dynamic });
    }
    // The store creates its own columns.
    this.store.columns.length = 0;
    yield* this.store.restore(parts.under("store"), documentOf);
    for (const [i, name] of parts.get<string[]>("arrays").entries()) {
      const documents = new DocumentBits();
      for (const docNum of DocumentBits.numbersOf(parts.uint32(`arrays-${i}`))) {
        documents.add(documentOf(docNum));
      }
      this.#arrays.set(name, documents);
      yield;
    }
  }

  /** Whether some field is stored. */
  get hasStored(): boolean {
    for (const field of this.#fields.values()) if (field.isStored) return true;
    return false;
  }

  #fieldOf({ name, dynamic }: MappedField): EntryField {
    const known = this.#fields.get(name);
    if (known !== undefined) return known;
    if (this.#fields.size >= indexFieldsMax) {
      throw new EngineError("too-large", `The index has more than ${indexFieldsMax} fields.`);
    }
    const isOwn = dynamic === null || this.#definition.fields[name] !== undefined;
    if (dynamic !== null) this.#hasDynamic = true;
    const mode = isOwn
      ? modeOf(this.#definition, name)
      : modeOfOptions(dynamic.indexing ?? "Default", null);
    const field: EntryField = {
      position: this.store.addColumn(columnKindOf(mode)),
      mode,
      isStored: isOwn ? isStored(this.#definition, name) : dynamic.isStored,
      dynamic,
    };
    this.#fields.set(name, field);
    return field;
  }

  #addShapes(name: string, { position }: EntryField, text: string): void {
    const column = this.store.columns[position] as FieldColumn;
    addSpatialText(column, text, spaceOf(this.#definition, name));
  }

  #addVectors(name: string, { position }: EntryField, text: string): void {
    const column = this.store.columns[position] as FieldColumn;
    addVectorText(column, text, vectorFormOf(this.#definition, name));
  }

  #addTerms({ position, mode }: EntryField, text: string): void {
    if (mode === null) return;
    const column = this.store.columns[position] as FieldColumn;
    addValueTerms(column, mode, Buffer.from(text), 0, true);
  }
}

function storedText(fields: readonly MappedField[], found: readonly EntryField[]): string | null {
  const members: string[] = [];
  for (const [i, { name, text }] of fields.entries()) {
    if (!(found[i] as EntryField).isStored || isSpatialText(text) || isVectorText(text)) continue;
    members.push(`${JSON.stringify(name)}:${storedDates(text)}`);
  }
  return members.length === 0 ? null : `{${members.join(",")}}`;
}
