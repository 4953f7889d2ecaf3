/**
 * Whether a log may still write, and the consequences of disk errors.
 *
 * After a failed sync the state of the device is unknown, and the next sync may falsely succeed: so the first failure
 * stops the log for good, and only recovery may read its files again. A full device is not such a failure: it is
 * detected before anything is acknowledged.
 */
import { EngineError } from "../../base/errors.ts";

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
      if (isOfCluster(cause)) return this.#stopFor(cause);
      const reason = cause instanceof Error ? cause.message : String(cause);
      return this.#stopFor(
        new EngineError(
          "database-stopped",
          `The database has stopped: ${reason}. It must be opened again.`,
          { cause },
        ),
      );
    }
    return this.#stopped;
  }

  #stopFor(error: EngineError): EngineError {
    this.#stopped = error;
    try {
      this.onStop?.(error);
    } catch {
      // The listener itself may fail; the first reason is the relevant one.
    }
    return error;
  }

  /** @throws EngineError database-stopped */
  check(): void {
    if (this.#stopped !== null) throw this.#stopped;
  }
}

/**
 * Returns whether the cause is that this node stopped leading. The disk is then intact, and writers are notified of the
 * outcome of their writes.
 */
export function isOfCluster(cause: unknown): cause is EngineError {
  if (!(cause instanceof EngineError)) return false;
  return cause.code === "not-leader" || cause.code === "outcome-unknown";
}

/** Returns whether the device, or the user's quota on it, is full. */
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
