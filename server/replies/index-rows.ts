/** Indexes as rows of replies: statistics, progress. Forms and the order of keys are those of RavenDB 7.2.7. */
import type { IndexStatistics, OpenIndex } from "../../engine/indexing/open-index.ts";
import { StaticIndex } from "../../engine/indexing/static-index.ts";
import type { JsonObject } from "../../engine/json/json-object.ts";
import { searchEngineOf } from "../../engine/querying/search-engine-setting.ts";
import { timeText } from "./query-reply.ts";

/** `Running`, or why it is not. */
export function statusOf(index: OpenIndex): "Running" | "Paused" | "Disabled" {
  if (index.isDisabled) return "Disabled";
  if (index.isPaused) return "Paused"; // also while it is being restored
  return index.isRunning || index.isRestoring ? "Running" : "Paused";
}

/** An index's row in `indexes/stats`. */
export function statisticsRow(index: OpenIndex, record: JsonObject): object {
  const row = index.statistics();
  const output = index instanceof StaticIndex ? index.definition.output : null;
  return {
    Name: row.name,
    MapAttempts: row.mapAttempts,
    MapSuccesses: row.mapAttempts - row.mapErrors,
    MapErrors: row.mapErrors,
    ...stageCounts(index, row),
    ReduceOutputCollection: output?.collection ?? null,
    ReduceOutputReferencePattern: output?.pattern ?? null,
    PatternReferencesCollectionName: output?.references ?? null,
    MappedPerSecondRate: 0,
    ReducedPerSecondRate: 0,
    MaxNumberOfOutputsPerDocument: index instanceof StaticIndex ? index.outputsPerDocumentMax : 1,
    Collections: collectionRows(row),
    LastQueryingTime: timeText(row.queriedAtMicros),
    State: row.state,
    Priority: row.priority,
    CreatedTimestamp: timeText(row.createdAtMicros),
    LastIndexingTime: row.indexedAtMicros === 0 ? null : timeText(row.indexedAtMicros),
    IsStale: row.isStale,
    LockMode: row.lockMode,
    Type: row.type,
    SearchEngineType: searchEngineOf(record, index),
    ArchivedDataProcessingBehavior: null,
    Status: statusOf(index),
    EntriesCount: row.entriesCount,
    ErrorsCount: index instanceof StaticIndex ? index.errors.list.length : row.mapErrors,
    SourceType: row.source,
    ReferencedCollections: referencedNames(index),
    IsInvalidIndex: index.invalidity !== null,
    Memory: null,
    LastBatchStats: null,
  };
}

/** Counters of the stages; null where a stage does not exist. */
function stageCounts(index: OpenIndex, row: IndexStatistics): object {
  const isStatic = index instanceof StaticIndex;
  const isReduce = row.type.endsWith("Reduce");
  const hasReferences = isStatic && index.program.referencedCollections.length > 0;
  const errors = isStatic ? index.errors : null;
  const references = hasReferences ? errors : null;
  const attempts = errors?.reduceAttempts ?? row.mapAttempts;
  const failures = errors?.reduceErrors ?? 0;
  const successes = errors === null ? row.mapAttempts - row.mapErrors : attempts - failures;
  return {
    MapReferenceAttempts: references?.mapReferenceAttempts ?? null,
    MapReferenceSuccesses:
      references === null ? null : references.mapReferenceAttempts - references.mapReferenceErrors,
    MapReferenceErrors: references?.mapReferenceErrors ?? null,
    ReduceAttempts: isReduce ? attempts : null,
    ReduceSuccesses: isReduce ? successes : null,
    ReduceErrors: isReduce ? failures : null,
  };
}

function referencedNames(index: OpenIndex): string[] {
  if (!(index instanceof StaticIndex)) return [];
  return index.program.referencedCollections.map((name) => name ?? "@all_docs");
}

function collectionRows({ collections }: IndexStatistics): object {
  const rows = collections.map(({ name, lastDocumentEtag, lastDeletionEtag, documentLag }) => [
    name,
    {
      LastProcessedDocumentEtag: lastDocumentEtag,
      LastProcessedTombstoneEtag: lastDeletionEtag,
      LastProcessedTimeSeriesDeletedRangeEtag: 0,
      DocumentLag: documentLag,
      TombstoneLag: 0,
    },
  ]);
  return Object.fromEntries(rows) as object;
}

/** The row of a stale index in `indexes/progress`. */
export function progressRow(index: OpenIndex): object {
  const { name, type, collections, entriesCount } = index.statistics();
  const rows = collections.map((one) => [
    one.name,
    {
      LastProcessedItemEtag: one.lastDocumentEtag,
      LastProcessedTombstoneEtag: one.lastDeletionEtag,
      LastProcessedTimeSeriesDeletedRangeEtag: 0,
      NumberOfItemsToProcess: one.documentLag,
      NumberOfTombstonesToProcess: 0,
      NumberOfTimeSeriesDeletedRangesToProcess: 0,
      TotalNumberOfItems: entriesCount + one.documentLag,
      TotalNumberOfTombstones: 0,
      TotalNumberOfTimeSeriesDeletedRanges: 0,
    },
  ]);
  return {
    IsStale: true,
    IndexRunningStatus: statusOf(index),
    ProcessedPerSecond: 0,
    Collections: Object.fromEntries(rows) as object,
    Name: name,
    Type: type,
    SourceType: "Documents",
  };
}

/** Why an index is stale, one sentence per collection. */
export function stalenessReasons(index: OpenIndex): string[] {
  const { collections, isStale } = index.statistics();
  if (!isStale) return [];
  const behind = collections.filter(({ documentLag }) => documentLag > 0);
  if (behind.length === 0) return ["There are changes of other documents to process."];
  return behind.map(
    ({ name, documentLag, lastDocumentEtag }) =>
      `There are still ${documentLag} documents to process from collection '${name}'. ` +
      `The last committed document etag for that collection is '${lastDocumentEtag}'`,
  );
}
