/**
 * Creates the folder of a database from shipped files: a base, and the files of frames that continue it, up to a
 * moment. The log of the folder is byte for byte that of the database, so it is the same database: the same id, etags
 * and change vectors; unless it is assigned another id, which its change vectors then contain. Then it is opened like
 * any other.
 *
 *   const restore = new LogRestore(environment, folder, throughMicros);
 *   await restore.add(name, bytes);             // the base, then each file of frames, in order
 *   await restore.addContent(name, bytes);      // each content of an attachment
 *   const restored = await restore.finish();    // from here on it is a database
 *
 * Invariants:
 * - Only whole frames are restored, without gaps, so no transaction is ever restored in part.
 * - There is no manifest, and hence no database, before everything else is durable.
 */
import type { Environment, FileHandle } from "../../base/environment.ts";
import { makeDurableDirectory } from "../../base/platform/durable-directory.ts";
import { BlobStore, contentName } from "../log/blob-store.ts";
import { type ManifestSegment, writeManifest } from "../log/manifest.ts";
import { encodeSegmentHeader, segmentFileName, segmentHeaderBytes } from "../segments/segment.ts";
import { FrameWalk } from "./frame-walk.ts";
import {
  damaged,
  decodeShippedHead,
  headBytesMax,
  headLengthOf,
  type ShippedHead,
  type ShippedSegment,
} from "./shipped-file.ts";

/** What was restored. */
export interface RestoredLog {
  /** The last commit, and when it was made, in microseconds since 1970; 0: nothing was ever committed. */
  readonly commit: number;
  readonly committedMicros: number;
  /** The head of the last file, if it was restored completely; null if it was cut. */
  readonly last: ShippedHead | null;
}

interface Restored {
  readonly segment: ShippedSegment;
  file: FileHandle | null;
  end: number;
}

/** Positions in segments have 31 bits. */
const segmentSizeMax = 2 ** 31;

export class LogRestore {
  readonly #environment: Environment;
  readonly #folder: string;
  readonly #walk: FrameWalk;
  readonly #throughMicros: number;
  readonly #blobs: BlobStore;
  readonly #idOf: (shipped: string) => string;
  readonly #segments: Restored[] = [];
  #last: ShippedHead | null = null;
  #databaseId: string | null = null;

  /**
   * `folder` is made; `throughMicros`: the last moment to restore, inclusive. `idOf`: the id that the database gets, of
   * the shipped one; 32 hex digits. Left out: the same.
   */
  constructor(
    environment: Environment,
    folder: string,
    throughMicros: number,
    idOf: (shipped: string) => string = (shipped) => shipped,
  ) {
    this.#environment = environment;
    this.#folder = folder;
    this.#throughMicros = throughMicros;
    this.#idOf = idOf;
    this.#walk = new FrameWalk({ number: 0, crc: 0 }, throughMicros);
    this.#blobs = new BlobStore(environment, `${folder}/blobs`);
  }

  /** Database id of the base: 32 hex digits; null before the base was added. */
  get databaseId(): string | null {
    return this.#databaseId;
  }

  /** Whether everything up to the requested moment has been added. */
  get isDone(): boolean {
    return this.#walk.isCut;
  }

  /**
   * Adds the base, or the next file of frames. @param name for messages
   * @throws EngineError backup-damaged if the bytes are damaged, or belong to another position or database
   */
  async add(name: string, bytes: AsyncIterable<Buffer>): Promise<void> {
    const source = bytes[Symbol.asyncIterator]();
    try {
      const { head, rest } = await readHead(source, name);
      this.#check(head, name);
      this.#databaseId = head.databaseId;
      let left = rest;
      for (const segment of head.segments) {
        left = await this.#addSegment(segment, left, source, name);
        if (this.#walk.isCut) {
          this.#last = null;
          return;
        }
      }
      if (left.length > 0 || (await source.next()).done !== true) {
        throw damaged(name, "it is longer than its head specifies");
      }
      const { number, crc } = this.#walk.point;
      if (number !== head.through.number || crc !== head.through.crc) {
        throw damaged(name, `it should end with commit ${head.through.number}, not ${number}`);
      }
      this.#last = head;
    } finally {
      await source.return?.();
    }
  }

  /** Adds the content of an attachment. @param name the hash of the content, as hex digits */
  async addContent(name: string, bytes: AsyncIterable<Buffer>): Promise<void> {
    const lease = await this.#blobs.store(bytes);
    if (contentName(lease.hash) !== name) throw damaged(name, "it is not the content of that hash");
  }

  /** Makes all of it durable, and a database of it. */
  async finish(): Promise<RestoredLog> {
    const { files } = this.#environment;
    await makeDurableDirectory(files, `${this.#folder}/log`);
    for (const restored of this.#segments) await this.#seal(restored);
    await files.syncDirectory(`${this.#folder}/log`);
    await this.#blobs.close();
    const numbers = this.#segments.map(({ segment }) => segment.number);
    await writeManifest(files, this.#folder, "restore", {
      databaseId: this.#id(),
      nextSegmentNumber: Math.max(0, ...numbers) + 1,
      nextSnapshotNumber: 1,
      segments: this.#segments.map(({ segment }) => listed(segment)),
      snapshots: [],
    });
    const { point, committedMicros } = this.#walk;
    return { commit: point.number, committedMicros, last: this.#last };
  }

  /** Closes open files, after a failure. */
  async abandon(): Promise<void> {
    for (const { file } of this.#segments) await file?.close().catch(() => undefined);
    await this.#blobs.close();
  }

  #check(head: ShippedHead, name: string): void {
    if (this.#databaseId === null) {
      if (head.kind !== "base") throw damaged(name, "it is not a base");
      if (head.takenMicros > this.#throughMicros) {
        throw damaged(name, "it is of a later moment than the one to restore");
      }
      return;
    }
    if (head.kind !== "frames") throw damaged(name, "it is a base, and there is one already");
    if (head.databaseId !== this.#databaseId) throw damaged(name, "it is of another database");
    const { number, crc } = this.#walk.point;
    if (head.after.number === number && head.after.crc === crc) return;
    const why =
      head.after.number > number
        ? `the file with commits ${number + 1} to ${head.after.number} is missing before it`
        : `it does not continue commit ${number}`;
    throw damaged(name, why);
  }

  /** @returns the bytes after the segment's that were read already */
  async #addSegment(
    segment: ShippedSegment,
    first: Buffer,
    source: AsyncIterator<Buffer>,
    name: string,
  ): Promise<Buffer> {
    const restored = await this.#placeOf(segment, name);
    const { file } = restored;
    this.#walk.begin(segment, name);
    let left = segment.to - segment.from;
    let bytes = first;
    while (left > 0) {
      if (bytes.length === 0) {
        const next = await source.next();
        if (next.done === true) throw damaged(name, `${left} bytes or more are missing at its end`);
        bytes = next.value;
      }
      const part = bytes.subarray(0, left);
      const wanted = this.#walk.feed(part);
      const at = segment.to - left;
      await file.write(part, 0, wanted, at);
      left -= part.length;
      bytes = bytes.subarray(part.length);
      if (this.#walk.isCut) {
        restored.end = this.#walk.offset;
        return bytes;
      }
    }
    this.#walk.end();
    restored.end = segment.to;
    return bytes;
  }

  async #placeOf(segment: ShippedSegment, name: string): Promise<Restored & { file: FileHandle }> {
    const { from, to, size, kind } = segment;
    const isInOrder = kind === "compacted" ? from <= to : from < to;
    if (!(size <= segmentSizeMax && isInOrder && to <= size)) {
      throw damaged(name, `segment ${segment.number} has impossible bounds`);
    }
    const last = this.#segments.at(-1);
    if (last?.segment.number === segment.number) {
      if (last.end !== from || last.segment.salt !== segment.salt || last.file === null) {
        throw damaged(name, `bytes of segment ${segment.number} are missing`);
      }
      return last as Restored & { file: FileHandle };
    }
    if (from !== segmentHeaderBytes) {
      throw damaged(name, `the beginning of segment ${segment.number} is missing`);
    }
    if (last !== undefined) await this.#seal(last);
    const { files } = this.#environment;
    await makeDurableDirectory(files, `${this.#folder}/log`);
    const file = await files.open(
      `${this.#folder}/log/${segmentFileName(segment.number)}`,
      "create",
    );
    const restored = { segment, file, end: from };
    this.#segments.push(restored);
    const header = Buffer.alloc(segmentHeaderBytes);
    encodeSegmentHeader(header, { ...segment, databaseId: this.#id() });
    await file.write(header, 0, header.length, 0);
    return restored;
  }

  /** Truncates the file after its last frame, fills it with zeros to its size, and makes it durable. */
  async #seal(restored: Restored): Promise<void> {
    const { file, segment, end } = restored;
    if (file === null) return;
    restored.file = null;
    try {
      await file.truncate(end);
      await file.truncate(segment.size);
      await file.sync();
    } finally {
      await file.close();
    }
  }

  #id(): Buffer {
    return Buffer.from(this.#idOf(this.#databaseId ?? ""), "hex");
  }
}

function listed(segment: ShippedSegment): ManifestSegment {
  const { number, kind, size, firstNumber, lastNumber, lastCrc } = segment;
  const isCompacted = kind === "compacted";
  return {
    number,
    kind,
    size,
    firstNumber,
    lastNumber: isCompacted ? lastNumber : 0,
    lastCrc: isCompacted ? lastCrc : 0,
    cleanThrough: segment.cleanThrough,
    deadBytesAtBirth: segment.deadBytesAtBirth,
  };
}

/** Reads only the head. @throws EngineError backup-damaged */
export async function shippedHeadOf(
  name: string,
  bytes: AsyncIterable<Buffer>,
): Promise<ShippedHead> {
  const source = bytes[Symbol.asyncIterator]();
  try {
    return (await readHead(source, name)).head;
  } finally {
    await source.return?.();
  }
}

async function readHead(
  source: AsyncIterator<Buffer>,
  name: string,
): Promise<{ readonly head: ShippedHead; readonly rest: Buffer }> {
  let bytes: Buffer = Buffer.alloc(0);
  for (;;) {
    const length = headLengthOf(bytes);
    if (length !== null) {
      const head = decodeShippedHead(bytes.subarray(0, length), name);
      return { head, rest: bytes.subarray(length) };
    }
    if (bytes.length > headBytesMax) throw damaged(name, "it has no head");
    const next = await source.next();
    if (next.done === true) throw damaged(name, "it has no whole head");
    bytes = bytes.length === 0 ? next.value : Buffer.concat([bytes, next.value]);
  }
}
