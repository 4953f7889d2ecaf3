/**
 * Copies the readable content of a damaged database into a new one, and reports the rest. The damaged one is not
 * changed.
 *
 * Etags, change vectors and times are preserved. It makes two passes over the log: the first determines the newest
 * readable record of each item, the second copies it. Deleted items stay deleted, as far as the deletion can be read.
 *
 * Invariants:
 * - Every copied record has a correct checksum.
 * - A new write to the copy gets an etag that no readable record of the source had.
 */

import { foldedName } from "../../base/case-folding.ts";
import type { Environment, FileSystem } from "../../base/environment.ts";
import { EngineError } from "../../base/errors.ts";
import {
  type RecordKind,
  recordHeaderBytes,
  recordKeyLengthAt,
  recordKindAt,
  recordKinds,
  sealRecord,
} from "../../base/record.ts";
import {
  DocumentFields,
  documentRecordLength,
  encodeDocumentRecord,
} from "../../state/documents/document-encoding.ts";
import {
  bodyLengthOf,
  bodyStartOf,
  collectionIdOf,
} from "../../state/documents/document-record.ts";
import { EntryKeyspace } from "../../state/keyspaces/entry-keyspace.ts";
import { stateKinds } from "../../state/keyspaces/state-kinds.ts";
import { openParts } from "../../state/store/database-opening.ts";
import type { DatabaseState } from "../../state/store/database-state.ts";
import { logShapes, Scratch } from "../../state/store/transaction.ts";
import { BlobStore } from "../../storage/log/blob-store.ts";
import type { CommitLog, Position } from "../../storage/log/log.ts";
import { readManifest } from "../../storage/log/manifest.ts";
import { type SalvageLoss, salvage } from "../../storage/log/salvage.ts";
import {
  decodeSegmentHeader,
  segmentHeaderBytes,
  segmentNumberOf,
} from "../../storage/segments/segment.ts";
import { NewestRecords } from "./newest-records.ts";

/** The result of a salvage. */
interface SalvagedDatabase {
  readonly documents: number;
  readonly revisions: number;
  /** Counters, attachments, time series, identities and so on. */
  readonly entries: number;
  /** Unreadable parts of the log. Items stored there may be missing, or appear in an older version. */
  readonly losses: readonly SalvageLoss[];
  /** Entries of a lost document or revision: `document/name`. They are left out. */
  readonly orphans: readonly string[];
  /** Attachments whose content is lost or damaged: `document/name`. Their names are kept. */
  readonly lostContents: readonly string[];
  /** New names of collections whose names are lost. */
  readonly renamedCollections: readonly string[];
}

const transactionBytes = 1024 * 1024;

/**
 * Reads the database in the folder `source`, which must not be open, and creates a new one in `target`, an absent or
 * empty folder.
 * @throws EngineError database-locked, database-missing if `source` has no log, database-exists, disk-full
 */
export async function salvageDatabase(
  environment: Environment,
  source: string,
  target: string,
): Promise<SalvagedDatabase> {
  const { files } = environment;
  if ((await files.exists(target)) && (await files.list(target)).length > 0) {
    throw new EngineError("database-exists", `${target} is not empty.`);
  }
  const lock = await files.lockDirectory(source);
  try {
    const newest = new NewestRecords();
    const { losses } = await salvage(files, source, newest);
    const databaseId = await findDatabaseId(files, source);
    const log = databaseId === null ? {} : { databaseId };
    const parts = await openParts(environment, "salvaged", target, { log }, ignoreCommits);
    try {
      const copy = new Copy(newest, parts.state, parts.log);
      await salvage(files, source, copy);
      const lostContents = await copyContents(environment, source, newest, parts.blobs);
      copy.end();
      await parts.log.flush();
      const { documents, revisions, entries, orphans, renamedCollections } = copy;
      return { documents, revisions, entries, losses, orphans, lostContents, renamedCollections };
    } finally {
      await parts.log.close();
      await parts.blobs.close();
    }
  } finally {
    await lock.release();
  }
}

/** Entries of a document or a revision, whose keys begin with its id. */
const ownedKinds: ReadonlySet<number> = new Set(
  Object.values(stateKinds)
    .filter(({ isPartOfDocument }) => isPartOfDocument)
    .map(({ record }) => record),
);

/** A lost commit makes `flush` reject. */
const ignoreCommits = { durable: () => undefined, lost: () => undefined, stopped: () => undefined };

/** The second pass: appends each newest record to the log of the new database. */
class Copy {
  documents = 0;
  revisions = 0;
  entries = 0;
  readonly orphans: string[] = [];
  readonly renamedCollections: string[] = [];
  readonly #newest: NewestRecords;
  readonly #state: DatabaseState;
  readonly #log: CommitLog;
  readonly #scratch = new Scratch();
  readonly #fields = new DocumentFields();
  readonly #named = new Set<number>([0]);

  constructor(newest: NewestRecords, state: DatabaseState, log: CommitLog) {
    this.#newest = newest;
    this.#state = state;
    this.#log = log;
  }

  replay(bytes: Buffer, start: number, length: number, position: Position): void {
    if (!this.#newest.isNewest(bytes, start, length, position)) return;
    const kind = bytes[start + recordKindAt];
    if (kind === recordKinds.document || kind === recordKinds.revision) {
      this.#copyDocument(bytes, start);
    } else this.#copyEntry(bytes, start, length);
    if (this.#scratch.length >= transactionBytes) this.#append();
  }

  /** Writes the rest, and a value with the last etag of the source. */
  end(): void {
    const value = { losses: true, lastEtag: this.#newest.lastEtag };
    this.#addEntry(recordKinds.value, "salvaged", value, this.#newest.lastEtag);
    this.#append();
  }

  #append(): void {
    const { shapes } = this.#state;
    logShapes(shapes, this.#scratch);
    shapes.setLoggedCount(shapes.count);
    this.#log.append(this.#scratch.bytes, this.#scratch.length);
    this.#scratch.reset();
  }

  #copyDocument(bytes: Buffer, start: number): void {
    this.#needCollection(collectionIdOf(bytes, start));
    const { parser } = this.#state;
    const fields = this.#fields;
    const bodyStart = bodyStartOf(bytes, start);
    const parsed = parser.parse(bytes, bodyStart, bodyStart + bodyLengthOf(bytes, start));
    fields.setAllButBody(bytes, start);
    fields.setBody(parsed);
    if (fields.kind === recordKinds.document) this.documents++;
    else this.revisions++;
    const at = this.#scratch.reserve(documentRecordLength(fields));
    this.#scratch.length += encodeDocumentRecord(this.#scratch.bytes, at, fields);
    sealRecord(this.#scratch.bytes, at);
  }

  #copyEntry(bytes: Buffer, start: number, length: number): void {
    const kind = bytes[start + recordKindAt] ?? 0;
    if (ownedKinds.has(kind)) {
      const keyStart = start + recordHeaderBytes;
      const keyLength = bytes.readUInt16LE(start + recordKeyLengthAt);
      const key = bytes.toString("utf8", keyStart, keyStart + keyLength);
      if (!this.#newest.hasOwner(key) || !this.#newest.isWholeSeries(kind, key)) {
        this.orphans.push(shown(key));
        return;
      }
    }
    const at = this.#scratch.reserve(length);
    bytes.copy(this.#scratch.bytes, at, start, start + length);
    this.#scratch.length += length;
    this.entries++;
  }

  /** Assigns a new name to a collection whose record is lost, once. */
  #needCollection(id: number): void {
    if (this.#named.has(id)) return;
    this.#named.add(id);
    if (this.#newest.keyspaces.collections.isRecorded(id)) return;
    const name = `Salvaged${id}`;
    this.renamedCollections.push(name);
    this.#addEntry(recordKinds.collection, foldedName(name), { id, name }, 0);
  }

  #addEntry(kind: RecordKind, key: string, value: unknown, etag: number): void {
    const text = JSON.stringify(value);
    const length = EntryKeyspace.encodedLength(key, text);
    const at = this.#scratch.reserve(length);
    EntryKeyspace.encode(this.#scratch.bytes, at, length, kind, key, text, etag);
    sealRecord(this.#scratch.bytes, at);
    this.#scratch.length += length;
  }
}

/** Copies the content of all attachments. @returns the attachments whose content is lost. */
async function copyContents(
  environment: Environment,
  source: string,
  newest: NewestRecords,
  target: BlobStore,
): Promise<string[]> {
  const from = new BlobStore(environment, `${source}/blobs`);
  const isWhole = new Map<string, boolean>();
  const lost: string[] = [];
  for (const [key, { hash }] of newest.keyspaces.attachments.withPrefix("")) {
    if (!newest.hasOwner(key)) continue;
    if (!isWhole.has(hash)) isWhole.set(hash, await copyContent(from, hash, target));
    if (isWhole.get(hash) !== true) lost.push(shown(key));
  }
  return lost;
}

/** The lease is never released: the attachment references the content when the database is opened. */
async function copyContent(from: BlobStore, hash: string, target: BlobStore): Promise<boolean> {
  try {
    const reader = await from.open(hash);
    try {
      await target.store(reader.read(0, reader.size));
    } finally {
      await reader.close();
    }
    return true;
  } catch (error) {
    if (error instanceof EngineError && error.code === "record-damaged") return false;
    throw error;
  }
}

function shown(key: string): string {
  return key.replaceAll("\u0000", "/");
}

/** From the manifest, or from the first segment with an intact header; null when there is neither. */
async function findDatabaseId(files: FileSystem, folder: string): Promise<Buffer | null> {
  try {
    const manifest = await readManifest(files, folder);
    if (manifest !== null) return manifest.databaseId;
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
  }
  for (const name of await files.list(`${folder}/log`)) {
    if (segmentNumberOf(name) === null) continue;
    const file = await files.open(`${folder}/log/${name}`, "read");
    try {
      const head = Buffer.alloc(segmentHeaderBytes);
      await file.read(head, 0, head.length, 0);
      const header = decodeSegmentHeader(head);
      if (header !== null) return header.databaseId;
    } finally {
      await file.close();
    }
  }
  return null;
}
