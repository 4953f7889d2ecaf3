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

import { SharedValues } from "./api/cluster/shared-values.ts";
import { SystemValues } from "./api/cluster/system-values.ts";
import { type FolderOptions, openFolder } from "./api/database/open-folder.ts";
import { Databases } from "./api/databases.ts";
import type { Environment } from "./base/environment.ts";
import type { Operations } from "./state/store/operations.ts";

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
export type { OldContent } from "./api/cluster/replaced-files.ts";
export {
  type ReplicaHeartbeat,
  Replication,
  type ReplicationMark,
  type ReplicationWatcher,
} from "./api/cluster/replication.ts";
export { SharedValues } from "./api/cluster/shared-values.ts";
export { SystemValues } from "./api/cluster/system-values.ts";
export type {
  CompareExchangeResult,
  CompareExchangeValue,
} from "./api/compare-exchange.ts";
export {
  type CounterSlot,
  Counters,
} from "./api/counters.ts";
export {
  bytesToCheck,
  type CheckedDatabase,
  checkDatabase,
} from "./api/database/check-database.ts";
export type { ReplicationOptions } from "./api/database/database-replication.ts";
export type { FolderReplication } from "./api/database/open-folder.ts";
export { salvageDatabase } from "./api/database/salvage-database.ts";
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
export type {
  RevisionKind,
  RevisionScope,
} from "./api/revisions.ts";
export type { SetOperationOptions } from "./api/set-operations.ts";
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
export type { SeriesPage, SeriesSlice } from "./api/time-series.ts";
export { EngineError, type ErrorCode } from "./base/errors.ts";
export { nodeTagDefault } from "./base/names.ts";
export { makeFolders, nodeEnvironment } from "./base/platform/node-environment.ts";
export { indexSettings } from "./indexing/definitions/index-settings.ts";
export { checkStaticIndexName } from "./indexing/definitions/static-definition.ts";
export type { IndexBatch } from "./indexing/index-batches.ts";
export type { SeriesInclude } from "./queries/analysis/analyzed-query.ts";
export {
  type IncludedCounters,
  type IncludedRevisions,
  type ProjectionBehavior,
  projectionBehaviors,
  type QueryOutcome,
  type RowSink,
} from "./queries/execution/results.ts";
export { rqlKeywords } from "./queries/syntax/words.ts";
export { runConsoleScript } from "./scripting/console-script.ts";
export { type ScriptSettings, setScriptLimits } from "./scripting/language/script-values.ts";
export type {
  AnsweringIndex,
  CacheableQuery,
  QueryOptions,
} from "./services/querying/query-host.ts";
export type { QueryTaker, RunningQueryInfo } from "./services/querying/running-queries.ts";
export { parseDumpOptions, wholeDump } from "./services/smuggler/dump-options.ts";
export { hasCompleteSections } from "./services/smuggler/dump-record.ts";
export { encodeSeriesBlob } from "./services/smuggler/series-blob.ts";
export { checkTransform } from "./services/smuggler/transform.ts";
export { ChangeOrigin } from "./state/documents/change-origin.ts";
export {
  checkedJson,
  checkedJsonInSlices,
  checkJson,
  readMinified,
} from "./state/documents/checked-json.ts";
export type { DocumentChunks, TextChunks } from "./state/documents/document-chunks.ts";
export type { DocumentRow } from "./state/documents/document-row.ts";
export {
  changeVectorsAt,
  type IncludePath,
  includedIds,
  parseIncludePath,
} from "./state/documents/include-path.ts";
export { timeSpanMicros } from "./state/keyspaces/revision-rules.ts";
export type { SeriesBounds } from "./state/keyspaces/time-series/series-page.ts";
export {
  parsePolicyFrequency,
  parseSeriesCollections,
} from "./state/keyspaces/time-series/series-policies.ts";
export type { SeriesEntry } from "./state/keyspaces/time-series/series-segment.ts";
export {
  isIncremental,
  type SeriesSummary,
  seriesTimeText,
  timeMax,
  timeMin,
} from "./state/keyspaces/time-series/time-series.ts";
export type {
  OperationFailure,
  OperationFigures,
  OperationInfo,
  OperationState,
  Operations,
  OperationWork,
  StartedOperation,
} from "./state/store/operations.ts";
export { isInterrupted } from "./state/store/operations.ts";
export type { LogFigures } from "./state/store/store.ts";
export type { DiskWrite, DiskWriteKind } from "./storage/log/disk-writes.ts";
export type {
  AppendOutcome,
  ReplicatedStream,
  StreamBounds,
  StreamListener,
} from "./storage/replication/replicated-stream.ts";
export { LogRestore, shippedHeadOf } from "./storage/shipping/log-restore.ts";
export type { ShippedHead } from "./storage/shipping/shipped-file.ts";
export type { Environment };
