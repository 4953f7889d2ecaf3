/**
 * Revisions of documents: read by document or change vector, the bin of deleted documents, and operations on many
 * documents.
 */

import { lowerCased } from "../base/case-folding.ts";
import { sliceMs } from "../base/limits.ts";
import { nextSlice } from "../base/scheduling/time-slices.ts";
import { BestEntries } from "../indexing/columns/best-entries.ts";
import {
  adoptOrphanedRevisions,
  deleteRevisions,
  enforceRevisionRules,
  type RevisionDeletion,
  type RevisionScope,
  revertToMoment,
  revertToVectors,
} from "../services/background/revision-tasks.ts";
import { documentFlags } from "../state/documents/document-record.ts";
import { DocumentRow } from "../state/documents/document-row.ts";
import { flagsText } from "../state/documents/document-text.ts";
import type { DocumentView } from "../state/keyspaces/document-view.ts";
import { changeVectorHash } from "../state/keyspaces/revision-table.ts";
import type { OperationFigures } from "../state/store/operations.ts";
import type { OpenDatabase } from "./database/open-database.ts";

export type { RevisionScope };

/** Maximum number of revisions that are listed in one call: their records are read. */
const listedMax = 1024;
/** Number of revision rows examined in one tick of the event loop. */
const rowsPerTick = 16_384;

/** A page of the requested revisions. */
interface RevisionPage {
  /** Valid for good. */
  readonly rows: readonly DocumentRow[];
  /** The number of all requested revisions. */
  readonly total: number;
}

/** Which revisions of a document are read, newest first. */
interface RevisionChoice {
  /** Only the newest one up to then, in microseconds since 1970. */
  readonly before?: number | undefined;
  readonly start?: number;
  readonly pageSize?: number;
}

/** Revisions of documents, of deletions, or both. */
export type RevisionKind = "all" | "regular" | "deleted";

/** A revision without its body. */
interface ListedRevision {
  readonly id: string;
  readonly etag: number;
  readonly changeVector: string;
  /** Microseconds since 1970. */
  readonly modifiedAt: number;
  /** As `@flags` has them. */
  readonly flags: string;
  readonly collection: string;
}

/** The bin: documents that were deleted and have revisions. */
interface RevisionBinPage {
  /** The deletion of the one deleted last, valid for good; null: the bin is empty. */
  readonly newest: DocumentRow | null;
  /** Deletions, the last one first. */
  readonly rows: readonly DocumentRow[];
  /** Number of revisions in the database. */
  readonly revisionCount: number;
}

/** Reports figures of work in progress. */
type Progress = (figures: OperationFigures) => void;

export class Revisions {
  readonly #database: OpenDatabase;

  constructor(database: OpenDatabase) {
    this.#database = database;
  }

  /** Returns the number of revisions of a document, deleted or not. */
  count(documentId: string): number {
    const { documents, keyspaces } = this.#database.state;
    const document = documents.lookup(documentId);
    return document < 0 ? 0 : keyspaces.revisions.countOf(document);
  }

  /** @throws EngineError record-damaged, read-failed */
  async read(documentId: string, choice: RevisionChoice = {}): Promise<RevisionPage> {
    const { before, start = 0, pageSize = Number.POSITIVE_INFINITY } = choice;
    const rows = this.#rowsOf(documentId, before);
    return { rows: await this.#readRows(rows.slice(start, start + pageSize)), total: rows.length };
  }

  /** Null if no revision has this change vector. @throws EngineError record-damaged, read-failed */
  async byChangeVector(changeVector: string): Promise<DocumentRow | null> {
    const bytes = Buffer.from(changeVector, "latin1");
    const { revisions } = this.#database.state.keyspaces;
    const rows = revisions.withVectorHash(changeVectorHash(bytes, 0, bytes.length));
    const candidates = await this.#readRows(rows);
    return candidates.find((revision) => revision.changeVector === changeVector) ?? null;
  }

  /** Returns a page of the bin; `etagMax`: without deletions that have a higher etag. */
  async bin(start: number, pageSize: number, etagMax?: number): Promise<RevisionBinPage> {
    const { revisions } = this.#database.state.keyspaces;
    let found = revisions.deletedDocuments(documentFlags.DeleteRevision);
    if (etagMax !== undefined) found = found.filter((row) => revisions.etagOf(row) <= etagMax);
    const revisionCount = revisions.count;
    const [first] = found;
    if (first === undefined) return { newest: null, rows: [], revisionCount };
    const read = await this.#readRows([first, ...found.slice(start, start + pageSize)]);
    const [newest = null, ...rows] = read;
    return { newest, rows, revisionCount };
  }

  /**
   * Returns the revisions of all documents, or of a collection, newest first, or oldest first from `fromEtag` on; at most
   * `listedMax` of them. Cost: O(revisions), some at a time.
   */
  async list(wanted: {
    readonly collection: string | undefined;
    readonly kind: RevisionKind;
    readonly start: number;
    readonly pageSize: number;
    readonly fromEtag?: number;
  }): Promise<{ readonly rows: readonly ListedRevision[]; readonly total: number }> {
    const { revisions, collections } = this.#database.state.keyspaces;
    const { kind, collection, start, fromEtag } = wanted;
    const end = Math.min(start + Math.min(wanted.pageSize, listedMax), revisions.rowsEnd);
    const id = collection === undefined ? -1 : collections.find(collection);
    const newest = new BestEntries(Math.max(1, end));
    let total = 0;
    for (let row = 0; row < revisions.rowsEnd; row++) {
      if (row % rowsPerTick === rowsPerTick - 1) await nextSlice();
      if (!revisions.isSeen(row)) continue;
      if (collection !== undefined && revisions.collectionOf(row) !== id) continue;
      const isDeletion = (revisions.flagsOf(row) & documentFlags.DeleteRevision) !== 0;
      if (kind !== "all" && isDeletion !== (kind === "deleted")) continue;
      const etag = revisions.etagOf(row);
      if (fromEtag !== undefined && etag < fromEtag) continue;
      total++;
      newest.offer(row, fromEtag === undefined ? etag : -etag);
    }
    // A revision that was removed in the meantime is left out.
    const page = [...newest.take().subarray(start, end)].filter((row) => revisions.isSeen(row));
    const facts = page.map((row) => ({
      modifiedAt: revisions.lastModifiedOf(row),
      flags: flagsText(revisions.flagsOf(row)),
      collection: collections.nameOf(revisions.collectionOf(row)),
    }));
    const read = await this.#readRows(page);
    const rows = read.map(({ id: documentId, etag, changeVector }, n) => ({
      id: documentId,
      etag,
      changeVector,
      ...(facts[n] as (typeof facts)[number]),
    }));
    return { rows, total };
  }

  /**
   * Ids that have revisions and begin with `prefix`, in any case, in the order of ids, of deleted documents too; at most
   * `listedMax`. Cost: O(documents), a few steps for each that is not under the prefix, some at a time.
   */
  async idsWithPrefix(prefix: string, pageSize: number): Promise<string[]> {
    const { documents, keyspaces } = this.#database.state;
    const { revisions } = keyspaces;
    const most = Math.min(pageSize, listedMax);
    if (most <= 0) return [];
    while (!documents.settleOrder(sliceMs)) await nextSlice();
    const view = documents.view();
    try {
      const found = [
        ...(await this.#presentWithPrefix(view, prefix, most)),
        ...(await this.#deletedWithPrefix(view, prefix, most)),
      ];
      found.sort((left, right) => view.compareIds(left, right));
      const rows = found.slice(0, most).map((document) => revisions.newestOf(document));
      const newest = await this.#readRows(rows.filter((row) => row >= 0));
      return newest.map(({ id }) => id);
    } finally {
      view.release();
    }
  }

  async #presentWithPrefix(view: DocumentView, prefix: string, most: number): Promise<number[]> {
    const { revisions } = this.#database.state.keyspaces;
    const found: number[] = [];
    const cursor = view.byId(prefix);
    const batch = new Uint32Array(rowsPerTick);
    for (let count = batch.length; count === batch.length && found.length < most; ) {
      count = cursor.fill(batch, batch.length);
      found.push(...batch.subarray(0, count).filter((document) => revisions.countOf(document) > 0));
      if (count === batch.length) await nextSlice();
    }
    return found;
  }

  /** Deleted documents are in no order: the first `most` of them are chosen. */
  async #deletedWithPrefix(view: DocumentView, prefix: string, most: number): Promise<number[]> {
    const { revisions } = this.#database.state.keyspaces;
    const lowerPrefix = lowerCased(prefix);
    let found: number[] = [];
    for (let document = 0; document < revisions.documentsEnd; document++) {
      if (document % rowsPerTick === rowsPerTick - 1) await nextSlice();
      if (revisions.countOf(document) === 0 || view.etagOf(document) !== 0) continue;
      if (!view.lowerIdOf(document).startsWith(lowerPrefix)) continue;
      found.push(document);
      if (found.length < 2 * most) continue;
      found = found.sort((left, right) => view.compareIds(left, right)).slice(0, most);
    }
    return found;
  }

  /** Removes the revisions that the rules do not keep. @returns the figures of RavenDB's result */
  enforceRules(
    scope: RevisionScope & { readonly includesForced: boolean },
    progress: Progress,
    signal: AbortSignal,
  ): Promise<OperationFigures> {
    return enforceRevisionRules(this.#database, scope, progress, signal);
  }

  /** Adds a deletion to the revisions of documents that no longer exist. @returns the figures of RavenDB's result */
  adoptOrphaned(
    scope: RevisionScope,
    progress: Progress,
    signal: AbortSignal,
  ): Promise<OperationFigures> {
    return adoptOrphanedRevisions(this.#database, scope, progress, signal);
  }

  /**
   * Reverts documents to their states at `moment`, in microseconds since 1970. @returns the figures of RavenDB's result
   */
  revertTo(
    moment: number,
    scope: RevisionScope,
    progress: Progress,
    signal: AbortSignal,
  ): Promise<OperationFigures> {
    return revertToMoment(this.#database, scope, moment, progress, signal);
  }

  /** Reverts documents to the revisions with these change vectors, in one transaction. */
  revertDocuments(
    vectors: readonly (readonly [id: string, changeVector: string])[],
  ): Promise<void> {
    return revertToVectors(this.#database, vectors);
  }

  /** @returns the number of revisions that were removed */
  delete(chosen: RevisionDeletion): Promise<number> {
    return deleteRevisions(this.#database, chosen);
  }

  /** Rows of a document's revisions, newest first; with `before` only the newest one up to then. */
  #rowsOf(documentId: string, before: number | undefined): number[] {
    const { documents, keyspaces } = this.#database.state;
    const { revisions } = keyspaces;
    const rows: number[] = [];
    const document = documents.lookup(documentId);
    if (document < 0) return rows;
    for (let row = revisions.newestOf(document); row >= 0; row = revisions.olderThan(row)) {
      if (before !== undefined && revisions.lastModifiedOf(row) > before) continue;
      rows.push(row);
      if (before !== undefined) break;
    }
    return rows;
  }

  /**
   * Reads the revisions in these rows. Must be called in the tick of the event loop in which the rows were found: rows
   * are recycled.
   */
  async #readRows(rows: readonly number[]): Promise<DocumentRow[]> {
    const database = this.#database;
    const { revisions } = database.state.keyspaces;
    const places = rows.map((row) => ({
      document: revisions.documentOf(row),
      position: revisions.positionOfRow(row),
      length: revisions.lengthOf(row),
    }));
    // The log keeps all current records until the view is released.
    const view = database.view();
    try {
      const found: DocumentRow[] = [];
      for (const { document, position, length } of places) {
        const record = Buffer.from(await database.recordAt(document, position, length));
        found.push(new DocumentRow(database.state, record));
      }
      return found;
    } finally {
      view.release();
    }
  }
}
