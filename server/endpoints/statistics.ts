/** Statistics of a database and its collections. Shapes are those of RavenDB 7.2.7. */

import { formatTimestamp } from "../../engine/base/timestamp.ts";
import {
  type CollectionCounts,
  type CollectionFigures,
  collectionCounts,
  collectionFigures,
  databaseCounts,
} from "../../engine/database/statistics.ts";
import type { Database } from "../../engine/engine.ts";
import { nodeTag } from "../../engine/engine.ts";
import type { IndexStatistics } from "../../engine/indexing/open-index.ts";
import { humaneSize } from "../http/dates.ts";
import type { Exchange } from "../http/exchange.ts";
import type { DatabaseContext, Route } from "../routing/route.ts";

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
  const indexes = database.queries.indexes.all().map((index) => {
    const { name, lockMode, priority, type, source } = index.statistics();
    return {
      Name: name,
      LockMode: lockMode,
      Priority: priority,
      Type: type,
      SourceType: source,
    };
  });
  exchange.replyJson(200, { ...databaseCounts(database), Indexes: indexes });
}

/** GET collections/stats: `{…,"Collections":{"Users":3}}` */
function getCollections(exchange: Exchange, { database }: DatabaseContext): void {
  const rows = collectionCounts(database).map(({ name, documents }) => [name, documents]);
  replyCollections(exchange, database, Object.fromEntries(rows) as Record<string, number>);
}

/** GET collections/stats/detailed: with counts and sizes per collection */
async function getDetailedCollections(
  exchange: Exchange,
  { database }: DatabaseContext,
): Promise<void> {
  const rows: [string, object][] = [];
  const revisionBytes = database.state.keyspaces.revisions.bytesByCollection();
  for (const counts of collectionCounts(database)) {
    rows.push([
      counts.name,
      detailsOf(
        counts,
        await collectionFigures(database, counts.id),
        revisionBytes.get(counts.id) ?? 0,
      ),
    ]);
  }
  replyCollections(exchange, database, Object.fromEntries(rows));
}

/** GET healthcheck: 204 while the database is operational */
function getHealth(exchange: Exchange, { database }: DatabaseContext): void {
  database.assertServing();
  exchange.reply(204);
}

function statisticsOf(database: Database): object {
  const { blobs, queries, state } = database;
  const indexes = queries.indexes.all().map((index) => index.statistics());
  const lastIndexedAt = Math.max(0, ...indexes.map(({ indexedAtMicros }) => indexedAtMicros));
  return {
    ...databaseCounts(database),
    Indexes: indexes.map(indexRow),
    CountOfUniqueAttachments: blobs.count,
    DatabaseChangeVector: database.changeVector,
    DatabaseId: state.databaseHash,
    NumberOfTransactionMergerQueueOperations: 0,
    Is64Bit: true,
    // RavenDB 7.2.7 reports its own pager; clients only print it.
    Pager: "Voron.Platform.Posix.PosixTempMemoryMapPager",
    LastDocEtag: state.documents.lastEtag,
    LastDatabaseEtag: state.committedEtag,
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

/** Sizes that are not tracked by collection are 0. */
function detailsOf(
  { name, documents, tombstones, revisions }: CollectionCounts,
  { bytes, counterOwners, seriesSegments, seriesSegmentBytes }: CollectionFigures,
  revisionBytes: number,
): object {
  return {
    Name: name,
    CountOfDocuments: documents,
    Size: sizeOf(bytes + revisionBytes),
    DocumentsSize: sizeOf(bytes),
    CountOfTombstones: tombstones,
    TombstonesSize: sizeOf(0),
    CountOfRevisions: revisions,
    RevisionsSize: sizeOf(revisionBytes),
    CountOfTimeSeriesDeletedRanges: 0,
    TimeSeriesDeletedRangesSize: sizeOf(0),
    CountOfCounterEntries: counterOwners,
    CounterEntriesSize: sizeOf(0),
    CountOfTimeSeriesSegments: seriesSegments,
    TimeSeriesSegmentsSize: sizeOf(seriesSegmentBytes),
  };
}

function indexRow(index: IndexStatistics): object {
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
