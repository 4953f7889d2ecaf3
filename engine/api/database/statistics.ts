/**
 * Statistics of a database. The names equal those of RavenDB 7.2.7's replies, and so do the rules of counting
 * (measured): counters count once per document that has some, deletions of attachments are tombstones too.
 */

import { pauseIfDue } from "../../base/scheduling/time-slices.ts";
import { documentFlags } from "../../state/documents/document-record.ts";
import { emptyCollectionId } from "../../state/keyspaces/collections.ts";
import type { StateKindName } from "../../state/keyspaces/state-kinds.ts";
import { seriesKey } from "../../state/keyspaces/time-series/time-series.ts";
import type { OpenDatabase } from "./open-database.ts";

/** Counts that several replies share, in their order. */
export interface DatabaseCounts {
  readonly CountOfIndexes: number;
  readonly CountOfDocuments: number;
  readonly CountOfRevisionDocuments: number;
  readonly CountOfTombstones: number;
  readonly CountOfDocumentsConflicts: number;
  readonly CountOfConflicts: number;
  readonly CountOfAttachments: number;
  readonly CountOfCounterEntries: number;
  readonly CountOfTimeSeriesSegments: number;
}

/** Ranges of time series that were deleted since the database was opened. */
export function deletedSeriesRanges({ state }: OpenDatabase): number {
  return [...state.deletedSeriesRanges.values()].reduce((sum, count) => sum + count, 0);
}

/** Numbers of items of each kind of state. Cost: constant. */
function stateCounts({ state }: OpenDatabase): Readonly<Record<StateKindName, number>> {
  const { documents, keyspaces, shapes } = state;
  return {
    documents: documents.documentCount,
    shapes: shapes.count,
    collections: keyspaces.collections.count,
    revisions: keyspaces.revisions.count,
    tombstones: keyspaces.tombstones.count,
    counters: keyspaces.counters.count,
    attachments: keyspaces.attachments.count,
    timeSeries: keyspaces.timeSeries.count,
    timeSeriesSegments: keyspaces.timeSeriesSegments.count,
    identities: keyspaces.identities.count,
    compareExchange: keyspaces.compareExchange.count,
    indexDefinitions: keyspaces.indexDefinitions.count,
    indexHistories: keyspaces.indexHistories.count,
    subscriptions: keyspaces.subscriptions.count,
    values: keyspaces.values.count,
    replication: keyspaces.replication.count,
  };
}

/** Cost: constant. */
export function databaseCounts(database: OpenDatabase): DatabaseCounts {
  const counts = stateCounts(database);
  return {
    CountOfIndexes: database.queries.indexes.all().length,
    CountOfDocuments: counts.documents,
    CountOfRevisionDocuments: counts.revisions,
    CountOfTombstones: counts.tombstones,
    CountOfDocumentsConflicts: 0,
    CountOfConflicts: 0,
    CountOfAttachments: counts.attachments,
    CountOfCounterEntries: database.state.keyspaces.counterOwners.count,
    CountOfTimeSeriesSegments: counts.timeSeriesSegments,
  };
}

/** One collection that has documents, revisions, or tombstones of documents. */
export interface CollectionCounts {
  readonly id: number;
  readonly name: string;
  readonly documents: number;
  readonly tombstones: number;
  readonly revisions: number;
}

/** Returns the collections in order of creation, `@empty` first. Cost: O(collections + tombstones). */
export function collectionCounts({ state }: OpenDatabase): CollectionCounts[] {
  const { documents, keyspaces } = state;
  const { collections, tombstones } = keyspaces;
  const deleted = new Map<string, number>();
  for (const [, { type, collection }] of tombstones.records.withPrefix("")) {
    if (type === "document") deleted.set(collection, (deleted.get(collection) ?? 0) + 1);
  }
  const rows: CollectionCounts[] = [];
  for (let id = emptyCollectionId; id < collections.count; id++) {
    const name = collections.nameOf(id);
    const count = documents.countOfCollection(id);
    const gone = deleted.get(name) ?? 0;
    const kept = keyspaces.revisions.countOfCollection(id);
    if (count > 0 || gone > 0 || kept > 0) {
      rows.push({ id, name, documents: count, tombstones: gone, revisions: kept });
    }
  }
  return rows;
}

/** Figures that need a scan of a collection's documents. */
export interface CollectionFigures {
  /** Bytes of its documents' records. */
  readonly bytes: number;
  /** Documents that have counters. */
  readonly counterOwners: number;
  readonly seriesSegments: number;
  readonly seriesSegmentBytes: number;
  /** Ranges of its series that were deleted since the database was opened. */
  readonly deletedSeriesRanges: number;
}

/** Yields to the event loop. Cost: O(documents of the collection). */
export async function collectionFigures(
  database: OpenDatabase,
  collectionId: number,
): Promise<CollectionFigures> {
  const { timeSeriesSegments } = database.state.keyspaces;
  const view = database.view();
  try {
    const cursor = view.documents.byEtag(collectionId, 0);
    const batch = new Uint32Array(256);
    let bytes = 0;
    let counterOwners = 0;
    let seriesSegments = 0;
    let seriesSegmentBytes = 0;
    for (let count = batch.length; count === batch.length; ) {
      count = cursor.fill(batch, batch.length);
      for (const document of batch.subarray(0, count)) {
        bytes += view.documents.lengthOf(document);
        if ((view.documents.flagsOf(document) & documentFlags.HasCounters) !== 0) counterOwners++;
        if ((view.documents.flagsOf(document) & documentFlags.HasTimeSeries) === 0) continue;
        const prefix = seriesKey(view.documents.lowerIdOf(document), "");
        for (const [, { length }] of timeSeriesSegments.range(prefix, prefix)) {
          seriesSegments++;
          seriesSegmentBytes += length;
        }
      }
      await pauseIfDue();
    }
    const ranges = database.state.deletedSeriesRanges.get(collectionId) ?? 0;
    return {
      bytes,
      counterOwners,
      seriesSegments,
      seriesSegmentBytes,
      deletedSeriesRanges: ranges,
    };
  } finally {
    view.release();
  }
}

/** Returns the bytes of the contents of attachments, each counted once. Yields. Cost: O(attachments). */
export async function attachmentBytes({ state }: OpenDatabase): Promise<number> {
  const known = new Set<string>();
  let bytes = 0;
  for (const [, { value }] of state.keyspaces.attachments.view().entries()) {
    if (!known.has(value.hash)) bytes += value.size;
    known.add(value.hash);
    await pauseIfDue();
  }
  return bytes;
}
