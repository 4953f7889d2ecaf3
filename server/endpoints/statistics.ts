/** Statistics of a database and its collections. Shapes are those of RavenDB 7.2.7. */
import { nodeTag } from "../../engine/database-state.ts";
import {
  type CollectionCounts,
  type CollectionFigures,
  collectionCounts,
  collectionFigures,
  databaseCounts,
} from "../../engine/statistics.ts";
import { formatTimestamp } from "../../engine/timestamp.ts";
import { humaneSize } from "../dates.ts";
import type { Exchange } from "../exchange.ts";
import type { DatabaseContext, Route } from "../route.ts";
import type { Database } from "../services.ts";

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
    handle: getHealth,
  },
];

/** GET stats */
function getStatistics(exchange: Exchange, { database }: DatabaseContext): void {
  exchange.replyJson(200, {
    "@metadata": {
      DateTime: formatTimestamp(database.state.nowMicros()),
      WebUrl: exchange.baseUrl,
      NodeTag: nodeTag,
    },
    ...statisticsOf(database),
  });
}

/** GET stats/detailed */
function getDetailedStatistics(exchange: Exchange, { database }: DatabaseContext): void {
  const { identities, compareExchange } = database.state.keyspaces;
  exchange.replyJson(200, {
    CountOfIdentities: identities.count,
    CountOfCompareExchange: compareExchange.count,
    CountOfCompareExchangeTombstones: 0,
    CountOfTimeSeriesDeletedRanges: 0,
    CountOfRemoteAttachments: 0,
    ...statisticsOf(database),
  });
}

/** GET stats/essential */
function getEssentialStatistics(exchange: Exchange, { database }: DatabaseContext): void {
  exchange.replyJson(200, { CountOfIndexes: 0, ...databaseCounts(database), Indexes: [] });
}

/** GET collections/stats: `{…,"Collections":{"Users":3}}` */
function getCollections(exchange: Exchange, { database }: DatabaseContext): void {
  const rows = collectionCounts(database).map(({ name, documents }) => [name, documents]);
  replyCollections(exchange, database, Object.fromEntries(rows) as Record<string, number>);
}

/** GET collections/stats/detailed: with counts and sizes of each */
async function getDetailedCollections(
  exchange: Exchange,
  { database }: DatabaseContext,
): Promise<void> {
  const rows: [string, object][] = [];
  for (const counts of collectionCounts(database)) {
    rows.push([counts.name, detailsOf(counts, await collectionFigures(database, counts.id))]);
  }
  replyCollections(exchange, database, Object.fromEntries(rows));
}

/** GET healthcheck: 204 when the database serves */
function getHealth(exchange: Exchange, { database }: DatabaseContext): void {
  database.assertServing();
  exchange.reply(204);
}

function statisticsOf(database: Database): object {
  const { blobs, state } = database;
  return {
    CountOfIndexes: 0,
    ...databaseCounts(database),
    Indexes: [],
    CountOfUniqueAttachments: blobs.count,
    DatabaseChangeVector: database.changeVector,
    DatabaseId: state.databaseHash,
    NumberOfTransactionMergerQueueOperations: 0,
    Is64Bit: true,
    Pager: "append-only log",
    LastDocEtag: state.documents.lastEtag,
    LastDatabaseEtag: state.committedEtag,
    LastIndexingTime: null,
    SizeOnDisk: sizeOf(database.sizeBytes),
    TempBuffersSizeOnDisk: sizeOf(0),
  };
}

function replyCollections(
  exchange: Exchange,
  database: Database,
  collections: Record<string, unknown>,
): void {
  const counts = databaseCounts(database);
  exchange.replyJson(200, {
    CountOfDocuments: counts.CountOfDocuments,
    CountOfDocumentsConflicts: counts.CountOfDocumentsConflicts,
    CountOfConflicts: counts.CountOfConflicts,
    CountOfRevisionDocuments: counts.CountOfRevisionDocuments,
    CountOfTombstones: counts.CountOfTombstones,
    CountOfTimeSeriesDeletedRanges: 0,
    CountOfAttachments: counts.CountOfAttachments,
    CountOfCounterEntries: counts.CountOfCounterEntries,
    CountOfTimeSeriesSegments: counts.CountOfTimeSeriesSegments,
    Collections: collections,
  });
}

/** Sizes of what is not kept apart by collection are 0. */
function detailsOf(
  { name, documents, tombstones, revisions }: CollectionCounts,
  { bytes, counterOwners }: CollectionFigures,
): object {
  return {
    Name: name,
    CountOfDocuments: documents,
    Size: sizeOf(bytes),
    DocumentsSize: sizeOf(bytes),
    CountOfTombstones: tombstones,
    TombstonesSize: sizeOf(0),
    CountOfRevisions: revisions,
    RevisionsSize: sizeOf(0),
    CountOfTimeSeriesDeletedRanges: 0,
    TimeSeriesDeletedRangesSize: sizeOf(0),
    CountOfCounterEntries: counterOwners,
    CounterEntriesSize: sizeOf(0),
    CountOfTimeSeriesSegments: 0,
    TimeSeriesSegmentsSize: sizeOf(0),
  };
}

function sizeOf(bytes: number): { HumaneSize: string; SizeInBytes: number } {
  return { HumaneSize: humaneSize(bytes), SizeInBytes: bytes };
}
