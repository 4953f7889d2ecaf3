/**
 * The surface of the engine: what server/ may use of it, beside the common ground in base/ and json/. It knows nothing of
 * HTTP, and shows no transaction, keyspace, record or position.
 *
 *     const engine = await openEngine({ folder: "./data" });
 *     const database = await engine.databases.create("shop", {});
 *     const stored = await database.documents.put("users/1", Buffer.from('{"Name":"Ann"}'));
 *     // stored.changeVector is "A:1-…"
 *     await engine.close();
 */
import { Databases } from "./api/databases.ts";
import { SystemValues } from "./api/system-values.ts";
import type { Environment } from "./base/environment.ts";
import { type FolderOptions, openFolder } from "./database/open-folder.ts";
import type { Operations } from "./store/operations.ts";

export type EngineOptions = FolderOptions;

/** The databases of one data folder, and the durable values of the server itself. */
export interface Engine {
  readonly databases: Databases;
  readonly values: SystemValues;
  /** The server's own operations. Read this property for each use: when its database has stopped, it is replaced. */
  readonly operations: Operations;
  readonly environment: Environment;
  /**
   * Resolves when another process has taken the folder: nothing is written from then on, and reads may return old data.
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
export { Database, type Guest } from "./api/database.ts";
export { Databases } from "./api/databases.ts";
export {
  Documents,
  DocumentsView,
  FoundDocument,
  type ListedDocuments,
  type ListReceiver,
} from "./api/documents.ts";
export { Identities, type LastRange, type NumberRange } from "./api/identities.ts";
export { minifiedObject } from "./api/json.ts";
export type { LargeDocument, MemoryReserver } from "./api/large-documents.ts";
export { type IncludeKind, PreparedQuery, Queries, type QueryEntries } from "./api/queries.ts";
export {
  type RevisionBinPage,
  type RevisionChoice,
  type RevisionDeletion,
  type RevisionPage,
  type RevisionScope,
  Revisions,
} from "./api/revisions.ts";
export { SystemValues } from "./api/system-values.ts";
export { type SeriesPage, type SeriesSlice, TimeSeries } from "./api/time-series.ts";
export { EngineError, type ErrorCode } from "./base/errors.ts";
export type { DatabaseOptions } from "./database/open-database.ts";
export { type SalvagedDatabase, salvageDatabase } from "./database/salvage-database.ts";
export { nodeTag } from "./documents/change-vector.ts";
export type { DocumentPieces } from "./documents/document-pieces.ts";
export type { DocumentRow } from "./documents/document-row.ts";
export {
  changeVectorsAt,
  type IncludePath,
  includedIds,
  parseIncludePath,
} from "./documents/include-path.ts";
export type { SeriesBounds } from "./keyspaces/series-page.ts";
export {
  isIncremental,
  type SeriesSummary,
  seriesTimeText,
  timeMax,
  timeMin,
} from "./keyspaces/time-series.ts";
export type { IndexExplanation, QueryOptions } from "./querying/query-host.ts";
export type { SeriesInclude } from "./rql/analyzed-query.ts";
export {
  type IncludedCounters,
  type IncludedRevisions,
  type ProjectionBehavior,
  projectionBehaviors,
  type QueryOutcome,
  type RowSink,
} from "./rql/results.ts";
export type { OperationWork } from "./store/operations.ts";
export type { StoredDocument } from "./writes/documents.ts";
export type { Environment };
