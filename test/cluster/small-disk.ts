/**
 * A disk that can be filled: a file system in memory, which only the superuser of Linux can mount. It takes as much memory
 * as there is on it, and is full when it is made as small as that.
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, statfsSync } from "node:fs";

/** More than any run writes. */
const freeMegabytes = 8_192;
/** Between a look at what is used and the new size, something may be written. */
const triesMax = 50;

export class SmallDisk {
  readonly folder: string;

  private constructor(folder: string) {
    this.folder = folder;
  }

  /** null: this process may not. */
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

  /** Takes all that is left. @throws when that does not succeed */
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
      // Nothing of the project is on it; the system drops it at its end.
    }
  }
}
