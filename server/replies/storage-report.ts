/**
 * The storage report, in the shape of RavenDB 7.2.7. A database consists of its log and its snapshots: the report shows
 * these as the data file, with collections as tables, and no journals.
 */

import type { Database, LogFigures } from "../../engine/engine.ts";
import { humaneSize } from "../http/dates.ts";
import type { JsonObject } from "../http/json-body.ts";
import { doubleNumber } from "./number-texts.ts";

/** The newest snapshot and the previous one are assumed to have the same size. */
type Sizes = Pick<LogFigures, "log" | "lastSnapshotBytes">;

/** Returns the short report: sizes only. */
export function shortReport(sizes: Sizes, tables: number): JsonObject {
  return {
    DataFile: dataFile(sizes),
    Journals: [],
    TempFiles: [],
    CountOfTrees: 1,
    CountOfTables: tables,
  };
}

export function longReport(
  sizes: Sizes,
  tables: readonly JsonObject[],
  trees: readonly JsonObject[] = [],
): JsonObject {
  return {
    DataFile: dataFile(sizes),
    Journals: {
      LastFlushedJournal: 0,
      TotalWrittenButUnsyncedBytes: sizes.log.unsyncedBytes,
      LastFlushedTransaction: 0,
      Journals: [],
    },
    TempBuffers: [],
    Trees: [tree("Snapshots", sizes.log.snapshots, snapshotBytes(sizes)), ...trees],
    Tables: tables,
    PreAllocatedBuffers: noBuffers,
    TotalEncryptionBufferSize: "0 Bytes",
  };
}

/** Returns the records by collection, others as `Other`. Cost: a scan of all documents, in time slices. */
export async function tablesOf(database: Database): Promise<JsonObject[]> {
  const collections = await database.statistics.collectionDetails();
  const rows: [name: string, entries: number, bytes: number][] = [];
  for (const one of collections) {
    rows.push([`Collection.Documents.${one.name}`, one.documents, one.bytes]);
    if (one.revisions > 0) {
      rows.push([`Collection.Revisions.${one.name}`, one.revisions, one.revisionBytes]);
    }
    if (one.seriesSegments > 0) {
      const { seriesSegments, seriesSegmentBytes } = one;
      rows.push([`Collection.TimeSeries.${one.name}`, seriesSegments, seriesSegmentBytes]);
    }
  }
  const { recordBytes, deadBytes } = database.figures().log;
  const known = rows.reduce((sum, [, , bytes]) => sum + bytes, 0);
  rows.push(["Other", 0, Math.max(0, recordBytes - deadBytes - known)]);
  return rows.map(([name, entries, bytes]) => table(name, entries, bytes));
}

/** Returns the files beside the data file: the contents of attachments, and the snapshots of indexes. */
export async function treesOf(database: Database): Promise<JsonObject[]> {
  const { attachmentContents } = database.statistics.figures();
  const bytes = await database.statistics.attachmentBytes();
  const indexes = database.figures().indexes.filter(({ snapshotBytes: size }) => size > 0);
  return [
    tree("Attachments", attachmentContents, bytes),
    ...indexes.map(({ name, snapshotBytes: size }) => tree(`Index/${name}`, 1, size)),
  ];
}

function dataFile(sizes: Sizes): JsonObject {
  const { segmentBytes, recordBytes, deadBytes } = sizes.log;
  const allocated = segmentBytes + snapshotBytes(sizes);
  const used = Math.max(0, recordBytes - deadBytes) + snapshotBytes(sizes);
  return {
    AllocatedSpaceInBytes: allocated,
    UsedSpaceInBytes: used,
    FreeSpaceInBytes: Math.max(0, allocated - used),
  };
}

function snapshotBytes({ log, lastSnapshotBytes }: Sizes): number {
  return log.snapshots * lastSnapshotBytes;
}

function table(name: string, entries: number, bytes: number): JsonObject {
  return {
    Structure: [],
    Indexes: [],
    PreAllocatedBuffers: noBuffers,
    Name: name,
    NumberOfEntries: entries,
    DataSizeInBytes: bytes,
    DataSizeHumane: humaneSize(bytes),
    AllocatedSpaceInBytes: bytes,
    AllocatedSpaceHumane: humaneSize(bytes),
    UsedSizeInBytes: bytes,
    UsedSizeHumane: humaneSize(bytes),
  };
}

function tree(name: string, entries: number, bytes: number): JsonObject {
  return {
    Type: "None",
    Name: name,
    PageCount: 0,
    NumberOfEntries: entries,
    BranchPages: 0,
    LeafPages: 0,
    OverflowPages: 0,
    Depth: 0,
    Density: doubleNumber(-1),
    MultiValues: null,
    AllocatedSpaceInBytes: bytes,
    UsedSpaceInBytes: bytes,
    Streams: null,
    BalanceHistogram: null,
  };
}

const noBuffers = {
  AllocatedSpaceInBytes: 0,
  PreAllocatedBuffersSpaceInBytes: 0,
  NumberOfPreAllocatedPages: 0,
  AllocationTree: tree("Allocation-Storage", 0, 0),
  OriginallyAllocatedSpaceInBytes: 0,
};
