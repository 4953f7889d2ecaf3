/** Settings of an index (`Configuration` in its definition). */
import { EngineError } from "../../base/errors.ts";

/** All that RavenDB 7.2.7 accepts, in its spelling. Those without an effect are stored and returned. */
export const indexSettings: readonly string[] = `
  AllowStringCompilation Analyzers.Default Analyzers.Exact.Default Analyzers.NGram.MaxGram Analyzers.NGram.MinGram
  Analyzers.Search.Default Auto.ArchivedDataProcessingBehavior Auto.DeploymentMode Auto.SearchEngineType CleanupIntervalInMin
  Corax.DocumentsLimitForCompressionDictionaryCreation Corax.IncludeDocumentScore Corax.IncludeSpatialDistance
  Corax.MaxAllocationsAtDictionaryTrainingInMb Corax.MaxMemoizationSizeInMb Corax.Static.ComplexFieldIndexingBehavior
  Corax.UnmanagedAllocationsBatchSizeLimitInMb Corax.VectorSearch.CacheSizeInMb Corax.VectorSearch.DefaultMinimumSimilarity
  Corax.VectorSearch.DefaultNumberOfCandidatesForIndexing Corax.VectorSearch.DefaultNumberOfCandidatesForQuerying
  Corax.VectorSearch.DefaultNumberOfEdges Corax.VectorSearch.MaximumConcurrentBatchesForHnswAcceleration
  Corax.VectorSearch.MaxNumberOfThreadsForLocalEmbeddingsGeneration Corax.VectorSearch.OrderByScoreAutomatically
  Corax.VectorSearch.VectorSearchScanningThreshold Disable DisableQueryOptimizerGeneratedIndexes
  ElapsedSinceQueriedPersistIntervalInMin Encrypted.TransactionSizeLimitInMb ErrorIndexStartupBehavior
  GlobalScratchSpaceLimitInMb History.NumberOfRevisions IndexEmptyEntries IndexMissingFieldsAsNull IndexStartupBehavior
  LargeSegmentSizeToMergeInMb Lucene.Analyzers.NGram.MaxGram Lucene.Analyzers.NGram.MinGram Lucene.IndexInputType
  Lucene.LargeSegmentSizeToMergeInMb Lucene.MaximumSizePerSegmentInMb Lucene.MaxTimeForMergesToKeepRunningInSec
  Lucene.MergeFactor Lucene.NumberOfLargeSegmentsToMergeInSingleBatch Lucene.ReaderTermsIndexDivisor
  Lucene.UseCompoundFileInMerging ManagedAllocationsBatchSizeLimitInMb MapBatchSize MapTimeoutAfterEtagReachedInMin
  MapTimeoutInSec MaximumSizePerSegmentInMb MaxNumberOfConcurrentlyRunningIndexes MaxStepsForScript
  MaxTimeForDocumentTransactionToRemainOpenInSec MaxTimeForMergesToKeepRunningInSec
  MaxTimeToWaitAfterFlushAndSyncWhenExceedingScratchSpaceLimit MaxTimeToWaitAfterFlushAndSyncWhenExceedingScratchSpaceLimitInSec
  MaxTimeToWaitAfterFlushAndSyncWhenReplacingSideBySideIndexInSec MergeFactor Metrics.Enabled
  MinimumTotalSizeOfJournalsToRunFlushAndSyncWhenReplacingSideBySideIndexInMb
  MinNumberOfMapAttemptsAfterWhichBatchWillBeCanceledIfRunningLowOnMemory NuGet.AllowPreleasePackages
  NuGet.AllowPreReleasePackages NuGet.PackageSourceUrl NuGet.PackagesPath NuGetAllowPreleasePackages NuGetAllowPreReleasePackages
  NuGetPackageSourceUrl NuGetPackagesPath NumberOfConcurrentStoppedBatchesIfRunningLowOnMemory
  NumberOfLargeSegmentsToMergeInSingleBatch OrderByScoreAutomaticallyWhenBoostingIsInvolved
  OrderByTicksAutomaticallyWhenDatesAreInvolved QueryClauseCache.Disabled QueryClauseCache.ExpirationScanFrequencyInSec
  QueryClauseCache.RepeatedQueriesCount QueryClauseCache.RepeatedQueriesTimeFrameInSec QueryClauseCache.SizeInMb
  Querying.Corax.NullFirst Querying.Corax.NullsSortMode Querying.UseSearchAnalyzerForDynamicFieldsIfNotSetExplicitlyInSearchQuery
  ResetMode RunInMemory ScratchSpaceLimitInMb SkipDatabaseIdValidationOnIndexOpening Static.ArchivedDataProcessingBehavior
  Static.DeploymentMode Static.RequireAdminToDeployJavaScriptIndexes Static.SearchEngineType TempPath Throttling.TimeIntervalInMs
  TimeBeforeDeletionOfSupersededAutoIndexInSec TimeSinceLastQueryAfterWhichDeepCleanupCanBeExecutedInMin
  TimeToWaitBeforeDeletingAutoIndexMarkedAsIdleInHrs TimeToWaitBeforeMarkingAutoIndexAsIdleInMin TransactionSizeLimitInMb
  UseCompoundFileInMerging
`
  .trim()
  .split(/\s+/)
  .map((name) => `Indexing.${name}`);

/** Settings whose values are checked, by their names after `Indexing.` */
const numbers =
  /^Indexing\.(?:MapTimeoutInSec|MapBatchSize|MaxTimeForMergesToKeepRunningInSec|MapTimeoutAfterEtagReachedInMin|MaxStepsForScript|Throttling\.TimeIntervalInMs|Lucene\.Analyzers\.NGram\.(?:Min|Max)Gram|Corax\.VectorSearch\.Default\w+)$/;
const booleans = /^Indexing\.(?:IndexEmptyEntries|IndexMissingFieldsAsNull)$/;
const engines = /^Indexing\.(?:Static|Auto)\.SearchEngineType$/;

/** Returns sent settings. @throws EngineError index-creation for an unknown one, invalid-operation for an invalid value */
export function checkedSettings(
  index: string,
  settings: Record<string, string>,
): Record<string, string> {
  const known = new Set(indexSettings);
  for (const [key, text] of Object.entries(settings)) {
    if (!known.has(key)) {
      throw new EngineError(
        "index-creation",
        `Could not create index '${index}' because the configuration option key '${key}' is not recognized`,
      );
    }
    const isValid =
      (!numbers.test(key) || /^-?\d+(?:\.\d+)?$/.test(text)) &&
      (!booleans.test(key) || /^(?:true|false)$/i.test(text)) &&
      (!engines.test(key) || /^(?:corax|lucene)$/i.test(text));
    if (isValid) continue;
    throw new EngineError(
      "invalid-operation",
      `Could not set '${key}' configuration setting value.`,
    );
  }
  return settings;
}
