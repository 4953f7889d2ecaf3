/**
 * Rewrites a document's record for a dump: without the lists and flags of kinds that are not exported, and as changed
 * by the script. The result is a record again, so that its text is composed as for any reader.
 */

import { largeRecordBytes } from "../../base/limits.ts";
import type { DocumentChunks } from "../../state/documents/document-chunks.ts";
import { piecesOf } from "../../state/documents/document-composing.ts";
import {
  DocumentFields,
  documentRecordLength,
  encodeDocumentRecord,
} from "../../state/documents/document-encoding.ts";
import type { ComposedMetadata, ServerMember } from "../../state/documents/document-metadata.ts";
import { DocumentParser } from "../../state/documents/document-parser.ts";
import {
  bodyTextOf,
  collectionIdOf,
  documentFlags,
  documentFlagsOf,
  idOf,
  metadataLengthOf,
  metadataStartOf,
  metadataTextOf,
} from "../../state/documents/document-record.ts";
import { composedMetadataLength, composeMetadata } from "../../state/documents/document-text.ts";
import type { DatabaseState } from "../../state/store/database-state.ts";
import type { DumpOptions } from "./dump-options.ts";
import type { DocumentTransform } from "./transform.ts";

const { FromClusterTransaction, HasAttachments, HasCounters, HasRevisions, HasTimeSeries } =
  documentFlags;
/** Records up to this size are rewritten as a whole. A larger one stays in place while the reader's row holds it. */
const rewrittenBytesMax = 4 * largeRecordBytes;
const noExtra = Buffer.alloc(0);
const metadataOpen = '"@metadata":'.length;
/** In a document's metadata this key would be read as a mark of the dump. */
const exportTypeKey = "@export-type";

/** One kind of list: its key, the flag of documents that have one, and whether the dump contains its items. */
interface ListKind {
  readonly key: string;
  readonly flag: number;
  readonly isExported: boolean;
}

export class DocumentRewriter {
  readonly #state: DatabaseState;
  readonly #transform: DocumentTransform | undefined;
  readonly #lists: readonly ListKind[];
  /** Flags of exported documents. RavenDB 7.2.7 omits those of counters and time series. */
  readonly #shownFlags: number;
  readonly #fields = new DocumentFields();
  /** Without shapes: its documents are not stored. */
  readonly #parser = new DocumentParser(null);
  #scratch = Buffer.alloc(16 * 1024);

  constructor(
    state: DatabaseState,
    { types }: DumpOptions,
    transform: DocumentTransform | undefined,
  ) {
    this.#state = state;
    this.#transform = transform;
    this.#lists = [
      { key: "@attachments", flag: HasAttachments, isExported: types.has("Attachments") },
      {
        key: "@counters",
        flag: HasCounters,
        isExported: types.has("CounterGroups") || types.has("Counters"),
      },
      { key: "@timeseries", flag: HasTimeSeries, isExported: types.has("TimeSeries") },
    ];
    let hidden = HasCounters | HasTimeSeries | FromClusterTransaction;
    if (!types.has("Attachments")) hidden |= HasAttachments;
    if (!types.has("RevisionDocuments")) hidden |= HasRevisions;
    this.#shownFlags = 0xffff & ~hidden;
  }

  /**
   * Returns the record to export, valid until the next call; null when the script leaves it out.
   * @throws EngineError script-failed, and json-… for the result of the script
   */
  document(record: Buffer): Buffer | null {
    const flags = documentFlagsOf(record, 0);
    if (this.#transform === undefined) return this.#without(record, flags & this.#shownFlags);
    const state = this.#state;
    const id = idOf(record, 0);
    const text = this.#transform.run(bodyTextOf(record, 0), this.#metadataOf(record), id);
    if (text === null) return null;
    const lists = this.#keptLists(record);
    const bytes = Buffer.from(text);
    const parsed = this.#parser.parse(bytes, 0, bytes.length);
    const metadata = state.metadata.fromParsed(parsed, lists);
    this.#fields.setAllButBody(record, 0);
    this.#fields.setBody(parsed);
    return this.#encode(flags & this.#shownFlags, metadata);
  }

  /** As `document`, for a revision: its flags are kept, and no script runs. */
  revision(record: Buffer): Buffer {
    return this.#without(record, documentFlagsOf(record, 0));
  }

  /**
   * As `document` (or `revision`), in chunks that reference `record`, whose body is neither copied nor rewritten. Null
   * if it is small enough to be rewritten as one string, or if a script must read it.
   */
  inPieces(record: Buffer, isRevision: boolean): DocumentChunks | null {
    if (record.length <= rewrittenBytesMax) return null;
    if (this.#transform !== undefined && !isRevision) return null;
    const before = documentFlagsOf(record, 0);
    const flags = isRevision ? before : before & this.#shownFlags;
    return piecesOf(this.#state, record, this.#without(record, flags, false));
  }

  /** Returns the record without the lists that are not exported. `hasBody`: with its body, too. */
  #without(record: Buffer, flags: number, hasBody = true): Buffer {
    const before = documentFlagsOf(record, 0);
    const dropped = this.#lists
      .filter(({ flag, isExported }) => !isExported && before & flag)
      .map(({ key }) => key);
    if (metadataTextOf(record, 0).includes(exportTypeKey)) dropped.push(exportTypeKey);
    if (dropped.length === 0 && flags === before) return record;
    const state = this.#state;
    const members = dropped.map((key) => ({ key, valueText: null }));
    const length = metadataLengthOf(record, 0);
    const member = state.collectionMember(collectionIdOf(record, 0));
    const metadata =
      length > 0
        ? state.metadata.fromStored(record, metadataStartOf(record, 0), length, members)
        : state.metadata.fromStored(member, 0, member.length, members);
    this.#fields.setAllButBody(record, 0);
    if (hasBody) this.#fields.setBodyOf(record, 0);
    else this.#fields.setEmptyBody();
    return this.#encode(flags, metadata);
  }

  /** Returns the exported lists of a document: the script cannot change them. */
  #keptLists(record: Buffer): ServerMember[] {
    const flags = documentFlagsOf(record, 0);
    const wanted = this.#lists.filter(({ flag, isExported }) => isExported && flags & flag);
    const mark = { key: exportTypeKey, valueText: null };
    if (wanted.length === 0) return [mark];
    const stored = JSON.parse(`{${metadataTextOf(record, 0)}}`) as Record<string, unknown>;
    const kept = wanted.filter(({ key }) => stored[key] !== undefined);
    return [
      mark,
      ...kept.map(({ key }) => ({ key, valueText: Buffer.from(JSON.stringify(stored[key])) })),
    ];
  }

  #metadataOf(record: Buffer): string {
    const state = this.#state;
    const member = state.collectionMember(collectionIdOf(record, 0));
    const length = composedMetadataLength(record, 0, member, state.origin, noExtra);
    const metadata = Buffer.allocUnsafe(length);
    composeMetadata(metadata, 0, record, 0, member, state.origin, noExtra);
    return metadata.utf8Slice(metadataOpen, length);
  }

  /** Encodes `#fields` with this metadata. */
  #encode(flags: number, metadata: ComposedMetadata): Buffer {
    const fields = this.#fields;
    const { keyspaces } = this.#state;
    fields.flags = flags;
    fields.setMetadata(metadata.text, 0, metadata.length);
    // Without any member the collection's own would be composed.
    if (metadata.length === 0) fields.collectionId = keyspaces.collections.intern("@empty");
    const length = documentRecordLength(fields);
    if (this.#scratch.length < length) this.#scratch = Buffer.alloc(2 * length);
    encodeDocumentRecord(this.#scratch, 0, fields);
    return this.#scratch.subarray(0, length);
  }
}
