/**
 * Detects that the device has too little space for writes other than deletions, by `freeBytes`, called at a limited
 * rate, and by failed writes. It recovers automatically: a refused write checks again after a second.
 *
 * The operator receives one message when the device fills up, however many databases are affected, and one when space
 * is available again: when each of them has found twice its reserve, so that a device at the limit does not cause a
 * message every second.
 */
import type { Clock, FileSystem, Report } from "../../base/environment.ts";
import type { Disk } from "../segments/segment-store.ts";

const checkIntervalMs = 1000;

/** Guards that found the device full and have not yet found enough space again, by the file system that they share. */
const fullGuards = new WeakMap<FileSystem, Set<SpaceGuard>>();

export class SpaceGuard {
  readonly #disk: Disk | null;
  readonly #clock: Clock;
  readonly #reserveBytes: number;
  readonly #report: Report;
  /** The file system of all databases: the one of a disk may be a wrapper around it. */
  readonly #files: FileSystem;
  #full = false;
  #checkedAtMs = Number.NEGATIVE_INFINITY;
  #checking: Promise<void> | null = null;
  /** Whether this guard has reported the current shortage. */
  #isReported = false;

  constructor(
    disk: Disk | null,
    files: FileSystem,
    clock: Clock,
    reserveBytes: number,
    report: Report = () => undefined,
  ) {
    this.#report = report;
    this.#files = files;
    this.#disk = disk;
    this.#clock = clock;
    this.#reserveBytes = reserveBytes;
  }

  /**
   * Returns whether writes are refused. While they are, calling this triggers a new check of the device, at most once a
   * second.
   */
  isFull(): boolean {
    if (this.#full) this.wrote();
    return this.#full;
  }

  /** A write failed for lack of space. */
  becameFull(): void {
    this.#full = true;
    this.#checkedAtMs = this.#clock.monotonicMs();
    this.#reportFull("A write found no room");
  }

  /** The database is closed: its guard no longer suppresses messages of others. */
  close(): void {
    fullGuards.get(this.#files)?.delete(this);
  }

  #reportFull(what: string): void {
    if (this.#disk === null) return;
    const { folder } = this.#disk;
    const known = fullGuards.get(this.#files) ?? new Set();
    fullGuards.set(this.#files, known.add(this));
    if (known.size > 1 || this.#isReported) return;
    this.#isReported = true;
    const reserve = Math.round(this.#reserveBytes / 1024 ** 2);
    this.#report(
      `The disk of ${folder} is full. ${what}: until there is room again, writes are refused, but for deletions. ` +
        `The last ${reserve} MB are kept for those and for compaction, which free space`,
      undefined,
      "disk-full",
    );
  }

  #reportSpace(): void {
    if (this.#disk === null) return;
    const { folder } = this.#disk;
    fullGuards.get(this.#files)?.delete(this);
    if (!this.#isReported) return;
    this.#isReported = false;
    const told = `The disk of ${folder} has room again: all writes are taken`;
    this.#report(told, undefined, "disk-has-room");
  }

  /** Something was written: checks the device unless it was checked within the last second. */
  wrote(): void {
    if (this.#disk === null || this.#checking !== null) return;
    if (this.#clock.monotonicMs() - this.#checkedAtMs < checkIntervalMs) return;
    this.check().catch(() => undefined);
  }

  /** Checks the device now. */
  check(): Promise<void> {
    this.#checking ??= this.#check().finally(() => {
      this.#checking = null;
    });
    return this.#checking;
  }

  async #check(): Promise<void> {
    if (this.#disk === null) return;
    this.#checkedAtMs = this.#clock.monotonicMs();
    const free = await this.#disk.files.freeBytes(this.#disk.folder);
    this.#full = free < this.#reserveBytes;
    if (this.#full) this.#reportFull(`${Math.floor(free / 1024 ** 2)} MB are free`);
    else if (free >= 2 * this.#reserveBytes) this.#reportSpace();
  }
}
