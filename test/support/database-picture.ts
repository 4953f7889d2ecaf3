/**
 * The whole contents of a database as plain values: for comparison with its model (logical contents), and with the same
 * database reopened from its files (physical layout: positions, etags, counts, bytes).
 */
import assert from "node:assert/strict";
import type { OpenDatabase } from "../../engine/api/database/open-database.ts";
import { compareStrings } from "../../engine/base/tree/compare.ts";
import {
  bodyTextOf,
  changeVectorOf,
  documentFlags,
  documentFlagsOf,
  idOf,
  shapeIdOf,
} from "../../engine/state/documents/document-record.ts";
import { revisionAttachmentKey } from "../../engine/state/keyspaces/attachments.ts";
import { allCollections } from "../../engine/state/keyspaces/document-table.ts";
import { EntryKeyspace } from "../../engine/state/keyspaces/entry-keyspace.ts";
import { describe } from "./model-database.ts";

/**
 * The physical layout. Databases with the same log have equal pictures, independent of their
 * history.
 */
interface DatabasePicture {
  readonly documents: readonly object[];
  readonly entries: Readonly<Record<string, readonly object[]>>;
  readonly revisions: readonly object[];
  readonly counts: object;
  readonly committedEtag: number;
  readonly recordBytes: number;
  readonly liveBytes: number;
}

export function pictureOf(database: OpenDatabase): DatabasePicture {
  const { documents, keyspaces, committedEtag } = database.state;
  const { recordBytes, deadBytes } = database.logMetrics;
  const rows = documentsById(database).map((document) => ({
    id: documents.lowerIdOf(document),
    etag: documents.etagOf(document),
    position: documents.positionOf(document),
    length: documents.lengthOf(document),
    collection: keyspaces.collections.nameOf(documents.collectionOf(document)),
    flags: documents.flagsOf(document),
  }));
  const entries: Record<string, object[]> = {};
  for (const keyspace of keyspaces.all) {
    if (!(keyspace instanceof EntryKeyspace)) continue;
    entries[keyspace.name] = [...keyspace.newestWithPrefix("")].map(([key, entry]) => ({
      key,
      ...entry,
    }));
  }
  const collections = new Set(rows.map((row) => row.collection));
  return {
    documents: rows,
    entries,
    revisions: keyspaces.revisions.rowsFrom(0).map((row) => ({
      ...keyspaces.revisions.factsOf(row),
      document: documents.lowerIdOf(keyspaces.revisions.documentOf(row)),
      position: keyspaces.revisions.positionOfRow(row),
      length: keyspaces.revisions.lengthOf(row),
    })),
    counts: {
      documents: documents.documentCount,
      collections: [...collections]
        .sort()
        .map((name) => [name, documents.countOfCollection(keyspaces.collections.find(name))]),
      blobs: database.blobs.count,
      tombstones: keyspaces.tombstones.count,
    },
    committedEtag,
    recordBytes,
    liveBytes: recordBytes - deadBytes,
  };
}

/** The logical contents: the text that `ModelDatabase.text` returns for the same operations. */
export async function describeDatabase(database: OpenDatabase): Promise<string> {
  const { keyspaces } = database.state;
  const documents: Parameters<typeof describe>[0]["documents"] = [];
  for (const document of documentsById(database)) {
    documents.push(await describeDocument(database, document));
  }
  documents.sort((one, other) => {
    const [left, right] = [one.id.toLowerCase(), other.id.toLowerCase()];
    return left < right ? -1 : left > right ? 1 : 0;
  });
  return describe({
    documents,
    identities: [...keyspaces.identities.withPrefix("")],
    exchange: [...keyspaces.compareExchange.withPrefix("")].map(([key, { text }]) => [key, text]),
    values: [...keyspaces.values.withPrefix("")].filter(([key]) => !isInternal(key)),
  });
}

/** Internal values of the database, which the model does not have. */
function isInternal(key: string): boolean {
  return key === "tombstones-purged-through" || key === "record";
}

async function describeDocument(database: OpenDatabase, document: number) {
  const { documents, keyspaces, shapes } = database.state;
  const record = Buffer.from(await database.record(document));
  const id = idOf(record, 0);
  const body = bodyTextOf(record, 0);
  assert.equal(id.toLowerCase(), documents.lowerIdOf(document));
  const shapeId = shapeIdOf(record, 0);
  if (shapeId !== 0) {
    const names = Object.keys(JSON.parse(body) as object).sort();
    assert.ok(shapeId <= shapes.loggedCount, "a shape is in the log before it is used");
    assert.deepEqual([...shapes.get(shapeId).names].sort(), names);
  }
  const prefix = `${id.toLowerCase()}\u0000`;
  const counters = [...keyspaces.counters.withPrefix(prefix)].map(([, counter]) => counter);
  const attachments = [...keyspaces.attachments.withPrefix(prefix)].map(([, one]) => one);
  // The lists in the document's metadata agree with the keyspaces.
  const text = (await database.getText(id))?.toString() ?? "null";
  const metadata = (JSON.parse(text) as { "@metadata": Record<string, unknown> })["@metadata"];
  const listed = (metadata["@attachments"] ?? []) as { Name: string; Hash: string; Size: number }[];
  const series = [...keyspaces.timeSeries.withPrefix(prefix)].map(([, one]) => one);
  const namesOf = (entries: readonly { readonly name: string }[]): string[] =>
    entries.map(({ name }) => name);
  assert.deepEqual(metadata["@timeseries"] ?? [], namesOf(series));
  assert.deepEqual(metadata["@counters"] ?? [], namesOf(counters));
  const hashes = attachments.map(({ name, hash }) => [name, hash]);
  assert.deepEqual(
    listed.map(({ Name, Hash }) => [Name, Hash]),
    hashes,
  );
  const vector = database.state.changeVectorAt(documents.etagOf(document));
  assert.equal(metadata["@change-vector"], vector);
  if (String(metadata["@flags"]).includes("HasRevisions")) {
    await expectRevision(database, document, record);
  }
  const contents: [string, string][] = [];
  for (const { name, hash } of attachments) contents.push([name, await contentOf(database, hash)]);
  return {
    id,
    body: bodyWithMetadata(body, metadata),
    counters: counters.map(({ name, value }) => [name, value]),
    attachments: contents,
    series: series.map(({ name }) => [
      name,
      [...keyspaces.timeSeriesSegments.withPrefix(`${prefix}${name.toLowerCase()}\u0000`)]
        .flatMap(([, segment]) => segment.toEntries())
        .map(({ time, values }) => [time, values[0]]),
    ]),
  };
}

/** Checks that the newest revision equals the document's current state, and that all attachment contents exist. */
async function expectRevision(
  database: OpenDatabase,
  document: number,
  record: Buffer,
): Promise<void> {
  const { revisions, attachments } = database.state.keyspaces;
  let row = revisions.newestOf(document);
  const { origin } = database.state;
  const [position, length] = [revisions.positionOfRow(row), revisions.lengthOf(row)];
  const newest = Buffer.from(await database.recordAt(document, position, length));
  assert.equal(bodyTextOf(newest, 0), bodyTextOf(record, 0));
  // An import keeps the vectors of revisions, and adds counters and time series to documents without a revision.
  const vector = changeVectorOf(record, 0, origin);
  const newestVector = changeVectorOf(newest, 0, origin);
  const isImported = newestVector.split("-")[1] !== vector.split("-")[1];
  const lists = documentFlags.HasCounters | documentFlags.HasTimeSeries;
  const hasSameLists = ((documentFlagsOf(newest, 0) ^ documentFlagsOf(record, 0)) & lists) === 0;
  if (!isImported && hasSameLists) assert.equal(newestVector, vector);
  for (; row >= 0; row = revisions.olderThan(row)) {
    const prefix = revisionAttachmentKey(idOf(record, 0), revisions.etagOf(row), "");
    const kept = [...attachments.withPrefix(prefix)];
    const hasSome = (revisions.flagsOf(row) & documentFlags.HasAttachments) !== 0;
    assert.equal(kept.length > 0, hasSome);
    for (const [, { hash, size }] of kept) {
      assert.equal((await contentOf(database, hash)).length, size);
    }
  }
}

/** The text as put: the tests put only a collection into the metadata. */
function bodyWithMetadata(body: string, metadata: Record<string, unknown>): string {
  const collection = metadata["@collection"];
  if (collection === undefined || collection === "@empty") return body;
  const member = `"@metadata":${JSON.stringify({ "@collection": collection })}`;
  return body === "{}" ? `{${member}}` : `${body.slice(0, -1)},${member}}`;
}

async function contentOf(database: OpenDatabase, hash: string): Promise<string> {
  const reader = await database.blobs.open(hash);
  try {
    const chunks: Buffer[] = [];
    for await (const chunk of reader.read(0, reader.size)) chunks.push(chunk);
    return Buffer.concat(chunks).toString();
  } finally {
    await reader.close();
  }
}

/** All documents in id order; checks that the lists by etag and by id agree. */
function documentsById(database: OpenDatabase): number[] {
  const { documents } = database.state;
  const byId = drain(documents.byId(""));
  const byEtag = drain(documents.byEtag(allCollections, 0));
  const ascending = (one: number, other: number): number => one - other;
  assert.deepEqual([...byEtag].sort(ascending), [...byId].sort(ascending));
  assert.equal(byId.length, documents.documentCount);
  const ids = byId.map((document) => documents.lowerIdOf(document));
  assert.deepEqual(ids, [...ids].sort(compareStrings));
  const etags = byEtag.map((document) => documents.etagOf(document));
  assert.deepEqual(etags, [...etags].sort(ascending));
  return byId;
}

function drain(cursor: { fill(batch: Uint32Array, limit: number): number }): number[] {
  const batch = new Uint32Array(64);
  const found: number[] = [];
  for (;;) {
    const count = cursor.fill(batch, batch.length);
    found.push(...batch.subarray(0, count));
    if (count < batch.length) return found;
  }
}
