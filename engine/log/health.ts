/**
 * Whether a log can still be trusted to write, and what a failure of the disk means for it.
 *
 * A sync that failed leaves nobody knowing what is on the device, and the next sync may say that all is well: so
 * the first failure ends the log for good, and only recovery may look at its files again. A device that is full is
 * no such failure: it is found before anything is promised.
 */
import { EngineError } from "../errors.ts";

export class Health {
  #stopped: EngineError | null = null;
  /** Called once, when the log stops. */
  onStop: ((error: EngineError) => void) | null = null;

  /** The reason why the log has stopped, or null. */
  get stopped(): EngineError | null {
    return this.#stopped;
  }

  /** Stops the log for good; the first reason stays. */
  stop(cause: unknown): EngineError {
    if (this.#stopped === null) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      this.#stopped = new EngineError(
        "database-stopped",
        `The database has stopped: ${reason}. It must be opened again.`,
        { cause },
      );
      try {
        this.onStop?.(this.#stopped);
      } catch {
        // Whoever hears of it may be what is broken; the first reason is the one that matters.
      }
    }
    return this.#stopped;
  }

  /** @throws EngineError database-stopped */
  check(): void {
    if (this.#stopped !== null) throw this.#stopped;
  }
}

/** Has the device, or the user's share of it, no room? */
export function isDiskFull(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException | null)?.code;
  return code === "ENOSPC" || code === "EDQUOT";
}

export function diskFull(cause?: unknown): EngineError {
  return new EngineError(
    "disk-full",
    "The disk is full: nothing but deletions is written until there is space.",
    { cause },
  );
}
