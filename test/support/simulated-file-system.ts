/**
 * A file system in memory that can lose power. It stores two versions of everything: the one
 * visible to programs, and the one on the device. Between them are pending operations: writes until
 * the file is synced, names until the folder is.
 *
 *   const files = new SimulatedFileSystem();
 *   files.onCall = (call) => (call.index === 17 ? { kind: "crash" } : undefined);
 *   ...                                     // every call from index 17 on fails with
 * SimulatedCrash
 *   const after = files.powerLoss(seed);    // a possible content of the device; nothing is pending
 *   const again = files.restart();          // only the process died: the system's memory is intact
 *
 * At a power loss each pending write is applied, dropped, torn (of its 512-byte sectors some are
 * old, some new, some garbage) or has only extended the file; each pending name is applied or
 * dropped, independently of the others.
 *
 * Invariants:
 * - The same calls, faults and seeds give the same bytes.
 */
import type {
  DirectoryLock,
  FileHandle,
  FileSystem,
  OpenMode,
} from "../../engine/base/environment.ts";
import { EngineError } from "../../engine/base/errors.ts";
import { SeededRandom } from "./random.ts";

const sectorBytes = 512;

type CallName =
  | "open"
  | "list"
  | "makeDirectory"
  | "rename"
  | "unlink"
  | "removeTree"
  | "syncDirectory"
  | "exists"
  | "freeBytes"
  | "lockDirectory"
  | "read"
  | "write"
  | "sync"
  | "truncate"
  | "size";

export interface SimulatedCall {
  /** Counts from 0 since the file system was created. */
  readonly index: number;
  readonly name: CallName;
  readonly path: string;
}

/**
 * "crash": this call may or may not reach the device, and no later one does.
 * "error": the call fails; a write has written `writtenShare` of its bytes before. A failed sync marks the pages as
 * clean, with their new content or (`revert`) with the device's.
 */
export type Fault =
  | { readonly kind: "crash" }
  | {
      readonly kind: "error";
      readonly code: string;
      readonly writtenShare?: number;
      readonly revert?: boolean;
    };

/** Thrown by every call after the crash. */
export class SimulatedCrash extends Error {
  override readonly name = "SimulatedCrash";
}

type FileOperation =
  | { readonly kind: "write"; readonly at: number; readonly bytes: Buffer }
  | { readonly kind: "truncate"; readonly length: number };

/** A file, independent of its name. */
interface Inode {
  /** The version that programs see. */
  current: Buffer;
  durable: Buffer;
  pending: FileOperation[];
}

/** A file, or a folder. */
type Entry = Inode | "folder";

interface NameOperation {
  readonly folder: string;
  /** A null entry removes the name. */
  readonly changes: readonly (readonly [path: string, entry: Entry | null])[];
}

export class SimulatedFileSystem implements FileSystem {
  /** Called before each call; returns the fault to inject. */
  onCall: ((call: SimulatedCall) => Fault | undefined) | undefined;
  /** Capacity of the device: bytes of all files together. */
  capacityBytes = Number.POSITIVE_INFINITY;
  callCount = 0;
  isCrashed = false;
  /** Every call so far, for tests to inspect. */
  readonly calls: SimulatedCall[] = [];
  readonly #current = new Map<string, Entry>();
  readonly #durable = new Map<string, Entry>();
  #pendingNames: NameOperation[] = [];
  readonly #locks = new Set<string>();
  #lockCount = 0;
  #mayHaveRival = false;

  /** `root` exists from the beginning. */
  constructor(root = "/data") {
    this.#current.set(root, "folder");
    this.#durable.set(root, "folder");
  }

  /** A possible state of the device after a power loss. This instance must not be used afterward. */
  powerLoss(seed: number): SimulatedFileSystem {
    const random = new SeededRandom(seed);
    this.isCrashed = true;
    const names = new Map(this.#durable);
    for (const operation of this.#pendingNames) {
      if (random.chance(0.5)) applyNames(names, operation);
    }
    const after = new SimulatedFileSystem();
    after.capacityBytes = this.capacityBytes;
    const survivors = new Map<Inode, Inode>();
    for (const [path, entry] of names) {
      if (!hasParent(names, path)) continue;
      const survivor = entry === "folder" ? entry : surviveOnce(survivors, entry, random);
      after.#current.set(path, survivor);
      after.#durable.set(path, survivor);
    }
    return after;
  }

  /** The files after the process died but the system did not: nothing is lost, and pending writes stay pending. */
  restart(): SimulatedFileSystem {
    const after = new SimulatedFileSystem();
    after.capacityBytes = this.capacityBytes;
    const copies = new Map<Inode, Inode>();
    const copy = (entry: Entry): Entry => {
      if (entry === "folder") return entry;
      const known = copies.get(entry);
      if (known !== undefined) return known;
      const { current, durable, pending } = entry;
      const created = { current: Buffer.from(current), durable, pending: [...pending] };
      copies.set(entry, created);
      return created;
    };
    for (const [path, entry] of this.#current) after.#current.set(path, copy(entry));
    for (const [path, entry] of this.#durable) after.#durable.set(path, copy(entry));
    after.#pendingNames = this.#pendingNames.map(({ folder, changes }) => ({
      folder,
      changes: changes.map(([path, entry]) => [path, entry === null ? null : copy(entry)] as const),
    }));
    return after;
  }

  /** Releases the locks of an owner that was stopped but may continue, so that others can take its folders. */
  abandonLocks(): void {
    this.#locks.clear();
    this.#mayHaveRival = true;
  }

  /** All files that programs see. */
  paths(): string[] {
    return [...this.#current].filter(([, entry]) => entry !== "folder").map(([path]) => path);
  }

  /** The bytes of a file, for tests to inspect. */
  content(path: string): Buffer {
    return this.#inode(path).current;
  }

  /** Changes a file directly, on the device too. */
  damage(path: string, change: (bytes: Buffer) => Buffer): void {
    const inode = this.#inode(path);
    inode.current = change(Buffer.from(inode.current));
    inode.durable = Buffer.from(inode.current);
    inode.pending = [];
  }

  /** Removes a file directly, on the device too. */
  remove(path: string): void {
    this.#current.delete(path);
    this.#durable.delete(path);
  }

  async open(path: string, mode: OpenMode): Promise<FileHandle> {
    await this.#call("open", path, () => {
      if (mode !== "create") return;
      this.#checkRoom(1);
      this.#checkParent(path);
      if (this.#current.has(path)) throw failure("EEXIST", path);
      const empty = Buffer.alloc(0);
      this.#changeNames(path, [[path, { current: empty, durable: empty, pending: [] }]]);
    });
    return new SimulatedFile(this, path, this.#inode(path));
  }

  async list(path: string): Promise<string[]> {
    await this.#call("list", path);
    if (this.#current.get(path) !== "folder") throw failure("ENOENT", path);
    const prefix = `${path}/`;
    const inside = [...this.#current.keys()].filter((name) => name.startsWith(prefix));
    const names = inside.map((name) => name.slice(prefix.length));
    return names.filter((name) => !name.includes("/"));
  }

  async makeDirectory(path: string): Promise<void> {
    await this.#call("makeDirectory", path, () => {
      const parts = path.split("/");
      for (let count = 2; count <= parts.length; count++) {
        const folder = parts.slice(0, count).join("/");
        if (this.#current.has(folder)) continue;
        this.#settleMoved(folder);
        this.#changeNames(folder, [[folder, "folder"]]);
      }
    });
  }

  async rename(source: string, target: string): Promise<void> {
    await this.#call("rename", target, () => {
      const moved = [...this.#current].filter(
        ([path]) => path === source || path.startsWith(`${source}/`),
      );
      if (moved.length === 0) throw failure("ENOENT", source);
      const changes = moved.flatMap(([path, entry]): NameOperation["changes"] => [
        [`${target}${path.slice(source.length)}`, entry],
        [path, null],
      ]);
      this.#changeNames(target, changes);
    });
  }

  async unlink(path: string): Promise<void> {
    await this.#call("unlink", path, () => {
      this.#inode(path);
      this.#changeNames(path, [[path, null]]);
    });
  }

  async removeTree(path: string): Promise<void> {
    await this.#call("removeTree", path, () => {
      const inside = [...this.#current.keys()].filter(
        (name) => name === path || name.startsWith(`${path}/`),
      );
      // Deepest first, one by one, like rm.
      for (const name of inside.sort((one, other) => other.length - one.length)) {
        this.#changeNames(name, [[name, null]]);
      }
    });
  }

  async syncDirectory(path: string): Promise<void> {
    await this.#call("syncDirectory", path);
    for (const operation of this.#pendingNames) {
      if (operation.folder === path) applyNames(this.#durable, operation);
    }
    this.#pendingNames = this.#pendingNames.filter((operation) => operation.folder !== path);
  }

  async exists(path: string): Promise<boolean> {
    await this.#call("exists", path);
    return this.#current.has(path);
  }

  async freeBytes(path: string): Promise<number> {
    await this.#call("freeBytes", path);
    return this.capacityBytes - this.usedBytes();
  }

  async lockDirectory(path: string): Promise<DirectoryLock> {
    await this.#call("lockDirectory", path);
    if (this.#locks.has(path)) throw new EngineError("database-locked", `${path} is in use.`);
    this.#locks.add(path);
    return {
      nonce: String(this.#lockCount++),
      mayHaveRival: this.#mayHaveRival,
      leaseSuffices: true,
      isLeased: () => true,
      prove: async () => undefined,
      onLost: () => undefined,
      release: async () => {
        this.#locks.delete(path);
      },
    };
  }

  usedBytes(): number {
    let bytes = 0;
    for (const entry of this.#current.values()) {
      if (entry !== "folder") bytes += entry.current.length;
    }
    return bytes;
  }

  /**
   * Simulates one call. `effect` changes the files as programs see them and the pending writes; it also runs for a
   * crash, because the call may have reached the device.
   */
  async #call(name: CallName, path: string, effect?: () => void): Promise<void> {
    const fault = await this.enter(name, path);
    if (fault?.kind === "error") throw failure(fault.code, path);
    effect?.();
    if (fault?.kind === "crash") throw new SimulatedCrash(`crash in ${name} of ${path}`);
  }

  /** For files: announces a call. @returns the fault to inject */
  async enter(name: CallName, path: string): Promise<Fault | undefined> {
    if (this.isCrashed) throw new SimulatedCrash("the system is gone");
    const call = { index: this.callCount++, name, path };
    this.calls.push(call);
    const fault = this.onCall?.(call);
    if (fault?.kind === "crash") {
      this.isCrashed = true;
      return fault;
    }
    // A sync takes longer than other calls, so that these can come in between.
    if (name === "sync") await new Promise<void>((resolve) => setImmediate(resolve));
    else await Promise.resolve();
    if (this.isCrashed) throw new SimulatedCrash("the system is gone");
    return fault;
  }

  /** How many of `wanted` more bytes fit on the device. */
  room(wanted: number): number {
    return Math.max(0, Math.min(wanted, this.capacityBytes - this.usedBytes()));
  }

  #checkRoom(bytes: number): void {
    if (this.room(bytes) < bytes) throw failure("ENOSPC", "a new file");
  }

  #checkParent(path: string): void {
    if (!hasParent(this.#current, path)) throw failure("ENOENT", path);
  }

  #changeNames(path: string, changes: NameOperation["changes"]): void {
    const operation = { folder: path.slice(0, path.lastIndexOf("/")), changes };
    applyNames(this.#current, operation);
    this.#pendingNames.push(operation);
  }

  /**
   * A name freed by moving a folder can be reused only once the move is on the device, because names are whole paths
   * here.
   */
  #settleMoved(path: string): void {
    const moved = this.#pendingNames.filter(({ changes }) =>
      changes.some(([name, entry]) => name === path && entry === null),
    );
    for (const operation of moved) applyNames(this.#durable, operation);
    this.#pendingNames = this.#pendingNames.filter((operation) => !moved.includes(operation));
  }

  #inode(path: string): Inode {
    const entry = this.#current.get(path);
    if (entry === undefined) throw failure("ENOENT", path);
    if (entry === "folder") throw failure("EISDIR", path);
    return entry;
  }
}

class SimulatedFile implements FileHandle {
  readonly #files: SimulatedFileSystem;
  readonly #path: string;
  readonly #inode: Inode;
  #isOpen = true;

  constructor(files: SimulatedFileSystem, path: string, inode: Inode) {
    this.#files = files;
    this.#path = path;
    this.#inode = inode;
  }

  async read(
    target: Uint8Array,
    offset: number,
    length: number,
    position: number,
  ): Promise<number> {
    await this.#simple("read");
    const source = this.#inode.current.subarray(position, position + length);
    target.set(source, offset);
    return source.length;
  }

  async write(source: Uint8Array, offset: number, length: number, position: number): Promise<void> {
    // The bytes are copied at the time of the call, as a thread might do.
    const bytes = Buffer.from(source.subarray(offset, offset + length));
    this.#checkOpen();
    const fault = await this.#files.enter("write", this.#path);
    const growth = Math.max(0, position + length - this.#inode.current.length);
    const missing = growth - this.#files.room(growth);
    const share = fault?.kind === "error" ? (fault.writtenShare ?? 0) : 1;
    const count = Math.min(Math.floor(length * share), length - missing);
    this.#change({ kind: "write", at: position, bytes: bytes.subarray(0, count) });
    if (fault?.kind === "crash") throw new SimulatedCrash("crash in a write");
    if (fault?.kind === "error") throw failure(fault.code, this.#path);
    if (missing > 0) throw failure("ENOSPC", this.#path);
  }

  async sync(): Promise<void> {
    this.#checkOpen();
    const fault = await this.#files.enter("sync", this.#path);
    if (fault?.kind === "crash") throw new SimulatedCrash("crash in a sync");
    const inode = this.#inode;
    if (fault?.kind === "error") {
      inode.pending = [];
      if (fault.revert === true) inode.current = Buffer.from(inode.durable);
      throw failure(fault.code, this.#path);
    }
    for (const operation of inode.pending) inode.durable = applied(inode.durable, operation);
    inode.pending = [];
  }

  async truncate(length: number): Promise<void> {
    await this.#simple("truncate");
    this.#change({ kind: "truncate", length });
  }

  async size(): Promise<number> {
    await this.#simple("size");
    return this.#inode.current.length;
  }

  /** Never fails: the process may be exiting. */
  async close(): Promise<void> {
    this.#isOpen = false;
  }

  async #simple(name: CallName): Promise<void> {
    this.#checkOpen();
    const fault = await this.#files.enter(name, this.#path);
    if (fault?.kind === "crash") throw new SimulatedCrash(`crash in ${name}`);
    if (fault?.kind === "error") throw failure(fault.code, this.#path);
  }

  #change(operation: FileOperation): void {
    this.#inode.current = applied(this.#inode.current, operation);
    this.#inode.pending.push(operation);
  }

  #checkOpen(): void {
    if (!this.#isOpen) throw failure("EBADF", this.#path);
  }
}

function failure(code: string, path: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`${code}: simulated, ${path}`), { code });
}

function applyNames(names: Map<string, Entry>, { changes }: NameOperation): void {
  for (const [path, entry] of changes) {
    if (entry === null) names.delete(path);
    else names.set(path, entry);
  }
}

function hasParent(names: ReadonlyMap<string, Entry>, path: string): boolean {
  const slash = path.lastIndexOf("/");
  if (slash <= 0) return true;
  const parent = path.slice(0, slash);
  return names.get(parent) === "folder" && hasParent(names, parent);
}

function applied(bytes: Buffer, operation: FileOperation): Buffer {
  if (operation.kind === "truncate") return resized(bytes, operation.length);
  const end = operation.at + operation.bytes.length;
  const target = end > bytes.length ? resized(bytes, end) : bytes;
  // Both versions may share their bytes: never write into them.
  const copy = target === bytes ? Buffer.from(bytes) : target;
  operation.bytes.copy(copy, operation.at);
  return copy;
}

function resized(bytes: Buffer, length: number): Buffer {
  const copy = Buffer.alloc(length);
  bytes.copy(copy, 0, 0, length);
  return copy;
}

function surviveOnce(known: Map<Inode, Inode>, inode: Inode, random: SeededRandom): Inode {
  const before = known.get(inode);
  if (before !== undefined) return before;
  let bytes = inode.durable;
  for (const operation of inode.pending) bytes = survived(bytes, operation, random);
  const survivor = { current: bytes, durable: bytes, pending: [] };
  known.set(inode, survivor);
  return survivor;
}

/** A possible effect of one pending operation on the device. */
function survived(bytes: Buffer, operation: FileOperation, random: SeededRandom): Buffer {
  const choice = random.below(4);
  if (choice === 0) return bytes;
  if (choice === 1 || operation.kind === "truncate") return applied(bytes, operation);
  const end = operation.at + operation.bytes.length;
  const target = end > bytes.length ? resized(bytes, end) : Buffer.from(bytes);
  if (choice === 2) return target;
  for (let at = operation.at; at < end; ) {
    const sectorEnd = Math.min(end, (Math.floor(at / sectorBytes) + 1) * sectorBytes);
    const from = at - operation.at;
    const part = operation.bytes.subarray(from, sectorEnd - operation.at);
    const fate = random.below(5);
    if (fate < 2) part.copy(target, at);
    else if (fate === 2) random.bytes(part.length).copy(target, at);
    at = sectorEnd;
  }
  return target;
}
