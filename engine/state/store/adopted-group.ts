/**
 * A group of transactions received from another node, as one transaction of this store: the records are stored byte for
 * byte, and their effects are staged as on that node. Nothing is decided again: no expectation is checked, no etag is
 * assigned, no revision is created.
 *
 * Invariants:
 * - A store to which the same groups were added, in the same order, has the same state.
 */
import { assert } from "../../base/assert.ts";
import { EngineError } from "../../base/errors.ts";
import {
  recordHeaderBytes,
  recordKindAt,
  recordKinds,
  recordLengthAt,
  verifyRecord,
} from "../../base/record.ts";
import type { Work } from "../../base/scheduling/work-budget.ts";
import {
  changeVectorLengthOf,
  changeVectorOf,
  collectionIdOf,
  documentFlagsOf,
  etagOf,
  explicitVectorRowFlag,
  idLengthOf,
  idOf,
  idStartOf,
  lastModifiedOf,
} from "../documents/document-record.ts";
import type { Counter } from "../keyspaces/counters.ts";
import { EntryKeyspace } from "../keyspaces/entry-keyspace.ts";
import { databaseRecordKey } from "../keyspaces/revision-rules.ts";
import { revisionFactsOf } from "../keyspaces/revision-table.ts";
import type { TimeSeries } from "../keyspaces/time-series/time-series.ts";
import type { Tombstone } from "../keyspaces/tombstones.ts";
import type { Transaction } from "./transaction.ts";

/** Records between two places where the work may pause. */
const recordsPerBatch = 256;

/** Effects of a group that other components than readers of documents must know. */
interface AdoptedFacts {
  /** The record of the database's settings was replaced. */
  readonly hasSettings: boolean;
  /** Keys of the index definitions that changed. */
  readonly definitions: readonly string[];
}

/** Fills an empty `transaction` with the records of `group`, which it keeps. @throws EngineError record-damaged */
export function* adoptGroup(transaction: Transaction, group: Buffer): Work<AdoptedFacts> {
  assert(transaction.scratch.length === 0, "a group is a transaction of its own");
  transaction.isAdopted = true;
  transaction.scratch.give(group);
  let count = 0;
  for (let at = 0, length = 0; at < group.length; at += length) {
    length = at + recordHeaderBytes <= group.length ? group.readUInt32LE(at + recordLengthAt) : 0;
    if (!verifyRecord(group, at, length)) {
      throw new EngineError(
        "record-damaged",
        `A replicated group has no intact record at byte ${at} of ${group.length}.`,
      );
    }
    adoptRecord(transaction, group, at, length);
    count++;
    if (count % recordsPerBatch === 0) yield;
  }
  return factsOf(transaction);
}

function factsOf({ entries, keyspaces }: Transaction): AdoptedFacts {
  const { indexDefinitions, values } = keyspaces;
  const keysOf = (one: EntryKeyspace<unknown>) =>
    entries.filter(({ keyspace }) => keyspace === one).map(({ key }) => key);
  return {
    hasSettings: keysOf(values).includes(databaseRecordKey),
    definitions: [...new Set(keysOf(indexDefinitions as EntryKeyspace<unknown>))],
  };
}

function adoptRecord(transaction: Transaction, bytes: Buffer, at: number, length: number): void {
  const kind = bytes[at + recordKindAt] ?? 0;
  const { state } = transaction;
  state.lastEtag = Math.max(state.lastEtag, etagOf(bytes, at));
  if (kind === recordKinds.document) adoptDocument(transaction, bytes, at, length);
  else if (kind === recordKinds.shape) state.shapes.restore(bytes, at);
  else if (kind === recordKinds.revision) adoptRevision(transaction, bytes, at, length);
  else adoptEntry(transaction, bytes, at, length, kind);
}

function internedId(transaction: Transaction, bytes: Buffer, at: number): number {
  const start = idStartOf(bytes, at);
  return transaction.state.documents.internBytes(bytes, start, start + idLengthOf(bytes, at));
}

function adoptDocument(transaction: Transaction, bytes: Buffer, at: number, length: number): void {
  const { state } = transaction;
  const document = internedId(transaction, bytes, at);
  const etag = etagOf(bytes, at);
  const collectionId = collectionIdOf(bytes, at);
  const isVectorExplicit = changeVectorLengthOf(bytes, at) > 0;
  const flags = documentFlagsOf(bytes, at) | (isVectorExplicit ? explicitVectorRowFlag : 0);
  transaction.documents.push(document, etag, at, length, collectionId, flags);
  state.lastModified = Math.max(state.lastModified, lastModifiedOf(bytes, at));
  if (transaction.isUnwatched) return;
  const changeVector = changeVectorOf(bytes, at, state.origin);
  const id = idOf(bytes, at);
  transaction.changed({ kind: "document", type: "Put", id, collectionId, etag, changeVector });
}

function adoptRevision(transaction: Transaction, bytes: Buffer, at: number, length: number): void {
  const facts = revisionFactsOf(bytes, at, internedId(transaction, bytes, at));
  transaction.adoptRevision({ facts, at, length });
}

function adoptEntry(
  transaction: Transaction,
  bytes: Buffer,
  at: number,
  length: number,
  kind: number,
): void {
  const { keyspaces } = transaction;
  const keyspace = keyspaces.ofKind(kind);
  if (!(keyspace instanceof EntryKeyspace)) {
    throw new EngineError(
      "not-supported",
      `A replicated record has the kind ${kind}, which this version does not know: update this node.`,
    );
  }
  const { key, entry } = keyspace.entryOf(bytes, at, length, 0);
  const value: unknown = entry?.value;
  if (!transaction.isUnwatched) announce(transaction, kind, key, value, etagOf(bytes, at));
  transaction.adoptEntry({ keyspace, key, entry: entry ?? null, at, length });
  if (kind === recordKinds.tombstone && entry !== undefined) {
    adoptDeletion(transaction, value as Tombstone);
  }
}

/** The item that a tombstone records was removed in the same transaction. */
function adoptDeletion(transaction: Transaction, tombstone: Tombstone): void {
  const { state, keyspaces } = transaction;
  const { type, id, etag, revision } = tombstone;
  state.lastModified = Math.max(state.lastModified, tombstone.lastModified);
  const document = state.documents.lookup(id);
  if (document < 0) return;
  if (revision !== undefined) {
    if (keyspaces.revisions.find(document, revision) < 0) return;
    transaction.adoptRevisionRemoval(document, revision);
    return;
  }
  if (type !== "document" || !transaction.exists(document)) return;
  const collectionId = transaction.collectionOf(document);
  transaction.documents.push(document, etag, 0, 0, collectionId, 0);
  const { changeVector } = tombstone;
  transaction.changed({ kind: "document", type: "Delete", id, collectionId, etag, changeVector });
}

/** Tells listeners of a counter or a series; of a series it is not known which times changed. */
function announce(
  transaction: Transaction,
  kind: number,
  key: string,
  value: unknown,
  etag: number,
): void {
  if (kind !== recordKinds.counter && kind !== recordKinds.timeSeries) return;
  const { keyspaces } = transaction;
  const lowerId = key.slice(0, key.indexOf("\u0000"));
  const document = transaction.state.documents.lookup(lowerId);
  if (document < 0) return;
  const collectionId = transaction.collectionOf(document);
  const owner = { documentId: lowerId, etag, collectionId };
  if (kind === recordKinds.timeSeries) {
    const series = (value ?? transaction.entry(keyspaces.timeSeries, key)) as
      | TimeSeries
      | undefined;
    if (series === undefined) return;
    const type = value === undefined ? "Delete" : "Put";
    const { name } = series;
    transaction.changed({ kind: "time-series", type, name, from: null, to: null, ...owner });
    return;
  }
  const before = transaction.entry(keyspaces.counters, key);
  const counter = (value ?? before) as Counter | undefined;
  if (counter === undefined) return;
  const { name } = counter;
  const type = value === undefined ? "Delete" : before === undefined ? "Put" : "Increment";
  const total = value === undefined ? 0n : BigInt(counter.value);
  transaction.changed({ kind: "counter", type, name, value: total, ...owner });
}
