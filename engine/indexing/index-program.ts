/**
 * The compiled functions of a deployed index, as the stages run them. Implemented by the compilers of their texts;
 * tests use plain functions. Values are passed as JSON texts.
 */
import type { EngineError } from "../base/errors.ts";
import type { FieldIndexing } from "./definitions/static-definition.ts";
import type { StoredRow } from "./index-host.ts";

/** Indexing options of a field whose name the map computes. */
export interface DynamicFieldOptions {
  readonly indexing: FieldIndexing | null;
  readonly isStored: boolean;
}

/** One field of one entry. `dynamic` null: the options of the definition apply. */
export interface MappedField {
  readonly name: string;
  /** JSON text. */
  readonly text: string;
  readonly dynamic: DynamicFieldOptions | null;
}

/** The input of an index's maps. */
export type MapSource = "Documents" | "Counters" | "TimeSeries";

/** The fields of one entry, and its score factors. */
export interface MappedEntry {
  readonly fields: readonly MappedField[];
  /** By field, "" for all fields; null: none is boosted. */
  readonly boosts: ReadonlyMap<string, number> | null;
  /** The JSON text of the whole object, for entries that have no document of their own; otherwise omitted. */
  readonly text?: string;
}

/** The output of a map for one document, and the other documents and values that it read. */
export interface MapResult {
  /** Empty in a map-reduce index. */
  readonly entries: readonly MappedEntry[];
  /** Input of the reduce: JSON texts of a key and an object. */
  readonly values: readonly ReducedValue[];
  /** Lower-cased ids of loaded documents, existing or not. */
  readonly references: ReadonlySet<string>;
  /** Lower-cased keys of compare-exchange values that were loaded. */
  readonly compareExchangeKeys: ReadonlySet<string>;
  /** Why the map failed, or null; on failure there are neither entries nor values. */
  readonly failure: EngineError | null;
  /** Only for maps of counters. Results of successful items are in entries or values. */
  readonly items?: MappedItems;
}

/** The outcome of mapping the counters of one document. */
export interface MappedItems {
  readonly attempts: number;
  readonly failures: readonly ItemFailure[];
  /** The largest number of entries or values from one counter. */
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

/** A loaded document must first be read from the disk; the map is then rerun. */
export class RecordNotLoaded extends Error {
  readonly wait: () => Promise<void>;

  constructor(wait: () => Promise<void>) {
    super("a loaded document is on the disk only");
    this.wait = wait;
  }
}

/** A member of a reduced object: the sum of the values' members of this name, or a part of the key (null: all of it). */
export type SummedMember =
  | { readonly name: string; readonly isSum: true }
  | { readonly name: string; readonly isSum: false; readonly part: string | null };

/** A reduce whose result consists of such members, in this order. */
export interface SummedReduce {
  readonly members: readonly SummedMember[];
  /** Whether only integers are added up so; their sums are exact. */
  readonly isOfIntegers: boolean;
  /** Returns the JSON text of a sum; a bigint when it is an integer that a double does not hold. */
  textOf(sum: number | bigint): string;
}

export interface IndexProgram {
  /** Omitted: documents. */
  readonly source?: MapSource;
  /** Names of the collections that are mapped; null: all documents. */
  readonly collections: readonly (string | null)[];
  /** Names of the collections whose documents the maps load; null: any. */
  readonly referencedCollections: readonly (string | null)[];
  /** Names of the fields; null when known only at run time. */
  readonly fieldNames: ReadonlySet<string> | null;
  readonly isReduce: boolean;
  /** @throws RecordNotLoaded */
  map(row: StoredRow): MapResult;
  /** Only for maps of time series: returns whether it maps this segment, which exists. */
  wantsSegment?(key: string): boolean;
  /** Only for maps of time series: maps a segment. @throws RecordNotLoaded */
  mapSegment?(key: string): MapResult;
  /**
   * Reduces values of one key.
   * @returns the JSON text of an object, or null when the reduce returns nothing
   * @throws EngineError when it fails
   */
  reduce(key: string, values: readonly string[]): string | null;
  /** The name of the one field that makes the key; null or omitted: the key is an object, or the field is not known. */
  readonly keyName?: string | null;
  /** The sums of the reduce, if it only adds up; null or omitted: it may compute anything. */
  readonly sums?: SummedReduce | null;
  /** Returns the fields of a reduced object. */
  fieldsOf(text: string): readonly MappedField[];
}
