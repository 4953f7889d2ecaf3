/** The parts of one open database, and the counters that only its writer advances: etags, change vectors, times. */
import { randomUUID } from "node:crypto";
import type { Clock } from "../../base/environment.ts";
import { TextInput } from "../../base/json/text-input.ts";
import { clockLeadMicrosMax } from "../../base/limits.ts";
import type { CommitLog } from "../../storage/log/log.ts";
import type { ChangeOrigin } from "../documents/change-origin.ts";
import {
  formatChangeVector,
  mergeChangeVectors,
  parseChangeVector,
} from "../documents/change-vector.ts";
import { MetadataWriter } from "../documents/document-metadata.ts";
import type { DocumentParser } from "../documents/document-parser.ts";
import { collectionMemberOf } from "../documents/document-text.ts";
import type { ParsedDocument } from "../documents/parsed-document.ts";
import type { ShapeTable } from "../documents/shapes.ts";
import type { DocumentTable } from "../keyspaces/document-table.ts";
import type { KeyspaceTable } from "../keyspaces/keyspace-table.ts";
import type { ChangeFeed } from "./changes.ts";
import { WriteMeters } from "./write-meters.ts";

export class DatabaseState {
  readonly name: string;
  /** Identifies this database on this node. */
  readonly origin: ChangeOrigin;
  /** 22 characters of base64, for its cluster-wide transactions: the `RAFT` entries of change vectors. */
  readonly clusterHash: string;
  /** The same for guarded documents: the `TRXN` entries. */
  readonly transactionHash: string;
  readonly log: CommitLog;
  readonly documents: DocumentTable;
  readonly shapes: ShapeTable;
  /** Parses one document after the other: its result is valid until the next call. */
  readonly parser: DocumentParser;
  readonly keyspaces: KeyspaceTable;
  readonly feed: ChangeFeed;
  /** Likewise for metadata. */
  readonly metadata = new MetadataWriter();
  readonly #clock: Clock;
  readonly writes: WriteMeters;
  /** By collection: ranges of time series that were deleted since the database was opened. */
  readonly deletedSeriesRanges = new Map<number, number>();
  readonly #collectionMembers: (Buffer | undefined)[] = [];
  /** The newest etag assigned. */
  lastEtag = 0;
  /** The newest etag of a transaction that is durable. */
  committedEtag = 0;
  /** Different after every commit of any kind, and after every opening. */
  commitStamp: number;
  /** Microseconds since 1970 of the newest change. */
  lastModified = 0;
  /** Whether the clock has been read since the transaction began. */
  #hasTime = false;
  readonly #input = new TextInput();

  constructor(parts: {
    name: string;
    origin: ChangeOrigin;
    clusterHash: string;
    transactionHash: string;
    log: CommitLog;
    documents: DocumentTable;
    shapes: ShapeTable;
    parser: DocumentParser;
    keyspaces: KeyspaceTable;
    feed: ChangeFeed;
    clock: Clock;
  }) {
    this.name = parts.name;
    this.origin = parts.origin;
    this.clusterHash = parts.clusterHash;
    this.transactionHash = parts.transactionHash;
    this.log = parts.log;
    this.documents = parts.documents;
    this.shapes = parts.shapes;
    this.parser = parts.parser;
    this.keyspaces = parts.keyspaces;
    this.feed = parts.feed;
    this.#clock = parts.clock;
    // The next opening's stamp is higher, because fewer commits than microseconds happen until then.
    this.commitStamp = parts.clock.nowMicros();
    this.writes = new WriteMeters(this.commitStamp);
  }

  nextEtag(): number {
    this.lastEtag += 1;
    return this.lastEtag;
  }

  /** As `nextEtag` for `count` changes. @returns the first etag. */
  takeEtags(count: number): number {
    const first = this.lastEtag + 1;
    this.lastEtag += count;
    return first;
  }

  /** Returns the metadata member of a collection's documents when no metadata is stored. */
  collectionMember(collectionId: number): Buffer {
    let member = this.#collectionMembers[collectionId];
    if (member === undefined) {
      member = collectionMemberOf(this.keyspaces.collections.nameOf(collectionId));
      this.#collectionMembers[collectionId] = member;
    }
    return member;
  }

  /** A transaction failed: the collection numbers that only it used may be assigned again. */
  forgetCollections(): void {
    const { collections } = this.keyspaces;
    if (collections.forgetUnused()) this.#collectionMembers.length = collections.count;
  }

  changeVectorAt(etag: number): string {
    return this.origin.changeVectorAt(etag);
  }

  /**
   * Returns the change vector of a write at `etag` after cluster-wide transactions, or over a state that had a change
   * vector of its own: it includes both. @param current the change vector of that state, or "".
   */
  mergedChangeVector(current: string, etag: number): string {
    const count = this.keyspaces.clusterCount;
    const { nodeTag: tag, hash } = this.origin;
    const entries = [{ tag, etag, hash }];
    if (count > 0) entries.push({ tag: "RAFT", etag: count, hash: this.clusterHash });
    return formatChangeVector(mergeChangeVectors(parseChangeVector(current), entries));
  }

  nowMicros(): number {
    return this.#clock.nowMicros();
  }

  /** Returns a new GUID in lower case, for documents that are stored without an id. */
  newGuid(): string {
    return randomUUID();
  }

  beginTransaction(): void {
    this.#hasTime = false;
  }

  /**
   * Returns the time of a change: the clock at the first change of its transaction, and later than the previous change
   * unless the clock was set back by more than `clockLeadMicrosMax`: then times follow it. Only etags define an order.
   * (Reading the clock for each document costs more than comparing its id.)
   */
  nextModified(): number {
    if (!this.#hasTime) {
      this.#hasTime = true;
      const now = this.#clock.nowMicros();
      const lead = this.lastModified - now;
      if (lead < 0 || lead > clockLeadMicrosMax) {
        this.lastModified = now;
        return now;
      }
    }
    this.lastModified += 1;
    return this.lastModified;
  }

  /** As `nextModified` for `count` changes, each a microsecond after the one before. @returns the time of the first. */
  takeTimes(count: number): number {
    const first = this.nextModified();
    this.lastModified += count - 1;
    return first;
  }

  /** Parses a document's text with `parser`. @throws EngineError json-…, too-large */
  parseText(text: string): ParsedDocument {
    const length = this.#input.set(text);
    return this.parser.parse(this.#input.bytes, 0, length);
  }
}
