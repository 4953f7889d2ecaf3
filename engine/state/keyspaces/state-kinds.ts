/**
 * The kinds of durable state, and their properties besides their records. Code that handles every kind has a member for
 * each of these names: replay and snapshots (keyspace-table.ts), deletion (writes/documents.ts), salvage, export and
 * import (smuggler/), statistics. A kind that is forgotten in one of these places does not compile.
 */
import { type RecordKind, recordKinds } from "../../base/record.ts";

/** Sections of a dump that have state of ours. */
const dumpSections = [
  "DatabaseRecord",
  "Documents",
  "RevisionDocuments",
  "Tombstones",
  "Indexes",
  "Identities",
  "CompareExchange",
  "CounterGroups",
  "Subscriptions",
  "TimeSeries",
] as const;
export type DumpSection = (typeof dumpSections)[number];

interface StateKind {
  readonly record: RecordKind;
  /**
   * Whether its entries belong to a document or revision: their keys begin with the id, and they are deleted with it.
   */
  readonly isPartOfDocument: boolean;
  /** The section of a dump that contains it, alone or within other items; null: dumps omit it. */
  readonly dumpSection: DumpSection | null;
}

export const stateKinds = {
  documents: { record: recordKinds.document, isPartOfDocument: false, dumpSection: "Documents" },
  /** Lists of property names: each document of a dump has its own. */
  shapes: { record: recordKinds.shape, isPartOfDocument: false, dumpSection: null },
  /** Numbers of collections: a dump has their names, in its documents. */
  collections: {
    record: recordKinds.collection,
    isPartOfDocument: false,
    dumpSection: "Documents",
  },
  revisions: {
    record: recordKinds.revision,
    isPartOfDocument: false,
    dumpSection: "RevisionDocuments",
  },
  tombstones: { record: recordKinds.tombstone, isPartOfDocument: false, dumpSection: "Tombstones" },
  counters: { record: recordKinds.counter, isPartOfDocument: true, dumpSection: "CounterGroups" },
  /** A dump has each content before the first document that refers to it. */
  attachments: { record: recordKinds.attachment, isPartOfDocument: true, dumpSection: "Documents" },
  timeSeries: { record: recordKinds.timeSeries, isPartOfDocument: true, dumpSection: "TimeSeries" },
  timeSeriesSegments: {
    record: recordKinds.timeSeriesSegment,
    isPartOfDocument: true,
    dumpSection: "TimeSeries",
  },
  identities: { record: recordKinds.identity, isPartOfDocument: false, dumpSection: "Identities" },
  compareExchange: {
    record: recordKinds.compareExchange,
    isPartOfDocument: false,
    dumpSection: "CompareExchange",
  },
  indexDefinitions: {
    record: recordKinds.indexDefinition,
    isPartOfDocument: false,
    dumpSection: "Indexes",
  },
  /** Earlier definitions of indexes: RavenDB's dumps omit them. */
  indexHistories: {
    record: recordKinds.indexHistory,
    isPartOfDocument: false,
    dumpSection: null,
  },
  subscriptions: {
    record: recordKinds.subscription,
    isPartOfDocument: false,
    dumpSection: "Subscriptions",
  },
  /** Of these a dump has the database's record. */
  values: { record: recordKinds.value, isPartOfDocument: false, dumpSection: "DatabaseRecord" },
  /** Where a log is in the stream that replicates it: of this copy of the database only. */
  replication: {
    record: recordKinds.replicationMark,
    isPartOfDocument: false,
    dumpSection: null,
  },
} as const satisfies Readonly<Record<string, StateKind>>;

export type StateKindName = keyof typeof stateKinds;
/** Kinds with a keyspace: all except documents and shapes, which have tables of their own. */
export type KeyspaceName = Exclude<StateKindName, "documents" | "shapes">;
/** Kinds whose entries belong to documents. */
export type DocumentPartName = {
  [Name in StateKindName]: (typeof stateKinds)[Name]["isPartOfDocument"] extends true
    ? Name
    : never;
}[StateKindName];
