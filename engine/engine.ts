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
export async function openEngine(options: FolderOptions = {}): Promise<Engine> {
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
} from "./api/attachments.ts";
export type { PreparedBatch } from "./api/batches.ts";
export {
  type Change,
  Changes,
  type CounterChange,
  type DocumentChange,
  type IndexChange,
  type TimeSeriesChange,
} from "./api/changes.ts";
export type {
  CompareExchangeResult,
  CompareExchangeValue,
} from "./api/compare-exchange.ts";
export {
  type CounterSlot,
  Counters,
} from "./api/counters.ts";
export { Database, type Guest } from "./api/database.ts";
export { Databases, type ShippedDatabase } from "./api/databases.ts";
export {
  DocumentsView,
  FoundDocument,
  type ListedDocuments,
} from "./api/documents.ts";
export type {
  AutomaticIndexInfo,
  IndexDefinition,
  IndexDetails,
  IndexError,
  IndexInfo,
  IndexLockMode,
  IndexPriority,
} from "./api/index-info.ts";
export {
  type DeployedDefinition,
  type IndexTrial,
  indexLockModes,
  indexPriorities,
} from "./api/indexes.ts";
export type {
  PatchResult,
  PatchScript,
} from "./api/patches.ts";
export { PreparedQuery, Queries, type QueryInclude } from "./api/queries.ts";
export type { OldContent } from "./api/replaced-files.ts";
export {
  type ReplicaHeartbeat,
  Replication,
  type ReplicationMark,
  type ReplicationWatcher,
} from "./api/replication.ts";
export type {
  RevisionKind,
  RevisionScope,
} from "./api/revisions.ts";
export type { SetOperationOptions } from "./api/set-operations.ts";
export { SharedValues } from "./api/shared-values.ts";
export type { LogPoint, Shipment, ShippedFile } from "./api/shipping.ts";
export type {
  BackupMark,
  BackupRun,
  DumpOptions,
  SmugglerResult,
} from "./api/smuggler.ts";
export type {
  CollectionDetails,
  DatabaseCounts,
  DatabaseFigures,
} from "./api/statistics.ts";
export {
  archivedBehaviors,
  type IncludeKind,
  type OpeningStrategy,
  openingStrategies,
  type SubscriptionBatch,
  type SubscriptionChoice,
  type SubscriptionIncludes,
  type SubscriptionItem,
  type SubscriptionSettings,
  type SubscriptionTask,
  type SubscriptionWorker,
  subscriptionClosed,
} from "./api/subscriptions.ts";
export { SystemValues } from "./api/system-values.ts";
export type { SeriesPage, SeriesSlice } from "./api/time-series.ts";
export { EngineError, type ErrorCode } from "./base/errors.ts";
export { nodeTagDefault } from "./base/names.ts";
export { bytesToCheck, type CheckedDatabase, checkDatabase } from "./database/check-database.ts";
export type { ReplicationOptions } from "./database/database-replication.ts";
export type { FolderReplication } from "./database/open-folder.ts";
export { salvageDatabase } from "./database/salvage-database.ts";
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
export { LogRestore, shippedHeadOf } from "./shipping/log-restore.ts";
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
export type { Environment };
