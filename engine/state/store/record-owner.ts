/**
 * The log's interface to a database: replaying a record during recovery, deciding whether one is still needed, and
 * relocating one. Dispatches by the type of the record; has no state of its own.
 */
import { assert } from "../../base/assert.ts";
import {
  recordFlagsAt,
  recordHeaderBytes,
  recordKeyLengthAt,
  recordKindAt,
  recordKinds,
  recordWordAt,
} from "../../base/record.ts";
import type { Position, RecordOwner } from "../../storage/log/log.ts";
import {
  changeVectorLengthOf,
  collectionIdOf,
  documentFlagsOf,
  etagOf,
  explicitVectorRowFlag,
  idLengthOf,
  idStartOf,
  lastModifiedOf,
} from "../documents/document-record.ts";
import type { ShapeTable } from "../documents/shapes.ts";
import { type DocumentTable, keysInSnapshot } from "../keyspaces/document-table.ts";
import { deletionFlag } from "../keyspaces/entry-keyspace.ts";
import type { DeadRecordListener, Keyspace } from "../keyspaces/keyspace.ts";
import type { KeyspaceTable } from "../keyspaces/keyspace-table.ts";
import type { Tombstone } from "../keyspaces/tombstones.ts";
import { hasSigmaBytes, SigmaIds, sigmaFoldedKey } from "./sigma-ids.ts";

export class DatabaseRecords implements RecordOwner {
  readonly #documents: DocumentTable;
  readonly #shapes: ShapeTable;
  readonly #keyspaces: KeyspaceTable;
  readonly #replaced: DeadRecordListener;
  readonly #dead: DeadRecordListener;
  /** Asks the log whether a deletion can be dropped; set once the log is open. */
  canDropDeletion: (position: Position) => boolean = () => false;
  /** Asks the log whether compaction has replaced the segment of a position; set once the log is open. */
  isReplaced: (position: Position) => boolean = () => false;
  /** The greatest etag and time of any replayed record. */
  lastEtag = 0;
  lastModified = 0;
  /** Whether entries may have keys that an older version has folded: all except those of a current snapshot. */
  mayHaveOldKeys = true;
  readonly #sigmaIds = new SigmaIds();

  constructor(
    documents: DocumentTable,
    shapes: ShapeTable,
    keyspaces: KeyspaceTable,
    replaced: DeadRecordListener,
    dead: DeadRecordListener,
  ) {
    this.#documents = documents;
    this.#shapes = shapes;
    this.#keyspaces = keyspaces;
    this.#replaced = replaced;
    this.#dead = dead;
  }

  acceptsSnapshot(sections: ReadonlyMap<string, Buffer>): boolean {
    const keys = keysInSnapshot(sections);
    this.mayHaveOldKeys = keys !== "current";
    return keys !== "outdated";
  }

  /** After the replay. @throws EngineError database-damaged when a document of an older version was not kept */
  checkIds(): void {
    if (!this.mayHaveOldKeys || this.#keyspaces.values.get(sigmaFoldedKey) === true) return;
    this.#sigmaIds.check((id) => {
      const document = this.#documents.find(id);
      return document < 0 ? 0 : this.#documents.etagOf(document);
    });
  }

  replay(bytes: Buffer, start: number, length: number, position: Position): void {
    const kind = bytes[start + recordKindAt] ?? 0;
    const etag = etagOf(bytes, start);
    if (etag > this.lastEtag) this.lastEtag = etag;
    if (kind === recordKinds.document) {
      this.#replayDocument(bytes, start, length, position, etag);
      return;
    }
    if (kind === recordKinds.shape) {
      this.#shapes.restore(bytes, start);
      return;
    }
    const keyspace = this.#keyspaces.ofKind(kind);
    assert(keyspace !== undefined, "this version knows the record's kind");
    keyspace.replay(bytes, start, length, position);
    if (kind !== recordKinds.revision && isEntryDeletion(bytes, start)) {
      this.#dead(position, length);
    }
    if (kind === recordKinds.tombstone) this.#replayTombstone(bytes, start, etag);
  }

  isLive(bytes: Buffer, start: number, length: number, position: Position): boolean {
    const kind = bytes[start + recordKindAt] ?? 0;
    if (kind === recordKinds.shape) return true;
    if (kind === recordKinds.document) {
      const document = this.#documentOf(bytes, start);
      return document >= 0 && this.#documents.hasPosition(document, position);
    }
    const keyspace = this.#keyspaces.ofKind(kind);
    if (keyspace === undefined) return false;
    if (keyspace.isLive(bytes, start, length, position)) return true;
    return this.#deletes(bytes, start, keyspace) && !this.canDropDeletion(position);
  }

  /**
   * Returns whether the record deletes an item that is still deleted. Then it is needed as long as an older segment may
   * contain the deleted record.
   */
  #deletes(bytes: Buffer, start: number, keyspace: Keyspace): boolean {
    if (bytes[start + recordKindAt] === recordKinds.revision) return false;
    if (isEntryDeletion(bytes, start)) return !keyspace.hasKeyOf(bytes, start);
    if (bytes[start + recordKindAt] !== recordKinds.tombstone) return false;
    const tombstone = tombstoneOf(bytes, start);
    const { type, id, revision } = tombstone;
    if (revision !== undefined) return !this.#keyspaces.revisions.has(id, revision);
    return type === "document" && this.#documents.find(id) < 0;
  }

  relocate(bytes: Buffer, start: number, _length: number, target: Position): boolean {
    const kind = bytes[start + recordKindAt] ?? 0;
    if (kind === recordKinds.shape) return true;
    if (kind === recordKinds.document) {
      const document = this.#documentOf(bytes, start);
      return document >= 0 && this.#documents.relocate(document, etagOf(bytes, start), target);
    }
    const keyspace = this.#keyspaces.ofKind(kind);
    return keyspace !== undefined && this.#relocateEntry(keyspace, bytes, start, target);
  }

  /**
   * Entries that are written twice between two etags have the same key and etag twice: the copy belongs to this entry
   * only if the entry's present position is in a segment that compaction has replaced.
   */
  #relocateEntry(keyspace: Keyspace, bytes: Buffer, start: number, target: Position): boolean {
    const position = keyspace.positionOf(bytes, start);
    if (position === target) return true;
    if (position < 0 || !this.isReplaced(position)) return false;
    keyspace.relocate(bytes, start, target);
    return true;
  }

  readonly #superseded = (
    _document: number,
    _etag: number,
    position: Position,
    length: number,
  ): void => {
    if (length > 0) this.#replaced(position, length);
  };

  /**
   * Returns the document of a record, or -1 when the record is not needed. Hot: called by compaction for each record.
   */
  #documentOf(bytes: Buffer, start: number): number {
    const etag = etagOf(bytes, start);
    // Rows are committed in etag order: staged ones are beyond the last etag.
    if (etag <= this.#documents.lastEtag) return this.#documents.numberAtEtag(etag);
    const idStart = idStartOf(bytes, start);
    return this.#documents.lookupBytes(bytes, idStart, idStart + idLengthOf(bytes, start));
  }

  #replayDocument(
    bytes: Buffer,
    start: number,
    length: number,
    position: Position,
    etag: number,
  ): void {
    const idStart = idStartOf(bytes, start);
    const idEnd = idStart + idLengthOf(bytes, start);
    const document = this.#documents.internBytes(bytes, idStart, idEnd);
    if (hasSigmaBytes(bytes, idStart, idEnd)) {
      const isThere = this.#documents.lengthOf(document) > 0;
      const rowEtag = isThere ? this.#documents.etagOf(document) : 0;
      this.#sigmaIds.noteDocument(bytes.toString("utf8", idStart, idEnd), etag, rowEtag);
    }
    const flags =
      documentFlagsOf(bytes, start) |
      (changeVectorLengthOf(bytes, start) > 0 ? explicitVectorRowFlag : 0);
    const collection = collectionIdOf(bytes, start);
    const isNewest = this.#documents.applyCommitted(
      document,
      etag,
      position,
      length,
      collection,
      flags,
      this.#superseded,
    );
    if (!isNewest) this.#replaced(position, length);
    if (!this.#keyspaces.tombstones.isEmpty && this.#documents.etagOf(document) === etag) {
      const { collections, tombstones } = this.#keyspaces;
      // The record of a new collection follows its first document, so no tombstone has the collection yet.
      const name = collection < collections.count ? collections.nameOf(collection) : "";
      tombstones.dropDocument(this.#documents.lowerIdOf(document), name);
    }
    const modified = lastModifiedOf(bytes, start);
    if (modified > this.lastModified) this.lastModified = modified;
  }

  #replayTombstone(bytes: Buffer, start: number, etag: number): void {
    if (isEntryDeletion(bytes, start)) return;
    const tombstone = tombstoneOf(bytes, start);
    if (tombstone.lastModified > this.lastModified) this.lastModified = tombstone.lastModified;
    if (tombstone.revision !== undefined) {
      this.#keyspaces.revisions.replayRemoval(tombstone.id, tombstone.revision);
    }
    if (tombstone.type !== "document") return;
    this.#sigmaIds.noteTombstone(tombstone.id, etag);
    const document = this.#documents.lookup(tombstone.id);
    if (document < 0) return;
    if (this.#documents.lengthOf(document) === 0) return;
    this.#documents.applyCommitted(document, etag, 0, 0, 0, 0, this.#superseded);
  }
}

function tombstoneOf(bytes: Buffer, start: number): Tombstone {
  const valueStart = start + recordHeaderBytes + bytes.readUInt16LE(start + recordKeyLengthAt);
  const valueEnd = valueStart + bytes.readUInt32LE(start + recordWordAt);
  return JSON.parse(bytes.toString("utf8", valueStart, valueEnd)) as Tombstone;
}

function isEntryDeletion(bytes: Buffer, start: number): boolean {
  return ((bytes[start + recordFlagsAt] ?? 0) & deletionFlag) !== 0;
}
