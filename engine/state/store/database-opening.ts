/** Opening a database: its log, its index snapshot and the records after it; and the content of the index snapshot. */
import { assert } from "../../base/assert.ts";
import type { Environment, FileSystem, Report } from "../../base/environment.ts";
import { EngineError } from "../../base/errors.ts";
import { backgroundBytesPerSecond, segmentShareOfMemory } from "../../base/limits.ts";
import { processMemory } from "../../base/memory/memory-budget.ts";
import { nodeTagDefault } from "../../base/names.ts";
import { recordLengthAt } from "../../base/record.ts";
import { BlobStore } from "../../storage/log/blob-store.ts";
import {
  type FileLog,
  type LogOptions,
  openLog,
  type ReplayReport,
} from "../../storage/log/file-log.ts";
import type { CommitLog, LogListener, Position, SnapshotSection } from "../../storage/log/log.ts";
import { logDefaults } from "../../storage/log/log-defaults.ts";
import { openingFailed } from "../../storage/segments/failed-read.ts";
import { type RetainedForShipping, retainForShipping } from "../../storage/shipping/shipment.ts";
import { ChangeOrigin } from "../documents/change-origin.ts";
import { databaseHash } from "../documents/change-vector.ts";
import { DocumentParser } from "../documents/document-parser.ts";
import { ShapeTable } from "../documents/shapes.ts";
import { DocumentTable, type DocumentTableOptions } from "../keyspaces/document-table.ts";
import { KeyspaceTable } from "../keyspaces/keyspace-table.ts";
import { databaseRecordKey } from "../keyspaces/revision-rules.ts";
import { ChangeFeed } from "./changes.ts";
import { DatabaseState } from "./database-state.ts";
import { DatabaseRecords } from "./record-owner.ts";

/** Settings of a store that are not stored in its files. */
export interface StoreOptions {
  /** Sizes and caches of the log. */
  readonly log?: Partial<LogOptions>;
  /** Reports errors outside requests to the operator. */
  readonly report?: Report | undefined;
  /** Sizes of chunks: the same at every opening, as index snapshots depend on them. */
  readonly documents?: DocumentTableOptions;
  /** The tag of this node in change vectors; left out: `A`. */
  readonly nodeTag?: string | undefined;
}

/** The parts of a database. */
export interface DatabaseParts {
  readonly name: string;
  readonly environment: Environment;
  readonly log: CommitLog;
  readonly state: DatabaseState;
  readonly blobs: BlobStore;
  readonly isInMemory: boolean;
  /** The log has records that no index snapshot covers. */
  readonly hasChanges: boolean;
  readonly report: Report;
  /** The folder of its files; null for a database in memory. */
  readonly place: { readonly files: FileSystem; readonly folder: string } | null;
  /** Some entries may have keys that an older version has folded. */
  readonly mayHaveOldKeys: boolean;
  /** Log and contents retained for a continuous backup until it resumes; null if nothing is retained. */
  readonly kept: RetainedForShipping | null;
}

const shapesSection = "shapes";
const countersSection = "counters-of-the-database";

/** Returns the bytes of the largest segments of a database opened with this much memory: a power of 2. */
function segmentBytesWithin(memoryBytes: number): number {
  const bytes = 2 ** Math.floor(Math.log2(memoryBytes * segmentShareOfMemory));
  return Math.max(logDefaults.segmentBytesMin, Math.min(logDefaults.segmentBytesMax, bytes));
}

/** Opens the log and recovers all state up to its end. @throws EngineError database-damaged, database-locked */
export async function openParts(
  environment: Environment,
  name: string,
  folder: string | null,
  options: StoreOptions,
  listener: LogListener,
): Promise<DatabaseParts> {
  let log: FileLog | null = null;
  const dead = (position: Position, length: number) => log?.markDead(position, length);
  const replaced = (position: Position, length: number) => log?.markReplaced(position, length);
  const shapes = new ShapeTable();
  const documents = new DocumentTable({
    hashSeed: environment.random(4).readUInt32LE(0),
    monotonicMs: () => environment.clock.monotonicMs(),
    ...options.documents,
  });
  const keyspaces = new KeyspaceTable(documents, replaced, dead);
  const blobs = new BlobStore(environment, folder === null ? null : `${folder}/blobs`);
  keyspaces.attachments.listen((_key, attachment, previous) => {
    if (attachment !== undefined) blobs.retain(attachment.hash);
    if (previous !== undefined) blobs.release(previous.hash);
  });
  const records = new DatabaseRecords(documents, shapes, keyspaces, replaced, dead);
  log = await openLog({
    files: environment.files,
    clock: environment.clock,
    random: (count) => environment.random(count),
    folder,
    owner: records,
    listener,
    cache: logDefaults.cache,
    segmentBytesMin: logDefaults.segmentBytesMin,
    segmentBytesMax: segmentBytesWithin(processMemory.bytesMax),
    compaction: { bytesPerSecond: backgroundBytesPerSecond },
    report: options.report,
    ...options.log,
  });
  const opened = log;
  records.canDropDeletion = (position) => opened.canDropDeletion(position);
  records.isReplaced = (position) => opened.isReplaced(position);
  let report: ReplayReport;
  let kept: RetainedForShipping | null = null;
  try {
    const sections = log.snapshot?.sections;
    if (sections !== undefined) restore(sections, documents, shapes, keyspaces, records);
    report = await log.replay();
    records.checkIds();
    dropPurged(keyspaces);
    kept = await retainForShipping(keyspaces.values.get(databaseRecordKey), log, blobs);
    await blobs.sweep();
  } catch (error) {
    await log.close();
    throw openingFailed(folder ?? name, error);
  }
  const state = new DatabaseState({
    name,
    origin: new ChangeOrigin(options.nodeTag ?? nodeTagDefault, databaseHash(log.databaseId)),
    clusterHash: databaseHash("cluster transactions", log.databaseId),
    transactionHash: databaseHash("guarded transactions", log.databaseId),
    log,
    documents,
    shapes,
    parser: new DocumentParser(shapes),
    keyspaces,
    feed: new ChangeFeed(options.report),
    clock: environment.clock,
  });
  state.lastEtag = records.lastEtag;
  state.committedEtag = records.lastEtag;
  state.lastModified = records.lastModified;
  const hasChanges = report.transactions > 0;
  return {
    name,
    environment,
    log,
    state,
    blobs,
    isInMemory: folder === null,
    hasChanges,
    mayHaveOldKeys: records.mayHaveOldKeys,
    report: options.report ?? (() => undefined),
    place: folder === null ? null : { files: environment.files, folder },
    kept,
  };
}

function dropPurged({ tombstones }: KeyspaceTable): void {
  tombstones.dropPurged(Number.POSITIVE_INFINITY);
  tombstones.dropsLater = true;
}

/**
 * Returns the committed state at this moment as bytes. The sections of documents come from a view, which must be held
 * until they are written. Only the first `shapeCount` shapes, the durable ones, are included: the others belong to
 * transactions that a crash may lose, and later transactions would then use them without logging them again.
 */
export function snapshotSections(
  state: DatabaseState,
  view: ReturnType<DocumentTable["view"]>,
  shapeCount: number,
): SnapshotSection[] {
  const head = Buffer.alloc(16);
  head.writeDoubleLE(state.committedEtag, 0);
  head.writeDoubleLE(state.lastModified, 8);
  return [
    { name: countersSection, parts: [head] },
    { name: shapesSection, parts: shapeRecords(state.shapes, shapeCount) },
    ...state.keyspaces.all.flatMap((keyspace) => keyspace.sections()),
    ...state.documents.sections(view),
  ];
}

function shapeRecords(shapes: ShapeTable, count: number): Buffer[] {
  const parts: Buffer[] = [];
  for (let id = 1; id <= count; id++) {
    const record = Buffer.alloc(shapes.recordLength(id));
    shapes.encodeRecord(record, 0, id);
    parts.push(record);
  }
  return parts;
}

function restore(
  sections: ReadonlyMap<string, Buffer>,
  documents: DocumentTable,
  shapes: ShapeTable,
  keyspaces: KeyspaceTable,
  records: DatabaseRecords,
): void {
  const head = sections.get(countersSection);
  const shapeBytes = sections.get(shapesSection);
  if (head?.length !== 16 || shapeBytes === undefined) {
    throw new EngineError("database-damaged", "An index snapshot lacks parts.");
  }
  records.lastEtag = head.readDoubleLE(0);
  records.lastModified = head.readDoubleLE(8);
  for (let at = 0; at < shapeBytes.length; ) {
    const length = shapeBytes.readUInt32LE(at + recordLengthAt);
    assert(length > 0, "a shape's record has a length");
    shapes.restore(shapeBytes, at);
    at += length;
  }
  // The log counts dead bytes only from its replay on.
  keyspaces.tombstones.dropsLater = true;
  for (const keyspace of keyspaces.all) keyspace.restore(sections);
  keyspaces.tombstones.dropsLater = false;
  documents.restore([...sections].map(([name, bytes]) => ({ name, parts: [bytes] })));
}
