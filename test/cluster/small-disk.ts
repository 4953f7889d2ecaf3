/** A disk of few bytes that can be filled: a file system in memory, which only the superuser of Linux can mount. */
import { execFileSync } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export class SmallDisk {
  readonly folder: string;

  private constructor(folder: string) {
    this.folder = folder;
  }

  /** null: this process may not. */
  static mount(folder: string, megabytes: number): SmallDisk | null {
    mkdirSync(folder, { recursive: true });
    try {
      const options = `size=${megabytes}m,mode=0700`;
      execFileSync("mount", ["-t", "tmpfs", "-o", options, "tmpfs", folder], { stdio: "ignore" });
      return new SmallDisk(folder);
    } catch {
      return null;
    }
  }

  /** Takes all that is left. */
  fill(): void {
    const ballast = join(this.folder, "ballast");
    for (let bytes = 1 << 20; bytes >= 512; bytes >>= 1) {
      for (;;) {
        try {
          writeFileSync(ballast, Buffer.alloc(bytes), { flag: "a" });
        } catch {
          break;
        }
      }
    }
  }

  free(): void {
    rmSync(join(this.folder, "ballast"), { force: true });
  }

  unmount(): void {
    try {
      execFileSync("umount", ["-l", this.folder], { stdio: "ignore" });
    } catch {
      // Nothing of the project is on it; the system drops it at its end.
    }
  }
}
