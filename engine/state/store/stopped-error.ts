/** The error of a database that does not serve. */
import { EngineError } from "../../base/errors.ts";
import { reopeningsMax } from "../../base/limits.ts";

/** Most databases are open again by then. */
const retryAfterSeconds = 1;

/** For a disk failure, the message of the operating system; other causes are in the log. */
function stopReason(cause: Error): string {
  if (!(cause instanceof EngineError)) return "an unexpected error, see the server's log.";
  return cause.cause instanceof Error ? `${cause.cause.message}.` : cause.message;
}

/**
 * Returns the error for requests to a database that has stopped because of `cause`.
 * @param waitMs milliseconds until it may be reopened; undefined: in progress; null: never, it was in memory
 */
export function stoppedError(
  name: string,
  cause: Error,
  waitMs: number | null | undefined,
): EngineError {
  const head = `Database '${name}' has stopped: ${stopReason(cause)}`;
  if (waitMs === null) {
    return new EngineError(
      "database-stopped",
      `${head} It is in memory only and cannot be reopened: delete it and create it again.`,
      { cause },
    );
  }
  const seconds = waitMs === undefined ? retryAfterSeconds : Math.ceil(waitMs / 1000);
  const remedy =
    waitMs === undefined
      ? "It is opened again from the disk, where everything is that was acknowledged. Try again."
      : `It was opened again ${reopeningsMax} times within an hour, and will be opened again in ${seconds} seconds, or when the server is restarted. The server's log says why it stopped.`;
  return new EngineError("database-stopped", `${head} ${remedy}`, {
    cause,
    details: { retryAfterSeconds: seconds },
  });
}
