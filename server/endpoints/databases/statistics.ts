/** Statistics of a database and its collections. Shapes are those of RavenDB 7.2.7. */
import { formatTimestamp } from "../../../engine/base/timestamp.ts";
import type {
  CollectionDetails,
  Database,
  DatabaseFigures,
  IndexDetails,
} from "../../../engine/engine.ts";
import { humaneSize } from "../../http/dates.ts";
import type { Exchange } from "../../http/exchange.ts";
import type { DatabaseContext, Route } from "../../routing/route.ts";

const prefix = "/databases/:database";

export const statisticsRoutes: readonly Route[] = [
  {
    kind: "database",
    method: "GET",
    path: `${prefix}/stats`,
    access: "read",
    inPackage: true,
    handle: getStatistics,
  },
  {
    kind: "database",
    method: "GET",
    path: `${prefix}/stats/detailed`,
    access: "read",
    inPackage: true,
    handle: getDetailedStatistics,
  },
  {
    kind: "database",
    method: "GET",
    path: `${prefix}/stats/essential`,
    access: "read",
    handle: getEssentialStatistics,
  },
  {
    kind: "database",
    method: "GET",
    path: `${prefix}/collections/stats`,
    access: "read",
    inPackage: true,
    handle: getCollections,
  },
  {
    kind: "database",
    method: "GET",
    path: `${prefix}/collections/stats/detailed`,
    access: "read",
    handle: getDetailedCollections,
  },
  {
    kind: "database",
    method: "GET",
    path: `${prefix}/healthcheck`,
    access: "read",
    copies: "here",
    handle: getHealth,
  },
];

/** GET stats: numbers of documents, indexes and other items, and the size on disk */
function getStatistics(exchange: Exchange, { database }: DatabaseContext): void {
  exchange.replyJson(200, {
    "@metadata": {
      DateTime: formatTimestamp(database.nowMicros()),
      WebUrl: exchange.baseUrl,
      NodeTag: database.nodeTag,
    },
    ...statisticsOf(database, database.statistics.figures()),
  });
}

/** GET stats/detailed: as `stats`, with numbers of identities and compare-exchange values */
function getDetailedStatistics(exchange: Exchange, { database }: DatabaseContext): void {
  const figures = database.statistics.figures();
  exchange.replyJson(200, {
    CountOfIdentities: figures.identities,
    CountOfCompareExchange: figures.compareExchangeValues,
    CountOfCompareExchangeTombstones: 0,
    CountOfTimeSeriesDeletedRanges: figures.deletedSeriesRanges,
    CountOfRemoteAttachments: 0,
    ...statisticsOf(database, figures),
  });
}

/** GET stats/essential: numbers of documents and other items, and the names of the indexes */
function getEssentialStatistics(exchange: Exchange, { database }: DatabaseContext): void {
  const indexes = database.indexes
    .listDetails()
    .map(({ name, lockMode, priority, type, source }) => ({
      Name: name,
      LockMode: lockMode,
      Priority: priority,
      Type: type,
      SourceType: source,
    }));
  exchange.replyJson(200, { ...database.statistics.counts(), Indexes: indexes });
}

/** GET collections/stats: `{…,"Collections":{"Users":3}}` */
function getCollections(exchange: Exchange, { database }: DatabaseContext): void {
  const rows = database.statistics.collections().map(({ name, documents }) => [name, documents]);
  replyCollections(exchange, database, Object.fromEntries(rows) as Record<string, number>);
}

/** GET collections/stats/detailed: with counts and sizes per collection */
async function getDetailedCollections(
  exchange: Exchange,
  { database }: DatabaseContext,
): Promise<void> {
  const details = await database.statistics.collectionDetails();
  const rows = details.map((one) => [one.name, detailsOf(one)]);
  replyCollections(exchange, database, Object.fromEntries(rows) as Record<string, object>);
}

/** GET healthcheck: 204 while the database is operational */
function getHealth(exchange: Exchange, { database }: DatabaseContext): void {
  database.assertServing();
  exchange.reply(204);
}

function statisticsOf(database: Database, figures: DatabaseFigures): object {
  const indexes = database.indexes.listDetails();
  const lastIndexedAt = Math.max(0, ...indexes.map(({ indexedAtMicros }) => indexedAtMicros));
  return {
    ...database.statistics.counts(),
    Indexes: indexes.map(indexRow),
    CountOfUniqueAttachments: figures.attachmentContents,
    DatabaseChangeVector: database.changeVector,
    DatabaseId: database.databaseId,
    NumberOfTransactionMergerQueueOperations: 0,
    Is64Bit: true,
    // RavenDB 7.2.7 reports its own pager; clients only print it.
    Pager: "Voron.Platform.Posix.PosixTempMemoryMapPager",
    LastDocEtag: figures.lastDocumentEtag,
    LastDatabaseEtag: figures.lastEtag,
    LastIndexingTime: timeOrNull(lastIndexedAt),
    SizeOnDisk: sizeOf(database.sizeBytes),
    TempBuffersSizeOnDisk: sizeOf(0),
  };
}

function replyCollections(
  exchange: Exchange,
  database: Database,
  collections: Record<string, unknown>,
): void {
  const counts = database.statistics.counts();
  exchange.replyJson(200, {
    CountOfDocuments: counts.CountOfDocuments,
    CountOfDocumentsConflicts: counts.CountOfDocumentsConflicts,
    CountOfConflicts: counts.CountOfConflicts,
    CountOfRevisionDocuments: counts.CountOfRevisionDocuments,
    CountOfTombstones: counts.CountOfTombstones,
    CountOfTimeSeriesDeletedRanges: database.statistics.figures().deletedSeriesRanges,
    CountOfAttachments: counts.CountOfAttachments,
    CountOfCounterEntries: counts.CountOfCounterEntries,
    CountOfTimeSeriesSegments: counts.CountOfTimeSeriesSegments,
    Collections: collections,
  });
}

/** Sizes that are not tracked by collection are 0. */
function detailsOf(details: CollectionDetails): object {
  const { name, documents, tombstones, revisions, bytes, revisionBytes } = details;
  return {
    Name: name,
    CountOfDocuments: documents,
    Size: sizeOf(bytes + revisionBytes),
    DocumentsSize: sizeOf(bytes),
    CountOfTombstones: tombstones,
    TombstonesSize: sizeOf(0),
    CountOfRevisions: revisions,
    RevisionsSize: sizeOf(revisionBytes),
    CountOfTimeSeriesDeletedRanges: details.deletedSeriesRanges,
    TimeSeriesDeletedRangesSize: sizeOf(0),
    CountOfCounterEntries: details.counterOwners,
    CounterEntriesSize: sizeOf(0),
    CountOfTimeSeriesSegments: details.seriesSegments,
    TimeSeriesSegmentsSize: sizeOf(details.seriesSegmentBytes),
  };
}

function indexRow(index: IndexDetails): object {
  return {
    Name: index.name,
    IsStale: index.isStale,
    State: index.state,
    LockMode: index.lockMode,
    Priority: index.priority,
    Type: index.type,
    SourceType: index.source,
    LastIndexingTime: timeOrNull(index.indexedAtMicros),
  };
}

/** A timestamp as text; 0 means never. */
function timeOrNull(micros: number): string | null {
  return micros === 0 ? null : formatTimestamp(micros);
}

function sizeOf(bytes: number): { HumaneSize: string; SizeInBytes: number } {
  return { HumaneSize: humaneSize(bytes), SizeInBytes: bytes };
}
