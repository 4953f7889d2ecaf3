/**
 * Settings of RavenDB that are accepted without effect, because test drivers, compose files, and settings files contain them.
 * Any other unknown name is an error.
 */
import { indexSettings } from "../../engine/engine.ts";

/** Prefixes of names in lower case, and the reason why they have no effect. The first match counts. */
const reasons: Readonly<Record<string, string>> = {
  license: "no licence is needed",
  "setup.": "this server has no setup wizard",
  "logs.": "the log has other settings",
  "features.": "all features are always on",
  "testing.": "they are for RavenDB's own tests",
  "cluster.": "clusters have other settings",
  "indexing.": "indexes have other limits",
  "databases.": "databases have other limits",
  "memory.": "memory has other limits",
  "storage.": "the storage engine differs",
  "security.auditlog.": "the audit log has other settings",
  "backup.": "backups have no other settings",
  "updates.": "automatic updates do not exist",
  "": "this server does not use it",
};

/** A group of names with the same reason, reported on one line. */
interface UnsupportedSetting {
  readonly reason: string;
  /** Whether it is a warning: operators who configure an audit log may rely on it. */
  readonly isWarning: boolean;
}

/** Returns the group of a setting of RavenDB, or undefined for an unknown name. */
export function unsupportedSetting(name: string): UnsupportedSetting | undefined {
  const lower = name.toLowerCase();
  if (!foreignNames().has(lower)) return undefined;
  const [prefix = "", reason = ""] =
    Object.entries(reasons).find(([one]) => lower.startsWith(one)) ?? [];
  return { reason, isWarning: prefix === "security.auditlog." };
}

let namesInLowerCase: ReadonlySet<string> | undefined;

function foreignNames(): ReadonlySet<string> {
  namesInLowerCase ??= new Set(
    [...unpacked(ravenSettings), ...indexSettings].map((name) => name.toLowerCase()),
  );
  return namesInLowerCase;
}

/** Expands `A: = B.C` to `A` and `A.B.C`. Indented lines continue the previous one. */
export function unpacked(packed: string): string[] {
  return packed
    .trim()
    .split(/\n(?! )/)
    .flatMap((line) => {
      const [prefix = "", rest] = line.split(": ");
      if (rest === undefined) return [prefix];
      return rest.split(/\s+/).map((name) => (name === "=" ? prefix : `${prefix}.${name}`));
    });
}

/**
 * The settings that RavenDB 7.2.7 lists (`GET admin/configuration/settings`), except those of indexes (index-settings.ts),
 * those of its versions 5.4 and 6 that it has dropped, and the switches of its command line.
 */
const ravenSettings = `
AcmeRenewalThresholdPercentage
AcmeUrl
Ai: Agent.Tools.TokenUsageThreshold Agent.Trimming.Summarization.SummarizationResultPrefix
  Agent.Trimming.Summarization.SummarizationTaskBeginningPrompt Agent.Trimming.Summarization.SummarizationTaskEndPrompt Assistant.Disable
  Assistant.DisableDataSubmission Embeddings.MaxBatchSize Embeddings.MaxConcurrentBatches Embeddings.MaxFallbackTimeInSec
  GenAi.GenAiSendToModelTimeoutInSec
Backup: AllowedAwsRegions AllowedDestinations Azure.Legacy CloudStorageOperationTimeoutInMin Compression.Algorithm Compression.Level
  ConcurrentBackupsDelayInSec LocalRootPath LowMemoryBackupDelayInMin MaxNumberOfConcurrentBackups MaxReadOpsPerSecond
  MoveToNewResponsibleNodeGracePeriodInMin Snapshot.Compression.Algorithm Snapshot.Compression.Level TempPath
CdcSink: MaxBatchSize MaxFallbackTimeInSec Postgres.ReplicationTimeoutInSec ProcessHealthStatusFailedThreshold ProcessHealthStatusImpairedThreshold
  SqlServer.PollIntervalInSec
Cluster: CompareExchangeExpiredDeleteFrequencyInSec CompareExchangeTombstonesCleanupIntervalInMin DisableAtomicDocumentWrites ElectionTimeoutInMs
  FullReportIntervalInMin HardDeleteOnReplacement LogHistoryMaxEntries MaxChangeVectorDistance MaxClusterTransactionBatchSize
  MaxClusterTransactionCompareExchangeTombstoneCheckIntervalInMin MaximalAllowedClusterVersion MaxSizeOfSingleRaftCommandInMb OnErrorDelayTimeInMs
  OperationTimeoutInSec ReceiveFromWorkerTimeoutInMs StatsStabilizationTimeInSec SupervisorSamplePeriodInMs TcpReceiveBufferSizeInBytes
  TcpSendBufferSizeInBytes TcpTimeoutInMs TimeBeforeAddingReplicaInSec TimeBeforeMovingToRehabInSec TimeBeforeRotatingPreferredNodeInSec
  WorkerSamplePeriodInMs
Databases: CollectionOperationTimeoutInSec Compression.CompressAllCollectionsDefault Compression.CompressRevisionsDefault ConcurrentLoadTimeoutInSec
  DeepCleanupThresholdInMin FrequencyToCheckForIdleInSec MaxConcurrentLoads MaxIdleTimeInSec OperationTimeoutInSec PulseReadTransactionLimitInMb
  QueryOperationTimeoutInSec QueryTimeoutInSec RegularCleanupThresholdInMin
DataDir: = EnforcePath
Debug: EventListener.AllocationsLoggingCount EventListener.AllocationsLoggingIntervalInMs EventListener.EventTypes EventListener.MinimumDurationInMs
  EventListener.Mode
Embedded: ParentProcessId
ETL: ExtractAndTransformTimeoutInSec MaxBatchSizeInMb MaxFallbackTimeInSec MaxNumberOfExtractedDocuments MaxNumberOfExtractedItems
  OLAP.MaxNumberOfExtractedDocuments ProcessHealthStatusFailedThreshold ProcessHealthStatusImpairedThreshold Queue.AzureQueueStorage.TimeToLiveInSec
  Queue.AzureQueueStorage.VisibilityTimeoutInSec Queue.Kafka.InitTransactionsTimeoutInSec Raven.LoadRequestTimeoutInSec SQL.CommandTimeoutInSec
  SQL.MaxTransactionRetryRatio
Export: Compression.Algorithm Compression.Level
ExternalIp
Features: Availability
Http: AllowResponseCompressionOverHttps AllowSynchronousIO DeflateResponseCompressionLevel GzipResponseCompressionLevel
  Http2.InitialConnectionWindowSizeInKb Http2.InitialStreamWindowSizeInKb Http2.KeepAlivePingDelayInSec Http2.KeepAlivePingTimeoutInSec
  Http2.LatencyHint Http2.MaxFrameSizeInKb Http2.MaxStreamsPerConnection Http2.Profile MaxRequestBufferSizeInKb MaxRequestLineSizeInKb
  MinDataRateBytesPerSec MinDataRateGracePeriodInSec Protocols StaticFilesResponseCompressionLevel UseResponseCompression ZstdResponseCompressionLevel
Integrations: PostgreSQL.Enabled PostgreSQL.Port
LetsEncrypt: AcmeProfile
License: = CanActivate CanForceUpdate CanRenew CanRenewLicense DisableAutoUpdate DisableAutoUpdateFromApi DisableLicenseSupportCheck Eula.Accepted
  Path SkipLeasingErrorsLogging ThrowOnInvalidOrMissingLicense
Logs: ArchiveAboveSizeInMb Compress ConfigPath EnableArchiveFileCompression FileName Internal.Level Internal.LogToStandardError
  Internal.LogToStandardOutput Internal.Path MaxArchiveDays MaxArchiveFiles MaxFileSizeInMb Microsoft.ConfigurationPath Microsoft.Disable
  Microsoft.Enabled Microsoft.MinLevel MinLevel Mode NuGet.AdditionalPackages NuGet.AllowPreReleasePackages NuGet.PackageSourceUrl NuGet.PackagesPath
  Path RetentionSizeInMb RetentionTimeInHrs ThrowConfigExceptions UseUtcTime
Memory: EnableHighTemporaryDirtyMemoryUse GC.LargeObjectHeapCompactionThresholdPercentage LowMemoryCommitLimitInMb LowMemoryLimitInMb
  MaxContextSizeToKeepInMb MaxFreeCommittedMemoryToKeepInMb MinimumFreeCommittedMemoryPercentage TemporaryDirtyMemoryAllowedPercentage
  TemporaryDirtyMemoryChecksPeriodInSec UseTotalDirtyMemInsteadOfMemUsage
Migration: MigratorPath
Monitoring: Cpu.Exec Cpu.Exec.Arguments Disk.ReadStatsDebounceTimeInMs OpenTelemetry.ConsoleExporter OpenTelemetry.Enabled
  OpenTelemetry.Meters.AspNetCore.Enabled OpenTelemetry.Meters.Runtime.Enabled OpenTelemetry.Meters.Server.CPUCredits.Enabled
  OpenTelemetry.Meters.Server.Enabled OpenTelemetry.Meters.Server.GC.Enabled OpenTelemetry.Meters.Server.General.Enabled
  OpenTelemetry.Meters.Server.Requests.Enabled OpenTelemetry.Meters.Server.Resources.Enabled OpenTelemetry.Meters.Server.Storage.Enabled
  OpenTelemetry.Meters.Server.TotalDatabases.Enabled OpenTelemetry.OpenTelemetryProtocol.Enabled OpenTelemetry.OpenTelemetryProtocol.Endpoint
  OpenTelemetry.OpenTelemetryProtocol.ExportProcessorType OpenTelemetry.OpenTelemetryProtocol.Headers OpenTelemetry.OpenTelemetryProtocol.Protocol
  OpenTelemetry.OpenTelemetryProtocol.Timeout OpenTelemetry.ServiceInstanceId OpenTelemetry.ServiceName OpenTelemetry.ServiceNamespace
  Snmp.AuthenticationPassword Snmp.AuthenticationPassword.Secondary Snmp.AuthenticationProtocol Snmp.AuthenticationProtocol.Secondary
  Snmp.AuthenticationUser Snmp.AuthenticationUser.Secondary Snmp.Community Snmp.DisableTimeWindowChecks Snmp.Enabled Snmp.Port Snmp.PrivacyPassword
  Snmp.PrivacyPassword.Secondary Snmp.PrivacyProtocol Snmp.PrivacyProtocol.Secondary Snmp.SupportedVersions
Notifications: FilterOut
Patching: AllowStringCompilation MaxStepsForScript StrictMode
PerformanceHints: Documents.HugeDocumentsCollectionSize Documents.HugeDocumentSizeInMb Indexing.AlertWhenSourceDocumentIncludedInOutput
  Indexing.MaxDepthOfRecursionInLinqSelect Indexing.MaxIndexOutputsPerDocument Indexing.MaxNumberOfLoadsPerReference MaxNumberOfResults
  Memory.MinSwapSizeInMb TooLongRequestThresholdInSec
PublicServerUrl: = Tcp Tcp.Cluster Tcp.External
Query: MaxClauseCount RegexTimeoutInMs
QueueSink: MaxBatchSize MaxFallbackTimeInSec
Replication: ActiveConnectionTimeoutInSec MaxItemsCount MaxNumberOfAttachmentsTrackedForDeduplication MaxSizeToSendInMb
  NumberOfEnumeratedDocumentsToCheckIfPulseLimitExceeded ReplicationMinimalHeartbeatInSec RetryMaxTimeoutInSec RetryReplicateAfterInSec
RunInMemory
SchemaValidation: MaxDepth RegexTimeoutInMs
Security: AuditLog.ArchiveAboveSizeInMb AuditLog.Compress AuditLog.EnableArchiveFileCompression AuditLog.FileName AuditLog.FolderPath
  AuditLog.MaxArchiveDays AuditLog.MaxArchiveFiles AuditLog.RetentionSizeInMb AuditLog.RetentionTimeInHrs Certificate.Change.Exec
  Certificate.Change.Exec.Arguments Certificate.Exec Certificate.Exec.TimeoutInSec Certificate.ExpiringThresholdInDays Certificate.LetsEncrypt.Email
  Certificate.Load.Exec Certificate.Load.Exec.Arguments Certificate.Password Certificate.Path Certificate.Renew.Exec Certificate.Renew.Exec.Arguments
  Certificate.Validation.Exec Certificate.Validation.Exec.Arguments Certificate.Validation.Exec.TimeoutInSec Certificate.Validation.KeyUsages
  Csrf.AdditionalOriginHeaders Csrf.Enabled Csrf.TrustedOrigins DisableHsts DisableHttpsRedirection DoNotConsiderMemoryLockFailureAsCatastrophicError
  MasterKey.Exec MasterKey.Exec.Arguments MasterKey.Exec.TimeoutInSec MasterKey.Path RestrictExternalScriptUsageForNonClusterAdmin TlsCipherSuites
  TwoFactor.DefaultSessionDurationInMin TwoFactor.MaxSessionDurationInMin UnsecuredAccessAllowed WellKnownCertificates.Admin
  WellKnownIssuerHashes.Admin WellKnownIssuers.Admin WellKnownIssuers.Admin.ValidateCertificateNames
Server: AdminChannel.Disable CpuCredits.Base CpuCredits.Exec CpuCredits.Exec.Arguments CpuCredits.Exec.SyncIntervalInMin CpuCredits.Exec.TimeoutInSec
  CpuCredits.ExhaustionBackgroundTasksThreshold CpuCredits.ExhaustionBackupDelayInMin CpuCredits.ExhaustionFailoverThreshold CpuCredits.Max
  IndexingAffinityMask LogsStream.Disable MaxTimeForTaskToWaitForDatabaseToLoadInSec Name NumberOfUnusedCoresByIndexes ProcessAffinityMask
  Tcp.Compression.Disable ThreadPool.MaxCompletionPortThreads ThreadPool.MaxWorkerThreads ThreadPool.MinCompletionPortThreads
  ThreadPool.MinWorkerThreads
ServerUrl: = Cluster Tcp
Setup: Certificate.Path Mode
Sharding: Import.CompressionLevel OrchestratorTimeoutInMin ShardExecutor.UseHttpCompression ShardExecutor.UseHttpDecompression
Storage: CompressTxAboveSizeInKb Dangerous.IgnoreInvalidJournalErrors Dangerous.SkipChecksumValidationOnDatabaseLoading DiscardVirtualMemory
  EnablePrefetching Encrypted.DisableBuffersPooling ForceUsing32BitsPager FreeSpaceAlertThresholdInMb FreeSpaceAlertThresholdInPercentages
  IgnoreDataIntegrityErrorsOfAlreadySyncedTransactions IO.Metrics.Enabled IoMetricsCleanupIntervalInHrs MaxConcurrentFlushes
  MaxNumberOfRecyclableJournals MaxScratchBufferSizeInMb NumberOfConcurrentSyncsPerPhysicalDrive OnCreateDirectory.Exec
  OnCreateDirectory.Exec.Arguments OnCreateDirectory.Exec.TimeoutInSec OnDirectoryInitialize.Exec OnDirectoryInitialize.Exec.Arguments
  OnDirectoryInitialize.Exec.TimeoutInSec PrefetchBatchSizeInKb PrefetchResetThresholdInGb ReadAheadKbAlertThresholdInKb SyncJournalsCountThreshold
  TempPath TimeToSyncAfterFlashInSec TimeToSyncAfterFlushInSec UseSequentialReadAheadHintForJournalRecovery
Studio: Path
Subscriptions: ArchivedDataProcessingBehavior MaxNumberOfConcurrentConnections
Testing: EchoSocket.Port ParentProcessId
ThrowIfAnyIndexCannotBeOpened
Tombstones: CleanupIntervalInMin CleanupIntervalWithReplicationHubInMin RetentionTimeWithReplicationHubInHrs
TrafficWatch: CertificateThumbprints ChangeTypes Databases HttpMethods MinimumDurationInMs MinimumRequestSizeInBytes MinimumResponseSizeInBytes Mode
  StatusCodes
TransactionMerger: MaxTimeToWaitForPreviousTxBeforeRejectingInMs MaxTimeToWaitForPreviousTxInMs MaxTxSizeInMb
Updates: BackgroundChecks.Disable Channel
browser
daemon
log-to-console
non-interactive
print-id
service-name
`;

/** Variables of RavenDB's container image that have the prefix of settings. */
export const ravenImageVariables: ReadonlySet<string> = new Set([
  "raven_auto_install_ca",
  "raven_in_docker",
]);
