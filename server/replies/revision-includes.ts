/** Revisions included with documents: reads them, and formats `RevisionIncludes` of a reply. */

import { formatTimestamp } from "../../engine/base/timestamp.ts";
import type { ReplyText } from "../../engine/documents/reply-text.ts";
import type { Database } from "../../engine/engine.ts";
import type { IncludedRevisions } from "../../engine/rql/results.ts";
import {
  type RevisionRecord,
  readRevisions,
  revisionByVector,
  rowsOf,
} from "./revision-reading.ts";

/** A revision in a reply; `before`: it was requested by time (microseconds since 1970). */
interface IncludedRevision {
  readonly revision: RevisionRecord;
  readonly before: number | undefined;
}

/** Reads the requested revisions that exist. */
export async function includedRevisions(
  database: Database,
  { changeVectors, before }: IncludedRevisions,
): Promise<readonly IncludedRevision[]> {
  const found: IncludedRevision[] = [];
  for (const { documentId, micros } of before) {
    const [revision] = await readRevisions(database, rowsOf(database, documentId, micros));
    if (revision !== undefined) found.push({ revision, before: micros });
  }
  for (const vector of changeVectors) {
    const revision = await revisionByVector(database, vector);
    if (revision !== null) found.push({ revision, before: undefined });
  }
  return found;
}

/** Appends `,"RevisionIncludes":[…]`, in the order of RavenDB 7.2.7; nothing when there are none. */
export function addIncludedRevisions(
  text: ReplyText,
  database: Database,
  revisions: readonly IncludedRevision[],
): void {
  if (revisions.length === 0) return;
  text.addText(',"RevisionIncludes":[');
  revisions.forEach(({ revision, before }, position) => {
    const id = `"Id":${JSON.stringify(revision.id)}`;
    const vector = `"ChangeVector":"${revision.changeVector}"`;
    if (position > 0) text.addText(",");
    if (before === undefined) text.addText(`{${vector},${id}`);
    else text.addText(`{${id},${vector},"Before":"${formatTimestamp(before)}"`);
    text.addText(',"Revision":').addDocument(database.state, revision.record, 0).addText("}");
  });
  text.addText("]");
}
