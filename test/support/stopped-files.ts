/**
 * The files of a process that is paused right before one of its changes reaches the disk, and later
 * resumes: that change is then executed late, and every further call fails, because the folder is
 * lost. See `FencedFiles`.
 */
import type {
  DirectoryLock,
  FileHandle,
  FileSystem,
  OpenMode,
} from "../../engine/base/environment.ts";
import { SimulatedCrash, type SimulatedFileSystem } from "./simulated-file-system.ts";

export class StoppedFiles implements FileSystem {
  /** Number of changes so far. */
  changeCount = 0;
  /** The late change: a call and its path; null before it. */
  late: string | null = null;
  readonly #files: SimulatedFileSystem;
  readonly #stopAt: number;
  #isOver = false;
  #goOn: () => void = () => undefined;
  readonly #going = new Promise<void>((resolve) => {
    this.#goOn = resolve;
  });

  /** `stopAt`: index of the late change, counted from 0. */
  constructor(files: SimulatedFileSystem, stopAt: number) {
    this.#files = files;
    this.#stopAt = stopAt;
  }

  get callCount(): number {
    return this.#files.callCount;
  }

  /** Makes the late change now. */
  goOn(): void {
    this.#isOver = true;
    this.#goOn();
  }

  async change<Result>(what: string, work: () => Promise<Result>): Promise<Result> {
    if (this.late !== null || this.#isOver) return await this.#fail();
    if (this.changeCount++ !== this.#stopAt) return await work();
    this.late = what;
    await this.#going;
    return await work();
  }

  /** A paused process reads nothing. */
  async look<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.late !== null || this.#isOver) return await this.#fail();
    return await work();
  }

  async #fail(): Promise<never> {
    await this.#going;
    throw new SimulatedCrash("the folder is another's");
  }

  async open(path: string, mode: OpenMode): Promise<FileHandle> {
    const open = () => this.#files.open(path, mode);
    const file = await (mode === "read" ? this.look(open) : this.change(`open ${path}`, open));
    return new StoppedFile(this, path, file);
  }

  list(path: string): Promise<string[]> {
    return this.look(() => this.#files.list(path));
  }

  makeDirectory(path: string): Promise<void> {
    return this.change(`makeDirectory ${path}`, () => this.#files.makeDirectory(path));
  }

  rename(source: string, target: string): Promise<void> {
    return this.change(`rename ${target}`, () => this.#files.rename(source, target));
  }

  unlink(path: string): Promise<void> {
    return this.change(`unlink ${path}`, () => this.#files.unlink(path));
  }

  removeTree(path: string): Promise<void> {
    return this.change(`removeTree ${path}`, () => this.#files.removeTree(path));
  }

  syncDirectory(path: string): Promise<void> {
    return this.change(`syncDirectory ${path}`, () => this.#files.syncDirectory(path));
  }

  exists(path: string): Promise<boolean> {
    return this.look(() => this.#files.exists(path));
  }

  freeBytes(path: string): Promise<number> {
    return this.look(() => this.#files.freeBytes(path));
  }

  lockDirectory(path: string): Promise<DirectoryLock> {
    return this.look(() => this.#files.lockDirectory(path));
  }
}

class StoppedFile implements FileHandle {
  readonly #files: StoppedFiles;
  readonly #path: string;
  readonly #file: FileHandle;

  constructor(files: StoppedFiles, path: string, file: FileHandle) {
    this.#files = files;
    this.#path = path;
    this.#file = file;
  }

  read(target: Uint8Array, offset: number, length: number, position: number): Promise<number> {
    return this.#files.look(() => this.#file.read(target, offset, length, position));
  }

  write(source: Uint8Array, offset: number, length: number, position: number): Promise<void> {
    // The bytes are those at the time of the call, as passed to the system's thread.
    const bytes = Buffer.from(source.subarray(offset, offset + length));
    return this.#files.change(`write ${this.#path}`, () =>
      this.#file.write(bytes, 0, length, position),
    );
  }

  sync(): Promise<void> {
    return this.#files.change(`sync ${this.#path}`, () => this.#file.sync());
  }

  truncate(length: number): Promise<void> {
    return this.#files.change(`truncate ${this.#path}`, () => this.#file.truncate(length));
  }

  size(): Promise<number> {
    return this.#files.look(() => this.#file.size());
  }

  close(): Promise<void> {
    return this.#file.close();
  }
}
