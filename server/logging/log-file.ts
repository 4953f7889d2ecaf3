/**
 * A file of lines that is archived when it is large or a day old:
 *
 *   server.log                             lines are appended to this one
 *   server.2026-11-23T10-00-00-000Z.log    an archive, named by its end; with the suffix `.gz` if compressed
 *
 * Invariants:
 * - Lines are written in the order of the calls, each whole, with one write for all pending lines.
 * - At most `queueBytesMax` bytes are pending; further lines are dropped and counted, and so are lines that the disk
 *   refuses. The count is logged as a separate line as soon as possible.
 * - With `isSynced`, a batch is on the device before the next one begins.
 * - Archives that are too old or too many are deleted, and no other files.
 */
import { createReadStream, createWriteStream } from "node:fs";
import { type FileHandle, mkdir, open, readdir, rename, rm, unlink } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import type { ArchiveSettings } from "../settings/log-settings.ts";
import type { LogSink } from "./log.ts";
import { jsonLine, type LogEvent } from "./log-line.ts";
import { droppedEvent } from "./stream-sink.ts";

const queueBytesMax = 4 * 1024 * 1024;
const dayMs = 24 * 60 * 60 * 1000;
/** Minimum time between two reports that the file cannot be written, in milliseconds. */
const complaintMs = 60_000;

export interface LogFileOptions {
  readonly folder: string;
  /** The file's name without its extension. */
  readonly name: string;
  readonly archives: ArchiveSettings;
  /** Whether each batch of lines is synced. */
  readonly isSynced: boolean;
  /** Called at a limited rate when lines cannot be written. */
  readonly failed: (error: unknown) => void;
  readonly nowMs?: () => number;
}

export class LogFile implements LogSink {
  readonly #options: LogFileOptions;
  readonly #nowMs: () => number;
  readonly #path: string;
  #file: FileHandle | null;
  #bytes: number;
  /** Time of its first line, or null if it is empty. */
  #begunMs: number | null;
  #queue: string[] = [];
  #queuedBytes = 0;
  #untold = 0;
  #complainedMs = Number.NEGATIVE_INFINITY;
  #running: Promise<void> | null = null;
  #archiving: Promise<void> = Promise.resolve();
  droppedCount = 0;

  private constructor(options: LogFileOptions, file: FileHandle, bytes: number, begunMs: number) {
    this.#options = options;
    this.#nowMs = options.nowMs ?? Date.now;
    this.#path = pathOf(options);
    this.#file = file;
    this.#bytes = bytes;
    this.#begunMs = bytes === 0 ? null : begunMs;
  }

  /** Opens the file for appending, and creates its folder if needed. @throws errors of node:fs */
  static async open(options: LogFileOptions): Promise<LogFile> {
    await mkdir(options.folder, { recursive: true, mode: 0o700 });
    const file = await open(pathOf(options), "a", 0o600);
    const { size, birthtimeMs } = await file.stat();
    const log = new LogFile(options, file, size, birthtimeMs);
    await log.#deleteOld();
    return log;
  }

  write(event: LogEvent): void {
    const line = `${jsonLine(event)}\n`;
    if (this.#queuedBytes + line.length > queueBytesMax) {
      this.#lose(1);
      return;
    }
    this.#queue.push(line);
    this.#queuedBytes += line.length;
    this.#running ??= this.#run();
  }

  async close(): Promise<void> {
    await this.#running;
    await this.#archiving;
    await this.#file?.close();
    this.#file = null;
  }

  /** Never rejects. */
  async #run(): Promise<void> {
    while (this.#queue.length > 0) {
      const lines = this.#queue;
      this.#queue = [];
      this.#queuedBytes = 0;
      try {
        await this.#append(lines);
        if (this.#isDue) await this.#archive();
      } catch (error) {
        this.#lose(lines.length);
        this.#complain(error);
      }
    }
    this.#running = null;
  }

  async #append(lines: readonly string[]): Promise<void> {
    const nowMs = this.#nowMs();
    let text = lines.join("");
    const untold = this.#untold;
    if (untold > 0) text = `${jsonLine(droppedEvent(untold, nowMs))}\n${text}`;
    this.#file ??= await open(this.#path, "a", 0o600);
    const bytes = Buffer.from(text);
    for (let at = 0; at < bytes.length; ) {
      at += (await this.#file.write(bytes, at, bytes.length - at)).bytesWritten;
    }
    if (this.#options.isSynced) await this.#file.datasync();
    this.#untold -= untold;
    this.#bytes += bytes.length;
    this.#begunMs ??= nowMs;
  }

  #lose(count: number): void {
    this.droppedCount += count;
    this.#untold += count;
  }

  #complain(error: unknown): void {
    const nowMs = this.#nowMs();
    if (nowMs - this.#complainedMs < complaintMs) return;
    this.#complainedMs = nowMs;
    this.#options.failed(error);
  }

  get #isDue(): boolean {
    if (this.#bytes >= this.#options.archives.aboveBytes) return true;
    return this.#begunMs !== null && this.#nowMs() - this.#begunMs >= dayMs;
  }

  /** Archives the file. The next line starts another one. */
  async #archive(): Promise<void> {
    const { folder, name, archives } = this.#options;
    await this.#file?.close();
    this.#file = null;
    const stamp = new Date(this.#nowMs()).toISOString().replaceAll(/[:.]/g, "-");
    const path = join(folder, `${name}.${stamp}.log`);
    await rename(this.#path, path);
    this.#bytes = 0;
    this.#begunMs = null;
    this.#archiving = this.#archiving
      .then(() => (archives.isCompressed ? compressFile(path) : undefined))
      .then(() => this.#deleteOld())
      .catch((error: unknown) => this.#complain(error));
  }

  async #deleteOld(): Promise<void> {
    const { folder, name, archives } = this.#options;
    const found = (await readdir(folder)).flatMap((file) => {
      const endedMs = archivedAtMs(name, file);
      return endedMs === null ? [] : { file, endedMs };
    });
    found.sort((one, other) => other.endedMs - one.endedMs);
    const oldestMs = this.#nowMs() - archives.keepMs;
    const countMax = archives.countMax ?? Number.POSITIVE_INFINITY;
    for (const [at, { file, endedMs }] of found.entries()) {
      if (at >= countMax || endedMs < oldestMs) await unlink(join(folder, file));
    }
  }
}

function pathOf({ folder, name }: LogFileOptions): string {
  return join(folder, `${name}.log`);
}

/** Returns the end of the archive with this name, or null for other files. */
function archivedAtMs(name: string, file: string): number | null {
  if (!file.startsWith(`${name}.`)) return null;
  const pattern = /^(\d{4}-\d\d-\d\dT\d\d)-(\d\d)-(\d\d)-(\d{3})Z\.log(\.gz)?$/;
  const match = pattern.exec(file.slice(name.length + 1));
  if (match === null) return null;
  const [, hour, minute, second, ms] = match;
  return Date.parse(`${hour}:${minute}:${second}.${ms}Z`);
}

async function compressFile(path: string): Promise<void> {
  const temporary = `${path}.gz.tmp`;
  try {
    const target = createWriteStream(temporary, { mode: 0o600 });
    await pipeline(createReadStream(path), createGzip(), target);
    await rename(temporary, `${path}.gz`);
    await unlink(path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}
