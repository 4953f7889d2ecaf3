/**
 * The files of a continuous backup: one folder for each base and the files that continue it.
 *
 *   <folder>/<stamp>.jackdaw-<database>-<node>-continuous/<first>-<last>.jackdaw-base      commits as 12 digits
 *                                                         <first>-<last>.jackdaw-frames
 *                                                         contents/<hash>                  of attachments
 *                                                         newest.json                      the last file written
 *
 * All files of a folder that ends in `-encrypted-continuous` are encrypted.
 *
 * Invariants:
 * - `newest.json` is written after the file that it names, so the loss of the last file is detected.
 */

import { EngineError, invalidArgument } from "../../engine/base/errors.ts";
import { collectBytes } from "../../engine/base/memory/collect-bytes.ts";
import { type LogPoint, type ShippedHead, shippedHeadOf } from "../../engine/engine.ts";
import { stampOf, timeOfStamp } from "./backup-folder.ts";
import { type BackupStorage, EncryptedStorage } from "./backup-storage.ts";

const folderPattern = /^(\d{4}(?:-\d\d){5})\.jackdaw-(.+)-([A-Za-z]{1,4})-(encrypted-)?continuous$/;
const filePattern = /^(\d{12,16})-(\d{12,16})\.jackdaw-(base|frames)$/;
const contentPattern = /^[0-9a-f]{64}$/;
const newestName = "newest.json";
const contentsName = "contents";
const newestBytesMax = 4096;

/** A file of the folder, with the commits from `first` to `last`. */
export interface ContinuousFile {
  readonly name: string;
  readonly kind: "base" | "frames";
  readonly first: number;
  readonly last: number;
  readonly bytes: number;
}

/** The content of a folder. */
export interface ContinuousFiles {
  /** Null if it was never completed. */
  readonly base: ContinuousFile | null;
  /** In order. */
  readonly frames: readonly ContinuousFile[];
  /** Names of contents. */
  readonly contents: ReadonlySet<string>;
}

/** The last file, as recorded by its writer. */
interface NewestFile {
  readonly name: string;
  readonly through: LogPoint;
  /** ISO time. */
  readonly at: string;
}

export class ContinuousFolder {
  readonly place: BackupStorage;
  /** Database name in the name of the folder. */
  readonly database: string;
  readonly nodeTag: string;
  readonly isEncrypted: boolean;
  /** Time of creation, in milliseconds since the Unix epoch. */
  readonly begunMs: number;
  readonly #key: Buffer | null;

  /** @param key encryption key of its files, or null */
  constructor(place: BackupStorage, key: Buffer | null) {
    const found = folderPattern.exec(place.name);
    this.database = found?.[2] ?? "";
    this.nodeTag = found?.[3] ?? "";
    this.begunMs = found === null ? 0 : timeOfStamp(found[1] as string); // the pattern has it
    this.isEncrypted = found?.[4] !== undefined;
    this.place = this.isEncrypted && key !== null ? new EncryptedStorage(place, key) : place;
    this.#key = key;
  }

  /** Creates a folder in `place`. @param key null for no encryption */
  static async make(
    place: BackupStorage,
    key: Buffer | null,
    database: string,
    nodeTag: string,
    nowMs: number,
  ): Promise<ContinuousFolder> {
    const kind = key === null ? "continuous" : "encrypted-continuous";
    for (let ms = nowMs; ; ms += 1000) {
      const own = place.within(`${stampOf(ms)}.jackdaw-${database}-${nodeTag}-${kind}`);
      if (await own.exists()) continue;
      await own.make();
      await own.within(contentsName).make();
      return new ContinuousFolder(own, key);
    }
  }

  /** Returns `place` itself, or the folders in it, oldest first. @throws EngineError file-failed */
  static async within(place: BackupStorage, key: Buffer | null): Promise<ContinuousFolder[]> {
    if (folderPattern.test(place.name)) return [new ContinuousFolder(place, key)];
    return (await place.folders())
      .filter((name) => folderPattern.test(name))
      .map((name) => new ContinuousFolder(place.within(name), key));
  }

  /** @throws EngineError invalid-argument if it is encrypted and no key is given, or the reverse */
  requireKey(): void {
    requireKeyFor(this.place.path, this.isEncrypted, this.#key);
  }

  async list(): Promise<ContinuousFiles> {
    const found = (await this.place.files()).flatMap(({ name, bytes }): ContinuousFile[] => {
      const [, first, last, kind] = filePattern.exec(name) ?? [];
      if (kind !== "base" && kind !== "frames") return [];
      return [{ name, kind, first: Number(first), last: Number(last), bytes }];
    });
    const contents = (await this.#contents.files()).map(({ name }) => name);
    return {
      base: found.find(({ kind }) => kind === "base") ?? null,
      frames: found
        .filter(({ kind }) => kind === "frames")
        .sort((a, b) => a.first - b.first || a.last - b.last),
      contents: new Set(contents.filter((name) => contentPattern.test(name))),
    };
  }

  /** Writes a base or frames durably. @returns size in bytes */
  async write(head: ShippedHead, bytes: AsyncIterable<Buffer>): Promise<number> {
    const digits = (number: number) => String(number).padStart(12, "0");
    const first = digits(head.after.number + 1);
    const name = `${first}-${digits(head.through.number)}.jackdaw-${head.kind}`;
    const written = await this.place.write(name, bytes);
    const newest: NewestFile = {
      name,
      through: head.through,
      at: new Date(head.takenMicros / 1000).toISOString(),
    };
    await this.place.write(newestName, [Buffer.from(`${JSON.stringify(newest)}\n`)]);
    return written;
  }

  async writeContent(name: string, bytes: AsyncIterable<Buffer>): Promise<void> {
    await this.#contents.write(name, bytes);
  }

  /** Reads a file. @throws (while iterating) EngineError file-failed, backup-damaged */
  read(name: string): AsyncGenerator<Buffer> {
    return this.place.read(name);
  }

  readContent(name: string): AsyncGenerator<Buffer> {
    return this.#contents.read(name);
  }

  /** @throws EngineError backup-damaged, file-failed */
  async headOf(name: string): Promise<ShippedHead> {
    return await shippedHeadOf(this.place.where(name), this.read(name));
  }

  /** @throws EngineError backup-damaged */
  async newest(): Promise<NewestFile> {
    const path = this.place.where(newestName);
    try {
      const bytes = await collectBytes(this.place.read(newestName, newestBytesMax));
      return JSON.parse(bytes.toString()) as NewestFile;
    } catch (cause) {
      throw new EngineError(
        "backup-damaged",
        `The file ${path} of the backup, which names the last file, is missing or damaged. To restore without it, set a moment (PointInTime).`,
        { cause },
      );
    }
  }

  async remove(): Promise<void> {
    await this.place.removeAll();
  }

  get #contents(): BackupStorage {
    return this.place.within(contentsName);
  }
}

/** @throws EngineError invalid-argument */
export function requireKeyFor(path: string, isEncrypted: boolean, key: Buffer | null): void {
  if (isEncrypted === (key !== null)) return;
  throw invalidArgument(
    isEncrypted
      ? `The backup ${path} is encrypted. Send its key as BackupEncryptionSettings {"Key":"…","EncryptionMode":"UseProvidedKey"}, or use --encryption-key FILE on the command line.`
      : `The backup ${path} is not encrypted, but a key was sent (BackupEncryptionSettings). Omit the key to restore this backup.`,
  );
}

/** The files needed to restore a moment. */
interface ChosenFiles {
  readonly folder: ContinuousFolder;
  readonly base: ContinuousFile;
  /** In order, without gaps. */
  readonly frames: readonly ContinuousFile[];
  readonly contents: ReadonlySet<string>;
}

/**
 * Selects the newest base at or before that moment, and the files that continue it. A newer base that cannot be decrypted
 * with the key is skipped if an older one covers the moment.
 * @param throughMicros null for the newest moment @throws EngineError invalid-argument, backup-damaged
 */
export async function continuousToRestore(
  folders: readonly ContinuousFolder[],
  throughMicros: number | null,
): Promise<ChosenFiles> {
  let earliestMicros = Number.POSITIVE_INFINITY;
  let closed: unknown;
  for (const folder of [...folders].reverse()) {
    // Read before the files are listed, so that files written meanwhile are neither listed nor reported as missing.
    const newest = throughMicros === null ? await Promise.allSettled([folder.newest()]) : null;
    const { base, frames, contents } = await folder.list();
    if (base === null) continue;
    const takenMicros = await openedMicros(folder, base.name).catch((error: unknown) => {
      const { code } = error as EngineError;
      const isClosed = code === "backup-damaged" || code === "invalid-argument";
      if (throughMicros === null || !isClosed) throw error;
      closed ??= error;
      return null;
    });
    if (takenMicros === null) continue;
    earliestMicros = Math.min(earliestMicros, takenMicros);
    if (throughMicros !== null && takenMicros > throughMicros) continue;
    if (newest !== null) requireNewest(folder, newest[0], frames.at(-1) ?? base);
    else if (closed !== undefined && throughMicros !== null) {
      const last = await folder.headOf((frames.at(-1) ?? base).name);
      if (last.takenMicros <= throughMicros) throw closed;
    }
    return { folder, base, frames, contents };
  }
  if (closed !== undefined) throw closed;
  if (!Number.isFinite(earliestMicros)) {
    throw invalidArgument(
      `No complete base exists in the backup location, path: ${folders[0]?.place.path}`,
    );
  }
  throw invalidArgument(
    `The continuous backup begins at ${new Date(earliestMicros / 1000).toISOString()}. An earlier moment cannot be restored.`,
  );
}

/** Returns the time at which its base was captured. @throws EngineError invalid-argument, or backup-damaged if it cannot be decrypted */
async function openedMicros(folder: ContinuousFolder, baseName: string): Promise<number> {
  folder.requireKey();
  return (await folder.headOf(baseName)).takenMicros;
}

/** @throws EngineError backup-damaged if the last written file is missing or not known */
function requireNewest(
  folder: ContinuousFolder,
  newest: PromiseSettledResult<NewestFile>,
  last: ContinuousFile,
): void {
  if (newest.status === "rejected") throw newest.reason;
  const { name, through } = newest.value;
  if (through.number <= last.last) return;
  throw new EngineError(
    "backup-damaged",
    `The file ${folder.place.where(name)} of the backup, the last one, is missing. To restore without it, set a moment (PointInTime).`,
  );
}
