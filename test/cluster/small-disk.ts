/**
 * A disk that can be filled: a file system in memory, which only the superuser of Linux can mount.
 * It uses as much memory as its contents, and is filled by shrinking it.
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, statfsSync } from "node:fs";

/** More than any run writes. */
const freeMegabytes = 8_192;
/** Slack for writes between reading the usage and setting the size. */
const triesMax = 50;

export class SmallDisk {
  readonly folder: string;

  private constructor(folder: string) {
    this.folder = folder;
  }

  /** null without the required privileges. */
  static mount(folder: string): SmallDisk | null {
    mkdirSync(folder, { recursive: true });
    try {
      const options = `size=${freeMegabytes}m,mode=0700`;
      execFileSync("mount", ["-t", "tmpfs", "-o", options, "tmpfs", folder], { stdio: "ignore" });
      return new SmallDisk(folder);
    } catch {
      return null;
    }
  }

  /** Fills the disk. @throws if that fails */
  fill(): void {
    for (let left = triesMax; ; left--) {
      const { blocks, bfree, bsize } = statfsSync(this.folder);
      try {
        this.#resize(`${(blocks - bfree) * bsize}`);
        return;
      } catch (error) {
        if (left === 0) throw error;
      }
    }
  }

  free(): void {
    this.#resize(`${freeMegabytes}m`);
  }

  #resize(size: string): void {
    execFileSync("mount", ["-o", `remount,size=${size}`, this.folder], { stdio: "ignore" });
  }

  unmount(): void {
    try {
      execFileSync("umount", ["-l", this.folder], { stdio: "ignore" });
    } catch {
      // It contains nothing of the project; the system removes it.
    }
  }
}
