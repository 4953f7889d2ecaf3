/**
 * The surface of the engine: the parts that server/ may use, besides the common base in base/ and json/. Has no
 * knowledge of HTTP, and exposes no transaction, keyspace, record or position.
 *
 *     const engine = await openEngine({ folder: "./data" });
 *     const database = await engine.databases.create("shop", {});
 *     const stored = await database.documents.put("users/1", Buffer.from('{"Name":"Ann"}'));
 *     // stored.changeVector is "A:1-…"
 *     await engine.close();
 */
import { Databases } from "./api/databases.ts";
import { SharedValues } from "./api/shared-values.ts";
import { SystemValues } from "./api/system-values.ts";
import type { Environment } from "./base/environment.ts";
import { type FolderOptions, openFolder } from "./database/open-folder.ts";
import type { Operations } from "./store/operations.ts";

type EngineOptions = FolderOptions;

/** The databases of one data folder, and the durable values of the server itself. */
export interface Engine {
  readonly databases: Databases;
  readonly values: SystemValues;
  /** State that all nodes of the cluster share; null for a single node. */
  readonly shared: SharedValues | null;
  /** The server's own operations. Read this property for each use: when its database has stopped, it is replaced. */
  readonly operations: Operations;
  readonly environment: Environment;
  /**
   * Resolves when another process has acquired the folder: nothing is written from then on, and reads may return old
   * data.
   */
  readonly lost: Promise<Error>;
  /** Makes everything durable and releases the folder. */
  close(): Promise<void>;
}

/**
 * Opens the data folder. Its databases are opened on first use.
 * @throws EngineError database-locked when another process has it, database-damaged
 */
export async function openEngine(options: EngineOptions = {}): Promise<Engine> {
  const folder = await openFolder(options);
  return {
    databases: new Databases(folder.databases),
    values: new SystemValues(() => folder.system),
    shared: folder.cluster === null ? null : new SharedValues(folder.cluster),
    get operations() {
      return folder.system.operations;
    },
    environment: folder.environment,
    lost: folder.lost,
    close: () => folder.close(),
  };
}

export {
  type Attachment,
  type AttachmentName,
  Attachments,
  type ContentReader,
  type ContentSource,
} from "./api/attachments.ts";
export {
  Batches,
  type BatchOptions,
  type ClusterBatchResult,
  type PreparedBatch,
} from "./api/batches.ts";
export { type BulkInsertOptions, BulkInserts } from "./api/bulk-inserts.ts";
export {
  type Change,
  Changes,
  type CounterChange,
  type DocumentChange,
  type IndexChange,
  type TimeSeriesChange,
} from "./api/changes.ts";
export {
  CompareExchange,
  type CompareExchangeResult,
  type CompareExchangeValue,
} from "./api/compare-exchange.ts";
export {
  type CounterOperation,
  type CounterSlot,
  Counters,
  type DocumentCounterOperations,
} from "./api/counters.ts";
export { Database, type Guest } from "./api/database.ts";
export { Databases, type ShippedDatabase } from "./api/databases.ts";
export {
  Documents,
  DocumentsView,
  FoundDocument,
  type ListedDocuments,
  type ListReceiver,
} from "./api/documents.ts";
export { Identities, type LastRange, type NumberRange } from "./api/identities.ts";
export type {
  AutomaticIndexInfo,
  IndexDefinition,
  IndexDetails,
  IndexError,
  IndexInfo,
  IndexLockMode,
  IndexOutput,
  IndexPriority,
  IndexType,
  SearchEngine,
  StageCounts,
} from "./api/index-info.ts";
export {
  type AwaitedIndexes,
  type DeployedDefinition,
  type Deployer,
  Indexes,
  type IndexSelection,
  type IndexTerms,
  type IndexTrial,
  indexLockModes,
  indexPriorities,
  type TermsRequest,
} from "./api/indexes.ts";
export type { LargeDocument, MemoryReserver } from "./api/large-documents.ts";
export {
  type JsonPatchResult,
  Patches,
  type PatchRequest,
  type PatchResult,
  type PatchScript,
  type PatchStatus,
} from "./api/patches.ts";
export { PreparedQuery, Queries, type QueryEntries, type QueryInclude } from "./api/queries.ts";
export type { AddFiles, OldContent } from "./api/replaced-files.ts";
export {
  type ReplicaHeartbeat,
  type ReplicaRole,
  Replication,
  type ReplicationMark,
  type ReplicationWatcher,
} from "./api/replication.ts";
export {
  type RevisionBinPage,
  type RevisionChoice,
  type RevisionDeletion,
  type RevisionKind,
  type RevisionPage,
  type RevisionScope,
  Revisions,
} from "./api/revisions.ts";
export {
  type DryRunOptions,
  type SetOperationOptions,
  SetOperations,
  type WatchedPatch,
} from "./api/set-operations.ts";
export { SharedValues } from "./api/shared-values.ts";
export { type LogPoint, type Shipment, type ShippedFile, Shipping } from "./api/shipping.ts";
export {
  type BackupMark,
  type BackupRun,
  type ContentDigest,
  type DumpItemType,
  type DumpOptions,
  type ImportSettings,
  Smuggler,
  type SmugglerResult,
} from "./api/smuggler.ts";
export {
  type CollectionCounts,
  type CollectionDetails,
  type DatabaseCounts,
  type DatabaseFigures,
  Statistics,
} from "./api/statistics.ts";
export {
  type ArchivedBehavior,
  archivedBehaviors,
  type IncludeKind,
  type OpeningStrategy,
  openingStrategies,
  type SubscriptionBatch,
  type SubscriptionChoice,
  type SubscriptionIncludes,
  type SubscriptionItem,
  type SubscriptionSettings,
  Subscriptions,
  type SubscriptionTask,
  type SubscriptionTrial,
  type SubscriptionWorker,
  subscriptionClosed,
  type WorkerInfo,
  type WorkerOptions,
} from "./api/subscriptions.ts";
export { type ExpectedChange, SystemValues } from "./api/system-values.ts";
export { type SeriesPage, type SeriesSlice, TimeSeries } from "./api/time-series.ts";
export { EngineError, type ErrorCode } from "./base/errors.ts";
export { checkNodeTag, nodeTagDefault } from "./base/names.ts";
export { bytesToCheck, type CheckedDatabase, checkDatabase } from "./database/check-database.ts";
export type { ReplicationOptions } from "./database/database-replication.ts";
export type { MonitoredFigures } from "./database/monitored-figures.ts";
export type { DatabaseOptions } from "./database/open-database.ts";
export type { FolderReplication } from "./database/open-folder.ts";
export { type SalvagedDatabase, salvageDatabase } from "./database/salvage-database.ts";
export { ChangeOrigin } from "./documents/change-origin.ts";
export {
  checkedJson,
  checkedJsonInSlices,
  checkJson,
  readMinified,
} from "./documents/checked-json.ts";
export type { DocumentChunks, TextChunks } from "./documents/document-chunks.ts";
export type { DocumentRow } from "./documents/document-row.ts";
export {
  changeVectorsAt,
  type IncludePath,
  includedIds,
  parseIncludePath,
} from "./documents/include-path.ts";
export type { IndexBatch } from "./indexing/index-batches.ts";
export { checkStaticIndexName } from "./indexing/static-definition.ts";
export { timeSpanMicros } from "./keyspaces/revision-rules.ts";
export type { SeriesBounds } from "./keyspaces/series-page.ts";
export {
  parsePolicyFrequency,
  parseSeriesCollections,
} from "./keyspaces/series-policies.ts";
export type { SeriesEntry } from "./keyspaces/series-segment.ts";
export {
  isIncremental,
  type SeriesSummary,
  seriesTimeText,
  timeMax,
  timeMin,
} from "./keyspaces/time-series.ts";
export type { DiskWrite, DiskWriteKind } from "./log/disk-writes.ts";
export { makeFolders, nodeEnvironment } from "./platform/node-environment.ts";
export type {
  AnsweringIndex,
  CacheableQuery,
  IndexExplanation,
  QueryOptions,
} from "./querying/query-host.ts";
export type { QueryTaker, RunningQueryInfo } from "./querying/running-queries.ts";
export type {
  AppendOutcome,
  ReplicatedStream,
  StreamBounds,
  StreamListener,
} from "./replication/replicated-stream.ts";
export type { SeriesInclude } from "./rql/analyzed-query.ts";
export {
  type IncludedCounters,
  type IncludedRevisions,
  type ProjectionBehavior,
  projectionBehaviors,
  type QueryOutcome,
  type RowSink,
} from "./rql/results.ts";
export { runConsoleScript } from "./scripting/console-script.ts";
export { type ScriptSettings, setScriptLimits } from "./scripting/script-values.ts";
export { LogRestore, type RestoredLog, shippedHeadOf } from "./shipping/log-restore.ts";
export type { ShippedHead } from "./shipping/shipped-file.ts";
export { parseDumpOptions, wholeDump } from "./smuggler/dump-options.ts";
export { hasCompleteSections } from "./smuggler/dump-record.ts";
export { encodeSeriesBlob } from "./smuggler/series-blob.ts";
export { checkTransform } from "./smuggler/transform.ts";
export type {
  OperationFailure,
  OperationFigures,
  OperationInfo,
  OperationState,
  Operations,
  OperationWork,
  StartedOperation,
} from "./store/operations.ts";
export { isInterrupted } from "./store/operations.ts";
export type { LogFigures } from "./store/store.ts";
export type { StoredDocument } from "./writes/documents.ts";
export type { Environment };
