/** Reads revisions for replies: their records, by document or by change vector, as long as the log retains them. */

import { changeVectorOf, idOf } from "../../engine/documents/document-record.ts";
import type { Database } from "../../engine/engine.ts";
import { changeVectorHash } from "../../engine/keyspaces/revision-table.ts";

/** A revision in a reply. */
export interface RevisionRecord {
  readonly id: string;
  /** Of the stored state. */
  readonly changeVector: string;
  readonly row: number;
  /** A copy of its own. */
  readonly record: Buffer;
}

/** Rows of a document's revisions, newest first; with `before` only the newest one up to then (µs since 1970). */
export function rowsOf(database: Database, id: string, before?: number): number[] {
  const { documents, keyspaces } = database.state;
  const { revisions } = keyspaces;
  const rows: number[] = [];
  const document = documents.lookup(id);
  if (document < 0) return rows;
  for (let row = revisions.newestOf(document); row >= 0; row = revisions.olderThan(row)) {
    if (before !== undefined && revisions.lastModifiedOf(row) > before) continue;
    rows.push(row);
    if (before !== undefined) break;
  }
  return rows;
}

/**
 * Reads the revisions in these rows. Call it in the turn of the event loop in which the rows were found: rows are
 * recycled.
 */
export async function readRevisions(
  database: Database,
  rows: readonly number[],
): Promise<RevisionRecord[]> {
  const { revisions } = database.state.keyspaces;
  const places = rows.map((row) => ({
    row,
    document: revisions.documentOf(row),
    position: revisions.positionOfRow(row),
    length: revisions.lengthOf(row),
  }));
  // The log keeps all current records until the view is released.
  const view = database.view();
  try {
    const found: RevisionRecord[] = [];
    for (const { row, document, position, length } of places) {
      const record = Buffer.from(await database.recordAt(document, position, length));
      const changeVector = changeVectorOf(record, 0, database.state.databaseHash);
      found.push({ id: idOf(record, 0), changeVector, row, record });
    }
    return found;
  } finally {
    view.release();
  }
}

/** The revision with this change vector; null: none. */
export async function revisionByVector(
  database: Database,
  changeVector: string,
): Promise<RevisionRecord | null> {
  const bytes = Buffer.from(changeVector, "latin1");
  const rows = database.state.keyspaces.revisions.withVectorHash(
    changeVectorHash(bytes, 0, bytes.length),
  );
  const candidates = await readRevisions(database, rows);
  return candidates.find((revision) => revision.changeVector === changeVector) ?? null;
}
