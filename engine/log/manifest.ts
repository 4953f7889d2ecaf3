/**
 * The manifest: the one file that says which files are the database, in two lines of text.
 *
 *   {"format":"jackdaw-log","version":1,"databaseId":"<32 hex digits>", ...}
 *   crc32 <8 hex digits of the first line>
 *
 * It is replaced as a whole: written under another name, synced, renamed, and the folder synced. The other name is the
 * owner's alone, so that whoever takes the folder from it can remove that file, and a renaming that comes late fails.
 *
 * Invariants:
 * - What it lists is on the device before it; what it no longer lists is removed after it.
 * - `segments` is in commit order; numbers need not be, for a compacted segment stands where its sources stood.
 * - Log files without a manifest are damage, never a new database.
 */
import { crc32 } from "node:zlib";
import type { FileSystem } from "../environment.ts";
import { EngineError } from "../errors.ts";
import type { SegmentKind } from "./segment.ts";

export const manifestName = "MANIFEST";
const formatName = "jackdaw-log";
const formatVersion = 1;
const manifestBytesMax = 64 * 1024 * 1024;

/** A manifest that is being written: no two owners of a folder give it the same name. */
export function isManifestTemporary(name: string): boolean {
  return /^MANIFEST(\.\w+)?\.tmp$/.test(name);
}

export interface ManifestSegment {
  readonly number: number;
  readonly kind: SegmentKind;
  /** Bytes of the file. */
  readonly size: number;
  /** Of a compacted segment: see segment.ts. 0 in a log segment. */
  readonly firstNumber: number;
  readonly lastNumber: number;
  readonly lastCrc: number;
  readonly cleanThrough: number;
  readonly deadBytesAtBirth: number;
}

export interface ManifestSnapshot {
  readonly number: number;
  /** The last frame whose records are in it. */
  readonly throughNumber: number;
}

export interface Manifest {
  /** 16 bytes. */
  readonly databaseId: Buffer;
  /** The number that the next new segment gets. */
  readonly nextSegmentNumber: number;
  readonly nextSnapshotNumber: number;
  /** In commit order; those not yet used come last. */
  readonly segments: readonly ManifestSegment[];
  /** Oldest first, at most two. */
  readonly snapshots: readonly ManifestSnapshot[];
}

export function encodeManifest(manifest: Manifest): Buffer {
  const line = JSON.stringify({
    format: formatName,
    version: formatVersion,
    ...manifest,
    databaseId: manifest.databaseId.toString("hex"),
  });
  return Buffer.from(`${line}\ncrc32 ${hex(crc32(line))}\n`);
}

/** @returns null when the bytes are not a whole manifest of this format. */
export function decodeManifest(bytes: Buffer): Manifest | null {
  const text = bytes.toString("latin1");
  const end = text.indexOf("\n");
  if (end < 0) return null;
  const line = text.slice(0, end);
  if (text.slice(end) !== `\ncrc32 ${hex(crc32(line))}\n`) return null;
  const fields = JSON.parse(line) as Omit<Manifest, "databaseId"> & {
    format: string;
    version: number;
    databaseId: string;
  };
  if (fields.format !== formatName || fields.version !== formatVersion) return null;
  return {
    databaseId: Buffer.from(fields.databaseId, "hex"),
    nextSegmentNumber: fields.nextSegmentNumber,
    nextSnapshotNumber: fields.nextSnapshotNumber,
    segments: fields.segments,
    snapshots: fields.snapshots,
  };
}

/**
 * Reads the manifest of `folder`. @returns null when there is none.
 * @throws EngineError database-damaged when there is one and it is not whole.
 */
export async function readManifest(files: FileSystem, folder: string): Promise<Manifest | null> {
  const path = `${folder}/${manifestName}`;
  if (!(await files.exists(path))) return null;
  const file = await files.open(path, "read");
  try {
    const size = await file.size();
    if (size === 0) throw new EngineError("database-damaged", `${path} is empty.`);
    if (size <= manifestBytesMax) {
      const bytes = Buffer.alloc(size);
      const count = await file.read(bytes, 0, size, 0);
      const manifest = decodeManifest(bytes.subarray(0, count));
      if (manifest !== null) return manifest;
    }
  } finally {
    await file.close();
  }
  throw new EngineError(
    "database-damaged",
    `${path} is damaged: its checksum does not fit. Nothing was changed; the records can be salvaged.`,
  );
}

/**
 * Replaces the manifest. `owner`: the nonce of who has the folder. When it resolves, the new one is on the device; when it rejects with the error of a full
 * disk, the old one is; after any other error it may be either.
 */
export async function writeManifest(
  files: FileSystem,
  folder: string,
  owner: string,
  manifest: Manifest,
): Promise<void> {
  const bytes = encodeManifest(manifest);
  const temporary = `${folder}/${manifestName}.${owner}.tmp`;
  if (await files.exists(temporary)) await files.unlink(temporary);
  const file = await files.open(temporary, "create");
  try {
    await file.write(bytes, 0, bytes.length, 0);
    await file.sync();
  } finally {
    await file.close();
  }
  try {
    await files.rename(temporary, `${folder}/${manifestName}`);
    await files.syncDirectory(folder);
  } catch (cause) {
    // Without a code: even if the disk is full, nobody knows which of the two manifests will be found.
    throw new Error(`${folder}/${manifestName} could not be replaced`, { cause });
  }
}

function hex(crc: number): string {
  return crc.toString(16).padStart(8, "0");
}
