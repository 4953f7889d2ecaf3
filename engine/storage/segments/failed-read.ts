/**
 * The meaning of failed reads. Only bytes that were read completely and fail verification, or are missing, count as
 * damage: a system error (no descriptor left, a device that does not respond) is no evidence about the bytes, may be
 * transient, and is not recorded.
 */
import { EngineError } from "../../base/errors.ts";
import { nextSlice } from "../../base/scheduling/time-slices.ts";

/** Number of attempts of a read, one per tick of the event loop: descriptors soon become free. */
const readTriesMax = 3;
const retryAfterSeconds = 1;

/** Returns whether the file does not exist. Then it is lost, and retrying is useless. */
export function isMissing(error: unknown): boolean {
  return (error as NodeJS.ErrnoException | null)?.code === "ENOENT";
}

/** System errors that may be transient. */
const passing: ReadonlySet<string> = new Set([
  "EAGAIN",
  "EBUSY",
  "EIO",
  "EMFILE",
  "ENFILE",
  "ENOMEM",
  "ETIMEDOUT",
]);

/** System errors that last until an operator intervenes. */
const lasting: ReadonlySet<string> = new Set([
  "EACCES",
  "EDQUOT",
  "EFBIG",
  "ENODEV",
  "ENOENT",
  "ENOSPC",
  "ENOTDIR",
  "ENXIO",
  "EPERM",
  "EROFS",
  "ESTALE",
]);

/**
 * Returns an error of opening a folder: read-failed for transient errors of the system, storage-failed for lasting
 * ones.
 */
export function openingFailed(folder: string, error: unknown): unknown {
  const code = (error as NodeJS.ErrnoException | null)?.code;
  if (error instanceof EngineError) return error;
  if (passing.has(String(code))) return readFailed(folder, error);
  return lasting.has(String(code)) ? storageFailed(folder, "opened", error) : error;
}

/** Returns whether it is a system error of files or devices. */
export function isSystemError(error: unknown): boolean {
  const code = String((error as NodeJS.ErrnoException | null)?.code);
  return passing.has(code) || lasting.has(code);
}

/** Returns the error for the writer of a file: storage-failed for errors of the system, others unchanged. */
export function writingFailed(path: string, error: unknown): unknown {
  if (error instanceof EngineError || !isSystemError(error)) return error;
  return storageFailed(path, "written", error);
}

function storageFailed(path: string, what: "opened" | "written", cause: unknown): EngineError {
  return new EngineError(
    "storage-failed",
    `${path} could not be ${what} (${(cause as Error).message}). Nothing is known to be damaged.`,
    { cause, details: { retryAfterSeconds } },
  );
}

/** Returns the error for the reader. An EngineError is returned unchanged. */
export function readFailed(path: string, cause: unknown): EngineError {
  if (cause instanceof EngineError) return cause;
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new EngineError(
    "read-failed",
    `${path} could not be read just now (${reason}). Nothing is known to be damaged; try again.`,
    { cause, details: { retryAfterSeconds } },
  );
}

export function isReadFailed(error: unknown): boolean {
  return error instanceof EngineError && error.code === "read-failed";
}

/** Retries `read` a few times. @returns `missing` when the file does not exist. @throws EngineError read-failed */
export async function triedRead<Result>(
  path: string,
  missing: Result,
  read: () => Promise<Result>,
): Promise<Result> {
  for (let tries = 1; ; tries++) {
    try {
      return await read();
    } catch (error) {
      if (isMissing(error)) return missing;
      if (error instanceof EngineError || tries === readTriesMax) throw readFailed(path, error);
      await nextSlice();
    }
  }
}
