/**
 * The content of attachments, stored once per hash. On disk a blob is a file of its own, written as a stream, so that a
 * large one is never in memory as a whole; in an in-memory database it is a list of chunks.
 *
 * A blob is kept while it is referenced: by an attachment (counted by `retain` and `release`, called as attachments
 * become visible and are removed), or by a `Lease` (an upload that is not yet part of a transaction).
 *
 * Invariants:
 * - A blob's file has its final name only when all its bytes are on the device.
 * - When `store` has resolved, the file survives a power loss.
 * - An unreferenced blob is removed; `sweep` after recovery removes blobs left by a crash. Before that nothing is
 *   removed: replay passes through states in which a blob that is needed in the end is unreferenced.
 * - Once `close` has resolved, no file is changed.
 */
import { createBLAKE2b, type IHasher } from "hash-wasm";
import type { Environment, FileHandle } from "../../base/environment.ts";
import { EngineError } from "../../base/errors.ts";
import { makeDurableDirectory } from "../../base/platform/durable-directory.ts";
import {
  isMissing,
  isReadFailed,
  readFailed,
  triedRead,
  writingFailed,
} from "../segments/failed-read.ts";
import { ContentFollower } from "./content-follower.ts";
import { diskFull, isDiskFull } from "./health.ts";

const hashBits = 256;
const chunkBytes = 256 * 1024;
const temporaryPrefix = "upload-";

/** Keeps a stored blob until `release`, whether or not an attachment references it. */
export interface Lease {
  /** Base64 of BLAKE2b-256 without key, 44 characters. */
  readonly hash: string;
  /** Bytes. */
  readonly size: number;
  release(): void;
}

/** An open blob; `close` it after reading. */
export interface BlobReader {
  readonly size: number;
  /**
   * Returns the bytes [start, end), in chunks. @throws EngineError record-damaged when the whole content is read and
   * does not match the hash, read-failed
   */
  read(start: number, end: number): AsyncGenerator<Buffer>;
  close(): Promise<void>;
}

/** The interface of the database for its blob store. */
interface BlobHost {
  /** Returns whether there is too little space for new content. */
  isDiskFull(): boolean;
  /** Returns whether the log has failed. A transaction reported as lost may then be recovered, and need its content. */
  hasStopped(): boolean;
  /** The folder could not be synced: its state on the device is unknown. */
  failed(error: unknown): void;
}

type Bytes = AsyncIterable<Uint8Array> | Iterable<Uint8Array>;

export class BlobStore {
  readonly #environment: Environment;
  /** Null for an in-memory database. */
  readonly #folder: string | null;
  readonly #references = new Map<string, number>();
  readonly #memory = new Map<string, Buffer[]>();
  /** Hashes of the files to remove. */
  readonly #removable = new Set<string>();
  #isRemoving = false;
  /** The removal of a file that is in progress. */
  #removal: { readonly hash: string; readonly done: Promise<void> } | null = null;
  /** Removals, and final steps of uploads, that are in progress. */
  readonly #underWay = new Set<Promise<void>>();
  /** Followers that copy contents elsewhere. */
  readonly followers = new Set<ContentFollower>();
  /** Set by the database that owns it. */
  host: BlobHost = {
    isDiskFull: () => false,
    hasStopped: () => false,
    failed: () => undefined,
  };
  /** Carries each new content to other nodes before `store` resolves. Set by the replication of the database. */
  carrier: ((content: Lease) => Promise<void>) | null = null;
  /** Told of a content that is referred to for the first time, and was not stored just before. */
  whenReferred: ((hash: string) => void) | null = null;
  /** Fetches a missing content, by `fill`, for a reader that opens it. Null: a missing content is damage. */
  fetchMissing: ((hash: string) => Promise<void>) | null = null;
  #folderMade: Promise<void> | null = null;
  #isSwept = false;
  #isClosed = false;

  /** `folder` is created by the first upload. */
  constructor(environment: Environment, folder: string | null) {
    this.#environment = environment;
    this.#folder = folder;
  }

  /** Distinct contents that are referenced. */
  get count(): number {
    return this.#references.size;
  }

  retain(hash: string): void {
    this.#count(hash);
    if (this.#references.get(hash) === 1) this.whenReferred?.(hash);
  }

  #count(hash: string): void {
    this.#references.set(hash, (this.#references.get(hash) ?? 0) + 1);
  }

  isReferred(hash: string): boolean {
    return this.#references.has(hash);
  }

  referencesTo(hash: string): number {
    return this.#references.get(hash) ?? 0;
  }

  release(hash: string): void {
    const left = (this.#references.get(hash) ?? 0) - 1;
    if (left > 0) {
      this.#references.set(hash, left);
      return;
    }
    this.#references.delete(hash);
    this.#memory.delete(hash);
    for (const follower of [...this.followers]) {
      if (follower.has(hash)) follower.unreferenced(hash);
    }
    if (this.#isFollowed(hash)) return;
    if (this.#folder !== null && this.#isSwept) this.#removeLater(hash);
  }

  /** Follows all contents stored from now on, and all referenced ones. Null for an in-memory database. */
  follow(): ContentFollower | null {
    if (this.#folder === null) return null;
    return new ContentFollower(this, this.#references.keys());
  }

  /** As `follow`, with every content that there is a file of. Before `sweep`. Null in memory. */
  async followFiles(): Promise<ContentFollower | null> {
    const folder = this.#folder;
    if (folder === null) return null;
    const { files } = this.#environment;
    const names = (await files.exists(folder)) ? await files.list(folder) : [];
    return new ContentFollower(this, names.filter(isContentName).map(hashOfContentName));
  }

  /** Referenced contents without a file: their hashes. None in memory. */
  async findMissing(): Promise<string[]> {
    if (this.#folder === null) return [];
    const folder = this.#folder;
    const { files } = this.#environment;
    const names = new Set((await files.exists(folder)) ? await files.list(folder) : []);
    return [...this.#references.keys()].filter((hash) => !names.has(contentName(hash)));
  }

  /** Returns whether its file exists. Always in memory. */
  async hasFile(hash: string): Promise<boolean> {
    return this.#folder === null || (await this.#environment.files.exists(this.#pathOf(hash)));
  }

  /**
   * Stores a content that is missing here, and that others have. @throws EngineError record-damaged for bytes of another
   * hash, and as `store`
   */
  async fill(hash: string, bytes: Bytes): Promise<void> {
    const folder = this.#folder;
    this.#assertOpen();
    if (folder === null) return;
    if (this.host.isDiskFull()) throw diskFull();
    const content = await this.#storeInFile(bytes, folder);
    content.release();
    if (content.hash !== hash) throw damaged(hash);
  }

  /** From a follower. */
  letGo(hash: string): void {
    if (this.#references.has(hash) || this.#isFollowed(hash)) return;
    if (this.#isSwept) this.#removeLater(hash);
  }

  #isFollowed(hash: string): boolean {
    for (const follower of this.followers) if (follower.has(hash)) return true;
    return false;
  }

  /**
   * Stores the bytes that `bytes` yields.
   * @throws EngineError disk-full, database-stopped, and the errors of the source and the disk; then no file is left.
   */
  async store(bytes: Bytes): Promise<Lease> {
    this.#assertOpen();
    if (this.host.isDiskFull()) throw diskFull();
    const content =
      this.#folder === null
        ? await this.#storeInMemory(bytes)
        : await this.#storeInFile(bytes, this.#folder);
    try {
      await this.carrier?.(content);
      return content;
    } catch (error) {
      content.release();
      throw error;
    }
  }

  /** Keeps a referenced blob; undefined when it is not referenced. @throws EngineError record-damaged, read-failed */
  async lease(hash: string): Promise<Lease | undefined> {
    if (!this.#references.has(hash)) return undefined;
    const lease = this.#lease(hash, 0);
    try {
      const reader = await this.open(hash);
      await reader.close();
      return { ...lease, size: reader.size };
    } catch (error) {
      lease.release();
      throw error;
    }
  }

  /** Opens a blob. @throws EngineError record-damaged when its file is missing, read-failed */
  async open(hash: string): Promise<BlobReader> {
    const chunks = this.#memory.get(hash);
    if (chunks !== undefined) return new MemoryReader(chunks);
    if (this.#folder === null) throw missing(hash);
    const path = this.#pathOf(hash);
    const openFile = () => triedRead(path, null, () => this.#environment.files.open(path, "read"));
    let file = await openFile();
    if (file === null && this.fetchMissing !== null && this.isReferred(hash)) {
      await this.fetchMissing(hash);
      file = await openFile();
    }
    if (file === null) throw missing(hash);
    try {
      return new FileReader(file, hash, await file.size(), path);
    } catch (cause) {
      await file.close();
      throw readFailed(path, cause);
    }
  }

  /** Yields all bytes of a blob. @throws (while iterating) as `open` and as `read` of its result */
  async *bytes(hash: string): AsyncGenerator<Buffer> {
    const reader = await this.open(hash);
    try {
      yield* reader.read(0, reader.size);
    } finally {
      await reader.close();
    }
  }

  /** Removes unreferenced files: uploads and removals that a crash interrupted. Call before serving. */
  async sweep(): Promise<void> {
    this.#isSwept = true;
    const folder = this.#folder;
    if (folder === null || !(await this.#environment.files.exists(folder))) return;
    const kept = new Set([...this.#references.keys()].map(contentName));
    for (const follower of this.followers) {
      for (const hash of follower.waiting) kept.add(contentName(hash));
    }
    for (const name of await this.#environment.files.list(folder)) {
      // A file that cannot be removed is harmless.
      if (!kept.has(name)) await this.#unlinkIfThere(`${folder}/${name}`);
    }
  }

  /**
   * Hashes without a file, and files whose content has another hash. For scrubs and tests. `spend` is awaited with the
   * bytes of each chunk; the search ends when it returns false.
   */
  async findDamaged(spend?: (bytes: number) => Promise<boolean>): Promise<string[]> {
    const damaged: string[] = [];
    for (const hash of [...this.#references.keys()]) {
      try {
        const reader = await this.open(hash);
        try {
          for await (const chunk of reader.read(0, reader.size)) {
            if (spend !== undefined && !(await spend(chunk.length))) return damaged;
          }
        } finally {
          await reader.close();
        }
      } catch (error) {
        if (!(error instanceof EngineError)) throw error;
        if (isReadFailed(error)) continue;
        if (this.#references.has(hash)) damaged.push(hash);
      }
    }
    return damaged;
  }

  /** Waits for the work in progress; uploads that are not in their final steps fail. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all(this.#underWay);
  }

  #assertOpen(): void {
    if (this.#isClosed) throw new EngineError("database-stopped", "The database is closed.");
  }

  #makeFolder(folder: string): Promise<void> {
    this.#folderMade ??= makeDurableDirectory(this.#environment.files, folder).catch((error) => {
      this.#folderMade = null;
      throw error;
    });
    return this.#folderMade;
  }

  async #unlinkIfThere(path: string): Promise<void> {
    await this.#environment.files.unlink(path).catch(() => undefined);
  }

  #pathOf(hash: string): string {
    return `${this.#folder}/${contentName(hash)}`;
  }

  #lease(hash: string, size: number): Lease {
    this.#count(hash);
    let held = true;
    return {
      hash,
      size,
      release: () => {
        if (held) this.release(hash);
        held = false;
      },
    };
  }

  async #storeInMemory(bytes: Bytes): Promise<Lease> {
    const hasher = await createBLAKE2b(hashBits);
    const chunks: Buffer[] = [];
    let size = 0;
    for await (const chunk of bytes) {
      hasher.update(chunk);
      chunks.push(Buffer.from(chunk));
      size += chunk.length;
    }
    const hash = textOf(hasher);
    const lease = this.#lease(hash, size);
    if (!this.#memory.has(hash)) this.#memory.set(hash, chunks);
    return lease;
  }

  async #storeInFile(bytes: Bytes, folder: string): Promise<Lease> {
    const name = `${temporaryPrefix}${this.#environment.random(8).toString("hex")}`;
    const temporary = `${folder}/${name}`;
    let lease: Lease | null = null;
    try {
      await this.#makeFolder(folder);
      const { hash, size } = await this.#writeFile(temporary, bytes);
      this.#assertOpen();
      lease = this.#lease(hash, size);
      await this.#track(this.#giveName(temporary, hash, folder));
      for (const follower of [...this.followers]) follower.added(hash, size);
      return lease;
    } catch (error) {
      lease?.release();
      await this.#unlinkIfThere(temporary);
      this.#assertOpen();
      // The next call creates the folder again.
      if (isMissing(error)) this.#folderMade = null;
      throw isDiskFull(error) ? diskFull(error) : writingFailed(folder, error);
    }
  }

  /** Writes all bytes to a new file and syncs it. */
  async #writeFile(path: string, bytes: Bytes): Promise<{ hash: string; size: number }> {
    const hasher = await createBLAKE2b(hashBits);
    const file = await this.#environment.files.open(path, "create");
    let size = 0;
    try {
      for await (const chunk of bytes) {
        this.#assertOpen();
        hasher.update(chunk);
        await file.write(chunk, 0, chunk.length, size);
        size += chunk.length;
      }
      await file.sync();
    } finally {
      await file.close();
    }
    return { hash: textOf(hasher), size };
  }

  async #giveName(temporary: string, hash: string, folder: string): Promise<void> {
    const { files } = this.#environment;
    // A removal of the same content may be in progress; no new one begins while there is a lease.
    if (this.#removal?.hash === hash) await this.#removal.done;
    await files.rename(temporary, this.#pathOf(hash));
    try {
      await files.syncDirectory(folder);
    } catch (error) {
      this.host.failed(error);
      throw error;
    }
  }

  #removeLater(hash: string): void {
    this.#removable.add(hash);
    if (this.#isRemoving) return;
    this.#isRemoving = true;
    void this.#track(Promise.resolve().then(() => this.#removeAll()));
  }

  /** Removes files one by one: a transaction may remove thousands of attachments. */
  async #removeAll(): Promise<void> {
    for (const hash of this.#removable) {
      this.#removable.delete(hash);
      if (this.#references.has(hash) || this.#isFollowed(hash)) continue;
      // The sweep at the next start removes the files that are left.
      if (this.#isClosed || this.host.hasStopped()) continue;
      this.#removal = { hash, done: this.#unlinkIfThere(this.#pathOf(hash)) };
      await this.#removal.done;
      this.#removal = null;
    }
    this.#isRemoving = false;
  }

  /** Makes `close` wait for `work`. @returns the same outcome. */
  async #track(work: Promise<void>): Promise<void> {
    const settled = work.catch(() => undefined);
    this.#underWay.add(settled);
    try {
      await work;
    } finally {
      this.#underWay.delete(settled);
    }
  }
}

/** Returns the name of a content's file. Base64 contains `/`, which is not allowed in one. */
export function contentName(hash: string): string {
  return Buffer.from(hash, "base64").toString("hex");
}

export function isContentName(name: string): boolean {
  return /^[0-9a-f]{64}$/.test(name);
}

export function hashOfContentName(name: string): string {
  return Buffer.from(name, "hex").toString("base64");
}

function missing(hash: string): EngineError {
  return new EngineError("record-damaged", `The content ${hash} of an attachment is not there.`);
}

class MemoryReader implements BlobReader {
  readonly size: number;
  readonly #chunks: readonly Buffer[];

  constructor(chunks: readonly Buffer[]) {
    this.#chunks = chunks;
    this.size = chunks.reduce((sum, chunk) => sum + chunk.length, 0);
  }

  async *read(start: number, end: number): AsyncGenerator<Buffer> {
    let at = 0;
    for (const chunk of this.#chunks) {
      const from = Math.max(start - at, 0);
      const to = Math.min(end - at, chunk.length);
      if (from < to) yield chunk.subarray(from, to);
      at += chunk.length;
    }
  }

  async close(): Promise<void> {}
}

class FileReader implements BlobReader {
  readonly size: number;
  readonly #file: FileHandle;
  readonly #hash: string;
  readonly #path: string;

  constructor(file: FileHandle, hash: string, size: number, path: string) {
    this.#path = path;
    this.#file = file;
    this.#hash = hash;
    this.size = size;
  }

  async *read(start: number, end: number): AsyncGenerator<Buffer> {
    const hasher = start === 0 && end === this.size ? await createBLAKE2b(hashBits) : null;
    // A truncated, empty file has no last chunk to hold back.
    if (end === 0 && hasher !== null && textOf(hasher) !== this.#hash) throw damaged(this.#hash);
    for (let at = start; at < end; ) {
      const chunk = Buffer.allocUnsafe(Math.min(chunkBytes, end - at));
      const count = await triedRead(this.#path, 0, () =>
        this.#file.read(chunk, 0, chunk.length, at),
      );
      if (count === 0) throw damaged(this.#hash);
      const part = chunk.subarray(0, count);
      hasher?.update(part);
      at += count;
      // The last chunk is held back until the hash is verified, so that wrong content is never delivered in full.
      if (at === end && hasher !== null) {
        if (textOf(hasher) !== this.#hash) throw damaged(this.#hash);
      }
      yield part;
    }
  }

  close(): Promise<void> {
    return this.#file.close();
  }
}

function textOf(hasher: IHasher): string {
  return Buffer.from(hasher.digest("binary")).toString("base64");
}

function damaged(hash: string): EngineError {
  return new EngineError("record-damaged", `The content ${hash} of an attachment is damaged.`);
}
