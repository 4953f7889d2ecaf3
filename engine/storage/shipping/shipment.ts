/**
 * Ships a database to another place: a base, then the frames of its log as they become durable, and the contents of
 * attachments that these refer to. The caller decides where and when files are stored.
 *
 * Invariants:
 * - Frames are returned in order, without gaps; with them the names of all contents that they refer to and that were
 *   not shipped before.
 * - Writers never wait for it. If the retained files use too much disk space, the shipment is lost, and another one
 *   must begin with a base.
 */
import { EngineError } from "../../base/errors.ts";
import type { BlobStore } from "../log/blob-store.ts";
import { contentName, hashOfContentName } from "../log/blob-store.ts";
import type { ContentFollower } from "../log/content-follower.ts";
import type { CommitLog, LogImage } from "../log/log.ts";
import type { LogFollower, LogPoint, LogRange, WaitingFrames } from "../log/log-follower.ts";
import { encodeShippedHead, type ShippedHead, shippedSegment } from "./shipped-file.ts";

/** The database that is shipped. */
export interface ShippedDatabase {
  readonly log: CommitLog;
  readonly blobs: BlobStore;
  nowMicros(): number;
  /** As of the last durable frame. */
  counts(): { readonly etag: number; readonly documents: number };
}

/** A file to write elsewhere. */
export interface ShippedFile {
  readonly head: ShippedHead;
  /**
   * Can be iterated once; each chunk is valid until the next one. @throws (while iterating) EngineError read-failed,
   * database-stopped if the shipment is lost
   */
  readonly bytes: AsyncGenerator<Buffer>;
  /** Contents that must be there before it. */
  readonly contents: readonly string[];
  /** The file and the contents are durable elsewhere. */
  taken(): void;
  /** Nothing more is read of it. */
  release(): void;
}

/** Log and contents retained for a shipment that may resume: from the opening of the database on. */
export interface RetainedForShipping {
  readonly frames: LogFollower;
  readonly contents: ContentFollower;
}

/** Returns whether the settings record has tasks that ship the database. */
export function isShipped(record: unknown): boolean {
  const tasks = (record as { PeriodicBackups?: unknown } | undefined)?.PeriodicBackups;
  if (!Array.isArray(tasks)) return false;
  return (tasks as readonly (Record<string, unknown> | null)[]).some(
    (task) => typeof task?.["Continuous"] === "object" && task["Disabled"] !== true,
  );
}

/**
 * Retains the log and contents from which a shipment may resume, if the settings record has one. Must be called before
 * contents are swept. Null if no shipment exists, or if the database is in memory.
 */
export async function retainForShipping(
  record: unknown,
  log: CommitLog,
  blobs: BlobStore,
): Promise<RetainedForShipping | null> {
  if (!isShipped(record)) return null;
  const frames = log.follow(true);
  const contents = await blobs.followFiles();
  return frames === null || contents === null ? null : tied({ frames, contents });
}

/** When one is lost, so is the other. */
function tied(kept: RetainedForShipping): RetainedForShipping {
  const { frames, contents } = kept;
  frames.whenLost = () => contents.close();
  contents.whenLost = () => frames.close();
  contents.whenKept = (bytes) => frames.keeps(bytes);
  return kept;
}

/** Several segments, and few enough bytes that one failure does not cost much. */
const fileBytes = 32 * 1024 * 1024;

export class Shipment {
  readonly #database: ShippedDatabase;
  readonly #kept: RetainedForShipping;

  private constructor(database: ShippedDatabase, kept: RetainedForShipping) {
    this.#database = database;
    this.#kept = kept;
  }

  /** Begins with a base: the state of this moment. @throws EngineError not-supported for a database in memory */
  static begin(database: ShippedDatabase): {
    readonly base: ShippedFile;
    readonly shipment: Shipment;
  } {
    const { log, blobs } = database;
    const image = log.image();
    const frames = log.follow(false);
    const contents = blobs.follow();
    if (image === null || frames === null || contents === null) {
      throw new EngineError(
        "not-supported",
        "A database in memory has no log on disk, so that it cannot be backed up continuously.",
      );
    }
    const shipment = new Shipment(database, tied({ frames, contents }));
    return { base: shipment.#base(image), shipment };
  }

  /**
   * Resumes after frame `point`. @param known names of the contents that were shipped before
   * @returns null if the frames after it no longer exist: the shipment must start over
   */
  static async resume(
    database: ShippedDatabase,
    kept: RetainedForShipping,
    point: LogPoint,
    known: ReadonlySet<string>,
  ): Promise<Shipment | null> {
    const frames = await kept.frames.branch(point);
    const contents = kept.contents.branch((hash) => !known.has(contentName(hash)));
    if (frames !== null && !contents.isLost) {
      return new Shipment(database, tied({ frames, contents }));
    }
    frames?.close();
    contents.close();
    return null;
  }

  /** Whether it can return no further frames. */
  get isLost(): boolean {
    return this.#kept.frames.isLost;
  }

  /** The last shipped frame. */
  get point(): LogPoint {
    return this.#kept.frames.point;
  }

  /** Bytes of frames that wait. */
  get waitingBytes(): number {
    return this.#kept.frames.waitingBytes;
  }

  /** Returns the next file to ship; null if nothing is pending. */
  next(): ShippedFile | null {
    const { frames } = this.#kept;
    const waiting = frames.waiting(fileBytes);
    if (waiting === null) return null;
    const counts = waiting.isAll ? this.#database.counts() : { etag: null, documents: null };
    const head = this.#head("frames", waiting, counts);
    const read = (range: LogRange) => frames.read(range);
    return this.#file(head, waiting.ranges, read, () => frames.taken(waiting));
  }

  /** Returns the bytes of a content. @throws EngineError record-damaged, read-failed */
  content(name: string): AsyncGenerator<Buffer> {
    return this.#database.blobs.bytes(hashOfContentName(name));
  }

  /** Releases the retained log and contents. */
  close(): void {
    this.#kept.frames.close();
    this.#kept.contents.close();
  }

  #base(image: LogImage): ShippedFile {
    const { through, ranges } = image;
    const after = { number: 0, crc: 0 };
    const head = this.#head("base", { after, through, ranges }, this.#database.counts());
    return this.#file(
      head,
      ranges,
      (range) => image.read(range),
      () => undefined,
      () => image.release(),
    );
  }

  #head(
    kind: ShippedHead["kind"],
    { after, through, ranges }: Pick<WaitingFrames, "after" | "through" | "ranges">,
    counts: Pick<ShippedHead, "etag" | "documents">,
  ): ShippedHead {
    return {
      kind,
      databaseId: this.#database.log.databaseId.toString("hex"),
      after,
      through,
      takenMicros: this.#database.nowMicros(),
      etag: counts.etag,
      documents: counts.documents,
      segments: ranges.map(shippedSegment),
    };
  }

  #file(
    head: ShippedHead,
    ranges: readonly LogRange[],
    read: (range: LogRange) => AsyncGenerator<Buffer>,
    taken: () => void,
    release: () => void = () => undefined,
  ): ShippedFile {
    const { contents } = this.#kept;
    const hashes = contents.waiting;
    return {
      head,
      bytes: bytesOf(head, ranges, read),
      contents: hashes.map(contentName),
      taken: () => {
        contents.taken(hashes);
        taken();
      },
      release,
    };
  }
}

async function* bytesOf(
  head: ShippedHead,
  ranges: readonly LogRange[],
  read: (range: LogRange) => AsyncGenerator<Buffer>,
): AsyncGenerator<Buffer> {
  yield encodeShippedHead(head);
  for (const range of ranges) yield* read(range);
}
