/** Counts and sizes of a database and its collections, and its deletions. */
import { type Tombstone, tombstoneKey } from "../state/keyspaces/tombstones.ts";
import type { OpenDatabase } from "./database/open-database.ts";
import {
  attachmentBytes,
  type CollectionFigures,
  type CollectionCounts as CountsById,
  collectionCounts,
  collectionFigures,
  type DatabaseCounts,
  databaseCounts,
  deletedSeriesRanges,
} from "./database/statistics.ts";

export type { DatabaseCounts };

/** Maximum number of deletions that are listed in one call. */
const listedMax = 1024;

/** One collection that has documents, revisions, or tombstones of documents. */
type CollectionCounts = Omit<CountsById, "id">;

/** The counts, with figures that require a scan of its documents. */
export interface CollectionDetails extends CollectionCounts, CollectionFigures {
  /** Bytes of the records of its revisions. */
  readonly revisionBytes: number;
}

/** Figures that only the most detailed replies contain. */
export interface DatabaseFigures {
  readonly identities: number;
  readonly compareExchangeValues: number;
  /** Ranges of time series that were deleted since the database was opened. */
  readonly deletedSeriesRanges: number;
  /** Contents of attachments, each counted once. */
  readonly attachmentContents: number;
  readonly lastDocumentEtag: number;
  /** Newest etag of any item. */
  readonly lastEtag: number;
}

export class Statistics {
  readonly #database: OpenDatabase;

  constructor(database: OpenDatabase) {
    this.#database = database;
  }

  /** Cost: constant. */
  counts(): DatabaseCounts {
    return databaseCounts(this.#database);
  }

  /** Cost: constant. */
  figures(): DatabaseFigures {
    const { blobs, state } = this.#database;
    const { compareExchange, identities } = state.keyspaces;
    return {
      identities: identities.count,
      compareExchangeValues: compareExchange.count,
      deletedSeriesRanges: deletedSeriesRanges(this.#database),
      attachmentContents: blobs.count,
      lastDocumentEtag: state.documents.lastEtag,
      lastEtag: state.committedEtag,
    };
  }

  /** Returns the bytes of the contents of attachments, each counted once. Cost: O(attachments), in slices. */
  attachmentBytes(): Promise<number> {
    return attachmentBytes(this.#database);
  }

  /** Returns deletions from an etag on, oldest first, which were not purged. */
  tombstones(
    fromEtag: number,
    { start, pageSize }: { readonly start: number; readonly pageSize: number },
  ): Tombstone[] {
    const { records } = this.#database.state.keyspaces.tombstones;
    const found: Tombstone[] = [];
    let skipped = 0;
    for (const [, tombstone] of records.from(tombstoneKey(Math.max(0, fromEtag)))) {
      if (found.length >= Math.min(pageSize, listedMax)) break;
      if (skipped++ >= start) found.push(tombstone);
    }
    return found;
  }

  /** Returns the collections in order of creation, `@empty` first. Cost: O(collections + tombstones). */
  collections(): CollectionCounts[] {
    return collectionCounts(this.#database).map(plainCounts);
  }

  /** As `collections`, in slices. Cost: O(documents + revisions). */
  async collectionDetails(): Promise<CollectionDetails[]> {
    const database = this.#database;
    const revisionBytes = database.state.keyspaces.revisions.bytesByCollection();
    const rows: CollectionDetails[] = [];
    for (const counts of collectionCounts(database)) {
      const figures = await collectionFigures(database, counts.id);
      const bytes = revisionBytes.get(counts.id) ?? 0;
      rows.push({ ...plainCounts(counts), ...figures, revisionBytes: bytes });
    }
    return rows;
  }
}

function plainCounts({ name, documents, tombstones, revisions }: CountsById): CollectionCounts {
  return { name, documents, tombstones, revisions };
}
