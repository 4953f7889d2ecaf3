/**
 * One map index: follows the documents of a collection in the order of etags and keeps their fields as entries.
 * What a document's entries are is for its mapper; an automatic index has one entry for each document.
 *
 * Invariants:
 * - All documents up to `documentEtag` and deletions up to `deletionEtag` are taken in, and none after.
 */
import { bodyStartOf } from "../document.ts";
import { standardAnalyzer } from "./analyzer.ts";
import { addFieldTerms, type FieldMode, type FieldStep, fieldStep } from "./document-fields.ts";
import { EntryStore } from "./entry-store.ts";
import type { FieldColumn } from "./field-column.ts";
import { allDocuments, type DefinitionPart, type IndexDefinition } from "./index-definition.ts";
import type { IndexHost, StoredRow } from "./index-host.ts";

/** Documents between two looks at the clock. */
const documentStride = 64;

/** Turns a document into entries: adds values to the store's columns and ends an entry, any number of times. */
export interface DocumentMapper {
  readonly columnNames: readonly string[];
  map(row: StoredRow, store: EntryStore): void;
}

/** What happened to the documents of an index. */
export interface IndexCounters {
  mapAttempts: number;
  mapErrors: number;
}

/** The name of the column with a field's words, and of that with its terms in their own case. */
export function searchColumn(field: string): string {
  return `search(${field})`;
}

export function exactColumn(field: string): string {
  return `exact(${field})`;
}

export class MapIndex {
  readonly collection: string | null;
  readonly mapper: DocumentMapper;
  store: EntryStore;
  documentEtag = 0;
  deletionEtag = 0;
  readonly counters: IndexCounters = { mapAttempts: 0, mapErrors: 0 };
  readonly #columnNumbers: ReadonlyMap<string, number>;
  readonly #host: IndexHost;

  constructor(collection: string, mapper: DocumentMapper, host: IndexHost) {
    this.collection = collection.toLowerCase() === allDocuments ? null : collection;
    this.mapper = mapper;
    this.#host = host;
    this.store = new EntryStore(mapper.columnNames.length);
    this.#columnNumbers = new Map(mapper.columnNames.map((name, number) => [name, number]));
  }

  get columnNames(): readonly string[] {
    return this.mapper.columnNames;
  }

  /** The column of a field by its name, or undefined. */
  column(name: string): FieldColumn | undefined {
    const number = this.#columnNumbers.get(name);
    return number === undefined ? undefined : this.store.columns[number];
  }

  get isStale(): boolean {
    const etags = this.#host.etagsOf(this.collection);
    return etags.document > this.documentEtag || etags.deletion > this.deletionEtag;
  }

  /**
   * Takes in documents and deletions until `isTimeUp` or there are no more.
   * @returns a promise when a record must be read from the disk first, else null.
   */
  catchUp(isTimeUp: () => boolean): Promise<void> | null {
    this.#takeDeletions();
    const pending = this.#takeDocuments(isTimeUp);
    if (this.store.needsCompaction && !isTimeUp()) {
      const compacted = this.store.compact(isTimeUp);
      if (compacted !== null) this.store = compacted;
    }
    return pending;
  }

  /** Deletions first: a number that was given to another id is then free. */
  #takeDeletions(): void {
    const { deletion } = this.#host.etagsOf(this.collection);
    if (deletion <= this.deletionEtag) return;
    const cursor = this.#host.deletionsSince(this.collection, this.deletionEtag);
    while (cursor.next()) this.store.remove(cursor.docNum);
    this.deletionEtag = deletion;
  }

  #takeDocuments(isTimeUp: () => boolean): Promise<void> | null {
    const { document } = this.#host.etagsOf(this.collection);
    if (document <= this.documentEtag) return null;
    const cursor = this.#host.rowsSince(this.collection, this.documentEtag);
    let count = 0;
    while (cursor.next()) {
      this.#take(cursor.row);
      if (++count % documentStride === 0 && isTimeUp()) return null;
    }
    if (cursor.pending !== null) return cursor.pending;
    this.documentEtag = Math.max(this.documentEtag, document);
    return null;
  }

  #take(row: StoredRow): void {
    this.store.remove(row.docNum);
    this.counters.mapAttempts++;
    this.mapper.map(row, this.store);
    this.documentEtag = row.etag;
  }
}

interface MappedField {
  readonly steps: readonly FieldStep[];
  readonly isMetadata: boolean;
  readonly mode: FieldMode;
}

const metadataName = "@metadata";

/** One entry for each document: its fields in lower case, and as words or exactly where the definition asks for it. */
export class FieldMapper implements DocumentMapper {
  readonly columnNames: readonly string[];
  readonly #fields: readonly MappedField[];
  readonly #host: IndexHost;

  constructor(definition: IndexDefinition, host: IndexHost) {
    this.#host = host;
    const names: string[] = [];
    const fields: MappedField[] = [];
    const add = (name: string, path: readonly DefinitionPart[], mode: FieldMode) => {
      const isMetadata = path.length > 1 && path[0]?.name === metadataName;
      names.push(name);
      fields.push({ steps: stepsOf(isMetadata ? path.slice(1) : path), isMetadata, mode });
    };
    for (const field of definition.fields) {
      add(field.name, field.path, "lower");
      if (field.hasExact) add(exactColumn(field.name), field.path, "exact");
      if (field.hasSearch || field.hasHighlight || field.hasSuggest) {
        add(searchColumn(field.name), field.path, standardAnalyzer);
      }
    }
    this.columnNames = names;
    this.#fields = fields;
  }

  map(row: StoredRow, store: EntryStore): void {
    const fields = this.#fields;
    const body = bodyStartOf(row.bytes, row.start);
    let metadata: Buffer | null = null;
    for (let i = 0; i < fields.length; i++) {
      const field = fields[i] as MappedField;
      const column = store.columns[i] as FieldColumn;
      if (!field.isMetadata) {
        addFieldTerms(column, field.mode, row.bytes, body, field.steps);
        continue;
      }
      metadata ??= this.#host.metadataOf(row);
      if (!isComputedMetadata(field.steps))
        addFieldTerms(column, field.mode, metadata, 0, field.steps);
    }
    store.endEntry(row.docNum);
  }
}

/** `@metadata.@id` is a key that RavenDB never finds. */
function isComputedMetadata(steps: readonly FieldStep[]): boolean {
  return steps[0]?.name.toString() === '"@id"';
}

export function stepsOf(path: readonly DefinitionPart[]): FieldStep[] {
  return path.map((part) => fieldStep(part.name, part.arrays > 0));
}
