/**
 * An automatic map index: follows the documents of a collection and keeps their fields as entries. The mapper
 * determines the entries of a document.
 */
import { foldedName } from "../base/case-folding.ts";
import { bodyStartOf, fieldStartOf, shapeIdOf } from "../state/documents/document-record.ts";
import type { FieldChange } from "../state/store/changes.ts";
import {
  CollectionFollower,
  type FollowedCollection,
  type SavedProgress,
} from "./collection-follower.ts";
import { EntryStore, type SavedDocuments } from "./columns/entry-store.ts";
import type { FieldColumn } from "./columns/field-column.ts";
import { type ColumnKind, goneStride } from "./columns/store-column.ts";
import {
  allDocuments,
  type DefinitionPart,
  type IndexDefinition,
  type SpatialSource,
  type VectorSource,
} from "./definitions/index-definition.ts";
import {
  addFieldTerms,
  addTermsAfterFirst,
  columnKindOf,
  type FieldMode,
} from "./fields/document-fields.ts";
import { type FieldStep, fieldStep } from "./fields/path-text.ts";
import type {
  FieldForm,
  FollowedIndex,
  IndexCounters,
  RestoredDocuments,
} from "./followed-index.ts";
import type { IndexHost, StoredRow } from "./index-host.ts";
import type { PartReader, PartWriter } from "./saved/saved-parts.ts";
import { type SpatialReader, spatialReader } from "./spatial/spatial-fields.ts";
import { type Analyzer, standardAnalyzer } from "./text/analyzer.ts";
import { type VectorReader, vectorReader } from "./vectors/vector-terms.ts";

/** Documents between two checks of the clock. */
const documentStride = 64;

/** Converts a document to its one entry: adds values to the store's columns. */
interface DocumentMapper {
  readonly columnNames: readonly string[];
  /** By column. */
  readonly columnKinds: readonly ColumnKind[];
  /** The top-level fields that it reads, and nothing else; null: it reads more. */
  readonly reads: ReadonlySet<string> | null;
  map(row: StoredRow, store: EntryStore): void;
}

/** Returns the names of the columns with a field's words, and with its case-sensitive terms. */
export function searchColumn(field: string): string {
  return `search(${field})`;
}

export function exactColumn(field: string): string {
  return `exact(${field})`;
}

/** Returns the field of a column. */
export function fieldOfColumn(name: string): string {
  return /^(?:search|exact)\((.*)\)$/s.exec(name)?.[1] ?? name;
}

/** Returns the column name of a field in a form. */
export function columnNameOf(field: string, form: FieldForm): string {
  if (form === "lower") return field;
  return form === "exact" ? exactColumn(field) : searchColumn(field);
}

export class MapIndex implements FollowedIndex {
  readonly follower: CollectionFollower;
  readonly outputs = null;
  store: EntryStore;
  readonly counters: IndexCounters = { mapAttempts: 0, mapErrors: 0 };
  readonly #mapper: DocumentMapper;
  readonly #host: IndexHost;
  readonly #columnNumbers: ReadonlyMap<string, number>;

  constructor(collection: string, mapper: DocumentMapper, host: IndexHost) {
    const followed = foldedName(collection) === allDocuments ? null : collection;
    this.#mapper = mapper;
    this.#host = host;
    this.store = new EntryStore(mapper.columnKinds);
    this.store.keepsPlaces = !this.isLucene;
    this.#columnNumbers = new Map(mapper.columnNames.map((name, number) => [name, number]));
    const target = {
      remove: (docNum: number) => {
        this.store.remove(docNum);
      },
      take: (row: StoredRow) => this.#take(row),
    };
    this.follower = new CollectionFollower([followed], target, host, documentStride);
  }

  get sources(): readonly FollowedCollection[] {
    return this.follower.sources;
  }

  get followed(): readonly FollowedCollection[] {
    return this.follower.sources;
  }

  get changeCount(): number {
    return this.follower.changeCount;
  }

  get columnNames(): readonly string[] {
    return this.#mapper.columnNames;
  }

  get isLucene(): boolean {
    const engine = this.#host.setting("Indexing.Auto.SearchEngineType");
    return String(engine).toLowerCase() === "lucene";
  }

  column(name: string): FieldColumn | undefined {
    const number = this.#columnNumbers.get(name);
    return number === undefined ? undefined : this.store.columns[number];
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

  get isStale(): boolean {
    return this.follower.isStale;
  }

  catchUp(isTimeUp: () => boolean): Promise<void> | null {
    const pending = this.follower.catchUp(isTimeUp);
    if (this.store.needsCompaction && !isTimeUp())
      this.store = this.store.compact(isTimeUp) ?? this.store;
    return pending;
  }

  fieldsChanged(change: FieldChange): void {
    const { reads } = this.#mapper;
    if (reads !== null && !change.fields.some((name) => reads.has(name))) {
      this.follower.skipChange(change);
    }
  }

  save(parts: PartWriter): readonly SavedDocuments[] {
    parts.set("counters", { ...this.counters });
    parts.set("follower", this.follower.progress());
    return [this.store.save(parts.under("store"))];
  }

  *restore(parts: PartReader, documents: RestoredDocuments): Generator<void> {
    yield* this.store.restore(parts.under("store"), documents.documentOf);
    Object.assign(this.counters, parts.get<IndexCounters>("counters"));
    this.follower.resume(parts.get<SavedProgress[]>("follower"), documents);
    let count = 0;
    for (const document of documents.gone) {
      this.store.remove(document);
      if (++count % goneStride === 0) yield;
    }
  }

  #take(row: StoredRow): null {
    this.counters.mapAttempts++;
    try {
      this.#mapper.map(row, this.store);
    } catch (error) {
      this.store.dropPending();
      throw error;
    }
    this.store.replaceEntry(row.docNum);
    return null;
  }
}

interface MappedField {
  /** The first name of the path. */
  readonly first: string;
  readonly steps: readonly FieldStep[];
  readonly isMetadata: boolean;
  readonly mode: FieldMode;
}

const metadataName = "@metadata";

/**
 * One entry for each document: its fields in lower case, as words or exactly, as the definition requires it.
 */
export class FieldMapper implements DocumentMapper {
  readonly columnNames: readonly string[];
  readonly columnKinds: readonly ColumnKind[];
  readonly reads: ReadonlySet<string> | null;
  readonly #fields: readonly MappedField[];
  /** Spatial readers, then vector readers: their columns follow those of the fields. */
  readonly #made: readonly (SpatialReader | VectorReader)[];
  readonly #host: IndexHost;
  /** The last shape, and the position of each field's first name in it: -1 for a missing one. */
  #shapeId = 0;
  #places: readonly number[] = [];

  constructor(definition: IndexDefinition, host: IndexHost) {
    this.#host = host;
    const names: string[] = [];
    const fields: MappedField[] = [];
    const add = (name: string, path: readonly DefinitionPart[], mode: FieldMode) => {
      const isMetadata = path.length > 1 && path[0]?.name === metadataName;
      names.push(name);
      const steps = stepsOf(isMetadata ? path.slice(1) : path);
      fields.push({ first: path[0]?.name ?? "", steps, isMetadata, mode });
    };
    for (const field of definition.fields) {
      if (field.spatial !== undefined || field.vector !== undefined) continue;
      if (field.isWordsOnly !== true) add(field.name, field.path, "lower");
      if (field.hasExact) add(exactColumn(field.name), field.path, "exact");
      if (field.hasSearch || field.hasHighlight) {
        add(searchColumn(field.name), field.path, standardAnalyzer);
      }
    }
    const spatial = definition.fields.filter((field) => field.spatial !== undefined);
    const vectors = definition.fields.filter((field) => field.vector !== undefined);
    this.columnNames = [...names, ...[...spatial, ...vectors].map(({ name }) => name)];
    this.columnKinds = this.columnNames.map((_, i) => columnKindOf(fields[i]?.mode ?? null));
    this.#made = [
      ...spatial.map(({ spatial }) => spatialReader(spatial as SpatialSource)),
      ...vectors.map(({ vector }) => vectorReader(vector as VectorSource)),
    ];
    this.#fields = fields;
    const isPlain = fields.every(({ first }) => first !== metadataName);
    this.reads =
      isPlain && this.#made.length === 0 ? new Set(fields.map(({ first }) => first)) : null;
  }

  map(row: StoredRow, store: EntryStore): void {
    const fields = this.#fields;
    const { bytes, start } = row;
    const shapeId = shapeIdOf(bytes, start);
    if (shapeId !== this.#shapeId) this.#meet(shapeId);
    let metadata: Buffer | null = null;
    for (let i = 0; i < fields.length; i++) {
      const field = fields[i] as MappedField;
      const column = store.columns[i] as FieldColumn;
      if (!field.isMetadata) {
        if (shapeId === 0) {
          addFieldTerms(column, field.mode, bytes, bodyStartOf(bytes, start), field.steps);
          continue;
        }
        const place = this.#places[i] as number; // as many as fields
        if (place < 0) continue;
        addTermsAfterFirst(
          column,
          field.mode,
          bytes,
          fieldStartOf(bytes, start, place),
          field.steps,
        );
        continue;
      }
      metadata ??= this.#host.metadataOf(row);
      if (!isComputedMetadata(field.steps))
        addFieldTerms(column, field.mode, metadata, 0, field.steps);
    }
    for (let i = 0; i < this.#made.length; i++) {
      const column = store.columns[fields.length + i] as FieldColumn;
      (this.#made[i] as SpatialReader | VectorReader)(column, bytes, bodyStartOf(bytes, start));
    }
  }

  #meet(shapeId: number): void {
    this.#shapeId = shapeId;
    if (shapeId === 0) return;
    const { indexByName } = this.#host.shapeOf(shapeId);
    this.#places = this.#fields.map(({ first }) => indexByName.get(first) ?? -1);
  }
}

/** RavenDB never finds the key `@metadata.@id`. */
function isComputedMetadata(steps: readonly FieldStep[]): boolean {
  return steps[0]?.name.toString() === '"@id"';
}

export function stepsOf(path: readonly DefinitionPart[]): FieldStep[] {
  return path.map((part) => fieldStep(part.name, part.arrays > 0));
}
