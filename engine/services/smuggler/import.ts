/**
 * Imports a dump into a database, section by section as it arrives, in transactions of many items, which are written to
 * disk while the next one is gathered.
 *
 * Invariants:
 * - Items are written in the order of the dump. Each transaction is atomic, and transactions committed before the
 *   import fails remain.
 * - Memory is bounded: the items of a few transactions, and the hashes of attachments.
 * - An attachment is bound only to a content with its hash.
 */

import { foldedName } from "../../base/case-folding.ts";
import { EngineError } from "../../base/errors.ts";
import { byteObjectOpen } from "../../base/json/bytes.ts";
import { isObject, type JsonObject } from "../../base/json/json-object.ts";
import { misplaced, tokenName } from "../../base/json/raw-scan.ts";
import {
  changeVectorBytesMax,
  importBatchBytes,
  importBatchItems,
  importsInFlightMax,
  sliceMs,
} from "../../base/limits.ts";
import { checkCompareExchangeKey, checkIdentityName } from "../../base/names.ts";
import { pauseIfDue } from "../../base/scheduling/time-slices.ts";
import { parseTimestamp } from "../../base/timestamp.ts";
import { withoutAnalyzers } from "../../indexing/definitions/definition-json.ts";
import { documentFlags } from "../../state/documents/document-record.ts";
import type { DumpSection } from "../../state/keyspaces/state-kinds.ts";
import { subscriptionKey } from "../../state/keyspaces/subscriptions.ts";
import type { OperationFigures } from "../../state/store/operations.ts";
import type { Store } from "../../state/store/store.ts";
import type { Transaction } from "../../state/store/transaction.ts";
import type { DumpItemType, DumpOptions } from "./dump-options.ts";
import { DumpReader, dumpValue } from "./dump-reader.ts";
import { recordChange } from "./dump-record.ts";
import {
  CompareExchangeItem,
  CountersItem,
  DocumentItem,
  DumpedContents,
  type DumpedMetadata,
  dumpedMetadata,
  IdentityItem,
  type ImportItem,
  isGuardKey,
  RevisionItem,
  SeriesItem,
  TombstoneItem,
} from "./import-items.ts";
import {
  isOldBuild,
  obsoleteIndexes,
  oldAttachment,
  oldAttachmentId,
  presentIdentityName,
  presentIndex,
} from "./old-dump.ts";
import { decodeSeriesBlob } from "./series-blob.ts";
import type { ItemCounts, ResultKind, SmugglerResult } from "./smuggler-result.ts";
import { type DocumentTransform, transformOf } from "./transform.ts";

const progressMs = 500;
/** Maximum bytes of a segment of a time series. */
const seriesBlobMax = 64 * 1024;
/** Bytes after the dump that are read so that its source can end normally. */
const trailingBytesMax = 64 * 1024;

/** Settings of an import besides its options. */
export interface ImportSettings {
  /** Whether the database's record may be changed. */
  readonly mayChangeRecord: boolean;
  /** Whether indexes in C# may be deployed. */
  readonly mayDeployCSharp: boolean;
  /**
   * The dump is a file of a backup, and the database contains the previous files: documents replace existing ones, with
   * all their parts, and the whole record is restored.
   */
  readonly isRestore?: boolean;
  /** Returns the index of the next command that changes the record or defines something. */
  nextIndex(): Promise<number>;
}

/** Keys of the sections with state of this database, and of further sections that are read. */
type StateKey = Exclude<DumpSection, "Documents"> | "Docs";
type OtherKey =
  | "Conflicts"
  | "CompareExchangeTombstones"
  | "Counters"
  | "TimeSeriesDeletedRanges"
  | "ReplicationHubCertificates"
  | "CmpXchg"
  | "Attachments"
  | "DocsDeletions"
  | "AttachmentsDeletions";

/** Handlers of sections, by their keys in the dump. */
type SectionReader = (run: DumpImport, counts: ItemCounts) => Promise<void>;

interface Section {
  readonly type: DumpItemType;
  readonly kind: ResultKind;
  /** Undefined: its items are read and counted, but there is nothing to import them into. */
  readonly read?: SectionReader;
  /** It is read regardless of the options, as by RavenDB 7.2.7. */
  readonly isAlwaysRead?: true;
}

const sections: Readonly<Record<StateKey | OtherKey, Section>> = {
  DatabaseRecord: { type: "DatabaseRecord", kind: "DatabaseRecord" },
  Docs: { type: "Documents", kind: "Documents", read: (run, counts) => run.documents(counts) },
  RevisionDocuments: {
    type: "RevisionDocuments",
    kind: "RevisionDocuments",
    read: (run, counts) => run.revisions(counts),
  },
  Tombstones: {
    type: "Tombstones",
    kind: "Tombstones",
    read: (run, counts) => run.tombstones(counts),
  },
  Conflicts: { type: "Conflicts", kind: "Conflicts" },
  Indexes: { type: "Indexes", kind: "Indexes", read: (run, counts) => run.indexes(counts) },
  Identities: {
    type: "Identities",
    kind: "Identities",
    read: (run, counts) => run.identities(counts),
  },
  CompareExchange: {
    type: "CompareExchange",
    kind: "CompareExchange",
    read: (run, counts) => run.compareExchange(counts, false),
  },
  // The name in dumps of 4.0.
  CmpXchg: {
    type: "CompareExchange",
    kind: "CompareExchange",
    read: (run, counts) => run.compareExchange(counts, false),
  },
  CompareExchangeTombstones: {
    type: "CompareExchangeTombstones",
    kind: "CompareExchangeTombstones",
    read: (run, counts) => run.compareExchange(counts, true),
  },
  Counters: { type: "Counters", kind: "Counters", read: (run, counts) => run.oldCounters(counts) },
  CounterGroups: {
    type: "CounterGroups",
    kind: "Counters",
    read: (run, counts) => run.counters(counts),
  },
  Subscriptions: {
    type: "Subscriptions",
    kind: "Subscriptions",
    read: (run, counts) => run.subscriptions(counts),
  },
  TimeSeriesDeletedRanges: {
    type: "TimeSeriesDeletedRanges",
    kind: "TimeSeriesDeletedRanges",
    read: (run, counts) => run.deletedRanges(counts),
  },
  TimeSeries: {
    type: "TimeSeries",
    kind: "TimeSeries",
    read: (run, counts) => run.series(counts),
  },
  ReplicationHubCertificates: {
    type: "ReplicationHubCertificates",
    kind: "ReplicationHubCertificates",
  },
  Attachments: {
    type: "LegacyAttachments",
    kind: "Documents",
    read: (run, counts) => run.oldAttachments(counts),
    isAlwaysRead: true,
  },
  DocsDeletions: {
    type: "LegacyDocumentDeletions",
    kind: "LegacyDocumentDeletions",
    read: (run, counts) => run.oldDeletions("DocsDeletions", counts, (key) => key),
    isAlwaysRead: true,
  },
  AttachmentsDeletions: {
    type: "LegacyAttachmentDeletions",
    kind: "LegacyAttachmentDeletions",
    read: (run, counts) => run.oldDeletions("AttachmentsDeletions", counts, oldAttachmentId),
    isAlwaysRead: true,
  },
};

const sectionsByLowerKey: ReadonlyMap<string, Section> = new Map(
  Object.entries(sections).map(([key, section]) => [key.toLowerCase(), section]),
);

/** Words of `Type` of the items of `Indexes`. */
const indexTypes: ReadonlySet<unknown> = new Set([
  "Map",
  "MapReduce",
  "AutoMap",
  "AutoMapReduce",
  "JavaScriptMap",
  "JavaScriptMapReduce",
]);

/** A store, with the services that import definitions. */
type ImportedStore = Store & {
  readonly queries: {
    readonly administration: {
      /** @throws EngineError for a definition that cannot be deployed */
      deploy(
        definitions: readonly JsonObject[],
        mayBeCSharp: boolean,
        deployer: { readonly source: string; readonly commandIndex: number },
      ): Promise<unknown>;
    };
  };
  readonly subscriptions: {
    /** @throws EngineError for an invalid query */
    put(
      settings: { readonly name: string; readonly query: string },
      index: number,
    ): Promise<unknown>;
  };
};

/**
 * Imports the text of a dump. Counts and messages are in `result`, even on failure.
 * @throws EngineError with the number of items imported before: json-…, invalid-operation for a truncated dump,
 * script-failed, disk-full, operation-cancelled, collection-mismatch, and others from storing
 */
export async function importDump(
  database: ImportedStore,
  source: AsyncIterable<Buffer>,
  options: DumpOptions,
  settings: ImportSettings,
  result: SmugglerResult,
  progress: (figures: OperationFigures) => void = () => undefined,
  signal?: AbortSignal,
): Promise<void> {
  await new DumpImport(database, source, options, settings, result, progress, signal).run();
}

class DumpImport {
  readonly #database: ImportedStore;
  readonly #reader: DumpReader;
  readonly #options: DumpOptions;
  readonly #settings: ImportSettings;
  readonly #result: SmugglerResult;
  readonly #progress: (figures: OperationFigures) => void;
  readonly #signal: AbortSignal | undefined;
  readonly #transform: DocumentTransform | undefined;
  readonly #contents: DumpedContents;
  readonly #inFlight: Promise<void>[] = [];
  #batch: ImportItem[] = [];
  #batchBytes = 0;
  /** Whether the dump has the format of RavenDB 3.5. */
  #isOld = true;
  #reportedAtMs: number;
  /** Number of durable items. */
  #committed = 0;
  #failure: { readonly error: unknown } | null = null;

  constructor(
    database: ImportedStore,
    source: AsyncIterable<Buffer>,
    options: DumpOptions,
    settings: ImportSettings,
    result: SmugglerResult,
    progress: (figures: OperationFigures) => void,
    signal: AbortSignal | undefined,
  ) {
    this.#database = database;
    this.#options = options;
    this.#settings = settings;
    this.#result = result;
    this.#progress = progress;
    this.#signal = signal;
    this.#transform = transformOf(options, () => database.state.nowMicros());
    this.#contents = new DumpedContents(database.blobs);
    this.#reader = new DumpReader(source);
    this.#reportedAtMs = database.clock.monotonicMs();
  }

  async run(): Promise<void> {
    try {
      await this.#reader.open();
      let key = await this.#reader.nextSection();
      if (key?.toLowerCase() === "buildversion") {
        this.#isOld = isOldBuild(await this.#buildVersion());
        key = await this.#reader.nextSection();
      }
      while (key !== undefined) {
        await this.#section(key);
        key = await this.#reader.nextSection();
      }
      await this.#settle();
      await this.#reader.drain(trailingBytesMax);
    } catch (error) {
      await this.#writeRest();
      throw this.#explained(error);
    } finally {
      this.#contents.release();
      this.#reader.close();
    }
  }

  async #section(key: string): Promise<void> {
    const section = sectionsByLowerKey.get(key.toLowerCase());
    if (section === sections.DatabaseRecord) {
      await this.#record(await this.#reader.objectValue());
      return;
    }
    await this.#reader.openArray();
    if (section === undefined) {
      this.#result.add(
        "WARNING",
        `You are trying to import items of type '${key}' which is unknown or not supported. Ignoring items.`,
      );
      await this.#pass(key);
      return;
    }
    const { type, kind, read, isAlwaysRead } = section;
    if (isAlwaysRead !== true && !this.#isWanted(type)) {
      const readCount = await this.#pass(key);
      const counts = this.#result.of(kind);
      counts.readCount += readCount;
      // RavenDB counts no other skipped items.
      if (kind === "Documents") counts.skippedCount += readCount;
      this.#result.skip(type, readCount);
      return;
    }
    const counts = this.#result.start(kind, type);
    if (read === undefined) await this.#unread(key, counts);
    else await read(this, counts);
    // The next section may depend on the items of this one, and messages report durable counts.
    await this.#settle();
    this.#result.finish(kind, type);
  }

  #isWanted(type: DumpItemType): boolean {
    const { types } = this.#options;
    if (type === "Counters" || type === "CounterGroups") {
      return types.has("Counters") || types.has("CounterGroups");
    }
    return types.has(type);
  }

  async #buildVersion(): Promise<number> {
    const bytes = await this.#reader.value();
    const text = bytes.toString("latin1");
    if (/^-?\d{1,15}$/.test(text)) return Number(text);
    throw new EngineError(
      "invalid-operation",
      `Invalid JSON. Expected integer BuildVersion, but got ${bytes.toString("utf8", 0, 100)}`,
    );
  }

  /** Skips items and the bytes that follow them. @returns how many there were, without contents of attachments */
  async #pass(key: string): Promise<number> {
    const isOfSeries = key.toLowerCase() === "timeseries";
    let count = 0;
    for await (const bytes of this.#items(key)) {
      const length = isOfSeries ? blobLength(bytes) : contentLength(bytes);
      if (length === undefined || isOfSeries) count++;
      if (length !== undefined) await this.#passContent(length);
    }
    return count;
  }

  async #passContent(length: number): Promise<void> {
    for await (const _ of this.#reader.content(length));
  }

  /** Skips items that cannot be imported. */
  async #unread(key: string, counts: ItemCounts): Promise<void> {
    counts.readCount += await this.#pass(key);
    if (counts.readCount === 0) return;
    this.#result.add(
      "WARNING",
      `Items of type '${key}' are not imported: this server does not support them.`,
    );
  }

  async #record(bytes: Buffer): Promise<void> {
    if (!this.#isWanted("DatabaseRecord")) {
      this.#result.skip("DatabaseRecord");
      return;
    }
    const counts = this.#result.start("DatabaseRecord");
    counts.readCount++;
    const change = recordChange(
      dumpValue(bytes) as JsonObject,
      this.#options.recordTypes,
      this.#settings.isRestore === true,
    );
    if (!this.#settings.mayChangeRecord) {
      this.#result.add(
        "WARNING",
        "The database's record is not imported: that needs the rights of an administrator of the database.",
      );
    } else if (Object.keys(change.parts).length > 0) {
      const ChangedIndex = await this.#settings.nextIndex();
      await this.#database.changeSettings((record) => ({
        ...record,
        ...change.parts,
        ChangedIndex,
      }));
      this.#result.updatedParts.push(...change.names);
    }
    this.#result.finish("DatabaseRecord");
  }

  /** `Docs`: documents, and contents of attachments before the documents that reference them. */
  async documents(counts: ItemCounts): Promise<void> {
    const { documentAttachments } = this.#result;
    documentAttachments.isSkipped = !this.#options.types.has("Attachments");
    for await (const bytes of this.#items("Docs")) {
      const metadata = await dumpedMetadata(bytes, this.#isOld);
      if (metadata.exportType !== "") {
        await this.#content(bytes, metadata, documentAttachments);
        continue;
      }
      // RavenDB does not count documents of other collections as read.
      if (!this.#isOfCollection(metadata)) {
        counts.skippedCount++;
        continue;
      }
      if (metadata.kind === "revision" && this.#options.types.has("RevisionDocuments")) {
        this.#refuse(counts, `Revision '${metadata.id}' of version 3.5 has no change vector.`);
        continue;
      }
      counts.readCount++;
      counts.sizeBytes += bytes.length;
      if (metadata.kind !== "document" || !this.#isTaken(metadata)) counts.skippedCount++;
      else await this.#document(counts, bytes, metadata);
    }
  }

  /** `{"Key","Data","Metadata"}`: each becomes the attachment of a document in `@files`. */
  async oldAttachments(counts: ItemCounts): Promise<void> {
    for await (const bytes of this.#items("Attachments")) {
      const { key, content, text } = oldAttachment(dumpValue(bytes) as JsonObject);
      const stored = await this.#contents.add(content);
      counts.readCount++;
      this.#result.documentAttachments.readCount++;
      this.#result.documentAttachments.isSkipped = false;
      await this.#add(
        new DocumentItem(counts, Buffer.from(text), {
          id: oldAttachmentId(key),
          collection: "@files",
          options: { addedFlags: documentFlags.HasAttachments, skipsRevision: false },
          isGuarded: false,
          attachments: [{ name: key, contentType: "", ...stored }],
          replaces: null,
        }),
      );
    }
  }

  /** `{"Key"}`: deleted documents. */
  async oldDeletions(
    section: string,
    counts: ItemCounts,
    idOf: (key: string) => string,
  ): Promise<void> {
    for await (const { Key: key } of this.#objects(section)) {
      if (typeof key !== "string" && key !== null) continue;
      counts.readCount++;
      if (key) await this.#add(new TombstoneItem(counts, idOf(key), true));
    }
  }

  #isOfCollection({ collection }: DumpedMetadata): boolean {
    const { collections } = this.#options;
    return collections.size === 0 || collections.has(foldedName(collection));
  }

  #isTaken({ expires, flags, isArchived }: DumpedMetadata): boolean {
    const { includesExpired, includesArtificial, includesArchived } = this.#options;
    if (!includesArtificial && (flags & documentFlags.Artificial) !== 0) return false;
    if (!includesArchived && isArchived) return false;
    return includesExpired || expires === undefined || expires > this.#database.state.nowMicros();
  }

  async #document(counts: ItemCounts, bytes: Buffer, metadata: DumpedMetadata): Promise<void> {
    const { id, collection, flags, lastModified, changeVector } = metadata;
    if (id.endsWith("|")) {
      throw new EngineError("not-supported", `Document ids cannot end with '|', but one is ${id}.`);
    }
    const text = this.#textOf(bytes, metadata);
    if (text === null) {
      counts.skippedCount++;
      return;
    }
    const attachments = await this.#attachmentsOf(metadata, this.#result.documentAttachments);
    const { types, skipsRevisionCreation } = this.#options;
    const kept = types.has("RevisionDocuments") ? flags & documentFlags.HasRevisions : 0;
    await this.#add(
      new DocumentItem(counts, text, {
        id,
        collection,
        options: {
          lastModified,
          addedFlags: kept | (attachments.length > 0 ? documentFlags.HasAttachments : 0),
          skipsRevision: skipsRevisionCreation,
        },
        isGuarded: /(?:^|,)\s*TRXN:\d+-/.test(changeVector),
        attachments,
        replaces: this.#settings.isRestore === true ? metadata : null,
      }),
    );
  }

  /** Returns the text to store; null when the script leaves the document out. */
  #textOf(bytes: Buffer, metadata: DumpedMetadata): Buffer | null {
    if (this.#transform === undefined && !this.#isOld) return bytes;
    const { parser } = this.#database.state;
    const body = parser.parse(bytes, 0, bytes.length).body.utf8Slice();
    if (this.#transform !== undefined) {
      const text = this.#transform.run(body, metadata.text, metadata.id);
      return text === null ? null : Buffer.from(text);
    }
    const separator = body === "{}" ? "" : ",";
    return Buffer.from(`${body.slice(0, -1)}${separator}"@metadata":${metadata.text}}`);
  }

  /** Returns the attachments that can be bound, as their contents exist. */
  async #attachmentsOf(
    { id, attachments }: DumpedMetadata,
    counts: ItemCounts,
  ): Promise<DumpedMetadata["attachments"]> {
    if (attachments.length === 0) return attachments;
    if (!this.#options.types.has("Attachments")) return [];
    counts.readCount += attachments.length;
    const present = await this.#contents.present(attachments);
    const missing = attachments.length - present.length;
    if (missing > 0) {
      counts.erroredCount += missing;
      this.#result.add(
        "ERROR",
        `The dump has no content for ${missing} of ${attachments.length} attachments of '${id}'. They are left out.`,
      );
    }
    return present;
  }

  /** Returns the content of an attachment, or an item of an unknown kind. */
  async #content(bytes: Buffer, { exportType }: DumpedMetadata, counts: ItemCounts): Promise<void> {
    if (exportType !== "Attachment") {
      const shown = bytes.utf8Slice(0, Math.min(bytes.length, 200));
      this.#result.add("WARNING", `Ignoring an item of type \`${exportType}\`. ${shown}`);
      return;
    }
    const length = contentLength(bytes) ?? 0;
    if (!this.#options.types.has("Attachments")) {
      await this.#passContent(length);
      return;
    }
    counts.sizeBytes += length;
    const hash = String((dumpValue(bytes) as JsonObject)["Hash"] ?? "");
    if (await this.#contents.store(hash, this.#reader.content(length))) return;
    counts.erroredCount++;
    this.#result.add(
      "ERROR",
      `A content in the dump is damaged: its hash is not ${hash}. Attachments of it are left out.`,
    );
  }

  async revisions(counts: ItemCounts): Promise<void> {
    const { revisionAttachments } = this.#result;
    revisionAttachments.isSkipped = !this.#options.types.has("Attachments");
    for await (const bytes of this.#items("RevisionDocuments")) {
      const metadata = await dumpedMetadata(bytes, this.#isOld);
      if (metadata.exportType !== "") {
        await this.#content(bytes, metadata, revisionAttachments);
        continue;
      }
      if (!this.#isOfCollection(metadata)) {
        counts.skippedCount++;
        continue;
      }
      counts.readCount++;
      counts.sizeBytes += bytes.length;
      if (!isChangeVector(metadata.changeVector)) {
        counts.erroredCount++;
        this.#result.add(
          "ERROR",
          `A revision of '${metadata.id}' has no change vector, or a change vector that is too long. It is left out.`,
        );
      } else {
        const attachments = await this.#attachmentsOf(metadata, revisionAttachments);
        await this.#add(new RevisionItem(counts, bytes, metadata, attachments));
      }
    }
  }

  async tombstones(counts: ItemCounts): Promise<void> {
    for await (const { Key: key, Type: type } of this.#objects("Tombstones")) {
      if (typeof key !== "string" || key === "" || typeof type !== "string") {
        this.#refuse(counts, "A tombstone is not readable.");
        continue;
      }
      counts.readCount++;
      // Everything that belongs to a document is deleted with it.
      if (type === "Document") {
        const keepsRevision = this.#settings.isRestore !== true;
        await this.#add(new TombstoneItem(counts, key, keepsRevision));
      }
    }
  }

  /** Automatic indexes are left to queries; a failed deployment is reported in the messages. */
  async indexes(counts: ItemCounts): Promise<void> {
    for await (const item of this.#objects("Indexes")) {
      const { readCount } = counts;
      let name = "";
      try {
        const definition = this.#isOld ? presentIndex(item) : sentIndex(item);
        name = String(definition["Name"] ?? "");
        counts.readCount++;
        if (this.#isOld && obsoleteIndexes.has(name)) {
          this.#result.add("INFO", `Skipped '${name}' index. It is no longer needed.`);
        } else if (!String(item["Type"]).startsWith("Auto")) await this.#deploy(definition);
      } catch (error) {
        if (!(error instanceof EngineError)) throw error;
        counts.erroredCount++;
        // A definition with values of wrong types counts as not read.
        const isUnread = error.code === "invalid-format";
        if (isUnread) counts.readCount = readCount;
        const text = isUnread
          ? `Could not read index definition. Message: ${error.message}`
          : `Could not write index '${name}', error: ${error.message}`;
        this.#result.add(isUnread ? "WARNING" : "ERROR", text);
      }
    }
  }

  async #deploy(definition: JsonObject): Promise<void> {
    const wanted = this.#options.removesAnalyzers ? withoutAnalyzers(definition) : definition;
    const { mayDeployCSharp } = this.#settings;
    const commandIndex = await this.#settings.nextIndex();
    await this.#database.queries.administration.deploy([wanted], mayDeployCSharp, {
      source: "Smuggler",
      commandIndex,
    });
  }

  async identities(counts: ItemCounts): Promise<void> {
    for await (const item of this.#objects("Identities")) {
      const { Key: key, Value: sent } = item;
      const value = typeof sent === "string" && /^-?\d+$/.test(sent) ? Number(sent) : Number.NaN;
      const isReadable = typeof key === "string" && key !== "" && Number.isSafeInteger(value);
      if (!isReadable || !isIdentityName(key)) {
        counts.erroredCount++;
        this.#result.add("WARNING", "Could not read identity.");
        continue;
      }
      counts.readCount++;
      const name = this.#isOld ? presentIdentityName(key) : key;
      await this.#add(new IdentityItem(counts, name, value));
    }
  }

  async compareExchange(counts: ItemCounts, isDeletion: boolean): Promise<void> {
    const section = isDeletion ? "CompareExchangeTombstones" : "CompareExchange";
    for await (const { Key: key, Value: value } of this.#objects(section)) {
      const isValued = isDeletion || (value !== undefined && value !== null);
      if (typeof key !== "string" || key === "" || !isValued || !isCompareExchangeKey(key)) {
        this.#refuse(counts, "A compare-exchange item has no valid key, or no value.");
        continue;
      }
      if (!isDeletion && typeof value !== "string") {
        throw new EngineError(
          "invalid-format",
          `The value of '${key}' in ${section} is not a text.`,
        );
      }
      counts.readCount++;
      if (isGuardKey(key)) continue;
      await this.#add(new CompareExchangeItem(counts, key, isDeletion ? null : (value as string)));
    }
  }

  /** `{"DocId","Values":{"@names":{"likes":"Likes"},"@vals":{"likes":[value, etag, …]}}}`: one pair per node. */
  async counters(counts: ItemCounts): Promise<void> {
    for await (const { DocId: id, Values: groups } of this.#objects("CounterGroups")) {
      if (groups !== undefined && groups !== null && !isObject(groups)) {
        throw new EngineError("invalid-format", "The values of a group of counters are no object.");
      }
      const values = typeof id === "string" && isObject(groups) ? counterValues(groups) : null;
      if (typeof id !== "string" || values === null) {
        this.#refuse(counts, "A group of counters is not readable.");
        continue;
      }
      counts.readCount++;
      await this.#add(new CountersItem(counts, id, values));
    }
  }

  /** `{"DocId","Name","Value"}`, as in dumps of version 4.2 and earlier. */
  async oldCounters(counts: ItemCounts): Promise<void> {
    for await (const { DocId: id, Name: name, Value: sent } of this.#objects("Counters")) {
      const value = wholeOf(sent);
      if (typeof id === "string" && typeof name === "string" && value !== null) {
        counts.readCount++;
        await this.#add(new CountersItem(counts, id, [[name, value]]));
      } else this.#refuse(counts, "A counter is not readable.");
    }
  }

  /** A new task starts with the first document, and is enabled; an existing task of that name is kept. */
  async subscriptions(counts: ItemCounts): Promise<void> {
    const { subscriptions } = this.#database;
    for await (const item of this.#objects("Subscriptions")) {
      const { SubscriptionName: name, Query: query } = item;
      if (typeof name !== "string" || name === "" || typeof query !== "string") {
        counts.erroredCount++;
        this.#result.add("WARNING", "Could not read subscriptions entry.");
        continue;
      }
      counts.readCount++;
      const known = this.#database.state.keyspaces.subscriptions.get(subscriptionKey(name));
      if (known === undefined) {
        try {
          await subscriptions.put({ name, query }, await this.#settings.nextIndex());
          this.#committed++;
        } catch (error) {
          if (!(error instanceof EngineError)) throw error;
          this.#refuse(counts, `Subscription '${name}': ${error.message}`);
        }
      }
    }
  }

  async deletedRanges(counts: ItemCounts): Promise<void> {
    for await (const item of this.#objects("TimeSeriesDeletedRanges")) {
      const { DocId: id, Name: name } = item;
      const from = parseTimestamp(String(item["From"])) / 1000;
      const to = parseTimestamp(String(item["To"])) / 1000;
      const isReadable = typeof id === "string" && typeof name === "string" && from <= to;
      if (!isReadable) this.#refuse(counts, "A deleted range of a time series is not readable.");
      else {
        counts.readCount++;
        const range = { from: Math.ceil(from), to: Math.floor(to) };
        await this.#add(new SeriesItem(counts, id, name, [], range));
      }
    }
  }

  /** `{"@raven-data":{"DocId","Name","Baseline"},"@raven-blob-size":n}`, followed by n bytes. */
  async series(counts: ItemCounts): Promise<void> {
    for await (const bytes of this.#items("TimeSeries")) {
      const item = dumpValue(bytes) as JsonObject;
      const data = isObject(item["@raven-data"]) ? item["@raven-data"] : {};
      const { DocId: id, Name: name } = data;
      const length = blobLength(bytes);
      counts.sizeBytes += length;
      const baseline = parseTimestamp(String(data["Baseline"])) / 1000;
      if (typeof id !== "string" || typeof name !== "string" || Number.isNaN(baseline)) {
        await this.#passContent(length);
        this.#refuse(counts, "A segment of a time series is not readable.");
      } else if (length > seriesBlobMax) {
        await this.#passContent(length);
        this.#refuse(counts, `A segment of '${name}' of '${id}' has ${length} bytes.`);
      } else {
        const blob: Buffer[] = [];
        for await (const part of this.#reader.content(length)) blob.push(part);
        try {
          const entries = decodeSeriesBlob(Buffer.concat(blob), baseline);
          counts.readCount += entries.length;
          await this.#add(new SeriesItem(counts, id, name, entries));
        } catch (error) {
          if (!(error instanceof EngineError) || error.code !== "invalid-format") throw error;
          this.#refuse(counts, `'${name}' of '${id}': ${error.message}`);
        }
      }
    }
  }

  #refuse(counts: ItemCounts, text: string): void {
    counts.erroredCount++;
    this.#result.add("ERROR", `${text} It is left out.`);
  }

  /** Yields the items of a section, which must be objects. @throws EngineError json-invalid, json-not-object */
  async *#items(section: string): AsyncGenerator<Buffer> {
    for (;;) {
      const bytes = await this.#reader.nextItem(section);
      if (bytes === undefined) return;
      // A dump that was already received is read without a wait.
      await pauseIfDue();
      if (bytes[0] !== byteObjectOpen) {
        const token = tokenName(bytes, 0);
        if (token === "") throw misplaced(bytes, 0);
        throw new EngineError(
          "json-not-object",
          `Expected start of object in ${section} of the dump, but got ${token}.`,
        );
      }
      yield bytes;
    }
  }

  async *#objects(section: string): AsyncGenerator<JsonObject> {
    for await (const bytes of this.#items(section)) yield dumpValue(bytes) as JsonObject;
  }

  // Writing

  async #add(item: ImportItem): Promise<void> {
    this.#batch.push(item);
    this.#batchBytes += item.sizeBytes;
    if (this.#batch.length < importBatchItems && this.#batchBytes < importBatchBytes) return;
    await this.#flush();
  }

  /** Starts the transactions of the gathered items; waits when too many are in flight. */
  async #flush(): Promise<void> {
    this.#check();
    const items = this.#batch;
    this.#batch = [];
    this.#batchBytes = 0;
    for (let from = 0; from < items.length && this.#failure === null; ) {
      const first = items[from] as ImportItem; // from < length
      try {
        await first.prepare?.(this.#database.state);
      } catch (error) {
        this.#failure ??= { error: error instanceof EngineError ? placed(error, first) : error };
        break;
      }
      await pauseIfDue();
      const part = new ImportPart(items, from);
      const written = this.#write(part).catch((error: unknown) => {
        this.#failure ??= { error };
      });
      this.#inFlight.push(written);
      // Keeps the order of the dump when the transaction has to wait.
      if (!part.isDone) await written;
      from = part.end;
      while (this.#inFlight.length > importsInFlightMax) await this.#inFlight.shift();
    }
    this.#reportProgress();
    this.#check();
  }

  /** Writes everything gathered and waits until it is durable. */
  async #settle(): Promise<void> {
    await this.#flush();
    while (this.#inFlight.length > 0) await this.#inFlight.shift();
    this.#check();
  }

  /** After a failure: writes the items that were read completely, if possible. */
  async #writeRest(): Promise<void> {
    const isStopped = this.#failure !== null || this.#signal?.aborted === true;
    if (!isStopped) await this.#settle().catch(() => undefined);
    await Promise.all(this.#inFlight);
  }

  async #write(part: ImportPart): Promise<void> {
    const refused = await this.#database.write((transaction) => part.apply(transaction));
    this.#committed += part.count - refused.length;
    for (const { item, message } of refused) {
      item.counts.erroredCount++;
      this.#result.add("ERROR", message);
    }
  }

  #reportProgress(): void {
    const now = this.#database.clock.monotonicMs();
    if (now - this.#reportedAtMs < progressMs) return;
    this.#reportedAtMs = now;
    this.#progress(this.#result.toJson(false));
  }

  #check(): void {
    if (this.#failure !== null) throw this.#failure.error;
    if (this.#signal?.aborted !== true) return;
    throw new EngineError("operation-cancelled", "The import was stopped.");
  }

  /** Adds the number of items imported before. */
  #explained(error: unknown): unknown {
    if (!(error instanceof EngineError)) return error;
    const { code, details } = error;
    const done = `${this.#committed} items of the dump were imported before, up to byte ${this.#reader.position}.`;
    this.#result.add("ERROR", `${error.message} ${done}`);
    return new EngineError(
      code,
      `${error.message} ${done}`,
      details === undefined ? { cause: error } : { cause: error, details },
    );
  }
}

interface RefusedItem {
  readonly item: ImportItem;
  readonly message: string;
}

/** One transaction: the items of a batch from `from` on, until the time slice is used up. It may run again. */
class ImportPart {
  readonly #items: readonly ImportItem[];
  readonly #from: number;
  /** Index after the last item that it includes. */
  end: number;
  isDone = false;

  constructor(items: readonly ImportItem[], from: number) {
    this.#items = items;
    this.#from = from;
    this.end = from;
  }

  get count(): number {
    return this.end - this.#from;
  }

  /** Applies items in order; items of missing documents are refused, and skipped. */
  apply(transaction: Transaction): RefusedItem[] {
    const refused: RefusedItem[] = [];
    transaction.importsLists = true;
    const stopMs = performance.now() + sliceMs;
    // The next transaction starts at `end`: a second run must end there too, regardless of its duration.
    const end = this.isDone ? this.end : this.#items.length;
    this.end = this.#from;
    while (this.end < end) {
      const item = this.#items[this.end] as ImportItem; // end < length
      // A slow item must be the first, so that it can be prepared.
      const isLate = item.prepare !== undefined || performance.now() >= stopMs;
      if (!this.isDone && this.end > this.#from && isLate) break;
      this.end++;
      try {
        item.apply(transaction);
      } catch (error) {
        if (!(error instanceof EngineError)) throw error;
        const isPassedOver = error.code === "document-missing" || error.code === "counter-overflow";
        if (!isPassedOver) throw placed(error, item);
        refused.push({ item, message: error.message });
      }
    }
    this.isDone = true;
    return refused;
  }
}

/** Adds the item's name to the message, unless it contains it. */
function placed(error: EngineError, { name }: ImportItem): EngineError {
  const { code, message, details } = error;
  return new EngineError(
    code,
    message.includes(name.split("'")[1] ?? name) ? message : `${message} (${name})`,
    details === undefined ? { cause: error } : { cause: error, details },
  );
}

/** Size of the content that follows an item, in bytes; undefined when it is no attachment. @throws EngineError invalid-argument */
function contentLength(item: Buffer): number | undefined {
  // Most items do not contain it, and need not be parsed.
  if (!item.includes('"@export-type"')) return undefined;
  const { Size: length, "@metadata": metadata } = dumpValue(item) as JsonObject;
  if (!isObject(metadata) || metadata["@export-type"] !== "Attachment") return undefined;
  if (isLength(length)) return length;
  throw new EngineError("invalid-argument", "An attachment in the dump has no valid size.");
}

/** Size of the segment that follows an item of `TimeSeries`, in bytes. @throws EngineError invalid-operation, out-of-range */
function blobLength(item: Buffer): number {
  const { "@raven-blob-size": length } = dumpValue(item) as JsonObject;
  if (isLength(length)) return length;
  throw length === undefined
    ? new EngineError("invalid-operation", "A segment of a time series has no size.")
    : new EngineError("out-of-range", "The size of a segment of a time series is not valid.");
}

function isLength(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}

/** Returns the definition of an item of `Indexes`: `{"Type","IndexDefinition"}`. @throws EngineError invalid-format */
function sentIndex({ Type: type, IndexDefinition: definition }: JsonObject): JsonObject {
  if (!indexTypes.has(type)) {
    throw new EngineError("invalid-format", "Could not read index type.");
  }
  if (isObject(definition)) return definition;
  throw new EngineError("invalid-format", "Could not read index definition");
}

function isIdentityName(name: string): boolean {
  return isValid(() => checkIdentityName(name));
}

function isCompareExchangeKey(key: string): boolean {
  return isValid(() => checkCompareExchangeKey(key));
}

function isValid(check: () => void): boolean {
  try {
    check();
    return true;
  } catch (error) {
    if (error instanceof EngineError) return false;
    throw error;
  }
}

/** Returns the names and values of a group of counters; null when they are not readable. */
function counterValues(groups: JsonObject): (readonly [string, bigint])[] | null {
  const names = isObject(groups["@names"]) ? groups["@names"] : {};
  if (!isObject(groups["@vals"])) return null;
  const values: (readonly [string, bigint])[] = [];
  for (const [key, pairs] of Object.entries(groups["@vals"])) {
    // A deleted counter has a string.
    if (typeof pairs === "string") continue;
    if (!Array.isArray(pairs)) return null;
    let sum = 0n;
    for (let i = 0; i < pairs.length; i += 2) {
      const value = wholeOf(pairs[i]);
      if (value === null) return null;
      sum += value;
    }
    values.push([String(names[key] ?? key), sum]);
  }
  return values;
}

function isChangeVector(text: string): boolean {
  if (text.length > changeVectorBytesMax) return false;
  return /^[A-Za-z]+:\d+-[A-Za-z0-9+/]{22}(, ?[A-Za-z]+:\d+-[A-Za-z0-9+/]{22})*$/.test(text);
}

/** Returns a 64-bit integer from `dumpValue`; null for other values. */
function wholeOf(value: unknown): bigint | null {
  if (typeof value === "number") return Number.isSafeInteger(value) ? BigInt(value) : null;
  return typeof value === "string" && /^-?\d{1,20}$/.test(value) ? BigInt(value) : null;
}
