/**
 * Reads the intact records of a damaged log, with or without its manifest, and passes them to a sink in commit order,
 * as far as that is known. The source is opened for reading only.
 *
 * A superseded or deleted record may reappear if the newer record is lost: hence the report. Segments that compaction
 * had already replaced are skipped if the compacted segment is intact.
 *
 * Invariants:
 * - Every record passed to the sink is in an intact frame, or its own checksum is correct.
 */
import type { FileSystem } from "../../base/environment.ts";
import { EngineError } from "../../base/errors.ts";
import { recordHeaderBytes, recordLengthAt, verifyRecord } from "../../base/record.ts";
import {
  decodeFrameHeader,
  decodeFrameWithoutSalt,
  type FrameHeader,
  findMagic,
  frameFlags,
  frameHeaderBytes,
  payloadIsWhole,
} from "../segments/frame.ts";
import {
  decodeSegmentHeader,
  newImage,
  segmentHeaderBytes,
  segmentNumberOf,
} from "../segments/segment.ts";
import { positionSegmentFactor, type RecordOwner } from "./log.ts";
import { type Manifest, readManifest } from "./manifest.ts";
import { recordLengthIn } from "./recovery.ts";
import { findRecord } from "./scrub.ts";

interface SalvageReport {
  readonly segments: number;
  readonly frames: number;
  readonly records: number;
  /** The unreadable parts: of files, and segments listed in the manifest that are missing. */
  readonly losses: readonly SalvageLoss[];
}

export interface SalvageLoss {
  readonly file: string;
  readonly offset: number;
  readonly length: number;
  readonly reason: string;
}

/** A range of records: the payload of a frame, or bytes in which no frame was recognized. */
interface Part {
  readonly start: number;
  readonly end: number;
  /** Null between frames. */
  readonly header: FrameHeader | null;
  readonly isWhole: boolean;
}

interface Source {
  readonly number: number;
  readonly file: string;
  readonly size: number;
  /** A compacted segment that includes its last frame. */
  readonly isComplete: boolean;
  readonly parts: readonly Part[];
  readonly firstNumber: number;
  readonly lastNumber: number;
}

/**
 * Passes every readable record of the log in `folder` to `sink`. One segment's file is in memory at a time.
 * @throws EngineError database-missing when there are no log files.
 */
export async function salvage(
  files: FileSystem,
  folder: string,
  sink: Pick<RecordOwner, "replay">,
): Promise<SalvageReport> {
  const manifest = await readManifestIfWhole(files, folder);
  const logFolder = `${folder}/log`;
  const names = (await files.exists(logFolder)) ? await files.list(logFolder) : [];
  const numbers = names.map(segmentNumberOf).filter((number) => number !== null);
  if (numbers.length === 0) {
    throw new EngineError("database-missing", `There are no log files in ${logFolder}.`);
  }
  const report = { segments: 0, frames: 0, records: 0, losses: [] as SalvageLoss[] };
  const sources: Source[] = [];
  for (const number of numbers.sort((one, other) => one - other)) {
    const file = `${logFolder}/${names.find((name) => segmentNumberOf(name) === number)}`;
    const image = await readAll(files, file);
    sources.push(examine(number, file, image));
  }
  for (const source of inOrder(sources, manifest, report.losses, logFolder)) {
    report.segments++;
    await give(files, source, sink, report);
  }
  return report;
}

async function readManifestIfWhole(files: FileSystem, folder: string): Promise<Manifest | null> {
  try {
    return await readManifest(files, folder);
  } catch (error) {
    if (error instanceof EngineError) return null;
    throw error;
  }
}

async function readAll(files: FileSystem, path: string): Promise<Buffer> {
  const file = await files.open(path, "read");
  try {
    const image = newImage(await file.size());
    const count = await file.read(image, 0, image.length, 0);
    return image.subarray(0, count);
  } finally {
    await file.close();
  }
}

/** Finds the frames of a segment, wherever they begin, and the bytes between them. */
function examine(number: number, file: string, image: Buffer): Source {
  const segmentHeader = decodeSegmentHeader(image);
  const salt = segmentHeader?.salt ?? null;
  const parts: Part[] = [];
  const headers: FrameHeader[] = [];
  let end = Math.min(segmentHeaderBytes, image.length);
  for (let at = findMagic(image, end, image.length); at >= 0; ) {
    const part = frameAt(image, at, salt);
    if (part?.header === undefined || part.header === null) {
      at = findMagic(image, at + 8, image.length);
      continue;
    }
    if (at > end) parts.push({ start: end, end: at, header: null, isWhole: false });
    parts.push(part);
    headers.push(part.header);
    end = part.end;
    at = findMagic(image, end, image.length);
  }
  const used = lastUsedByte(image, end);
  if (used > end) parts.push({ start: end, end: used, header: null, isWhole: false });
  const flags = headers.at(-1)?.flags ?? 0;
  const isCompacted = segmentHeader?.kind === "compacted" || (flags & frameFlags.compacted) !== 0;
  return {
    number,
    file,
    size: image.length,
    isComplete: isCompacted && (flags & frameFlags.last) !== 0 && end === image.length,
    parts,
    firstNumber: headers[0]?.firstNumber ?? 0,
    lastNumber: headers.at(-1)?.number ?? 0,
  };
}

/** Returns the frame at `at`, if its header or its payload verifies. */
function frameAt(image: Buffer, at: number, salt: number | null): Part | null {
  const proven = salt === null ? null : decodeFrameHeader(image, at, image.length, salt);
  const header = proven ?? decodeFrameWithoutSalt(image, at, image.length);
  if (header === null) return null;
  const start = at + frameHeaderBytes;
  const isWhole = proven === null || payloadIsWhole(image, at, header);
  return { start, end: start + header.payloadLength, header, isWhole };
}

/** Returns the end of the used bytes, before the zeros that fill the file; rounded up to 8. */
function lastUsedByte(image: Buffer, from: number): number {
  let end = image.length;
  while (end > from && image[end - 1] === 0) end--;
  return Math.min(Math.ceil(end / 8) * 8, image.length);
}

/** Returns the segments to read in commit order: the order of the manifest, or of frame numbers. */
function inOrder(
  sources: readonly Source[],
  manifest: Manifest | null,
  losses: SalvageLoss[],
  logFolder: string,
): Source[] {
  if (manifest !== null) {
    const byNumber = new Map(sources.map((source) => [source.number, source]));
    return manifest.segments.flatMap(({ number, size }) => {
      const source = byNumber.get(number);
      if (source !== undefined) return [source];
      const file = `${logFolder}/${number}`;
      losses.push({ file, offset: 0, length: size, reason: "the file is missing" });
      return [];
    });
  }
  const used = sources.filter((source) => source.parts.length > 0);
  return used
    .filter((source) => !isReplaced(source, used))
    .sort((one, other) => one.lastNumber - other.lastNumber || one.number - other.number);
}

/** Returns whether all of `source` is in a newer, complete compacted segment. */
function isReplaced(source: Source, all: readonly Source[]): boolean {
  return all.some(
    (other) =>
      other.isComplete &&
      other.number > source.number &&
      other.firstNumber <= source.firstNumber &&
      other.lastNumber >= source.lastNumber,
  );
}

async function give(
  files: FileSystem,
  source: Source,
  sink: Pick<RecordOwner, "replay">,
  report: { frames: number; records: number; readonly losses: SalvageLoss[] },
): Promise<void> {
  const image = await readAll(files, source.file);
  const base = source.number * positionSegmentFactor;
  for (const { start, end, header, isWhole } of source.parts) {
    if (header !== null) report.frames++;
    for (let record = start; record < end; ) {
      const length = isWhole ? recordLengthIn(image, record, end) : recordIn(image, record, end);
      if (length === 0) {
        const next = findRecord(image, record + 8, end);
        const { file } = source;
        const reason = "no whole record";
        report.losses.push({ file, offset: record, length: next - record, reason });
        record = next;
        continue;
      }
      sink.replay(image, record, length, base + record);
      report.records++;
      record += length;
    }
  }
}

/** Returns the length of the intact record at `at`; 0 if no intact record begins there. */
function recordIn(image: Buffer, at: number, end: number): number {
  if (at + recordHeaderBytes > end) return 0;
  const length = image.readUInt32LE(at + recordLengthAt);
  return verifyRecord(image.subarray(0, end), at, length) ? length : 0;
}
