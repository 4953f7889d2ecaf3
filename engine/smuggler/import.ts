/**
 * Imports a dump into a database, section by section as it arrives, in transactions of many items, which are written to
 * disk while the next one is gathered.
 *
 * Invariants:
 * - Items are written in the order of the dump. Each transaction is atomic, and those committed before the import fails
 *   are kept.
 * - Memory is bounded: the items of a few transactions, and the hashes of attachments.
 * - An attachment is bound only to a content with its hash.
 */

import { foldedName } from "../base/case-folding.ts";
import { EngineError } from "../base/errors.ts";
import {
  changeVectorBytesMax,
  importBatchBytes,
  importBatchItems,
  importsInFlightMax,
  sliceMs,
} from "../base/limits.ts";
import { parseTimestamp } from "../base/timestamp.ts";
import { turnIsOver } from "../base/turns.ts";
import { documentFlags } from "../documents/document-record.ts";
import { withoutAnalyzers } from "../indexing/definition-json.ts";
import type { JsonObject } from "../json/json-object.ts";
import type { DumpSection } from "../keyspaces/state-kinds.ts";
import { subscriptionKey } from "../keyspaces/subscriptions.ts";
import type { OperationFigures } from "../store/operations.ts";
import type { Store } from "../store/store.ts";
import type { Transaction } from "../store/transaction.ts";
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
  isObject,
  RevisionItem,
  SeriesItem,
  TombstoneItem,
} from "./import-items.ts";
import { decodeSeriesBlob } from "./series-blob.ts";
import type { ItemCounts, ResultKind, SmugglerResult } from "./smuggler-result.ts";
import { type DocumentTransform, transformOf } from "./transform.ts";

const progressMs = 500;
/** Dumps of this build and later have the present format; older ones name collections otherwise. */
const presentBuild = 40_000;
/** Maximum bytes of a segment of a time series. */
const seriesBlobMax = 64 * 1024;
/** Bytes after the dump that are read so that its source can end normally. */
const trailingBytesMax = 64 * 1024;

/** Settings of an import besides its options. */
export interface ImportSettings {
  /** May the database's record be changed? */
  readonly mayChangeRecord: boolean;
  /** May indexes in C# be deployed? */
  readonly mayDeployCSharp: boolean;
  /**
   * The dump is a file of a backup, and the database has what the files before it had: documents replace what is
   * there, with all that belongs to them, and the whole record is taken over.
   */
  readonly isRestore?: boolean;
  /** The index of the next command that changes the record or defines something. */
  nextIndex(): Promise<number>;
}

/** Keys of the sections that have state of ours, and of those that are read besides. */
type StateKey = Exclude<DumpSection, "Documents"> | "Docs";
type OtherKey =
  | "Conflicts"
  | "CompareExchangeTombstones"
  | "Counters"
  | "TimeSeriesDeletedRanges"
  | "ReplicationHubCertificates";

/** Handlers of sections, by their keys in the dump. */
type SectionReader = (run: DumpImport, counts: ItemCounts) => Promise<void>;

interface Section {
  readonly type: DumpItemType;
  readonly kind: ResultKind;
  /** Undefined: its items are read and counted, but there is nothing to import them into. */
  readonly read?: SectionReader;
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
};

function sectionOf(key: string): Section | undefined {
  return Object.hasOwn(sections, key) ? sections[key as keyof typeof sections] : undefined;
}

/** A store, with the services that import definitions. */
export type ImportedStore = Store & {
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
  #build = Number.POSITIVE_INFINITY;
  #toldAtMs: number;
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
    this.#toldAtMs = database.clock.monotonicMs();
  }

  async run(): Promise<void> {
    try {
      await this.#reader.open();
      for (let key = await this.#reader.nextSection(); key !== undefined; ) {
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
    if (key === "BuildVersion") {
      this.#build = await this.#buildVersion();
      return;
    }
    if (key === "DatabaseRecord") {
      await this.#record(await this.#reader.value());
      return;
    }
    await this.#reader.openArray();
    const section = sectionOf(key);
    if (section === undefined) {
      this.#result.add(
        "WARNING",
        `You are trying to import items of type '${key}' which is unknown or not supported. Ignoring items.`,
      );
      await this.#pass(key);
      return;
    }
    const { type, kind, read } = section;
    if (!this.#isWanted(type)) {
      const readCount = await this.#pass(key);
      const counts = this.#result.of(kind);
      counts.readCount += readCount;
      counts.skippedCount += readCount;
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
    const build = Number(bytes.toString("latin1"));
    if (Number.isSafeInteger(build)) return build;
    throw new EngineError(
      "invalid-operation",
      `Invalid JSON. Expected integer BuildVersion, but got ${bytes.toString("utf8", 0, 100)}`,
    );
  }

  /** Skips items and the bytes that follow them. @returns how many there were */
  async #pass(key: string): Promise<number> {
    let count = 0;
    for (;;) {
      const bytes = await this.#reader.nextItem(key);
      if (bytes === undefined) return count;
      count++;
      const length = bytesBehind(bytes, key === "TimeSeries" ? "blob" : "content");
      if (length > 0) await this.#passContent(length);
    }
  }

  async #passContent(length: number): Promise<void> {
    for await (const _ of this.#reader.content(length));
  }

  /** Skips items that cannot be imported. */
  async #unread(key: string, counts: ItemCounts): Promise<void> {
    counts.readCount += await this.#pass(key);
    if (counts.readCount === 0) return;
    this.#result.add("WARNING", `Items of type '${key}' are not imported: there are none here.`);
  }

  async #record(bytes: Buffer): Promise<void> {
    if (!this.#isWanted("DatabaseRecord")) {
      this.#result.skip("DatabaseRecord");
      return;
    }
    const counts = this.#result.start("DatabaseRecord");
    counts.readCount++;
    const dumped = dumpValue(bytes);
    if (!isObject(dumped)) throw new EngineError("json-not-object", "DatabaseRecord is no object.");
    const change = recordChange(
      dumped,
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
      const metadata = await dumpedMetadata(bytes);
      if (metadata.exportType !== "") {
        await this.#content(bytes, metadata, documentAttachments);
        continue;
      }
      // RavenDB does not count documents of other collections as read.
      if (!this.#isOfCollection(metadata)) {
        counts.skippedCount++;
        continue;
      }
      counts.readCount++;
      counts.sizeBytes += bytes.length;
      if (!this.#isTaken(metadata)) counts.skippedCount++;
      else await this.#document(counts, bytes, metadata);
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

  /** The text to store; null when the script leaves the document out. */
  #textOf(bytes: Buffer, metadata: DumpedMetadata): Buffer | null {
    const isOld = this.#build < presentBuild;
    if (this.#transform === undefined && !isOld) return bytes;
    const metadataText = isOld ? presentMetadata(metadata.text) : metadata.text;
    const { parser } = this.#database.state;
    const body = parser.parse(bytes, 0, bytes.length).body.utf8Slice();
    if (this.#transform !== undefined) {
      const text = this.#transform.run(body, metadataText, metadata.id);
      return text === null ? null : Buffer.from(text);
    }
    const separator = body === "{}" ? "" : ",";
    return Buffer.from(`${body.slice(0, -1)}${separator}"@metadata":${metadataText}}`);
  }

  /** The attachments that can be bound, as their contents exist. */
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

  /** The content of an attachment, or an item of an unknown kind. */
  async #content(bytes: Buffer, { exportType }: DumpedMetadata, counts: ItemCounts): Promise<void> {
    const length = bytesBehind(bytes, "content");
    const item = dumpValue(bytes) as JsonObject;
    if (exportType !== "Attachment") {
      const shown = bytes.utf8Slice(0, Math.min(bytes.length, 200));
      this.#result.add("WARNING", `Ignoring an item of type \`${exportType}\`. ${shown}`);
      return;
    }
    if (!this.#options.types.has("Attachments")) {
      await this.#passContent(length);
      return;
    }
    counts.sizeBytes += length;
    const hash = String(item["Hash"] ?? "");
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
      const metadata = await dumpedMetadata(bytes);
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
          `A revision of '${metadata.id}' has no change vector, or one that is too long. It is left out.`,
        );
      } else {
        const attachments = await this.#attachmentsOf(metadata, revisionAttachments);
        await this.#add(new RevisionItem(counts, bytes, metadata, attachments));
      }
    }
  }

  async tombstones(counts: ItemCounts): Promise<void> {
    for await (const item of this.#objects("Tombstones", counts)) {
      const { Key: key, Type: type } = item;
      // Everything that belongs to a document is deleted with it.
      if (type === "Document" && typeof key === "string" && key !== "") {
        const keepsRevision = this.#settings.isRestore !== true;
        await this.#add(new TombstoneItem(counts, key, keepsRevision));
      }
    }
  }

  /**
   * `{"Type","IndexDefinition"}`. Automatic indexes are left to queries; a failed deployment is reported in the
   * messages.
   */
  async indexes(counts: ItemCounts): Promise<void> {
    for await (const { Type: type, IndexDefinition: definition } of this.#objects(
      "Indexes",
      counts,
    )) {
      if (typeof type === "string" && type.startsWith("Auto")) continue;
      const whole = isObject(definition) ? definition : {};
      const wanted = this.#options.removesAnalyzers ? withoutAnalyzers(whole) : whole;
      try {
        await this.#database.queries.administration.deploy(
          [wanted],
          this.#settings.mayDeployCSharp,
          {
            source: "Smuggler",
            commandIndex: await this.#settings.nextIndex(),
          },
        );
      } catch (error) {
        if (!(error instanceof EngineError)) throw error;
        counts.erroredCount++;
        const name = String(whole["Name"]);
        this.#result.add("ERROR", `Could not write index with name '${name}': ${error.message}`);
      }
    }
  }

  async identities(counts: ItemCounts): Promise<void> {
    for await (const item of this.#objects("Identities", counts)) {
      const { Key: key, Value: sent } = item;
      const value = typeof sent === "string" && /^-?\d+$/.test(sent) ? Number(sent) : Number.NaN;
      if (typeof key === "string" && key !== "" && Number.isSafeInteger(value)) {
        await this.#add(new IdentityItem(counts, key, value));
      } else {
        counts.readCount--;
        counts.erroredCount++;
        this.#result.add("WARNING", "Could not read identity.");
      }
    }
  }

  async compareExchange(counts: ItemCounts, isDeletion: boolean): Promise<void> {
    const section = isDeletion ? "CompareExchangeTombstones" : "CompareExchange";
    for await (const item of this.#objects(section, counts)) {
      const { Key: key, Value: value } = item;
      if (typeof key !== "string" || (!isDeletion && typeof value !== "string")) {
        throw new EngineError("invalid-format", `An item of ${section} has no key, or no value.`);
      }
      if (isGuardKey(key)) continue;
      await this.#add(new CompareExchangeItem(counts, key, isDeletion ? null : (value as string)));
    }
  }

  /** `{"DocId","Values":{"@names":{"likes":"Likes"},"@vals":{"likes":[value, etag, …]}}}`: one pair per node. */
  async counters(counts: ItemCounts): Promise<void> {
    for await (const item of this.#objects("CounterGroups", counts)) {
      const groups = item["Values"];
      const values: (readonly [string, bigint])[] = [];
      if (typeof item["DocId"] === "string" && isObject(groups)) {
        const names = isObject(groups["@names"]) ? groups["@names"] : {};
        for (const [key, pairs] of Object.entries((groups["@vals"] ?? {}) as JsonObject)) {
          // A deleted counter has a string.
          if (!Array.isArray(pairs)) continue;
          let sum = 0n;
          for (let i = 0; i < pairs.length; i += 2) sum += wholeOf(pairs[i]);
          values.push([String(names[key] ?? key), sum]);
        }
        await this.#add(new CountersItem(counts, item["DocId"], values));
      } else this.#refuse(counts, "A group of counters is not readable.");
    }
  }

  /** `{"DocId","Name","Value"}`, as in dumps of version 4.2 and earlier. */
  async oldCounters(counts: ItemCounts): Promise<void> {
    for await (const item of this.#objects("Counters", counts)) {
      const { DocId: id, Name: name } = item;
      if (typeof id === "string" && typeof name === "string") {
        await this.#add(new CountersItem(counts, id, [[name, wholeOf(item["Value"])]]));
      } else this.#refuse(counts, "A counter is not readable.");
    }
  }

  /** A new task starts with the first document, and is enabled; an existing task of that name is kept. */
  async subscriptions(counts: ItemCounts): Promise<void> {
    const { subscriptions } = this.#database;
    for await (const item of this.#objects("Subscriptions", counts)) {
      const { SubscriptionName: name, Query: query } = item;
      if (typeof name !== "string" || name === "" || typeof query !== "string") {
        counts.readCount--;
        counts.erroredCount++;
        this.#result.add("WARNING", "Could not read subscriptions entry.");
      } else if (
        this.#database.state.keyspaces.subscriptions.get(subscriptionKey(name)) === undefined
      ) {
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
    for await (const item of this.#objects("TimeSeriesDeletedRanges", counts)) {
      const { DocId: id, Name: name } = item;
      const from = parseTimestamp(String(item["From"])) / 1000;
      const to = parseTimestamp(String(item["To"])) / 1000;
      const isReadable = typeof id === "string" && typeof name === "string" && from <= to;
      if (!isReadable) this.#refuse(counts, "A deleted range of a time series is not readable.");
      else {
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
      const length = bytesBehind(bytes, "blob");
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

  async *#items(section: string): AsyncGenerator<Buffer> {
    for (;;) {
      const bytes = await this.#reader.nextItem(section);
      if (bytes === undefined) return;
      // A dump that was already received is read without a wait.
      await turnIsOver();
      yield bytes;
    }
  }

  /** The items of a section, which must be objects; each is counted. @throws EngineError json-not-object */
  async *#objects(section: string, counts: ItemCounts): AsyncGenerator<JsonObject> {
    for await (const bytes of this.#items(section)) {
      const item = dumpValue(bytes);
      if (!isObject(item)) {
        throw new EngineError("json-not-object", `An item of ${section} is no object.`);
      }
      counts.readCount++;
      yield item;
    }
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
      await turnIsOver();
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
    this.#tell();
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

  #tell(): void {
    const now = this.#database.clock.monotonicMs();
    if (now - this.#toldAtMs < progressMs) return;
    this.#toldAtMs = now;
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

  /** Applies items in order; those of missing documents are refused, and skipped. */
  apply(transaction: Transaction): RefusedItem[] {
    const refused: RefusedItem[] = [];
    const stopMs = performance.now() + sliceMs;
    // The next transaction starts at `end`: a second run must end there too, however long it takes.
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

/** Number of bytes that follow an item: the content of an attachment, or a segment of a time series. */
function bytesBehind(item: Buffer, what: "content" | "blob"): number {
  // Most items have none, and need not be parsed.
  if (!item.includes(what === "blob" ? '"@raven-blob-size"' : '"@export-type"')) return 0;
  const parsed = dumpValue(item);
  if (!isObject(parsed)) return 0;
  const metadata = parsed["@metadata"];
  const isContent = isObject(metadata) && metadata["@export-type"] === "Attachment";
  if (what === "content" && !isContent) return 0;
  const length = parsed[isContent ? "Size" : "@raven-blob-size"];
  if (typeof length === "number" && Number.isSafeInteger(length) && length >= 0) return length;
  throw new EngineError("invalid-format", "An item of the dump says no size of its content.");
}

function isChangeVector(text: string): boolean {
  if (text.length > changeVectorBytesMax) return false;
  return /^[A-Za-z]+:\d+-[A-Za-z0-9+/]{22}(, ?[A-Za-z]+:\d+-[A-Za-z0-9+/]{22})*$/.test(text);
}

/** A 64-bit integer from `dumpValue`; 0 for anything else. */
function wholeOf(value: unknown): bigint {
  if (typeof value === "number") return Number.isSafeInteger(value) ? BigInt(value) : 0n;
  return typeof value === "string" && /^-?\d{1,20}$/.test(value) ? BigInt(value) : 0n;
}

/** Metadata keys generated by versions before 4.0. */
const oldKeys: ReadonlySet<string> = new Set([
  "@etag",
  "Last-Modified",
  "Raven-Last-Modified",
  "Raven-Entity-Name",
  "Non-Authoritative-Information",
]);

/** Converts the metadata of a document of a version before 4.0 to the present format. */
function presentMetadata(text: string): string {
  const old = JSON.parse(text) as JsonObject;
  const kept = Object.entries(old).filter(([key]) => !oldKeys.has(key));
  const collection = old["Raven-Entity-Name"];
  if (typeof collection === "string") kept.push(["@collection", collection]);
  return JSON.stringify(Object.fromEntries(kept));
}
