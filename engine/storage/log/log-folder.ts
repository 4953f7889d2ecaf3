/**
 * Opening the folder of a log: creates a new one, or finds the files listed in the manifest and those left by a crash.
 *
 * Invariants:
 * - A new log is created only where there is nothing, or where creating one was never completed.
 * - No file is removed that a manifest could still need: log files newer than the manifest are damage.
 */
import { EngineError } from "../../base/errors.ts";
import { isLockName } from "../../base/platform/lock/lock-record.ts";
import { decodeFrameHeader, frameHeaderBytes } from "../segments/frame.ts";
import {
  decodeSegmentHeader,
  Segment,
  segmentFileName,
  segmentFormat,
  segmentFormatOf,
  segmentHeaderBytes,
  segmentNumberOf,
} from "../segments/segment.ts";
import type { Disk } from "../segments/segment-store.ts";
import { isManifestTemporary, type Manifest, readManifest, writeManifest } from "./manifest.ts";
import { snapshotFileName } from "./snapshot-file.ts";

type DiskFolder = Pick<Disk, "files" | "folder">;

/**
 * Reads the manifest, or creates a new log with `newDatabaseId` when the folder is empty.
 * @throws EngineError database-damaged, database-missing when `mustExist` and there is nothing.
 */
export async function openFolder(
  disk: Disk,
  newDatabaseId: Buffer,
  mustExist: boolean,
): Promise<Manifest> {
  await removeTemporary(disk);
  const manifest = await readManifest(disk.files, disk.folder);
  if (manifest !== null) {
    // Copies of a folder may lack empty subfolders.
    await disk.files.makeDirectory(`${disk.folder}/log`);
    await disk.files.makeDirectory(`${disk.folder}/snap`);
    return manifest;
  }
  await checkNeverUsed(disk);
  if (mustExist) {
    throw new EngineError("database-missing", `There is no database in ${disk.folder}.`);
  }
  return await createFolder(disk, newDatabaseId);
}

/** Removes unfinished manifests first, so that none can replace the manifest that is read. */
async function removeTemporary({ files, folder }: Disk): Promise<void> {
  for (const name of await files.list(folder)) {
    if (isManifestTemporary(name)) await files.unlink(`${folder}/${name}`);
  }
}

async function createFolder(disk: Disk, databaseId: Buffer): Promise<Manifest> {
  const { files, folder, lock } = disk;
  await files.makeDirectory(`${folder}/log`);
  await files.makeDirectory(`${folder}/snap`);
  await files.syncDirectory(folder);
  await files.syncDirectory(parentOf(folder));
  const manifest: Manifest = {
    databaseId,
    nextSegmentNumber: 1,
    nextSnapshotNumber: 1,
    segments: [],
    snapshots: [],
  };
  await writeManifest(files, folder, lock.nonce, manifest);
  return manifest;
}

/** @throws EngineError database-damaged when the folder contains more than the beginnings of a new log. */
async function checkNeverUsed({ files, folder }: Disk): Promise<void> {
  for (const name of await files.list(folder)) {
    // The lock may exist before all other files.
    if (isLockName(name)) continue;
    const isFolder = name === "log" || name === "snap";
    const content = isFolder ? await files.list(`${folder}/${name}`) : [name];
    if (content.length === 0) continue;
    throw new EngineError(
      "database-damaged",
      `${folder}/MANIFEST is missing, and the folder is not empty (${isFolder ? `${name}/` : ""}${content[0]}). ` +
        "Nothing was changed; the readable records can be copied with 'jackdaw salvage'.",
    );
  }
}

/** Returns the highest number of a file in `log/` or `snap/`; 0 if both are empty. */
export async function highestFileNumber(
  { files, folder }: Disk,
  inner: "log" | "snap",
): Promise<number> {
  const names = await files.list(`${folder}/${inner}`);
  return names.reduce((highest, name) => Math.max(highest, Number.parseInt(name, 10) || 0), 0);
}

/**
 * Files that the manifest does not list, left by a crash. Remove them once the log was found intact.
 * @throws EngineError database-damaged when one shows that the manifest is too old.
 */
export async function findLeftovers(disk: DiskFolder, manifest: Manifest): Promise<string[]> {
  const { files, folder } = disk;
  const kept = new Set([
    ...manifest.segments.map((segment) => `log/${segmentFileName(segment.number)}`),
    ...manifest.snapshots.map((snapshot) => `snap/${snapshotFileName(snapshot.number)}`),
  ]);
  const leftovers: string[] = [];
  for (const inner of ["log", "snap"]) {
    for (const name of await files.list(`${folder}/${inner}`)) {
      const path = `${inner}/${name}`;
      if (kept.has(path)) continue;
      const number = inner === "log" ? segmentNumberOf(name) : null;
      if (number !== null && number >= manifest.nextSegmentNumber) await checkUnused(disk, path);
      const isOurs = number !== null || inner === "snap" || name.endsWith(".tmp");
      if (isOurs) leftovers.push(`${folder}/${path}`);
    }
  }
  return leftovers;
}

/**
 * A log segment is listed before it is written to: a used segment that is not listed shows that the manifest is too
 * old.
 */
async function checkUnused({ files, folder }: DiskFolder, path: string): Promise<void> {
  const file = await files.open(`${folder}/${path}`, "read");
  const head = Buffer.alloc(segmentHeaderBytes + frameHeaderBytes);
  try {
    await file.read(head, 0, head.length, 0);
  } finally {
    await file.close();
  }
  const header = decodeSegmentHeader(head);
  if (header?.kind !== "log") return;
  // A segment without a frame header is a new file whose zero-filling was interrupted by a crash.
  const limit = Number.POSITIVE_INFINITY;
  if (decodeFrameHeader(head, segmentHeaderBytes, limit, header.salt) === null) return;
  throw new EngineError(
    "database-damaged",
    `${folder}/MANIFEST is older than ${path}, which it does not list. Nothing was changed.`,
  );
}

/** The listed segments, each verified to have a file of its size and header. @throws EngineError database-damaged */
export async function findSegments(disk: Disk, manifest: Manifest): Promise<Segment[]> {
  const segments: Segment[] = [];
  for (const listed of manifest.segments) {
    const path = `${disk.folder}/log/${segmentFileName(listed.number)}`;
    const salt = await checkSegmentFile(disk, manifest.databaseId, listed, path);
    const segment = new Segment({ ...listed, salt });
    segment.firstNumber = listed.firstNumber;
    segment.lastNumber = listed.lastNumber;
    segment.lastCrc = listed.lastCrc;
    segment.cleanThrough = listed.cleanThrough;
    segment.deadBytesAtBirth = listed.deadBytesAtBirth;
    segment.ready = Promise.resolve();
    segments.push(segment);
  }
  return segments;
}

async function checkSegmentFile(
  disk: Disk,
  databaseId: Buffer,
  listed: Manifest["segments"][number],
  path: string,
): Promise<number> {
  if (!(await disk.files.exists(path))) throw damaged(`${path} is missing`);
  const file = await disk.files.open(path, "read");
  try {
    const size = await file.size();
    if (size < listed.size) {
      throw damaged(`${path} ends at byte ${size}, it should have ${listed.size} bytes`);
    }
    const head = Buffer.alloc(segmentHeaderBytes);
    await file.read(head, 0, head.length, 0);
    const format = segmentFormatOf(head);
    if (format !== null && format !== segmentFormat) {
      throw new EngineError(
        "database-damaged",
        `${path} is of format ${format}, and this version reads format ${segmentFormat} only. Nothing was changed; ` +
          "export the database with the version that wrote it, and import it here.",
      );
    }
    const header = decodeSegmentHeader(head);
    if (header === null) throw damaged(`${path} is damaged at byte 0: it has no whole header`);
    const isOurs =
      header.number === listed.number &&
      header.kind === listed.kind &&
      header.size === listed.size &&
      header.databaseId.equals(databaseId);
    if (!isOurs) throw damaged(`${path} is another file than the manifest lists`);
    return header.salt;
  } finally {
    await file.close();
  }
}

function damaged(what: string): EngineError {
  return new EngineError(
    "database-damaged",
    `${what}. Nothing was changed; the readable records can be copied with 'jackdaw salvage'.`,
  );
}

function parentOf(path: string): string {
  const slash = path.lastIndexOf("/");
  return slash < 0 ? "." : slash === 0 ? "/" : path.slice(0, slash);
}
