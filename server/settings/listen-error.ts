/** The reason not to start when an address cannot be listened on. */
import { StartError } from "./start-error.ts";

/** `setting`: what names the address. */
export function listenErrorOf(url: string, setting: string, error: unknown): StartError {
  const { code, message } = error as { code?: unknown; message: string };
  if (code === "EADDRINUSE") {
    return new StartError(
      "port-in-use",
      `The port of ${url} is in use by another process; stop that one, or set ${setting} to another port`,
      { cause: error },
    );
  }
  return new StartError(
    "address-unavailable",
    `Cannot listen on ${url} (${message}); set ${setting} to an address of this machine and a port that you may use`,
    { cause: error },
  );
}
