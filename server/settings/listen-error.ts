/** The start error for an address that cannot be listened on. */
import { StartError } from "./start-error.ts";

/** `setting` is the name of the address's setting. */
export function listenErrorOf(url: string, setting: string, error: unknown): StartError {
  const { code, message } = error as { code?: unknown; message: string };
  if (code === "EADDRINUSE") {
    return new StartError(
      "port-in-use",
      `The port of ${url} is in use by another process. Stop that process, or set ${setting} to another port`,
      { cause: error },
    );
  }
  return new StartError(
    "address-unavailable",
    `Cannot listen on ${url} (${message}); set ${setting} to an address of this machine and a permitted port`,
    { cause: error },
  );
}
