/** Public data of an index, at one moment. */

import type { JsonObject } from "../base/json/json-object.ts";
import { AutomaticIndex } from "../indexing/automatic-index.ts";
import { allDocuments, type IndexDefinition } from "../indexing/definitions/index-definition.ts";
import type { IndexError } from "../indexing/index-errors.ts";
import type {
  IndexLockMode,
  IndexPriority,
  IndexStatistics,
  IndexType,
  OpenIndex,
} from "../indexing/open-index.ts";
import { StaticIndex } from "../indexing/static-index.ts";
import type { SearchEngine } from "../services/querying/search-engine-setting.ts";
import { searchEngineOf } from "../services/querying/search-engine-setting.ts";

export type { IndexDefinition, IndexError, IndexLockMode, IndexPriority };

/** Times are microseconds since 1970, 0 = never. */
export interface IndexInfo {
  readonly name: string;
  /** It was deployed, not created for a query. */
  readonly isStatic: boolean;
  readonly isDisabled: boolean;
  readonly isPaused: boolean;
  /** It processes changes, or would if there were any. */
  readonly isRunning: boolean;
  /** Its snapshot is being read: until then it has no entries. */
  readonly isRestoring: boolean;
  readonly isStale: boolean;
  /** Why it no longer answers queries; null: it does. */
  readonly invalidity: string | null;
  /** The newest ones. Empty for an automatic index: it skips values that it cannot index. */
  readonly errors: readonly IndexError[];
  readonly indexedAtMicros: number;
  /** When the database was opened, or the index was created or reset. */
  readonly openedAtMicros: number;
  /** Total milliseconds of indexing. */
  readonly indexingMs: number;
}

interface StageCounts {
  readonly attempts: number;
  readonly errors: number;
}

export interface IndexDetails extends IndexInfo, IndexStatistics {
  readonly searchEngine: SearchEngine;
  readonly hasDynamicFields: boolean;
  /** Inputs of the maps and of the reduce, in the last minute. */
  readonly mappedPerSecond: number;
  readonly reducedPerSecond: number;
  /** Maximum number of entries that a map produced for one document. */
  readonly outputsPerDocumentMax: number;
  /** Where reduced objects are stored as documents; null: nowhere. */
  readonly output: IndexOutput | null;
  /** The collections of documents that its maps load; `@all_docs`: any. */
  readonly referencedCollections: readonly string[];
  /** Maps that ran again because a document that they load has changed; null: they load none. */
  readonly references: StageCounts | null;
  /** Null for an automatic index, which counts its maps only. */
  readonly reduces: StageCounts | null;
}

interface IndexOutput {
  readonly collection: string;
  /** Pattern of the ids of documents that refer to the stored ones; null: no such documents are written. */
  readonly pattern: string | null;
  /** Collection of these documents; null: the default. */
  readonly references: string | null;
}

/** An automatic index, with the fields that queries needed. */
export interface AutomaticIndexInfo {
  readonly name: string;
  readonly type: IndexType;
  readonly priority: IndexPriority;
  readonly definition: IndexDefinition;
}

/** Cost: constant. */
export function indexInfo(index: OpenIndex): IndexInfo {
  return {
    name: index.name,
    isStatic: index.isStatic,
    isDisabled: index.isDisabled,
    isPaused: index.isPaused,
    isRunning: index.isRunning,
    isRestoring: index.isRestoring,
    isStale: index.isStale,
    invalidity: index.invalidity,
    errors: index instanceof StaticIndex ? index.errors.list : [],
    indexedAtMicros: index.indexedAtMicros,
    openedAtMicros: index.openedAtMicros,
    indexingMs: index.indexingMs,
  };
}

/** `settings`: the record of the database. Cost: O(documents still to be processed). */
export function indexDetails(
  index: OpenIndex,
  settings: JsonObject,
  nowMicros: number,
): IndexDetails {
  const { mapped, reduced } = index.batches;
  const known = {
    ...indexInfo(index),
    ...index.statistics(),
    searchEngine: searchEngineOf(settings, index),
    mappedPerSecond: mapped.perSecond(60, nowMicros),
    reducedPerSecond: reduced.perSecond(60, nowMicros),
  };
  if (!(index instanceof StaticIndex)) return { ...known, ...ofAutomatic };
  const { errors, definition, program } = index;
  const { referencedCollections } = program;
  // RavenDB 7.2.7 counts for JavaScript over counters and series even where nothing is loaded.
  const counts = known.source !== "Documents" && known.type.startsWith("JavaScript");
  const loads = counts || referencedCollections.length > 0;
  return {
    ...known,
    hasDynamicFields: index.hasDynamicFields,
    outputsPerDocumentMax: index.outputsPerDocumentMax,
    output: definition.output ?? null,
    referencedCollections: referencedCollections.map((name) => name ?? allDocuments),
    references: loads
      ? { attempts: errors.mapReferenceAttempts, errors: errors.mapReferenceErrors }
      : null,
    reduces: { attempts: errors.reduceAttempts, errors: errors.reduceErrors },
  };
}

const ofAutomatic = {
  hasDynamicFields: false,
  outputsPerDocumentMax: 1,
  output: null,
  referencedCollections: [],
  references: null,
  reduces: null,
} as const;

/** Returns the automatic indexes among `indexes`. */
export function automaticIndexes(indexes: readonly OpenIndex[]): AutomaticIndexInfo[] {
  return indexes
    .filter((index) => index instanceof AutomaticIndex)
    .map(({ name, type, priority, definition }) => ({ name, type, priority, definition }));
}
