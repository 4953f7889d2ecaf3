/**
 * Verifies the files of a log without changing them: the manifest, each byte of each segment, and the snapshots. Unlike
 * recovery it begins with the first frame, regardless of snapshots, and continues after damage.
 *
 * It distinguishes damage from the torn end of an interrupted write as recovery.ts does.
 *
 * Invariants:
 * - Every byte of a segment is in a whole frame, in a damage that is reported, or was never acknowledged.
 * - Records passed to the sink are intact, and in commit order.
 */
import type { FileSystem } from "../../base/environment.ts";
import { EngineError } from "../../base/errors.ts";
import { recordHeaderBytes, recordLengthAt, verifyRecord } from "../../base/record.ts";
import {
  decodeFrameHeader,
  type FrameHeader,
  findMagic,
  frameCrc,
  frameHeaderBytes,
  isZero,
  payloadIsWhole,
} from "../segments/frame.ts";
import {
  decodeSegmentHeader,
  newImage,
  segmentFileName,
  segmentFormat,
  segmentFormatOf,
  segmentHeaderBytes,
} from "../segments/segment.ts";
import { positionSegmentFactor, type RecordOwner } from "./log.ts";
import { findLeftovers } from "./log-folder.ts";
import { type Manifest, type ManifestSegment, readManifest } from "./manifest.ts";
import { findSnapshotDamage, snapshotFileName } from "./snapshot-file.ts";

/** Bytes of a file that cannot be relied on. */
export interface FoundDamage {
  readonly file: string;
  readonly offset: number;
  /** Bytes; 0 when something is missing at `offset`. */
  readonly length: number;
  readonly reason: string;
}

interface CheckedLog {
  readonly databaseId: Buffer | null;
  readonly segments: number;
  readonly frames: number;
  readonly records: number;
  readonly damages: readonly FoundDamage[];
  /** Snapshots that cannot be used: the log is read instead. */
  readonly unusableSnapshots: readonly FoundDamage[];
  /** Bytes of a write that a crash interrupted; it was not acknowledged, and the next start removes it. */
  readonly tornBytes: number;
  /** When the last commit was made, in microseconds since 1970; 0: none that is not compacted. */
  readonly committedMicros: number;
}

/** Called with the bytes of each file that was checked. Throws to end the check. */
export type CheckProgress = (bytes: number) => void;

/** Number of bytes per read: the resolution at which unreadable ranges are reported. */
const readBytes = 1024 * 1024;

/**
 * Checks the log in `folder`, which must not be open. One segment's file is in memory at a time.
 * @throws EngineError database-missing if the folder contains no log
 */
export async function checkLog(
  files: FileSystem,
  folder: string,
  sink: Pick<RecordOwner, "replay">,
  progress: CheckProgress,
): Promise<CheckedLog> {
  const hasLog = await files.exists(`${folder}/log`);
  if (!hasLog) throw new EngineError("database-missing", `There is no database in ${folder}.`);
  let manifest: Manifest | null;
  try {
    manifest = await readManifest(files, folder);
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    return withoutManifest(`${folder}/MANIFEST`, "its checksum does not fit");
  }
  if (manifest === null) {
    const isNew = (await files.list(`${folder}/log`)).length === 0;
    return isNew ? nothing : withoutManifest(`${folder}/MANIFEST`, "it is missing");
  }
  const check = new LogCheck(files, folder, manifest, sink, progress);
  await check.run();
  return check.result();
}

const nothing: CheckedLog = {
  databaseId: null,
  segments: 0,
  frames: 0,
  records: 0,
  damages: [],
  unusableSnapshots: [],
  tornBytes: 0,
  committedMicros: 0,
};

function withoutManifest(file: string, reason: string): CheckedLog {
  const why = `${reason}; without it nothing else can be checked`;
  return { ...nothing, damages: [{ file, offset: 0, length: 0, reason: why }] };
}

/** A segment's file in memory. Bytes that could not be read are zero, and reported. */
interface Image {
  readonly listed: ManifestSegment;
  readonly file: string;
  readonly bytes: Buffer;
  readonly salt: number;
}

class LogCheck {
  readonly #files: FileSystem;
  readonly #folder: string;
  readonly #manifest: Manifest;
  readonly #sink: Pick<RecordOwner, "replay">;
  readonly #progress: CheckProgress;
  readonly #damages: FoundDamage[] = [];
  readonly #unusable: FoundDamage[] = [];
  #frames = 0;
  #records = 0;
  #tornBytes = 0;
  #committedMicros = 0;
  /** Number and CRC of the last frame; `crc` is null after damage, where any later frame may follow. */
  #last: { number: number; crc: number | null } = { number: 0, crc: 0 };

  constructor(
    files: FileSystem,
    folder: string,
    manifest: Manifest,
    sink: Pick<RecordOwner, "replay">,
    progress: CheckProgress,
  ) {
    this.#files = files;
    this.#folder = folder;
    this.#manifest = manifest;
    this.#sink = sink;
    this.#progress = progress;
  }

  async run(): Promise<void> {
    const { segments, snapshots, databaseId } = this.#manifest;
    await this.#checkLeftovers();
    for (const [at, listed] of segments.entries()) {
      const image = await this.#load(listed);
      if (image === null) this.#last = { number: this.#last.number, crc: null };
      else if (listed.kind === "compacted") this.#checkCompacted(image);
      else if (await this.#checkLogSegment(image, segments.slice(at + 1))) break;
    }
    for (const { number } of snapshots) {
      const file = `${this.#folder}/snap/${snapshotFileName(number)}`;
      const identity = { databaseId, number };
      const found = await findSnapshotDamage(this.#files, file, identity, this.#progress);
      if (found !== null) this.#unusable.push({ file, ...found });
    }
  }

  result(): CheckedLog {
    return {
      databaseId: this.#manifest.databaseId,
      segments: this.#manifest.segments.length,
      frames: this.#frames,
      records: this.#records,
      damages: this.#damages,
      unusableSnapshots: this.#unusable,
      tornBytes: this.#tornBytes,
      committedMicros: this.#committedMicros,
    };
  }

  /** A used file that the manifest does not list shows that the manifest is too old. */
  async #checkLeftovers(): Promise<void> {
    const { segments } = this.#manifest;
    const listed = new Set(segments.map(({ number }) => segmentFileName(number)));
    try {
      await findLeftovers({ files: this.#files, folder: this.#folder }, this.#manifest);
    } catch (error) {
      if (!(error instanceof EngineError)) throw error;
      const names = await this.#files.list(`${this.#folder}/log`);
      const unlisted = names.filter((name) => !listed.has(name)).sort();
      const reason = `it is older than log/${unlisted.at(-1)}, which it does not list`;
      this.#damaged(`${this.#folder}/MANIFEST`, 0, 0, reason);
    }
  }

  #damaged(file: string, offset: number, length: number, reason: string): void {
    this.#damages.push({ file, offset, length, reason });
  }

  /** Null if no frame of it can be recognized. */
  async #load(listed: ManifestSegment): Promise<Image | null> {
    const file = `${this.#folder}/log/${segmentFileName(listed.number)}`;
    const bytes = await this.#read(file, listed.size);
    if (bytes === null) return null;
    const header = decodeSegmentHeader(bytes);
    if (header === null) {
      const format = segmentFormatOf(bytes);
      const isOther = format !== null && format !== segmentFormat;
      const why = isOther ? `it is of format ${format}` : "it has no whole header";
      this.#damaged(file, 0, bytes.length, `${why}; its frames cannot be read`);
      return null;
    }
    const isOurs =
      header.number === listed.number &&
      header.kind === listed.kind &&
      header.size === listed.size &&
      header.databaseId.equals(this.#manifest.databaseId);
    if (!isOurs) {
      this.#damaged(file, 0, bytes.length, "it is another file than the manifest lists");
      return null;
    }
    return { listed, file, bytes, salt: header.salt };
  }

  async #read(path: string, size: number): Promise<Buffer | null> {
    if (!(await this.#files.exists(path))) {
      this.#damaged(path, 0, size, "the file is missing");
      return null;
    }
    const file = await this.#files.open(path, "read");
    try {
      const found = await file.size();
      if (found < size) this.#damaged(path, found, size - found, "the file ends here");
      const bytes = newImage(size);
      for (let at = 0; at < Math.min(size, found); at += readBytes) {
        const length = Math.min(readBytes, size - at);
        try {
          await file.read(bytes, at, length, at);
        } catch (error) {
          const { code, message } = error as NodeJS.ErrnoException;
          this.#damaged(path, at, length, `it cannot be read (${code ?? message})`);
          bytes.fill(0, at, at + length);
        }
        this.#progress(length);
      }
      return bytes;
    } finally {
      await file.close();
    }
  }

  /** It was complete before it was listed: all of it is frames. */
  #checkCompacted(image: Image): void {
    const { bytes, salt, file, listed } = image;
    if (this.#last.crc !== null && listed.firstNumber !== this.#last.number + 1) {
      this.#missing(file, segmentHeaderBytes, listed.firstNumber);
    }
    let previous: number | null = 0;
    for (let at = segmentHeaderBytes; at < listed.size; ) {
      const header = decodeFrameHeader(bytes, at, listed.size, salt);
      if (header === null) {
        const next = nextFrame(image, at + 8);
        this.#damaged(file, at, next - at, "there is no whole frame");
        previous = null;
        at = next;
        continue;
      }
      if (previous !== null && header.previousCrc !== previous) {
        this.#damaged(file, at, 0, "a frame before this one is missing");
      }
      this.#checkFrame(image, at, header);
      previous = frameCrc(bytes, at);
      at += frameHeaderBytes + header.payloadLength;
    }
    this.#last = { number: listed.lastNumber, crc: listed.lastCrc };
  }

  /** @returns true when the log ends here with a torn frame. */
  async #checkLogSegment(image: Image, later: readonly ManifestSegment[]): Promise<boolean> {
    const { bytes, listed, file, salt } = image;
    for (let at = segmentHeaderBytes; ; ) {
      at = this.#checkChain(image, at);
      if (isZero(bytes, at, listed.size) || (await this.#isContinuedIn(later))) return false;
      if (!(await this.#wasDurable(image, at, later))) {
        this.#tornBytes = listed.size - at;
        return true;
      }
      const header = decodeFrameHeader(bytes, at, listed.size, salt);
      if (header === null) {
        const next = nextFrame(image, at + 8);
        this.#damaged(file, at, next - at, "there is no whole frame");
        this.#last = { number: this.#last.number, crc: null };
        at = next;
      } else if (this.#isNext(header)) {
        this.#checkFrame(image, at, header);
        this.#committed(header);
        this.#last = { number: header.number, crc: frameCrc(bytes, at) };
        at += frameHeaderBytes + header.payloadLength;
      } else {
        this.#missing(file, at, header.number);
        this.#last = { number: header.number - 1, crc: null };
      }
    }
  }

  /** Passes over whole frames of the chain. @returns where it ends */
  #checkChain(image: Image, start: number): number {
    const { bytes, listed, salt } = image;
    for (let at = start; ; ) {
      const header = decodeFrameHeader(bytes, at, listed.size, salt);
      if (header === null || !this.#isNext(header) || !payloadIsWhole(bytes, at, header)) return at;
      this.#checkFrame(image, at, header);
      this.#committed(header);
      this.#last = { number: header.number, crc: frameCrc(bytes, at) };
      at += frameHeaderBytes + header.payloadLength;
    }
  }

  #committed({ transactionCount, wallClockMicros }: FrameHeader): void {
    if (transactionCount > 0) this.#committedMicros = wallClockMicros;
  }

  #isNext({ number, previousCrc }: FrameHeader): boolean {
    const { number: last, crc } = this.#last;
    return crc === null ? number > last : number === last + 1 && previousCrc === crc;
  }

  /** As in recovery: otherwise the bytes after the chain are not a frame. */
  async #isContinuedIn(later: readonly ManifestSegment[]): Promise<boolean> {
    if (this.#last.crc === null) return false;
    for (const listed of later) {
      if (listed.kind === "compacted") return listed.firstNumber === this.#last.number + 1;
      const head = await this.#head(listed);
      if (isZero(head, segmentHeaderBytes, head.length)) continue;
      const salt = decodeSegmentHeader(head)?.salt ?? 0;
      const limit = Number.POSITIVE_INFINITY;
      const header = decodeFrameHeader(head, segmentHeaderBytes, limit, salt);
      return header !== null && this.#isNext(header);
    }
    return false;
  }

  /** Returns whether a later header covers the frame at `at`, or a later segment was begun. */
  async #wasDurable(
    { bytes, listed, salt }: Image,
    at: number,
    later: readonly ManifestSegment[],
  ): Promise<boolean> {
    for (let from = findMagic(bytes, at, listed.size); from >= 0; ) {
      const header = decodeFrameHeader(bytes, from, listed.size, salt);
      if (header !== null && header.durableNumber > this.#last.number) return true;
      from = findMagic(bytes, from + 8, listed.size);
    }
    for (const one of later) {
      if (one.kind === "compacted") return true;
      const head = await this.#head(one);
      if (!isZero(head, segmentHeaderBytes, head.length)) return true;
    }
    return false;
  }

  /** Returns the headers of a segment and of its first frame; zeros if they are missing. */
  async #head({ number }: ManifestSegment): Promise<Buffer> {
    const head = Buffer.alloc(segmentHeaderBytes + frameHeaderBytes);
    const path = `${this.#folder}/log/${segmentFileName(number)}`;
    if (!(await this.#files.exists(path))) return head;
    const file = await this.#files.open(path, "read");
    try {
      await file.read(head, 0, head.length, 0);
    } catch {
      // Reported when the segment itself is read.
    } finally {
      await file.close();
    }
    return head;
  }

  /** Verifies the payload and its records, and passes them on. */
  #checkFrame({ bytes, file, listed }: Image, at: number, header: FrameHeader): void {
    const start = at + frameHeaderBytes;
    const end = start + header.payloadLength;
    this.#frames++;
    if (!payloadIsWhole(bytes, at, header)) {
      const reason = `commit ${header.number} is damaged: its checksum does not fit`;
      this.#damaged(file, at, end - at, reason);
      return;
    }
    const payload = bytes.subarray(0, end);
    const base = listed.number * positionSegmentFactor;
    for (let record = start; record < end; ) {
      const isHeader = record + recordHeaderBytes <= end;
      const length = isHeader ? bytes.readUInt32LE(record + recordLengthAt) : 0;
      if (!verifyRecord(payload, record, length)) {
        this.#damaged(file, record, end - record, "a record is damaged: its checksum does not fit");
        return;
      }
      this.#sink.replay(bytes, record, length, base + record);
      this.#records++;
      record += length;
    }
  }

  #missing(file: string, at: number, number: number): void {
    const first = this.#last.number + 1;
    const which = number === first ? `commit ${first}` : `commits from ${first} to ${number - 1}`;
    const reason =
      number > first ? `${which} are missing` : `${which} does not continue the one before`;
    this.#damaged(file, at, 0, reason);
  }
}

/** Returns the offset of the next intact header of this segment; the end of the segment if no header follows. */
function nextFrame({ bytes, listed, salt }: Image, from: number): number {
  for (let at = findMagic(bytes, from, listed.size); at >= 0; ) {
    if (decodeFrameHeader(bytes, at, listed.size, salt) !== null) return at;
    at = findMagic(bytes, at + 8, listed.size);
  }
  return listed.size;
}
