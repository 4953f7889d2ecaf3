/**
 * The items of a dump: each is parsed once, and applied in a transaction, perhaps several times. Semantics equal those
 * of RavenDB 7.2.7, with one difference: a counter is set to the value in the dump, regardless of its previous value,
 * since values are not stored per node.
 */

import { lowerCased } from "../../base/case-folding.ts";
import { dueTimeOf } from "../../base/due-time.ts";
import { EngineError } from "../../base/errors.ts";
import { isObject, type JsonObject } from "../../base/json/json-object.ts";
import { scanObject } from "../../base/json/object-scan.ts";
import { eachRawMember, parsedText } from "../../base/json/raw-scan.ts";
import {
  checkAttachmentName,
  checkCompareExchangeKey,
  checkDocumentId,
  shown,
} from "../../base/names.ts";
import { parseTimestamp } from "../../base/timestamp.ts";
import { guardPrefix, putGuarded } from "../../batches/cluster-batch.ts";
import { DocumentParser } from "../../state/documents/document-parser.ts";
import { documentFlags } from "../../state/documents/document-record.ts";
import type { ParsedDocument } from "../../state/documents/parsed-document.ts";
import { compareExchangeKey } from "../../state/keyspaces/compare-exchange.ts";
import { identityKey } from "../../state/keyspaces/identities.ts";
import type { SeriesEntry } from "../../state/keyspaces/time-series/series-segment.ts";
import type { DatabaseState } from "../../state/store/database-state.ts";
import type { Transaction } from "../../state/store/transaction.ts";
import type { BlobStore, Lease } from "../../storage/log/blob-store.ts";
import { bindAttachment } from "../../writes/attachments.ts";
import { nextIndex } from "../../writes/compare-exchange.ts";
import { setCounter } from "../../writes/counters.ts";
import {
  deleteDocument,
  type PutOptions,
  putParsed,
  seedIdentity,
} from "../../writes/documents.ts";
import {
  type DocumentText,
  isPrepared,
  parsedOf,
  prepareDocument,
} from "../../writes/prepared-document.ts";
import { importRevision } from "../../writes/revisions.ts";
import { deleteFromSeries, importSeries } from "../../writes/time-series.ts";
import { type OldDocumentKind, oldDocumentKind, presentMetadata } from "./old-dump.ts";
import { type DocumentParts, removeOtherParts } from "./replaced-parts.ts";
import type { ItemCounts } from "./smuggler-result.ts";

/** One item that an import writes. */
export interface ImportItem {
  /** Its bytes in the dump. */
  readonly sizeBytes: number;
  readonly counts: ItemCounts;
  /** A description, for messages. */
  readonly name: string;
  /** Slow work to be done before its transaction. @throws EngineError */
  readonly prepare?: ((state: DatabaseState) => Promise<void>) | undefined;
  /** Must have no effect except on the transaction. @throws EngineError */
  apply(transaction: Transaction): void;
}

/** The name of an attachment in a document; its content is in the blob store. */
interface ImportedAttachment {
  readonly name: string;
  readonly hash: string;
  readonly contentType: string;
  readonly size: number;
}

/** The parts of a document's or revision's `@metadata` that are read before it is parsed as a whole. */
export interface DumpedMetadata {
  readonly id: string;
  readonly collection: string;
  readonly changeVector: string;
  /** Microseconds since 1970; undefined if missing. */
  readonly lastModified: number | undefined;
  /** Bits of `documentFlags`. */
  readonly flags: number;
  readonly attachments: readonly ImportedAttachment[];
  /** Names in its lists of counters and time series. */
  readonly counters: readonly string[];
  readonly timeSeries: readonly string[];
  /** Microseconds since 1970; undefined: never. */
  readonly expires: number | undefined;
  readonly isArchived: boolean;
  /** The type of an item that is not a document; "" for documents. */
  readonly exportType: string;
  /** "document", except in dumps of old versions. */
  readonly kind: OldDocumentKind;
  /** The text of `@metadata`. */
  readonly text: string;
}

/**
 * `isOld`: the dump has the format of RavenDB 3.5.
 * @throws EngineError json-invalid, json-not-object; invalid-argument for an empty id; invalid-format
 */
export async function dumpedMetadata(bytes: Buffer, isOld: boolean): Promise<DumpedMetadata> {
  if (bytes[0] !== 0x7b) {
    throw new EngineError("json-not-object", "Expected start of object in the dump's documents.");
  }
  let metadata: unknown;
  let text = "{}";
  const isLong = isPrepared(bytes.length);
  const ends = isLong ? (await scanObject(bytes, 0, bytes.length)).ends : undefined;
  const look = (key: string, from: number, to: number) => {
    if (key !== "@metadata") return;
    metadata = parsedText(bytes, from, to);
    text = bytes.utf8Slice(from, to);
  };
  eachRawMember(bytes, 0, bytes.length, look, ends);
  if (metadata !== undefined && !isObject(metadata)) {
    throw new EngineError("invalid-format", "@metadata of a document is not an object.");
  }
  const sent = metadata ?? {};
  const exportType = typeof sent["@export-type"] === "string" ? sent["@export-type"] : "";
  const id = exportType === "" ? idOf(sent["@id"]) : "";
  const kind = isOld ? oldDocumentKind(id, sent) : "document";
  if (isOld) {
    text = presentMetadata(id, text);
    metadata = JSON.parse(text);
  }
  const known = isOld ? (metadata as JsonObject) : sent;
  const key =
    isOld && sent["@last-modified"] === undefined ? "Raven-Last-Modified" : "@last-modified";
  return {
    id,
    collection:
      typeof known["@collection"] === "string" ? known["@collection"] || "@empty" : "@empty",
    changeVector: textOf(known, "@change-vector", id, true),
    lastModified: timeOf(sent, key, id),
    flags: flagsOf(textOf(known, "@flags", id, false)),
    attachments: attachmentsOf(known["@attachments"]),
    counters: namesOf(known, "@counters", id),
    timeSeries: namesOf(known, "@timeseries", id),
    expires: expiryOf(known["@expires"]),
    isArchived: isArchived(known["@archived"]),
    exportType,
    kind,
    text,
  };
}

function idOf(value: unknown): string {
  if (typeof value !== "string") {
    throw new EngineError("json-invalid", "Document does not contain an id.");
  }
  if (value === "") throw new EngineError("invalid-argument", "The id of a document is empty.");
  return value;
}

/** Returns a member with a text; "" if it is missing. @throws EngineError json-invalid */
function textOf(metadata: JsonObject, key: string, id: string, mayBeNull: boolean): string {
  const value = metadata[key];
  if (value === undefined || (value === null && mayBeNull)) return "";
  if (typeof value === "string") return value;
  throw new EngineError(
    "json-invalid",
    `Expected property @metadata.${key} to have string type, but was: ${JSON.stringify(value)}. Id: '${shown(id)}'.`,
  );
}

/** @throws EngineError invalid-format */
function isArchived(value: unknown): boolean {
  if (typeof value !== "string") return value === true;
  throw new EngineError(
    "invalid-format",
    `@archived of a document is not a boolean: '${shown(value)}'.`,
  );
}

function timeOf(metadata: JsonObject, key: string, id: string): number | undefined {
  const value = metadata[key];
  if (value === undefined) return undefined;
  const time = typeof value === "string" ? parseTimestamp(value) : Number.NaN;
  // Records cannot represent times before 1970.
  if (Number.isNaN(time) || time < 0) {
    throw new EngineError(
      "json-invalid",
      `Cannot parse the value of property @metadata.${key}: ${String(value)}. Id: '${id}'.`,
    );
  }
  return time;
}

function expiryOf(value: unknown): number | undefined {
  const time = dueTimeOf(value);
  return Number.isNaN(time) ? undefined : time;
}

/** Unknown words are ignored. */
function flagsOf(text: string): number {
  let flags = 0;
  for (const word of text.split(",")) {
    const name = word.trim();
    if (Object.hasOwn(documentFlags, name))
      flags |= documentFlags[name as keyof typeof documentFlags];
  }
  return flags;
}

/** @throws EngineError invalid-format */
function attachmentsOf(value: unknown): ImportedAttachment[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value) || !value.every(isObject)) {
    throw new EngineError("invalid-format", "@attachments of a document is not a list of objects.");
  }
  return value.map((row) => ({
    name: String(row["Name"] ?? ""),
    hash: String(row["Hash"] ?? ""),
    contentType: String(row["ContentType"] ?? ""),
    size: Number(row["Size"] ?? 0),
  }));
}

/** @throws EngineError json-invalid */
function namesOf(metadata: JsonObject, key: string, id: string): string[] {
  const value = metadata[key];
  if (value === undefined) return [];
  if (Array.isArray(value)) return value.filter((name) => typeof name === "string");
  throw new EngineError(
    "json-invalid",
    `Expected property @metadata.${key} to have array type, but was: ${JSON.stringify(value)}. Id: '${shown(id)}'.`,
  );
}

/** How a document is stored. */
interface DocumentFate {
  readonly id: string;
  readonly collection: string;
  readonly options: PutOptions;
  /** It has an atomic guard, because a cluster-wide session wrote it. */
  readonly isGuarded: boolean;
  readonly attachments: readonly ImportedAttachment[];
  /** Parts of an existing document that are not listed here are removed; null: all are retained. */
  readonly replaces: DocumentParts | null;
}

export class DocumentItem implements ImportItem {
  readonly sizeBytes: number;
  readonly counts: ItemCounts;
  readonly #bytes: Buffer;
  readonly #fate: DocumentFate;
  readonly prepare: ImportItem["prepare"];
  #prepared: ParsedDocument | null = null;

  /** `bytes`: the document's text. */
  constructor(counts: ItemCounts, bytes: Buffer, fate: DocumentFate) {
    this.counts = counts;
    this.sizeBytes = bytes.length;
    this.#bytes = bytes;
    this.#fate = fate;
    if (!isPrepared(bytes.length)) return;
    this.prepare = async (state) => {
      this.#prepared = await prepareDocument(state, this.#text, fate.id);
    };
  }

  get name(): string {
    return `document '${shown(this.#fate.id)}'`;
  }

  get #text(): DocumentText {
    return { bytes: this.#bytes, from: 0, to: this.#bytes.length };
  }

  apply(transaction: Transaction): void {
    const { id, collection, options, isGuarded, attachments, replaces } = this.#fate;
    const { state, keyspaces } = transaction;
    const { collections } = keyspaces;
    checkDocumentId(id);
    if (replaces !== null) removeOtherParts(transaction, id, collection, replaces);
    for (const attachment of attachments) {
      checkAttachmentName(attachment.name);
      bindAttachment(transaction, id, attachment, collections.intern(collection));
    }
    const parsed = parsedOf(state, this.#text, this.#prepared);
    if (isGuarded) putGuarded(transaction, id, parsed, options);
    else putParsed(transaction, id, parsed, undefined, undefined, options);
  }
}

export class RevisionItem implements ImportItem {
  readonly sizeBytes: number;
  readonly counts: ItemCounts;
  readonly #bytes: Buffer;
  readonly prepare: ImportItem["prepare"];
  #prepared: ParsedDocument | null = null;
  readonly #metadata: DumpedMetadata;
  readonly #attachments: readonly ImportedAttachment[];

  constructor(
    counts: ItemCounts,
    bytes: Buffer,
    metadata: DumpedMetadata,
    attachments: readonly ImportedAttachment[],
  ) {
    this.counts = counts;
    this.sizeBytes = bytes.length;
    this.#bytes = bytes;
    this.#metadata = metadata;
    this.#attachments = attachments;
    if (!isPrepared(bytes.length)) return;
    this.prepare = async (state) => {
      this.#prepared = await prepareDocument(state, this.#text, metadata.id);
    };
  }

  get name(): string {
    return `revision '${this.#metadata.changeVector}' of document '${shown(this.#metadata.id)}'`;
  }

  apply(transaction: Transaction): void {
    const { id, changeVector, lastModified, flags } = this.#metadata;
    const parsed = parsedOf(transaction.state, this.#text, this.#prepared);
    importRevision(transaction, id, parsed, {
      changeVector,
      lastModified: lastModified ?? transaction.state.nextModified(),
      flags,
      attachments: this.#attachments,
    });
  }

  get #text(): DocumentText {
    return { bytes: this.#bytes, from: 0, to: this.#bytes.length };
  }
}

/** The deletion of a document. */
export class TombstoneItem implements ImportItem {
  readonly sizeBytes = 128;
  readonly counts: ItemCounts;
  readonly #id: string;
  readonly #keepsRevision: boolean;

  /** `keepsRevision`: the deletion leaves revisions as any other does; else the dump has them. */
  constructor(counts: ItemCounts, id: string, keepsRevision: boolean) {
    this.counts = counts;
    this.#id = id;
    this.#keepsRevision = keepsRevision;
  }

  get name(): string {
    return `deletion of document '${shown(this.#id)}'`;
  }

  apply(transaction: Transaction): void {
    deleteDocument(transaction, this.#id, undefined, undefined, this.#keepsRevision);
  }
}

/** The last number of an identity; a greater existing one is kept. */
export class IdentityItem implements ImportItem {
  readonly sizeBytes = 64;
  readonly counts: ItemCounts;
  readonly #key: string;
  readonly #value: number;

  constructor(counts: ItemCounts, key: string, value: number) {
    this.counts = counts;
    this.#key = key;
    this.#value = value;
  }

  get name(): string {
    return `identity '${shown(this.#key)}'`;
  }

  apply(transaction: Transaction): void {
    seedIdentity(transaction, identityKey(this.#key), this.#value, false);
  }
}

const valueParser = new DocumentParser(null);

/** Replaces a compare-exchange value; null: deletes it. */
export class CompareExchangeItem implements ImportItem {
  readonly sizeBytes: number;
  readonly counts: ItemCounts;
  readonly #key: string;
  readonly #text: string | null;

  /** @throws EngineError json-…, compare-exchange-key-too-big */
  constructor(counts: ItemCounts, key: string, text: string | null) {
    checkCompareExchangeKey(key);
    this.counts = counts;
    this.#key = key;
    this.sizeBytes = 64 + (text?.length ?? 0);
    this.#text = text === null ? null : minifiedObject(text);
  }

  get name(): string {
    return `compare exchange value '${shown(this.#key)}'`;
  }

  apply(transaction: Transaction): void {
    const { compareExchange } = transaction.keyspaces;
    const key = compareExchangeKey(this.#key);
    const current = transaction.entry(compareExchange, key);
    if (this.#text === null) {
      if (current !== undefined) transaction.putEntry(compareExchange, key, undefined);
      return;
    }
    const index = nextIndex(transaction);
    transaction.putEntry(compareExchange, key, {
      key: current?.key ?? this.#key,
      index,
      text: this.#text,
    });
  }
}

/** Guards are imported with their documents. */
export function isGuardKey(key: string): boolean {
  return lowerCased(key).startsWith(guardPrefix);
}

function minifiedObject(text: string): string {
  const bytes = Buffer.from(text);
  valueParser.parse(bytes, 0, bytes.length); // verifies that it is an object
  return valueParser.parseValue(bytes, 0, bytes.length).body.utf8Slice();
}

export class CountersItem implements ImportItem {
  readonly sizeBytes: number;
  readonly counts: ItemCounts;
  readonly #documentId: string;
  readonly #values: readonly (readonly [name: string, value: bigint])[];

  constructor(
    counts: ItemCounts,
    documentId: string,
    values: readonly (readonly [name: string, value: bigint])[],
  ) {
    this.counts = counts;
    this.sizeBytes = 64 * (values.length + 1);
    this.#documentId = documentId;
    this.#values = values;
  }

  get name(): string {
    return `counters of document '${shown(this.#documentId)}'`;
  }

  apply(transaction: Transaction): void {
    for (const [name, value] of this.#values) {
      setCounter(transaction, this.#documentId, name, value);
    }
  }
}

/** Entries of a time series, or a deleted range of it. */
export class SeriesItem implements ImportItem {
  readonly sizeBytes: number;
  readonly counts: ItemCounts;
  readonly #documentId: string;
  readonly #series: string;
  readonly #entries: readonly SeriesEntry[];
  readonly #deleted: { readonly from: number; readonly to: number } | null;

  constructor(
    counts: ItemCounts,
    documentId: string,
    series: string,
    entries: readonly SeriesEntry[],
    deleted: { readonly from: number; readonly to: number } | null = null,
  ) {
    this.counts = counts;
    this.sizeBytes = 128 + 32 * entries.length;
    this.#documentId = documentId;
    this.#series = series;
    this.#entries = entries;
    this.#deleted = deleted;
  }

  get name(): string {
    return `time series '${this.#series}' of document '${shown(this.#documentId)}'`;
  }

  apply(transaction: Transaction): void {
    if (this.#deleted === null) {
      importSeries(transaction, this.#documentId, this.#series, this.#entries);
    } else if (transaction.find(this.#documentId) >= 0) {
      const { from, to } = this.#deleted;
      deleteFromSeries(transaction, this.#documentId, this.#series, from, to);
    }
  }
}

/** The contents of the dump's attachments, leased until the import ends. */
export class DumpedContents {
  readonly #blobs: BlobStore;
  readonly #leases = new Map<string, Lease>();

  constructor(blobs: BlobStore) {
    this.#blobs = blobs;
  }

  /**
   * Stores a content. @returns false if it does not match its hash; then it is not stored.
   * @throws EngineError disk-full, and the errors of the source
   */
  async store(hash: string, bytes: AsyncIterable<Buffer>): Promise<boolean> {
    const lease = await this.#blobs.store(bytes);
    if (lease.hash !== hash || this.#leases.has(hash)) lease.release();
    else this.#leases.set(hash, lease);
    return lease.hash === hash;
  }

  /** Stores a content with the hash that it has. @throws EngineError disk-full */
  async add(bytes: Buffer): Promise<{ readonly hash: string; readonly size: number }> {
    const lease = await this.#blobs.store([bytes]);
    if (this.#leases.has(lease.hash)) lease.release();
    else this.#leases.set(lease.hash, lease);
    return { hash: lease.hash, size: bytes.length };
  }

  /** Returns the attachments whose contents exist, including contents that were stored before the import. */
  async present(attachments: readonly ImportedAttachment[]): Promise<ImportedAttachment[]> {
    const found: ImportedAttachment[] = [];
    for (const attachment of attachments) {
      const size = this.#leases.get(attachment.hash)?.size ?? (await this.#borrow(attachment.hash));
      if (size !== undefined) found.push({ ...attachment, size });
    }
    return found;
  }

  /** Leases a content of the store. @returns its size; undefined when it does not exist */
  async #borrow(hash: string): Promise<number | undefined> {
    const lease = await this.#blobs.lease(hash);
    if (lease === undefined) return undefined;
    this.#leases.set(hash, lease);
    return lease.size;
  }

  release(): void {
    for (const lease of this.#leases.values()) lease.release();
    this.#leases.clear();
  }
}
