/**
 * A snapshot of the index: the owner's sections, and their position in the log. Recovery need not replay earlier
 * records; it works without the snapshot when that is damaged.
 *
 *   0          8        12        16            32       40        64
 *   +----------+--------+---------+-------------+--------+---------+-----------+- - -+------+---------+
 *   | JACKSNAP | crc    | version | database id | number | zero    | section 1 |     | text | trailer |
 *   | 8 bytes  | u32    | u32     | 16 bytes    | u64    | 24 bytes|           |     |      | 64 bytes|
 *   +----------+--------+---------+-------------+--------+---------+-----------+- - -+------+---------+
 *
 *   trailer:  | JACKTAIL 8 bytes | crc u32 | crc of the text u32 | offset of the text u64 | its length u64 | zero |
 *
 * `crc` is CRC-32 of the 64 bytes with the field itself zero. The text is JSON (`SnapshotText`): a head defined by the
 * owner (the cut, for the index of the log), and for each section its offset and a CRC-32 for every `blockBytes` of it.
 * Sections begin at multiples of 64.
 *
 * Invariants:
 * - A section is returned only when all its blocks are intact.
 */
import { crc32 } from "node:zlib";
import type { FileHandle, FileSystem } from "../../base/environment.ts";
import { readInteger, writeInteger } from "../segments/frame.ts";
import { sharedMemory } from "../segments/image-pool.ts";
import type { SnapshotSection } from "./log.ts";
import type { Throttle } from "./throttle.ts";

const edgeBytes = 64;
const blockBytes = 1024 * 1024;
/** Bytes of a section that are read before they are verified: whole blocks. */
const readBytes = 8 * blockBytes;
/** Written bytes of a section are synced this often, so that no other sync has to wait for many of them. */
const syncBytes = 8 * blockBytes;
/** Number of bytes copied and checksummed in one call: some 50 microseconds. */
const pieceBytes = 128 * 1024;
/** Version of the file and its sections: a snapshot of another version is ignored, and the log replayed. */
const formatVersion = 3;

/** The state of one segment as of the cut. */
export interface SnapshotSegment {
  readonly number: number;
  readonly end: number;
  readonly payloadBytes: number;
  readonly deadBytes: number;
  readonly lastNumber: number;
  readonly lastCrc: number;
  /** See extent-sums.ts; absent in older snapshots. */
  readonly extentSums?: readonly number[];
}

/** The cut: everything up to frame `throughNumber` is in the sections, nothing after it. */
export interface SnapshotCut {
  readonly throughNumber: number;
  readonly throughCrc: number;
  /** Segments up to the cut, in commit order. Further frames begin at the `end` of the last. */
  readonly segments: readonly SnapshotSegment[];
}

interface SectionText {
  readonly name: string;
  readonly offset: number;
  readonly length: number;
  readonly crcs: readonly number[];
}

interface SnapshotText<Head> {
  readonly head: Head;
  readonly blockBytes: number;
  readonly sections: readonly SectionText[];
}

interface SnapshotIdentity {
  readonly databaseId: Buffer;
  readonly number: number;
}

export interface LoadedSnapshot<Head = SnapshotCut> {
  /** Bytes of the file. */
  readonly bytes: number;
  readonly head: Head;
  readonly sections: ReadonlyMap<string, Buffer>;
}

/** `0000000007.idx` */
export function snapshotFileName(number: number): string {
  return `${number.toString().padStart(10, "0")}.idx`;
}

/** Writes the whole file and syncs it. @returns its length. The parts must not change before it resolves. */
export async function writeSnapshotFile<Head>(
  file: FileHandle,
  identity: SnapshotIdentity,
  head: Head,
  sections: readonly SnapshotSection[],
  throttle: Throttle,
): Promise<number> {
  const edge = Buffer.alloc(edgeBytes);
  edge.write("JACKSNAP", 0, "latin1");
  edge.writeUInt32LE(formatVersion, 12);
  identity.databaseId.copy(edge, 16, 0, 16);
  writeInteger(edge, 32, identity.number);
  edge.writeUInt32LE(crc32(edge), 8);
  await file.write(edge, 0, edgeBytes, 0);
  const written: SectionText[] = [];
  const block = Buffer.allocUnsafeSlow(blockBytes);
  let at = edgeBytes;
  for (const section of sections) {
    const writer = new SectionWriter(file, at, throttle, block);
    for (const part of section.parts) await writer.add(part);
    await writer.end();
    written.push({ name: section.name, offset: at, length: writer.length, crcs: writer.crcs });
    at = Math.ceil((at + writer.length) / edgeBytes) * edgeBytes;
  }
  const fields: SnapshotText<Head> = { head, blockBytes, sections: written };
  const text = Buffer.from(JSON.stringify(fields));
  await file.write(text, 0, text.length, at);
  const trailer = Buffer.alloc(edgeBytes);
  trailer.write("JACKTAIL", 0, "latin1");
  trailer.writeUInt32LE(crc32(text), 12);
  writeInteger(trailer, 16, at);
  writeInteger(trailer, 24, text.length);
  trailer.writeUInt32LE(crc32(trailer), 8);
  await file.write(trailer, 0, edgeBytes, at + text.length);
  await file.sync();
  return at + text.length + edgeBytes;
}

/** Gathers the parts of one section into blocks. */
class SectionWriter {
  readonly crcs: number[] = [];
  length = 0;
  readonly #file: FileHandle;
  readonly #offset: number;
  readonly #throttle: Throttle;
  readonly #block: Buffer;
  #used = 0;
  #crc = 0;

  /** @param block - `blockBytes` bytes that nothing else uses until `end` resolves. */
  constructor(file: FileHandle, offset: number, throttle: Throttle, block: Buffer) {
    this.#block = block;
    this.#file = file;
    this.#offset = offset;
    this.#throttle = throttle;
  }

  async add(part: Uint8Array): Promise<void> {
    // Producing the next part may take a while without output.
    if (part.length === 0 && this.#throttle.isDue()) await this.#throttle.yield();
    for (let at = 0; at < part.length; ) {
      const count = Math.min(blockBytes - this.#used, part.length - at, pieceBytes);
      const piece = part.subarray(at, at + count);
      this.#block.set(piece, this.#used);
      this.#crc = crc32(piece, this.#crc);
      this.#used += count;
      at += count;
      if (this.#used === blockBytes) await this.#writeBlock();
      else if (this.#throttle.isDue()) await this.#throttle.yield();
    }
  }

  async end(): Promise<void> {
    if (this.#used > 0) await this.#writeBlock();
  }

  async #writeBlock(): Promise<void> {
    const count = this.#used;
    this.crcs.push(this.#crc);
    this.#crc = 0;
    await this.#file.write(this.#block, 0, count, this.#offset + this.length);
    this.length += count;
    this.#used = 0;
    if (this.length % syncBytes === 0) await this.#file.sync();
    this.#throttle.resumed();
    await this.#throttle.spend(count);
  }
}

interface ResizableMemory extends ArrayBuffer {
  resize(bytes: number): void;
}

const ResizableMemory = ArrayBuffer as unknown as new (
  bytes: number,
  options: { readonly maxByteLength: number },
) => ResizableMemory;

/** Memory for sections that are copied and then released by `letGoOf`, without waiting for the garbage collector. */
export function passingMemory(bytes: number): ArrayBuffer {
  return new ResizableMemory(bytes, { maxByteLength: bytes });
}

/** Releases the memory of a snapshot in `passingMemory` to the system; its sections must not be read afterwards. */
export function letGoOf(snapshot: LoadedSnapshot): void {
  for (const { buffer } of snapshot.sections.values()) (buffer as ResizableMemory).resize(0);
}

/**
 * Loads a snapshot. @returns null when it does not exist, cannot be read or is damaged, or when `isWanted` rejects its
 * head: then its sections are not read. `newMemory` allocates the memory of a section
 */
export async function readSnapshotFile<Head = SnapshotCut>(
  files: FileSystem,
  path: string,
  identity: SnapshotIdentity,
  isWanted: (head: Head) => boolean = () => true,
  newMemory: (bytes: number) => ArrayBufferLike = (bytes) => sharedMemory(bytes, bytes).buffer,
): Promise<LoadedSnapshot<Head> | null> {
  try {
    if (!(await files.exists(path))) return null;
    return await readWholeFile(files, path, identity, isWanted, newMemory);
  } catch {
    return null;
  }
}

/**
 * Returns the position and reason of damage in a snapshot; null if all of it is intact. `progress` is called with the
 * bytes of each chunk that was read.
 */
export async function findSnapshotDamage(
  files: FileSystem,
  path: string,
  identity: SnapshotIdentity,
  progress: (bytes: number) => void,
): Promise<{ offset: number; length: number; reason: string } | null> {
  if (!(await files.exists(path))) return { offset: 0, length: 0, reason: "the file is missing" };
  const file = await files.open(path, "read");
  let at = 0;
  try {
    const size = await file.size();
    const text = await readText(file, identity);
    if (text === null) return { offset: 0, length: size, reason: "its edges do not fit" };
    const block = Buffer.alloc(blockBytes);
    for (const { name, offset, length, crcs } of text.sections) {
      for (const [number, crc] of crcs.entries()) {
        at = offset + number * blockBytes;
        const count = Math.min(blockBytes, length - number * blockBytes);
        const isRead = (await file.read(block, 0, count, at)) === count;
        progress(count);
        if (isRead && crc32(block.subarray(0, count)) === crc) continue;
        return { offset: at, length: count, reason: `its section '${name}' is damaged` };
      }
    }
    return null;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === undefined) throw error;
    return { offset: at, length: 0, reason: `it cannot be read (${code})` };
  } finally {
    await file.close();
  }
}

async function readWholeFile<Head>(
  files: FileSystem,
  path: string,
  identity: SnapshotIdentity,
  isWanted: (head: Head) => boolean,
  newMemory: (bytes: number) => ArrayBufferLike,
): Promise<LoadedSnapshot<Head> | null> {
  const file = await files.open(path, "read");
  try {
    const text = await readText<Head>(file, identity);
    if (text === null || !isWanted(text.head)) return null;
    // In parallel: reading overlaps with verifying. The file stays open until the last section is read.
    const reads = await Promise.allSettled(
      text.sections.map((section) =>
        readSection(file, section, Buffer.from(newMemory(section.length))),
      ),
    );
    const sections = new Map<string, Buffer>();
    for (const [at, read] of reads.entries()) {
      if (read.status === "rejected") throw read.reason;
      if (read.value === null) return null;
      sections.set((text.sections[at] as SectionText).name, read.value); // one read for each
    }
    return { bytes: await file.size(), head: text.head, sections };
  } finally {
    await file.close();
  }
}

async function readText<Head>(
  file: FileHandle,
  identity: SnapshotIdentity,
): Promise<SnapshotText<Head> | null> {
  const size = await file.size();
  if (size < 2 * edgeBytes) return null;
  const head = await readEdge(file, 0, "JACKSNAP");
  const trailer = await readEdge(file, size - edgeBytes, "JACKTAIL");
  if (head === null || trailer === null) return null;
  if (head.readUInt32LE(12) !== formatVersion) return null;
  if (head.compare(identity.databaseId, 0, 16, 16, 32) !== 0) return null;
  if (readInteger(head, 32) !== identity.number) return null;
  const at = readInteger(trailer, 16);
  const length = readInteger(trailer, 24);
  if (at + length + edgeBytes !== size) return null;
  const text = Buffer.alloc(length);
  if ((await file.read(text, 0, length, at)) !== length) return null;
  if (crc32(text) !== trailer.readUInt32LE(12)) return null;
  const fields = JSON.parse(text.toString()) as SnapshotText<Head>;
  return fields.blockBytes === blockBytes ? fields : null;
}

async function readEdge(file: FileHandle, at: number, magic: string): Promise<Buffer | null> {
  const edge = Buffer.alloc(edgeBytes);
  if ((await file.read(edge, 0, edgeBytes, at)) !== edgeBytes) return null;
  const crc = edge.readUInt32LE(8);
  edge.writeUInt32LE(0, 8);
  return crc32(edge) === crc && edge.toString("latin1", 0, 8) === magic ? edge : null;
}

async function readSection(
  file: FileHandle,
  section: SectionText,
  bytes: Buffer,
): Promise<Buffer | null> {
  for (let from = 0; from < section.length; from += readBytes) {
    const length = Math.min(readBytes, section.length - from);
    if ((await file.read(bytes, from, length, section.offset + from)) !== length) return null;
    for (let at = from; at < from + length; at += blockBytes) {
      const crc = crc32(bytes.subarray(at, Math.min(at + blockBytes, section.length)));
      if (crc !== section.crcs[at / blockBytes]) return null;
    }
  }
  return bytes;
}
