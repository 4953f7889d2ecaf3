/**
 * What the functions of a deployed index are to the stages that run them. Whoever compiles their texts implements it;
 * tests do so with plain functions. Values cross as JSON texts.
 */
import type { EngineError } from "../errors.ts";
import type { StoredRow } from "./index-host.ts";
import type { FieldIndexing } from "./static-definition.ts";

/** How a field is indexed whose name the map computes. */
export interface DynamicFieldOptions {
  readonly indexing: FieldIndexing | null;
  readonly isStored: boolean;
}

/** One field of one entry. `dynamic` null: its options are those of the definition. */
export interface MappedField {
  readonly name: string;
  /** JSON text. */
  readonly text: string;
  readonly dynamic: DynamicFieldOptions | null;
}

/** What the maps of an index are given. */
export type MapSource = "Documents" | "Counters";

/** One entry's fields, and by what its scores are multiplied. */
export interface MappedEntry {
  readonly fields: readonly MappedField[];
  /** By field, "" for all of them; null: nothing is. */
  readonly boosts: ReadonlyMap<string, number> | null;
  /** The JSON text of the whole object, where entries are no documents' own; else left out. */
  readonly text?: string;
}

/** What a map made of one document, and what it looked at beside it. */
export interface MapResult {
  /** Empty for a map that is reduced. */
  readonly entries: readonly MappedEntry[];
  /** What is to be reduced: JSON texts of a key and an object. */
  readonly values: readonly ReducedValue[];
  /** Lower-cased ids of documents that were loaded, whether or not they are there. */
  readonly references: ReadonlySet<string>;
  /** Lower-cased keys of compare-exchange values that were loaded. */
  readonly compareExchangeKeys: ReadonlySet<string>;
  /** Why the map failed, or null; then there are neither entries nor values. */
  readonly failure: EngineError | null;
  /** For maps of counters, else left out. What did not fail is in entries or values. */
  readonly items?: MappedItems;
}

/** What became of the counters of one document. */
export interface MappedItems {
  readonly attempts: number;
  readonly failures: readonly ItemFailure[];
  /** The most entries or values of one of them. */
  readonly outputsMax: number;
}

/** A map that failed for one counter of a document. */
export interface ItemFailure {
  /** The lower-cased name of the counter. */
  readonly item: string;
  readonly error: EngineError;
}

export interface ReducedValue {
  readonly key: string;
  readonly text: string;
}

/** A document that a map loads must be read from the disk first; then the map is run again. */
export class RecordAwaited extends Error {
  readonly wait: () => Promise<void>;

  constructor(wait: () => Promise<void>) {
    super("a loaded document is on the disk only");
    this.wait = wait;
  }
}

export interface IndexProgram {
  /** Left out: documents. */
  readonly source?: MapSource;
  /** Names of the collections that are mapped; null: all documents. */
  readonly collections: readonly (string | null)[];
  /** Names of the collections that maps load documents of; null: any. */
  readonly referencedCollections: readonly (string | null)[];
  /** Names of the fields, null when only running the maps tells them. */
  readonly fieldNames: ReadonlySet<string> | null;
  /** True when the index has a reduce. */
  readonly isReduce: boolean;
  /** @throws RecordAwaited */
  map(row: StoredRow): MapResult;
  /**
   * Reduces values of one key. @returns the JSON text of an object, or null when the reduce gives nothing
   * @throws EngineError when it fails
   */
  reduce(key: string, values: readonly string[]): string | null;
  /** The fields of a reduced object. */
  fieldsOf(text: string): readonly MappedField[];
}
