/**
 * Says whether the device has too little room for anything but deletions, from `freeBytes` asked at a bounded rate
 * and from writes that failed. It heals by itself: a refused write asks again after a second.
 */
import type { Clock } from "../environment.ts";
import type { Disk } from "./segment-store.ts";

const checkIntervalMs = 1000;

export class SpaceGuard {
  readonly #disk: Disk | null;
  readonly #clock: Clock;
  readonly #reserveBytes: number;
  #full = false;
  #checkedAtMs = Number.NEGATIVE_INFINITY;
  #checking: Promise<void> | null = null;

  constructor(disk: Disk | null, clock: Clock, reserveBytes: number) {
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
  }
}
