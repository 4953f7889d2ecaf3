/**
 * The manifest: the file that lists the files of the database, in two lines of text.
 *
 *   {"format":"jackdaw-log","version":1,"databaseId":"<32 hex digits>", ...}
 *   crc32 <8 hex digits of the first line>
 *
 * It is replaced atomically: written under a temporary name, synced, renamed, and the folder synced. The temporary name
 * is unique to the owner of the folder, so that a successor can remove that file, and a late rename fails.
 *
 * Invariants:
 * - Files are on the device before it lists them, and removed after it no longer lists them.
 * - `segments` is in commit order; numbers need not be, because a compacted segment replaces its sources in place.
 * - Log files without a manifest are damage, never a new database.
 */
import { crc32 } from "node:zlib";
import type { FileSystem } from "../../base/environment.ts";
import { EngineError } from "../../base/errors.ts";
import type { SegmentKind } from "../segments/segment.ts";

const manifestName = "MANIFEST";
const formatName = "jackdaw-log";
const formatVersion = 1;
const manifestBytesMax = 64 * 1024 * 1024;

/** Returns whether this is a temporary manifest. No two owners of a folder use the same name. */
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
  /** The last frame whose records it contains. */
  readonly throughNumber: number;
}

export interface Manifest {
  /** 16 bytes. */
  readonly databaseId: Buffer;
  /** The number of the next new segment. */
  readonly nextSegmentNumber: number;
  readonly nextSnapshotNumber: number;
  /** In commit order; unused segments are last. */
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

/** @returns null when the bytes are not an intact manifest of this format. */
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
 * Reads the manifest of `folder`. @returns null if it does not exist.
 * @throws EngineError database-damaged if it is damaged.
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
    `${path} is damaged: its checksum does not fit. Nothing was changed; the readable records can be copied with 'jackdaw salvage'.`,
  );
}

/**
 * Replaces the manifest. `owner`: the nonce of the folder's owner. When it resolves, the new one is on the device; when
 * it rejects with the error of a full disk, the old one is; after any other error it may be either.
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
    // Without a code: even on a full disk it is unknown which of the two manifests will be found.
    throw new Error(`${folder}/${manifestName} could not be replaced`, { cause });
  }
}

function hex(crc: number): string {
  return crc.toString(16).padStart(8, "0");
}
