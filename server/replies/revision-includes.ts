/** Reads revisions included with documents, and formats `RevisionIncludes` of a reply. */

import type { JsonText } from "../../engine/base/json/json-text.ts";
import { formatTimestamp } from "../../engine/base/timestamp.ts";
import type { Database, DocumentRow, IncludedRevisions } from "../../engine/engine.ts";

/** A revision in a reply; `before` is set if it was requested by time (microseconds since the Unix epoch). */
interface IncludedRevision {
  readonly revision: DocumentRow;
  readonly before: number | undefined;
}

/** Reads the requested revisions that exist. */
export async function includedRevisions(
  { revisions }: Database,
  { changeVectors, before }: IncludedRevisions,
): Promise<readonly IncludedRevision[]> {
  const found: IncludedRevision[] = [];
  for (const { documentId, micros } of before) {
    const { rows } = await revisions.read(documentId, { before: micros });
    const [revision] = rows;
    if (revision !== undefined) found.push({ revision, before: micros });
  }
  for (const vector of changeVectors) {
    const revision = await revisions.byChangeVector(vector);
    if (revision !== null) found.push({ revision, before: undefined });
  }
  return found;
}

/** Appends `,"RevisionIncludes":[…]`, in the order of RavenDB 7.2.7, or nothing without revisions. */
export function addIncludedRevisions(text: JsonText, revisions: readonly IncludedRevision[]): void {
  if (revisions.length === 0) return;
  text.addText(',"RevisionIncludes":[');
  revisions.forEach(({ revision, before }, position) => {
    const id = `"Id":${JSON.stringify(revision.id)}`;
    const vector = `"ChangeVector":"${revision.changeVector}"`;
    if (position > 0) text.addText(",");
    if (before === undefined) text.addText(`{${vector},${id}`);
    else text.addText(`{${id},${vector},"Before":"${formatTimestamp(before)}"`);
    revision.addTo(text.addText(',"Revision":'));
    text.addText("}");
  });
  text.addText("]");
}
