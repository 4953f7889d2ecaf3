/**
 * Computes the final state of a log from its readable records: for salvaging a damaged database, and for checking one.
 * Nothing is written, and gaps in the log do not stop it.
 */
import { recordKindAt, recordKinds } from "../../base/record.ts";
import { ShapeTable } from "../../state/documents/shapes.ts";
import { DocumentTable } from "../../state/keyspaces/document-table.ts";
import { KeyspaceTable } from "../../state/keyspaces/keyspace-table.ts";
import { timeOfKey } from "../../state/keyspaces/time-series/time-series.ts";
import { DatabaseRecords } from "../../state/store/record-owner.ts";
import type { Position } from "../../storage/log/log.ts";

/** Finds the position of the newest readable record of each item. */
export class NewestRecords {
  readonly documents = new DocumentTable();
  readonly keyspaces = new KeyspaceTable(
    this.documents,
    () => undefined,
    () => undefined,
  );
  readonly #records = new DatabaseRecords(
    this.documents,
    new ShapeTable(),
    this.keyspaces,
    () => undefined,
    () => undefined,
  );

  constructor() {
    this.#records.canDropDeletion = () => true;
  }

  replay(bytes: Buffer, start: number, length: number, position: Position): void {
    // Shapes are rebuilt: some of the source's may be lost, and its documents are read without them.
    if (!isShape(bytes, start)) this.#records.replay(bytes, start, length, position);
  }

  isNewest(bytes: Buffer, start: number, length: number, position: Position): boolean {
    return !isShape(bytes, start) && this.#records.isLive(bytes, start, length, position);
  }

  /** Returns whether the owner of the entry still exists: its document, or the revision in an attachment's key. */
  hasOwner(key: string): boolean {
    const [first = "", second = "", third = ""] = key.split("\u0000");
    if (first !== "") return this.documents.find(first) >= 0;
    return this.keyspaces.revisions.has(second, Number(third));
  }

  /**
   * Returns whether a series, or a segment of one, is consistent with the rest. Not a series without segments, a
   * segment without its series, or an older version of a segment that overlaps the next one.
   */
  isWholeSeries(kind: number | undefined, key: string): boolean {
    const { timeSeries, timeSeriesSegments } = this.keyspaces;
    if (kind === recordKinds.timeSeries) {
      return !timeSeriesSegments.range(`${key}\u0000`, `${key}\u0000`).next().done;
    }
    if (kind !== recordKinds.timeSeriesSegment) return true;
    const series = key.slice(0, key.lastIndexOf("\u0000"));
    if (timeSeries.get(series) === undefined) return false;
    const [own, next] = timeSeriesSegments.range(`${series}\u0000`, key);
    return own === undefined || next === undefined || own[1].value.last < timeOfKey(next[0]);
  }

  get lastEtag(): number {
    return this.#records.lastEtag;
  }
}

function isShape(bytes: Buffer, start: number): boolean {
  return bytes[start + recordKindAt] === recordKinds.shape;
}
