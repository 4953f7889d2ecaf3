/**
 * One continuous backup: writes the commits of a database to a folder every few seconds.
 *
 * Invariants:
 * - It resumes where the files end. If the log no longer contains what follows, it writes a new base, so a gap between two
 *   files is never undetected.
 * - While a new base is written, the backup continues the files of the previous one.
 * - A failing destination is retried at increasing intervals. The database is not affected. Pending commits stay in its
 *   log up to a limit, beyond which the next attempt writes a new base.
 */
import type { Report } from "../../engine/base/environment.ts";
import { EngineError } from "../../engine/base/errors.ts";
import type { Database, Guest, Shipment, ShippedFile } from "../../engine/engine.ts";
import { dateText } from "../http/dates.ts";
import type { JsonObject } from "../http/json-body.ts";
import {
  type ContinuousSettings,
  continuousSettings,
  type PeriodicBackup,
  retentionMs,
} from "./backup-configuration.ts";
import type { OpenDestination } from "./backup-destination.ts";
import {
  type ContinuousFile,
  type ContinuousFiles,
  ContinuousFolder,
} from "./continuous-folder.ts";

const retryMsMax = 60_000;
/** A new base is written when the files that follow one exceed both its size and this many bytes, or a number of files. */
const framesBytesMin = 64 * 1024 * 1024;
const framesCountMax = 20_000;
/** Maximum time that a stopping server waits for the last commits to be written, in milliseconds. */
const lastShipMs = 10_000;

/** The dependencies of a continuous backup. */
interface ContinuousHost {
  readonly report: Report;
  nowMs(): number;
  /** The database was closed and must be found again. */
  ended(): void;
}

/** A base and the files that continue it. */
interface Generation {
  readonly folder: ContinuousFolder;
  readonly shipment: Shipment;
  readonly baseMs: number;
  readonly baseBytes: number;
  framesBytes: number;
  framesCount: number;
}

export class ContinuousBackup {
  readonly database: Database;
  readonly task: PeriodicBackup;
  readonly #host: ContinuousHost;
  readonly #settings: ContinuousSettings;
  readonly #destination: OpenDestination;
  /** Keeps the database open. */
  readonly #guest: Guest;
  #generation: Generation | null = null;
  /** The next base, while it is being written. */
  #coming: Promise<void> | null = null;
  #failures = 0;
  #error: { readonly message: string; readonly atMs: number } | null = null;
  #shippedMs: number | null = null;
  /** Time since which commits are pending, or null. */
  #waitingSinceMs: number | null = null;
  #timer: NodeJS.Timeout | undefined;
  #round: Promise<void> | null = null;
  #isClosed = false;
  /** Resolves when the backup has resumed where its files end, or has found that it cannot. */
  readonly resumed: Promise<void>;
  #hasResumed: () => void = () => undefined;

  constructor(
    host: ContinuousHost,
    database: Database,
    task: PeriodicBackup,
    destination: OpenDestination,
  ) {
    this.#host = host;
    this.database = database;
    this.task = task;
    this.#destination = destination;
    this.#settings = continuousSettings(task) as ContinuousSettings; // the task is continuous
    this.#guest = database.enter(true);
    this.resumed = new Promise((resolve) => {
      this.#hasResumed = resolve;
    });
    this.#in(0);
  }

  /** Stops the backup. Pending commits are written after it is resumed. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#hasResumed();
    this.#generation?.shipment.close();
    this.#guest.release();
  }

  /** Writes pending commits if that does not take long, and stops. Called when the server stops. */
  async finish(): Promise<void> {
    clearTimeout(this.#timer);
    let timer: NodeJS.Timeout | undefined;
    const tooLong = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, lastShipMs);
    });
    await Promise.race([this.#lastRounds(), tooLong]);
    clearTimeout(timer);
    this.close();
  }

  async #lastRounds(): Promise<void> {
    await this.#round;
    if (!this.#isClosed && this.#generation !== null) await this.ship();
  }

  /** Returns the progress and lag, as the status of a periodic backup with one more member. */
  status(): JsonObject {
    const generation = this.#generation;
    const timeText = (ms: number | null) => (ms === null ? null : dateText(new Date(ms)));
    const nowMs = this.#host.nowMs();
    const error = this.#error;
    const waitingBytes = generation?.shipment.waitingBytes ?? null;
    return {
      TaskId: this.task.TaskId,
      BackupType: "Backup",
      IsFull: false,
      NodeTag: this.database.nodeTag,
      LastFullBackup: timeText(generation?.baseMs ?? null),
      LastIncrementalBackup: timeText(this.#shippedMs),
      FolderName: generation?.folder.place.path ?? null,
      IsEncrypted: this.#destination.key !== null,
      Error: error === null ? null : { Exception: error.message, At: timeText(error.atMs) },
      Continuous: {
        Commit: generation?.shipment.point.number ?? null,
        WaitingBytes: waitingBytes,
        BehindInSec: waitingBytes === 0 ? 0 : this.#behindSeconds(nowMs),
        NewBase: this.#coming !== null,
        FilesSinceBase: generation?.framesCount ?? null,
        BytesSinceBase: generation?.framesBytes ?? null,
      },
    };
  }

  /** Writes pending commits. Also resolves on failure: see `status`. */
  ship(): Promise<void> {
    this.#round ??= this.#attempt().finally(() => {
      this.#round = null;
    });
    return this.#round;
  }

  #behindSeconds(nowMs: number): number | null {
    const sinceMs = this.#waitingSinceMs ?? this.#shippedMs;
    return sinceMs === null ? null : Math.max(0, Math.round((nowMs - sinceMs) / 1000));
  }

  #in(ms: number): void {
    clearTimeout(this.#timer);
    if (this.#isClosed) return;
    this.#timer = setTimeout(() => {
      const begunMs = performance.now();
      void this.ship().then(() => this.#in(this.#waitMs(performance.now() - begunMs)));
    }, ms);
    this.#timer.unref();
  }

  /** Time until the next round, after one that took `tookMs`. */
  #waitMs(tookMs: number): number {
    const { intervalMs } = this.#settings;
    return this.#failures === 0
      ? Math.max(0, intervalMs - tookMs)
      : Math.max(intervalMs, Math.min(retryMsMax, 1000 * 2 ** this.#failures));
  }

  async #attempt(): Promise<void> {
    if (this.database.hasEnded) {
      this.close();
      this.#host.ended();
      return;
    }
    try {
      await this.#shipAll();
      if (this.#failures > 0) this.#report("has resumed");
      this.#failures = 0;
      this.#error = null;
    } catch (error) {
      if (this.#isClosed || this.database.hasEnded) return;
      this.#failures++;
      const message = error instanceof Error ? error.message : String(error);
      this.#error = { message, atMs: this.#host.nowMs() };
      this.#waitingSinceMs ??= this.#shippedMs ?? this.#host.nowMs();
      // Logged for the first failure, and again after many.
      if (this.#failures % 60 === 1) this.#report("failed, and is retried", error);
    } finally {
      if (this.#generation !== null) this.#hasResumed();
    }
  }

  #report(what: string, cause?: unknown): void {
    const line = `The continuous backup '${this.task.Name}' of database '${this.database.name}' ${what}`;
    if (cause === undefined) this.#host.report(line);
    else this.#host.report(line, cause);
  }

  async #shipAll(): Promise<void> {
    this.#generation ??= (await this.#resume()) ?? (await this.#begin());
    if (this.#generation.shipment.isLost) {
      this.#report("lags too far and begins with a new base");
      this.#generation = await this.#begin();
    }
    const generation = this.#generation;
    await this.#shipTo(generation);
    if (this.#coming === null && this.#isDue(generation)) {
      this.#coming = this.#follow(generation).finally(() => {
        this.#coming = null;
      });
    }
  }

  /** Writes the commits pending at its start. Later commits wait for the next round, because each file costs syncs. */
  async #shipTo(generation: Generation): Promise<void> {
    const { shipment, folder } = generation;
    for (let isAll = false; !isAll; ) {
      const begunMs = this.#host.nowMs();
      const file = shipment.next();
      if (file !== null) {
        generation.framesBytes += await this.#write(folder, shipment, file);
        generation.framesCount++;
      }
      this.#shippedMs = this.#host.nowMs();
      if (this.#isClosed) return;
      isAll = file === null || file.head.etag !== null;
      if (isAll) this.#waitingSinceMs = shipment.waitingBytes === 0 ? null : begunMs;
    }
  }

  /** Writes contents first, so that a visible file never refers to missing contents. @returns size of the file in bytes */
  async #write(folder: ContinuousFolder, shipment: Shipment, file: ShippedFile): Promise<number> {
    try {
      for (const name of file.contents) await this.#writeContent(folder, shipment, name);
      const bytes = await folder.write(file.head, this.#whileOpen(file.bytes));
      file.taken();
      return bytes;
    } finally {
      file.release();
    }
  }

  /** Aborts writing of a file when the backup is closed. */
  async *#whileOpen(bytes: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
    for await (const piece of bytes) {
      if (this.#isClosed) throw new EngineError("database-stopped", "The backup was stopped.");
      yield piece;
    }
  }

  async #writeContent(folder: ContinuousFolder, shipment: Shipment, name: string): Promise<void> {
    try {
      await folder.writeContent(name, this.#whileOpen(shipment.content(name)));
    } catch (error) {
      // The content is damaged in the database too. Everything else is backed up.
      if (!(error instanceof EngineError) || error.code !== "record-damaged") throw error;
      this.#report(`omits the damaged content ${name} of an attachment`, error);
    }
  }

  /** Resumes where the files end. Returns null if there are none, or the log does not contain what follows. */
  async #resume(): Promise<Generation | null> {
    const folders = await this.#own();
    for (const folder of folders.reverse()) {
      const files = await folder.list();
      // Folders without a base are those of interrupted writes.
      if (files.base === null) continue;
      const isSame = folder.isEncrypted === (this.#destination.key !== null);
      return isSame ? await this.#resumeIn(folder, files.base, files) : null;
    }
    return null;
  }

  async #resumeIn(
    folder: ContinuousFolder,
    base: ContinuousFile,
    { frames, contents }: ContinuousFiles,
  ): Promise<Generation | null> {
    const { shipping } = this.database;
    try {
      const last = frames.at(-1) ?? base;
      const head = await folder.headOf(last.name);
      const newest = await folder.newest();
      if (newest.through.number > head.through.number) return null;
      const shipment = await shipping.resume(head.through, contents);
      if (shipment === null) return null;
      return {
        folder,
        shipment,
        baseMs: folder.begunMs,
        baseBytes: base.bytes,
        framesBytes: frames.reduce((sum, { bytes }) => sum + bytes, 0),
        framesCount: frames.length,
      };
    } catch (error) {
      if (!(error instanceof EngineError) || error.code !== "backup-damaged") throw error;
      this.#report("begins with a new base, because its files are damaged", error);
      return null;
    }
  }

  /** Folders of this database, oldest first. */
  async #own(): Promise<ContinuousFolder[]> {
    const { name, originTag } = this.database;
    const { place, key } = this.#destination;
    return (await ContinuousFolder.within(place, key)).filter(
      (folder) => folder.database === name && folder.nodeTag === originTag,
    );
  }

  async #begin(): Promise<Generation> {
    const { place, key } = this.#destination;
    await place.make();
    const { name, originTag } = this.database;
    const baseMs = this.#host.nowMs();
    const folder = await ContinuousFolder.make(place, key, name, originTag, baseMs);
    const { base, shipment } = this.database.shipping.begin();
    try {
      const baseBytes = await this.#write(folder, shipment, base);
      await this.#removeOld(folder);
      return { folder, shipment, baseMs, baseBytes, framesBytes: 0, framesCount: 0 };
    } catch (error) {
      shipment.close();
      await folder.remove().catch(() => undefined);
      throw error;
    }
  }

  /** Writes a new base and continues with it. */
  async #follow(before: Generation): Promise<void> {
    try {
      const next = await this.#begin();
      await this.#round;
      if (this.#isClosed) {
        next.shipment.close();
        return;
      }
      this.#generation = next;
      before.shipment.close();
    } catch (error) {
      if (this.#isClosed || this.database.hasEnded) return;
      this.#report("could not write a new base and continues the previous one", error);
    }
  }

  #isDue({ baseMs, baseBytes, framesBytes, framesCount }: Generation): boolean {
    const isOld = this.#host.nowMs() - baseMs >= this.#settings.baseAfterMs;
    const isLarge = framesBytes > Math.max(framesBytesMin, baseBytes);
    return framesCount > 0 && (isOld || isLarge || framesCount >= framesCountMax);
  }

  /** Removes folders beyond the retention of the task, if later folders cover the rest. */
  async #removeOld(newest: ContinuousFolder): Promise<void> {
    const keptMs = retentionMs(this.task);
    const own = await this.#own();
    for (const [i, folder] of own.entries()) {
      if (folder.place.path === newest.place.path) continue;
      const next = own[i + 1];
      const isOver =
        keptMs !== null && next !== undefined && this.#host.nowMs() - next.begunMs >= keptMs;
      if (isOver || (await folder.list()).base === null) await folder.remove();
    }
  }
}
