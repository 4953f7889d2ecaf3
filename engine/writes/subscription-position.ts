/**
 * The position of a subscription. Externally it is the text of a change vector; here it is an etag of this database:
 * everything up to it was acknowledged or is not wanted.
 */
import { parseChangeVector } from "../state/documents/change-vector.ts";
import { allCollections } from "../state/keyspaces/document-table.ts";
import type { DatabaseState } from "../state/store/database-state.ts";

/** Returns the etag of a stored position; 0 if it has no etag of this database. */
export function etagOfPosition(state: DatabaseState, changeVector: string | null): number {
  if (changeVector === null) return 0;
  const own = parseChangeVector(changeVector).find(({ hash }) => hash === state.origin.hash);
  return own?.etag ?? 0;
}

/** Returns the etag of the newest document, or, `withRevisions`, of the newest revision when that is greater. */
export function newestEtag(state: DatabaseState, withRevisions: boolean): number {
  const { documents, keyspaces } = state;
  const last = new Uint32Array(1);
  const cursor = documents.byEtag(allCollections, Number.MAX_SAFE_INTEGER, true);
  const document = cursor.fill(last, 1) === 1 ? documents.etagOf(last[0] as number) : 0;
  return withRevisions ? Math.max(document, keyspaces.revisions.newestEtag) : document;
}
