/**
 * Whether a log may still write, and the consequences of disk errors.
 *
 * After a failed sync the state of the device is unknown, and the next sync may falsely succeed: so the first failure
 * stops the log for good, and only recovery may read its files again. A full device is no such failure: it is detected
 * before anything is acknowledged.
 */
import { EngineError } from "../base/errors.ts";

export class Health {
  #stopped: EngineError | null = null;
  /** Called once, when the log stops. */
  onStop: ((error: EngineError) => void) | null = null;

  /** The reason why the log has stopped, or null. */
  get stopped(): EngineError | null {
    return this.#stopped;
  }

  /** Stops the log for good; the first reason is kept. */
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
        // The listener may itself be broken; the first reason is the one that matters.
      }
    }
    return this.#stopped;
  }

  /** @throws EngineError database-stopped */
  check(): void {
    if (this.#stopped !== null) throw this.#stopped;
  }
}

/** Is the device, or the user's quota on it, full? */
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
