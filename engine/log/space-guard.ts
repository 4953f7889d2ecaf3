/**
 * Says whether the device has too little room for anything but deletions, from `freeBytes` asked at a bounded rate
 * and from writes that failed. It heals by itself: a refused write asks again after a second.
 *
 * The operator is told once for each filling, however many databases meet it, and once more when there is room again: when
 * each of them has found twice its reserve, so that a device at the edge is not told of every second.
 */
import type { Clock, FileSystem, Report } from "../environment.ts";
import type { Disk } from "./segment-store.ts";

const checkIntervalMs = 1000;

/** Those that met a full device and have not yet found enough room, by the file system that they share. */
const fullGuards = new WeakMap<FileSystem, Set<SpaceGuard>>();

export class SpaceGuard {
  readonly #disk: Disk | null;
  readonly #clock: Clock;
  readonly #reserveBytes: number;
  readonly #report: Report;
  /** Of all databases: that of one disk may be a view of it. */
  readonly #files: FileSystem;
  #full = false;
  #checkedAtMs = Number.NEGATIVE_INFINITY;
  #checking: Promise<void> | null = null;
  /** Has this one told of the filling that it is in? */
  #isTold = false;

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

  /** Are writes refused? While they are, asking leads to a new look at the device, at most one a second. */
  isFull(): boolean {
    if (this.#full) this.wrote();
    return this.#full;
  }

  /** A write met a full device. */
  becameFull(): void {
    this.#full = true;
    this.#checkedAtMs = this.#clock.monotonicMs();
    this.#tellFull("A write found no room");
  }

  /** The database is closed: it does not keep others from telling. */
  close(): void {
    fullGuards.get(this.#files)?.delete(this);
  }

  #tellFull(what: string): void {
    if (this.#disk === null) return;
    const { folder } = this.#disk;
    const known = fullGuards.get(this.#files) ?? new Set();
    fullGuards.set(this.#files, known.add(this));
    if (known.size > 1 || this.#isTold) return;
    this.#isTold = true;
    const reserve = Math.round(this.#reserveBytes / 1024 ** 2);
    this.#report(
      `The disk of ${folder} is full. ${what}: until there is room again, writes are refused, but for deletions. ` +
        `The last ${reserve} MB are kept for those and for compaction, which give room back`,
    );
  }

  #tellRoom(): void {
    if (this.#disk === null) return;
    const { folder } = this.#disk;
    fullGuards.get(this.#files)?.delete(this);
    if (!this.#isTold) return;
    this.#isTold = false;
    this.#report(`The disk of ${folder} has room again: all writes are taken`);
  }

  /** Something was written: looks at the device if it was not looked at for a second. */
  wrote(): void {
    if (this.#disk === null || this.#checking !== null) return;
    if (this.#clock.monotonicMs() - this.#checkedAtMs < checkIntervalMs) return;
    this.check().catch(() => undefined);
  }

  /** Looks at the device now. */
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
    if (this.#full) this.#tellFull(`${Math.floor(free / 1024 ** 2)} MB are free`);
    else if (free >= 2 * this.#reserveBytes) this.#tellRoom();
  }
}
