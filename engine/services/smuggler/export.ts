/**
 * Writes the dump of a database as a stream of chunks: a consistent snapshot, created while writes continue.
 *
 *   { "BuildVersion", "DatabaseRecord", "Docs", "RevisionDocuments", "Tombstones", "Conflicts", "Indexes", "Identities",
 *     "CompareExchange", "CompareExchangeTombstones", "CounterGroups", "Subscriptions", "TimeSeriesDeletedRanges",
 *     "TimeSeries", "ReplicationHubCertificates" }
 *
 * The content of an attachment is written once, after an item of its own, before the first document that references it;
 * each segment of a time series follows its item. Order and format equal those of RavenDB 7.2.7.
 *
 * Invariants:
 * - A dump is the state at one point in time, including the contents of attachments.
 * - At most one document and one chunk are in memory at a time, besides the list of revisions and the hashes of
 *   attachments.
 */

import { foldedName, lowerCased } from "../../base/case-folding.ts";
import { dueTimeOf } from "../../base/due-time.ts";
import { EngineError } from "../../base/errors.ts";
import { JsonText } from "../../base/json/json-text.ts";
import { nextSlice, pauseIfDue } from "../../base/scheduling/time-slices.ts";
import { formatTimestamp } from "../../base/timestamp.ts";
import type { BTree } from "../../base/tree/btree.ts";
import { definitionJson, withoutAnalyzers } from "../../indexing/definitions/definition-json.ts";
import type { StoredRow } from "../../indexing/index-host.ts";
import { type IndexSet, replacementPrefix } from "../../indexing/index-set.ts";
import { RecordReader, type RecordTable } from "../../queries/rows/record-reader.ts";
import type { DocumentChunks } from "../../state/documents/document-chunks.ts";
import { addDocument } from "../../state/documents/document-composing.ts";
import {
  documentFlags,
  documentFlagsOf,
  idOf,
  metadataTextOf,
  storedChangeVectorOf,
} from "../../state/documents/document-record.ts";
import {
  type Attachment,
  attachmentKey,
  revisionAttachmentKey,
} from "../../state/keyspaces/attachments.ts";
import type { CompareExchangeValue } from "../../state/keyspaces/compare-exchange.ts";
import type { Counter } from "../../state/keyspaces/counters.ts";
import { allCollections, type NumberHold } from "../../state/keyspaces/document-table.ts";
import type { Entry } from "../../state/keyspaces/entry-keyspace.ts";
import type { DumpSection } from "../../state/keyspaces/state-kinds.ts";
import type { SubscriptionTask } from "../../state/keyspaces/subscriptions.ts";
import type { Segment, SeriesEntry } from "../../state/keyspaces/time-series/series-segment.ts";
import {
  seriesTimeText,
  type TimeSeries,
  timeMax,
  timeMin,
} from "../../state/keyspaces/time-series/time-series.ts";
import { type Tombstone, tombstoneKey } from "../../state/keyspaces/tombstones.ts";
import type { OperationFigures } from "../../state/store/operations.ts";
import type { DatabaseView, Store } from "../../state/store/store.ts";
import type { DumpItemType, DumpOptions } from "./dump-options.ts";
import { exportedRecord } from "./dump-record.ts";
import { DocumentRewriter } from "./exported-document.ts";
import { encodeSeriesBlob } from "./series-blob.ts";
import type { ItemCounts, ResultKind, SmugglerResult } from "./smuggler-result.ts";
import { transformOf } from "./transform.ts";

/** The build number in dumps of RavenDB 7.2.7, on which their readers depend. */
const buildVersion = 72051;
const pieceBytes = 64 * 1024;
const progressMs = 500;
const documentsPerBatch = 256;
const noBytes = Buffer.alloc(0);
/** Counters of one document in one item. */
const countersPerItem = 1024;

/** Sections of RavenDB's dumps that have nothing of ours. */
type EmptySection = "Conflicts" | "CompareExchangeTombstones" | "ReplicationHubCertificates";
type WrittenSection = DumpSection | EmptySection | "TimeSeriesDeletedRanges";
type SectionWriter = (
  run: DumpExport,
  counts: ItemCounts,
) => AsyncIterable<Buffer> | Iterable<Buffer>;

type Tree<Value> = BTree<string, Readonly<Entry<Value>>>;

/** A store with its indexes, whose definitions are part of a dump. */
type ExportedStore = Store & {
  readonly queries: { readonly indexes: Pick<IndexSet, "all"> };
};

/** Position of a revision's record. */
interface RevisionPlace {
  readonly document: number;
  readonly etag: number;
  readonly position: number;
  readonly length: number;
  readonly collectionId: number;
}

/** Returns the revisions by their index in the list. */
function tableOf(revisions: readonly RevisionPlace[]): RecordTable {
  const at = (number: number) => revisions[number] as RevisionPlace; // from the list
  return {
    positionOf: (number) => at(number).position,
    lengthOf: (number) => at(number).length,
    documentOf: (number) => at(number).document,
  };
}

/** The state at one point in time. Release it. */
class DumpSource {
  /** Of the newest change in it. */
  readonly etag: number;
  readonly view: DatabaseView;
  readonly revisions: readonly RevisionPlace[];
  readonly attachments: Tree<Attachment>;
  readonly counters: Tree<Counter>;
  readonly identities: Tree<number>;
  readonly compareExchange: Tree<CompareExchangeValue>;
  readonly series: Tree<TimeSeries>;
  readonly segments: Tree<Segment>;
  readonly subscriptions: Tree<SubscriptionTask>;
  readonly tombstones: Tree<Tombstone>;
  readonly #hashes = new Set<string>();
  readonly #hold: NumberHold;
  readonly #database: ExportedStore;

  constructor(database: ExportedStore, { types, backup }: DumpOptions) {
    this.#database = database;
    const { keyspaces } = database.state;
    this.etag = database.state.committedEtag;
    this.view = database.view();
    this.#hold = database.state.documents.hold();
    this.attachments = keyspaces.attachments.view();
    this.counters = keyspaces.counters.view();
    this.identities = keyspaces.identities.view();
    this.compareExchange = keyspaces.compareExchange.view();
    this.series = keyspaces.timeSeries.view();
    this.segments = keyspaces.timeSeriesSegments.view();
    this.subscriptions = keyspaces.subscriptions.view();
    this.tombstones = keyspaces.tombstones.records.view();
    const { revisions } = keyspaces;
    this.revisions = types.has("RevisionDocuments")
      ? revisions.rowsFrom((backup?.since ?? 0) + 1).map((row) => ({
          document: revisions.documentOf(row),
          etag: revisions.etagOf(row),
          position: revisions.positionOfRow(row),
          length: revisions.lengthOf(row),
          collectionId: revisions.collectionOf(row),
        }))
      : [];
    if (!types.has("Attachments")) return;
    for (const [, { value, etag }] of this.attachments.entries()) {
      if (etag > (backup?.since ?? 0)) this.#hashes.add(value.hash);
    }
    for (const hash of this.#hashes) database.blobs.retain(hash);
  }

  release(): void {
    this.view.release();
    this.#hold.release();
    for (const hash of this.#hashes) this.#database.blobs.release(hash);
    this.#hashes.clear();
  }
}

/**
 * Yields the text of the dump. Counts so far are in `result`; `progress` is called with them from time to time.
 * @throws EngineError script-failed, record-damaged, operation-cancelled; then the text is incomplete
 */
export async function* exportDump(
  database: ExportedStore,
  options: DumpOptions,
  result: SmugglerResult,
  progress: (figures: OperationFigures) => void = () => undefined,
  signal?: AbortSignal,
): AsyncGenerator<Buffer> {
  database.assertServing();
  const source = new DumpSource(database, options);
  result.asOfEtag = source.etag;
  try {
    yield* new DumpExport(database, source, options, result, progress, signal).text();
  } finally {
    source.release();
  }
}

class DumpExport {
  readonly #database: ExportedStore;
  readonly #source: DumpSource;
  readonly #options: DumpOptions;
  readonly #result: SmugglerResult;
  readonly #progress: (figures: OperationFigures) => void;
  readonly #signal: AbortSignal | undefined;
  readonly #rewriter: DocumentRewriter;
  readonly #text = new JsonText(pieceBytes + 4096);
  /** Hashes of the contents already written. */
  readonly #written = new Set<string>();
  readonly #reader: RecordReader;
  /** Changes up to this etag are left out. */
  readonly #since: number;
  readonly #row: StoredRow = { docNum: 0, etag: 0, bytes: noBytes, start: 0, block: null };
  #reportedAtMs: number;
  #hasItem = false;

  constructor(
    database: ExportedStore,
    source: DumpSource,
    options: DumpOptions,
    result: SmugglerResult,
    progress: (figures: OperationFigures) => void,
    signal: AbortSignal | undefined,
  ) {
    this.#database = database;
    this.#reader = new RecordReader(database);
    this.#source = source;
    this.#options = options;
    this.#since = options.backup?.since ?? 0;
    this.#result = result;
    this.#progress = progress;
    this.#signal = signal;
    const transform = transformOf(options, () => database.state.nowMicros());
    this.#rewriter = new DocumentRewriter(database.state, options, transform);
    this.#reportedAtMs = database.clock.monotonicMs();
  }

  async *text(): AsyncGenerator<Buffer> {
    this.#text.addText(`{"BuildVersion":${buildVersion}`);
    try {
      for (const type in DumpExport.#writers) yield* this.#section(type as WrittenSection);
    } finally {
      this.#reader.close();
    }
    this.#text.addText("}");
    yield this.#text.take();
  }

  /** In the order of the dump. */
  static readonly #writers: Readonly<Record<WrittenSection, SectionWriter>> = {
    DatabaseRecord: (run) => run.#record(),
    Documents: (run, counts) => run.#documents(counts),
    RevisionDocuments: (run, counts) => run.#revisions(counts),
    Tombstones: (run, counts) => run.#tombstones(counts),
    Conflicts: none,
    Indexes: (run, counts) => run.#indexes(counts),
    Identities: (run, counts) => run.#identities(counts),
    CompareExchange: (run, counts) => run.#compareExchange(counts),
    CompareExchangeTombstones: none,
    CounterGroups: (run, counts) => run.#counters(counts),
    Subscriptions: (run, counts) => run.#subscriptions(counts),
    TimeSeriesDeletedRanges: (run, counts) => run.#deletedRanges(counts),
    TimeSeries: (run, counts) => run.#series(counts),
    ReplicationHubCertificates: none,
  };

  /** Writes one section: an array, except for the record. */
  async *#section(type: WrittenSection): AsyncGenerator<Buffer> {
    if (!this.#isWanted(type)) {
      this.#result.skip(type);
      return;
    }
    const kind: ResultKind = type === "CounterGroups" ? "Counters" : (type as ResultKind);
    const counts = this.#result.start(kind, type);
    const isArray = type !== "DatabaseRecord";
    const key = type === "Documents" ? "Docs" : type;
    this.#text.addText(`,"${key}":${isArray ? "[" : ""}`);
    this.#hasItem = false;
    yield* DumpExport.#writers[type](this, counts);
    if (isArray) this.#text.addText("]");
    this.#result.finish(kind, type);
    this.#reportProgress();
  }

  #isWanted(type: DumpItemType): boolean {
    const { types } = this.#options;
    return types.has(type) || (type === "CounterGroups" && types.has("Counters"));
  }

  #record(): Iterable<Buffer> {
    const { name, settings } = this.#database;
    this.#text.addText(
      JSON.stringify(exportedRecord(name, settings, this.#options.backup !== null)),
    );
    this.#result.of("DatabaseRecord").readCount++;
    return none();
  }

  async *#documents(counts: ItemCounts): AsyncGenerator<Buffer> {
    const { documents } = this.#source.view;
    const cursor = documents.byEtag(allCollections, this.#since + 1);
    const { documentAttachments } = this.#result;
    if (this.#options.types.has("Attachments")) documentAttachments.isSkipped = false;
    const batch = new Uint32Array(documentsPerBatch);
    for (;;) {
      const filled = cursor.fill(batch, batch.length);
      for (let i = 0; i < filled; i++) {
        const document = batch[i] as number; // i < filled
        if (!this.#isOfCollection(documents.collectionOf(document))) continue;
        counts.lastEtag = documents.etagOf(document);
        counts.readCount++;
        const found = this.#recordOf(documents, batch, i, filled);
        const record = found instanceof Promise ? await found : found;
        yield* this.#document(record, counts, documentAttachments, 0);
        // A script may take long for each of them.
        await pauseIfDue();
      }
      if (filled < batch.length) return;
      // Yield even if the consumer applies no back-pressure.
      await nextSlice();
    }
  }

  /** Returns the record of number `at`; records up to `to` may be read along with it. Valid until the next call. */
  #recordOf(
    table: RecordTable,
    numbers: Uint32Array,
    at: number,
    to: number,
  ): Buffer | Promise<Buffer> {
    const number = numbers[at] as number; // at < to
    const length = table.lengthOf(number);
    const row = this.#row;
    if (this.#reader.tryPlace(table.positionOf(number), length, row)) {
      return row.bytes.subarray(row.start, row.start + length);
    }
    return this.#reader
      .gather(table, numbers, at, to)
      .then(() => this.#recordOf(table, numbers, at, to));
  }

  async *#revisions(counts: ItemCounts): AsyncGenerator<Buffer> {
    const { revisionAttachments } = this.#result;
    if (this.#options.types.has("Attachments")) revisionAttachments.isSkipped = false;
    const { revisions } = this.#source;
    const table = tableOf(revisions);
    const numbers = Uint32Array.from(revisions.keys());
    for (const [i, { etag, collectionId }] of revisions.entries()) {
      if (!this.#isOfCollection(collectionId)) continue;
      counts.lastEtag = etag;
      counts.readCount++;
      const to = Math.min(numbers.length, i + documentsPerBatch);
      const record = await this.#recordOf(table, numbers, i, to);
      yield* this.#document(record, counts, revisionAttachments, etag);
    }
  }

  /** Writes one document, or the revision with this etag, after the contents that it needs. */
  async *#document(
    record: Buffer,
    counts: ItemCounts,
    attachmentCounts: ItemCounts,
    revisionEtag: number,
  ): AsyncGenerator<Buffer> {
    if (revisionEtag === 0 && this.#isExpired(record)) {
      counts.skippedCount++;
      return;
    }
    const hasAttachments = (documentFlagsOf(record, 0) & documentFlags.HasAttachments) !== 0;
    const hasContents = hasAttachments && this.#options.types.has("Attachments");
    // RavenDB counts attachments even where their contents are not exported.
    if (hasAttachments && !hasContents) {
      attachmentCounts.readCount += [...this.#attachmentsOf(record, revisionEtag)].length;
    }
    const pieces = this.#rewriter.inPieces(record, revisionEtag !== 0);
    if (pieces !== null) {
      if (hasContents) yield* this.#contents(record, revisionEtag, attachmentCounts);
      yield* this.#largeDocument(pieces, counts);
      return;
    }
    // The script applies to documents, not to revisions.
    const rewritten =
      revisionEtag === 0 ? this.#rewriter.document(record) : this.#rewriter.revision(record);
    if (rewritten === null) {
      counts.skippedCount++;
      return;
    }
    if (hasContents) {
      // The record's segment and the rewriter's buffer may change while contents are read.
      const kept = Buffer.from(rewritten);
      yield* this.#contents(kept, revisionEtag, attachmentCounts);
      this.#addDocument(kept, counts);
    } else this.#addDocument(rewritten, counts);
    yield* this.#pieces();
  }

  #addDocument(record: Buffer, counts: ItemCounts): void {
    this.#comma();
    const before = this.#text.length;
    addDocument(this.#text, this.#database.state, record, 0);
    counts.sizeBytes += this.#text.length - before;
  }

  /** The row, which is not placed again in the meantime, holds the record that `pieces` references. */
  async *#largeDocument(pieces: DocumentChunks, counts: ItemCounts): AsyncGenerator<Buffer> {
    this.#comma();
    yield this.#text.take();
    for (let start = 0; start < pieces.length; start += pieceBytes) {
      this.#checkAborted();
      this.#reportProgress();
      await pauseIfDue();
      yield pieces.copy(start, Math.min(pieces.length, start + pieceBytes));
    }
    counts.sizeBytes += pieces.length;
  }

  /** Writes the attachment contents that were not written before. */
  async *#contents(record: Buffer, etag: number, counts: ItemCounts): AsyncGenerator<Buffer> {
    const id = idOf(record, 0);
    for (const [, { value, etag: attachedAt }] of this.#attachmentsOf(record, etag)) {
      const { hash, name, contentType, size } = value;
      counts.readCount++;
      // An earlier file of the backup has the content of an older attachment.
      if (attachedAt <= this.#since || this.#written.has(hash)) continue;
      this.#written.add(hash);
      const owner = etag === 0 ? "d" : `r|${storedChangeVectorOf(record, 0)}`;
      const tag = `${lowerCased(id)}|${owner}|${lowerCased(name)}|${hash}|${contentType}`;
      this.#comma();
      this.#text.addText(
        `{"@metadata":{"@export-type":"Attachment"},"Hash":"${hash}","Size":${size},"Tag":${JSON.stringify(tag)}}`,
      );
      const content = await this.#database.blobs.open(hash);
      try {
        if (content.size !== size) throw wrongSize(name, id);
        yield this.#text.take();
        yield* content.read(0, size);
      } finally {
        await content.close();
      }
      counts.sizeBytes += size;
      this.#checkAborted();
    }
  }

  #attachmentsOf(record: Buffer, etag: number): Iterable<[string, Readonly<Entry<Attachment>>]> {
    const id = idOf(record, 0);
    const prefix = etag === 0 ? attachmentKey(id, "") : revisionAttachmentKey(id, etag, "");
    return entriesUnder(this.#source.attachments, prefix);
  }

  *#tombstones(counts: ItemCounts): Generator<Buffer> {
    const cursor = this.#source.tombstones.cursor({ lower: tombstoneKey(this.#since + 1) });
    while (cursor.next()) {
      const { id, type, collection, etag, changeVector, lastModified } = cursor.value.value;
      const { value } = cursor.value;
      if (!this.#isNamedCollection(collection)) continue;
      // Stored again, in another collection: the dump has it in a section before this one.
      if (type === "document" && this.#source.view.documents.find(id) >= 0) continue;
      counts.readCount++;
      counts.lastEtag = etag;
      this.#addItem({
        Key: type === "revision" ? `${id}\u001e${value.revision}` : id,
        Type: `${(type[0] as string).toUpperCase()}${type.slice(1)}`,
        Collection: collection,
        Flags: "None",
        ChangeVector: changeVector,
        DeletedEtag: etag,
        Etag: etag,
        LastModified: formatTimestamp(lastModified),
      });
      yield* this.#pieces();
    }
  }

  /** Deployed indexes only: automatic ones are created again by queries. */
  *#indexes(counts: ItemCounts): Generator<Buffer> {
    for (const index of this.#database.queries.indexes.all()) {
      if (!index.isStatic || index.name.startsWith(replacementPrefix)) continue;
      counts.readCount++;
      const whole = definitionJson(index);
      const definition = this.#options.removesAnalyzers ? withoutAnalyzers(whole) : whole;
      this.#addItem({ Type: index.type, IndexDefinition: definition });
      yield* this.#pieces();
    }
  }

  *#identities(counts: ItemCounts): Generator<Buffer> {
    for (const [key, { value, etag }] of this.#source.identities.entries()) {
      counts.readCount++;
      counts.lastEtag = etag;
      this.#addItem({ Key: key, Value: String(value) });
      yield* this.#pieces();
    }
  }

  *#compareExchange(counts: ItemCounts): Generator<Buffer> {
    for (const [, { value }] of this.#source.compareExchange.entries()) {
      counts.readCount++;
      counts.lastEtag = value.index;
      this.#addItem({ Key: value.key, Value: value.text });
      yield* this.#pieces();
    }
  }

  /** One item per document, or a few when it has many counters. */
  *#counters(counts: ItemCounts): Generator<Buffer> {
    let id = "";
    let group: [string, Readonly<Entry<Counter>>][] = [];
    for (const [key, entry] of this.#source.counters.entries()) {
      if (entry.etag <= this.#since) continue;
      const end = key.indexOf("\u0000");
      const lowerId = key.slice(0, end);
      if (lowerId !== id || group.length === countersPerItem) {
        this.#addCounters(id, group, counts);
        yield* this.#pieces();
        id = lowerId;
        group = [];
      }
      group.push([key.slice(end + 1), entry]);
    }
    this.#addCounters(id, group, counts);
  }

  *#subscriptions(counts: ItemCounts): Generator<Buffer> {
    const timeText = (micros: number | null) => (micros === null ? null : formatTimestamp(micros));
    for (const [, { value: task }] of this.#source.subscriptions.entries()) {
      counts.readCount++;
      this.#addItem({
        Query: task.query,
        ChangeVectorForNextBatchStartingPoint: task.changeVector,
        SubscriptionId: task.id,
        SubscriptionName: task.name,
        MentorNode: task.mentorNode,
        PinToMentorNode: task.isPinnedToMentor,
        NodeTag: null,
        LastBatchAckTime: timeText(task.acknowledgedAt),
        LastClientConnectionTime: timeText(task.connectedAt),
        Disabled: task.isDisabled,
        ArchivedDataProcessingBehavior: task.archivedBehavior,
        RaftCommandIndex: task.index,
      });
      yield* this.#pieces();
    }
  }

  #addCounters(
    id: string,
    group: readonly [string, Readonly<Entry<Counter>>][],
    counts: ItemCounts,
  ): void {
    const last = group.at(-1)?.[1];
    if (last === undefined || !this.#isOfDocument(id)) return;
    const { state } = this.#database;
    counts.readCount++;
    counts.lastEtag = Math.max(counts.lastEtag, last.etag);
    const names = group.map(([key, { value }]) => [key, value.name]);
    const values = group.map(
      ([key, { value, etag }]) => `${JSON.stringify(key)}:[${value.value},${etag}]`,
    );
    this.#comma();
    this.#text.addText(
      `{"DocId":${JSON.stringify(id)},"ChangeVector":"${state.changeVectorAt(last.etag)}","Values":{"@dbIds":["${state.origin.hash}"],"@names":${JSON.stringify(Object.fromEntries(names))},"@vals":{${values.join(",")}}}}`,
    );
  }

  /**
   * In incremental backups: series that were created, or from which entries were deleted, are cleared before the
   * section of the series fills them again.
   */
  *#deletedRanges(counts: ItemCounts): Generator<Buffer> {
    if (this.#since === 0) return;
    for (const [key, { value, etag }] of this.#source.series.entries()) {
      const id = key.slice(0, key.indexOf("\u0000"));
      if (etag <= this.#since || !this.#isOfDocument(id)) continue;
      counts.readCount++;
      counts.lastEtag = Math.max(counts.lastEtag, etag);
      this.#addItem({
        DocId: id,
        Name: value.name,
        Collection: this.#collectionOf(id),
        ChangeVector: this.#database.state.changeVectorAt(etag),
        Etag: etag,
        From: seriesTimeText(timeMin),
        To: seriesTimeText(timeMax),
      });
      yield* this.#pieces();
    }
  }

  *#series(counts: ItemCounts): Generator<Buffer> {
    for (const [key, { value, etag: changedAt }] of this.#source.series.entries()) {
      const id = key.slice(0, key.indexOf("\u0000"));
      if (!this.#isOfDocument(id)) continue;
      const collection = this.#collectionOf(id);
      for (const [, { value: segment, etag }] of entriesUnder(
        this.#source.segments,
        `${key}\u0000`,
      )) {
        if (Math.max(changedAt, etag) <= this.#since) continue;
        const entries = segment.toEntries();
        counts.readCount += entries.length;
        counts.lastEtag = Math.max(counts.lastEtag, etag);
        for (let from = 0; from < entries.length; ) {
          const { bytes, count } = encodeSeriesBlob(entries, from);
          this.#comma();
          const data = {
            DocId: id,
            Name: value.name,
            ChangeVector: this.#database.state.changeVectorAt(etag),
            Collection: collection,
            Baseline: seriesTimeText((entries[from] as SeriesEntry).time), // from < length
          };
          this.#text.addText(
            `{"@raven-data":${JSON.stringify(data)},"@raven-blob-size":${bytes.length}}`,
          );
          this.#text.addBytes(bytes);
          counts.sizeBytes += bytes.length;
          from += count;
        }
        yield* this.#pieces();
      }
    }
  }

  #isOfCollection(collectionId: number): boolean {
    if (this.#options.collections.size === 0) return true;
    return this.#isNamedCollection(this.#database.state.keyspaces.collections.nameOf(collectionId));
  }

  #isNamedCollection(name: string): boolean {
    const { collections } = this.#options;
    return collections.size === 0 || collections.has(foldedName(name));
  }

  #isOfDocument(id: string): boolean {
    const document = this.#source.view.documents.find(id);
    if (document < 0) return false;
    return this.#isOfCollection(this.#source.view.documents.collectionOf(document));
  }

  #collectionOf(id: string): string {
    const { documents } = this.#source.view;
    const { collections } = this.#database.state.keyspaces;
    return collections.nameOf(documents.collectionOf(documents.find(id)));
  }

  #isExpired(record: Buffer): boolean {
    if (this.#options.includesExpired) return false;
    const text = metadataTextOf(record, 0);
    if (!text.includes('"@expires"')) return false;
    const { "@expires": expires } = JSON.parse(`{${text}}`) as { readonly "@expires"?: unknown };
    return dueTimeOf(expires) <= this.#database.state.nowMicros();
  }

  #addItem(item: object): void {
    this.#comma();
    this.#text.addText(JSON.stringify(item));
  }

  #comma(): void {
    if (this.#hasItem) this.#text.addText(",");
    this.#hasItem = true;
  }

  /** Yields the gathered text once it is large enough. */
  *#pieces(): Generator<Buffer> {
    if (this.#text.length < pieceBytes) return;
    this.#checkAborted();
    this.#reportProgress();
    yield this.#text.take();
  }

  #reportProgress(): void {
    const now = this.#database.clock.monotonicMs();
    if (now - this.#reportedAtMs < progressMs) return;
    this.#reportedAtMs = now;
    this.#progress(this.#result.toJson(false));
  }

  #checkAborted(): void {
    if (this.#signal?.aborted !== true) return;
    throw new EngineError("operation-cancelled", "The export was stopped.");
  }
}

function* none(): Generator<Buffer> {}

function* entriesUnder<Value>(
  tree: Tree<Value>,
  prefix: string,
): Generator<[string, Readonly<Entry<Value>>]> {
  const cursor = tree.cursor({ lower: prefix });
  while (cursor.next() && cursor.key.startsWith(prefix)) yield [cursor.key, cursor.value];
}

function wrongSize(name: string, id: string): EngineError {
  return new EngineError(
    "record-damaged",
    `The content of the attachment '${name}' of document '${id}' has not the size that is known of it.`,
  );
}
