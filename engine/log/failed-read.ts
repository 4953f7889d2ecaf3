/**
 * What a read that fails means. Damage is only what was read whole and does not verify, or is not there: a failure of the
 * system (no descriptor left, a device that does not answer) says nothing about the bytes, passes, and is not remembered.
 */
import { EngineError } from "../errors.ts";

/** A read is tried so many times, with a turn of the event loop between: descriptors come back in a moment. */
export const readTriesMax = 3;
const retryAfterSeconds = 1;

/** Is there no such file? Then it is lost, and no later try finds it. */
export function isMissing(error: unknown): boolean {
  return (error as NodeJS.ErrnoException | null)?.code === "ENOENT";
}

/** What the system answers when it cannot do something now that it may do later. */
const passing: ReadonlySet<string> = new Set([
  "EAGAIN",
  "EBUSY",
  "EIO",
  "EMFILE",
  "ENFILE",
  "ENOMEM",
  "ETIMEDOUT",
]);

/** An error of opening a folder: read-failed for what passes, others as they are. */
export function openingFailed(folder: string, error: unknown): unknown {
  const code = (error as NodeJS.ErrnoException | null)?.code;
  const isPassing = !(error instanceof EngineError) && passing.has(String(code));
  return isPassing ? readFailed(folder, error) : error;
}

/** The error for whoever wanted the bytes. One of the engine stays as it is. */
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

/** Tries `read` a few times. @returns `missing` when the file is not there. @throws EngineError read-failed */
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
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
  }
}
