/** Formats indexes as rows of replies: statistics and progress. Formats and key order are those of RavenDB 7.2.7. */
import type { IndexDetails, IndexInfo } from "../../engine/engine.ts";
import { doubleNumber } from "./number-texts.ts";
import { timeText } from "./query-reply.ts";

/** Returns `Running`, or the reason why the index is not running. */
export function statusOf(index: IndexInfo): "Running" | "Paused" | "Disabled" {
  if (index.isDisabled) return "Disabled";
  if (index.isPaused) return "Paused"; // also while it is being restored
  return index.isRunning || index.isRestoring ? "Running" : "Paused";
}

/** Returns an index's row in `indexes/stats`, to be written by `jsonOfNumbers`. */
export function statisticsRow(row: IndexDetails): object {
  const { output } = row;
  return {
    Name: row.name,
    MapAttempts: row.mapAttempts,
    MapSuccesses: row.mapAttempts - row.mapErrors,
    MapErrors: row.mapErrors,
    ...stageCounts(row),
    ReduceOutputCollection: output?.collection ?? null,
    ReduceOutputReferencePattern: output?.pattern ?? null,
    PatternReferencesCollectionName: output?.references ?? null,
    // The PHP client requires doubles.
    MappedPerSecondRate: doubleNumber(row.mappedPerSecond),
    ReducedPerSecondRate: doubleNumber(row.reducedPerSecond),
    MaxNumberOfOutputsPerDocument: row.outputsPerDocumentMax,
    Collections: collectionRows(row),
    LastQueryingTime: timeText(row.queriedAtMicros), // before the first query, the time of the start, as in RavenDB
    State: row.state,
    Priority: row.priority,
    CreatedTimestamp: timeText(row.createdAtMicros),
    LastIndexingTime: row.indexedAtMicros === 0 ? null : timeText(row.indexedAtMicros),
    IsStale: row.isStale,
    LockMode: row.lockMode,
    Type: row.type,
    SearchEngineType: row.searchEngine,
    ArchivedDataProcessingBehavior: row.source === "Documents" ? null : "IncludeArchived",
    Status: statusOf(row),
    EntriesCount: row.entriesCount,
    ErrorsCount: row.isStatic ? row.errors.length : row.mapErrors,
    SourceType: row.source,
    ReferencedCollections: row.referencedCollections,
    IsInvalidIndex: row.invalidity !== null,
    Memory: null,
    LastBatchStats: null,
  };
}

/** Counters of the stages; null where a stage does not exist. */
function stageCounts({ type, references, reduces, mapAttempts, mapErrors }: IndexDetails): object {
  const isReduce = type.endsWith("Reduce");
  const attempts = reduces?.attempts ?? mapAttempts;
  const failures = reduces?.errors ?? 0;
  const successes = reduces === null ? mapAttempts - mapErrors : attempts - failures;
  return {
    MapReferenceAttempts: references?.attempts ?? null,
    MapReferenceSuccesses: references === null ? null : references.attempts - references.errors,
    MapReferenceErrors: references?.errors ?? null,
    ReduceAttempts: isReduce ? attempts : null,
    ReduceSuccesses: isReduce ? successes : null,
    ReduceErrors: isReduce ? failures : null,
  };
}

function collectionRows({ collections }: IndexDetails): object {
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

/** Returns the row of a stale index in `indexes/progress`. */
export function progressRow(index: IndexDetails): object {
  const { name, type, collections, entriesCount } = index;
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
    SourceType: index.source,
  };
}

/** Returns the reasons why an index is stale, one sentence per collection. */
export function stalenessReasons({ collections, isStale }: IndexDetails): string[] {
  if (!isStale) return [];
  const behind = collections.filter(({ documentLag }) => documentLag > 0);
  if (behind.length === 0) return ["There are changes of other documents to process."];
  return behind.map(
    ({ name, documentLag, lastDocumentEtag }) =>
      `There are still ${documentLag} documents to process from collection '${name}'. ` +
      `The last committed document etag for that collection is '${lastDocumentEtag}'`,
  );
}
